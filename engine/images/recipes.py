"""What each image is made from: a folder, a Dockerfile, build arguments; nothing is built here."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.agents import Agent
from engine.agents.versions import folder_version
from foundation.problems import UsageProblem

ENV_IMAGE = "mlebench-env"
GRADER_IMAGE = "mlebench-grader"
LABEL = "mlebench.recipe"
_PACKAGES_OF_THE_GRADER = ("numpy", "pandas", "rapidfuzz")
_IGNORED = shutil.ignore_patterns("__pycache__", ".git", "agents")
# What agents' Dockerfiles expect to be given, as in MLE-bench.
_AGENT_ARGUMENTS = (
    ("SUBMISSION_DIR", "/home/submission"),
    ("LOGS_DIR", "/home/logs"),
    ("CODE_DIR", "/home/code"),
    ("AGENT_DIR", "/home/agent"),
)


@dataclass(frozen=True)
class Recipe:
    """How one image is built.

    Attributes:
        name: of the image.
        folders: what the build sees: this folder itself if it is one, else all of them side by side.
        dockerfile: what is followed.
        arguments: build arguments.
        on_a_base: whether it starts from an operating system's image and not from one of ours.
    """

    name: str
    folders: tuple[Path, ...]
    dockerfile: Path
    arguments: tuple[tuple[str, str], ...] = ()
    on_a_base: bool = False

    def version(self) -> str:
        """A hash of all that the build sees."""
        return "-".join(folder_version(folder) for folder in self.folders)

    @contextmanager
    def context(self) -> Iterator[Path]:
        """The folder that the build sees, put together where it has to be."""
        if len(self.folders) == 1:
            yield self.folders[0]
            return
        with TemporaryDirectory(prefix="mlebench-build-") as place:
            for folder in self.folders:
                shutil.copytree(folder, Path(place, folder.name), ignore=_IGNORED)
            yield Path(place)


def recipes_for(names: Iterable[str], agents: Iterable[Agent]) -> list[Recipe]:
    """Recipes by image name, in the order in which they must be built; all of them if none is named.

    Raises:
        UsageProblem: there is no such image, or nothing to build it from.
    """
    known = {ENV_IMAGE: _env_recipe(), GRADER_IMAGE: _grader_recipe()}
    for agent in agents:
        if agent.dockerfile is not None:
            known[agent.image_name] = Recipe(
                agent.image_name, (agent.folder,), agent.dockerfile, _AGENT_ARGUMENTS
            )
    wanted = set(names) or set(known)
    unknown = sorted(wanted - known.keys())
    if unknown:
        raise UsageProblem(f"there is no image '{unknown[0]}'", "", f"Known are: {', '.join(known)}.")
    return [recipe for name, recipe in known.items() if name in wanted]


def _env_recipe() -> Recipe:
    folder = _package("environment")
    return Recipe(ENV_IMAGE, (folder,), folder / "Dockerfile", on_a_base=True)


def _grader_recipe() -> Recipe:
    folders = tuple(_package(name) for name in ("competitions", "environment", "foundation"))
    requirements = " ".join(f"{name}=={version(name)}" for name in _PACKAGES_OF_THE_GRADER)
    dockerfile = _package("environment") / "Dockerfile.grader"
    return Recipe(GRADER_IMAGE, folders, dockerfile, (("REQUIREMENTS", requirements),), on_a_base=True)


def _package(name: str) -> Path:
    """Where one of our packages lies, installed or in a working tree."""
    from importlib.util import find_spec

    spec = find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
