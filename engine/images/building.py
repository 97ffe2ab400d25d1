"""Find and build images; the operator's own builder builds, because the SDK can't pass secrets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.agents import Agent, folder_version
from engine.options.requests import BuildImages
from environment.runner.docker.daemon import daemon_problems, find_host, is_podman
from foundation.problems import EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from docker import APIClient

_PROBE_SECONDS = 30
_BUILDKIT = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}
_TAIL_LINES = 3
_CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
_PIP_CONFIGURATION = "PIP_CONFIG_FILE"
_UNNAMED = "<none>:<none>"
ENV_IMAGE = "mlebench-env"
GRADER_IMAGE = "mlebench-grader"
LABEL = "mlebench.recipe"
# As in environment/Dockerfile and Dockerfile.grader.
_DEFAULT_BASE = "ubuntu:24.04"
PACKAGES_OF_THE_GRADER = ("msgspec", "numpy", "pandas", "rapidfuzz", "scipy")
_IGNORED = shutil.ignore_patterns("__pycache__", ".git", "agents")
# What agents' Dockerfiles expect to be given, as in MLE-bench.
_AGENT_ARGUMENTS = (
    ("SUBMISSION_DIR", "/home/submission"),
    ("LOGS_DIR", "/home/logs"),
    ("CODE_DIR", "/home/code"),
    ("AGENT_DIR", "/home/agent"),
)


@dataclass(frozen=True)
class Image:
    """One image of ours.

    Attributes:
        name: as given when it was built.
        digest: of its contents and settings; it names an image for ever.
        created: as the daemon tells it, ISO 8601.
        bytes: its size with all that it starts from.
        recipe: hash of the folder that it was built from; empty for one that was not built here.
    """

    name: str
    digest: str
    created: str
    bytes: int
    recipe: str


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
        """Provide the folder that the build sees, put together of several where it has to be."""
        if len(self.folders) == 1:
            yield self.folders[0]
            return
        with TemporaryDirectory(prefix="mlebench-build-") as place:
            for folder in self.folders:
                shutil.copytree(folder, Path(place, folder.name), ignore=_IGNORED)
            yield Path(place)


def completed(order: BuildImages, operator: Mapping[str, str]) -> BuildImages:
    """The order with files as the operator's environment names them where it names none, found from anywhere."""

    def absolute(given: str, *variables: str) -> str:
        named = given or next((operator[name] for name in variables if operator.get(name)), "")
        return str(Path(named).expanduser().absolute()) if named else ""

    return replace(
        order,
        agents_dir=absolute(order.agents_dir.strip()),
        certificates=absolute(order.certificates, *_CERTIFICATES),
        pip_configuration=absolute(order.pip_configuration, _PIP_CONFIGURATION),
    )


def build(client: APIClient, recipe: Recipe, order: BuildImages, tell: Callable[[str], None]) -> Image:
    """Build one image and find it.

    Args:
        client: of the daemon that the builder builds with.
        recipe: what to build.
        order: the operator's choices.
        tell: gets each line that the builder prints.

    Raises:
        EnvironmentProblem: there is no builder, or the build failed.
    """
    builder = find_builder(os.environ, podman=is_podman(client))
    doing = f"the image {recipe.name} could not be built"
    with recipe.context() as context:
        try:
            _run([*builder, *_arguments(recipe, order), str(context)], doing, tell)
        except EnvironmentProblem as problem:
            base = order.base_image or _DEFAULT_BASE
            # The builder names the base in its last words only where it could not get it.
            if not recipe.on_a_base or base not in problem.why or find_image(client, base) is not None:
                raise
            raise EnvironmentProblem(
                doing,
                f"its base image {base} is not on this machine and could not be pulled: {problem.why}",
                "Name one that is here with --base-image, or make one of this machine's own packages: "
                "sudo mlebench-console images base",
            ) from problem
    return require_image(client, recipe.name)


def make_base(client: APIClient, name: str, tell: Callable[[str], None]) -> Image:
    """Make a base image of this machine's own Debian or Ubuntu packages, where no image registry has to be reached.

    Raises:
        EnvironmentProblem: it takes root or a program that is missing, or it failed.
    """
    doing = f"the base image {name} could not be made"
    if os.geteuid() != 0:
        raise EnvironmentProblem(
            doing, "debootstrap needs root", f"Run: sudo mlebench-console images base {name}"
        )
    for program, package in (("debootstrap", "debootstrap"), ("docker", "docker-cli or docker.io")):
        if shutil.which(program) is None:
            raise EnvironmentProblem(doing, f"{program} is not installed", f"Install {package}.")
    _run(["bash", str(_package("environment") / "base-image.sh"), name], doing, tell)
    return require_image(client, name)


def recipes_for(names: Iterable[str], agents: Iterable[Agent]) -> list[Recipe]:
    """Return the recipes of images in the order in which they must be built; all of them if none is named.

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


def find_image(client: APIClient, name: str) -> Image | None:
    """Find an image by its name.

    Raises:
        EnvironmentProblem: the daemon refuses.
    """
    from docker.errors import ImageNotFound

    with daemon_problems(f"the image {name} can't be looked up"):
        try:
            found: dict[str, Any] = client.inspect_image(name)
        except ImageNotFound:
            return None
    labels = (found.get("Config") or {}).get("Labels") or {}
    return Image(name, found["Id"], found["Created"], found["Size"], labels.get(LABEL, ""))


def require_image(client: APIClient, name: str) -> Image:
    """Find an image that something needs.

    Raises:
        EnvironmentProblem: it is not there.
    """
    found = find_image(client, name)
    if found is None:
        raise EnvironmentProblem(
            f"there is no image {name}", "", f"Build it: mlebench-console images build {name}"
        )
    return found


def list_images(client: APIClient) -> list[Image]:
    """List all images that were built here, by name.

    Raises:
        EnvironmentProblem: the daemon refuses.
    """
    with daemon_problems("the images can't be listed"):
        found: list[dict[str, Any]] = client.images(filters={"label": LABEL})
    names = sorted(
        {tag.removesuffix(":latest") for one in found for tag in one.get("RepoTags") or () if tag != _UNNAMED}
    )
    return [image for name in names if (image := find_image(client, name)) is not None]


def find_builder(operator: Mapping[str, str], *, podman: bool) -> list[str]:
    """Find the daemon's own builder on the PATH; another builder's images would lie where the daemon does not look.

    Raises:
        EnvironmentProblem: there is none, or it can't build with secrets.
    """
    name = "podman" if podman else "docker"
    for folder in operator.get("PATH", os.defpath).split(os.pathsep):
        program = Path(folder or ".", name)
        if os.access(program, os.X_OK) and _takes_secrets(program):
            return [str(program), "build"]
    raise EnvironmentProblem(
        "images can't be built here",
        f"no {'podman' if podman else 'docker with BuildKit'} was found on the PATH",
        f"Install {'podman' if podman else 'docker with its buildx plugin'}.",
    )


def _takes_secrets(program: Path) -> bool:
    try:
        asked = subprocess.run(
            [program, "build", "--help"],
            capture_output=True,
            env={**os.environ, **_BUILDKIT},
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0 and b"--secret" in asked.stdout


def _arguments(recipe: Recipe, order: BuildImages) -> list[str]:
    arguments = dict(recipe.arguments)
    if recipe.on_a_base:
        if order.base_image:
            arguments["BASE_IMAGE"] = order.base_image
        if order.heavy:
            arguments["INSTALL_HEAVY_DEPENDENCIES"] = "true"
    secrets = (("ca", order.certificates), ("pip", order.pip_configuration))
    return [
        f"--tag={recipe.name}",
        f"--file={recipe.dockerfile}",
        f"--label={LABEL}={recipe.version()}",
        *(f"--build-arg={name}={value}" for name, value in arguments.items()),
        *(f"--secret=id={name},src={file}" for name, file in secrets if file),
        *(["--no-cache"] if order.fresh else []),
    ]


def _run(command: list[str], doing: str, tell: Callable[[str], None]) -> None:
    last: deque[str] = deque(maxlen=_TAIL_LINES)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # The builder must find the daemon that we have found.
        env={**os.environ, **_BUILDKIT, "DOCKER_HOST": find_host(os.environ)},
    ) as process:
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace").rstrip()
                if line:
                    last.append(line)
                    tell(line)
        except BaseException:  # an interrupted build must not go on behind our back
            process.terminate()
            raise
    if process.returncode != 0:
        raise EnvironmentProblem(doing, " | ".join(last))


def _env_recipe() -> Recipe:
    folder = _package("environment")
    return Recipe(ENV_IMAGE, (folder,), folder / "Dockerfile", on_a_base=True)


def _grader_recipe() -> Recipe:
    folders = tuple(_package(name) for name in ("competitions", "environment", "foundation"))
    requirements = " ".join(f"{name}=={version(name)}" for name in PACKAGES_OF_THE_GRADER)
    dockerfile = _package("environment") / "Dockerfile.grader"
    return Recipe(GRADER_IMAGE, folders, dockerfile, (("REQUIREMENTS", requirements),), on_a_base=True)


def _package(name: str) -> Path:
    """Return where one of our packages lies, installed or in a working tree."""
    from importlib.util import find_spec

    spec = find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
