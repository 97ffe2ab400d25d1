"""Find and build images, with the operator's own builder, because the SDK can't pass secrets to builds."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mlebench_console.engine.agents import CONFIG_NAME, IGNORED, Agent
from mlebench_console.engine.images.dockerfiles import SECRETS, copied, with_secrets
from mlebench_console.engine.requests import BuildImages
from mlebench_console.environment.runner.docker.daemon import (
    build_command,
    daemon_problems,
    find_host,
    is_podman,
)
from mlebench_console.foundation.folders import content_digest
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from docker import APIClient

_PROBE_SECONDS = 30
_BUILDKIT = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}
_TAIL_LINES = 3
_STEP_LENGTH = 200
# Matches messages of programs that a host can't be reached.
_UNREACHED = re.compile(
    r"(?:resolve host(?:name)?:?|resolve|resolving|connect to|host=|unable to access 'https?://|request for url \(https?://)"
    r"[ ']*([a-z0-9-]+(?:\.[a-z0-9-]+)+)",
    re.IGNORECASE,
)
_STEP = re.compile(r"^ > \[ *(?:\S+ +)?\d+/\d+\] (.*?):?$")
_OURS = re.compile(r"--mount=type=secret,\S+ ")
_UNNAMED = "<none>:<none>"
ENV_IMAGE = "mlebench-env"
GRADER_IMAGE = "mlebench-grader"
# Labels of images: the hash of what it was built from; the same of its mlebench-env, inherited by all images on top
# of it; and the choices for mlebench-env, so that it can be built again with them.
RECIPE_LABEL = "mlebench.recipe"
ENVIRONMENT_LABEL = "mlebench.environment"
_BASE_LABEL = "mlebench.base-image"
_HEAVY_LABEL = "mlebench.heavy"
_DIGITS = 12
# As in environment/Dockerfile and Dockerfile.grader.
_DEFAULT_BASE = "ubuntu:24.04"
PACKAGES_OF_THE_GRADER = ("msgspec", "numpy", "pandas", "rapidfuzz", "scipy")
_NOT_COPIED = IGNORED | {"agents"}
# The build arguments that agents' Dockerfiles expect, as in MLE-bench.
_AGENT_ARGUMENTS = (
    ("SUBMISSION_DIR", "/home/submission"),
    ("LOGS_DIR", "/home/logs"),
    ("CODE_DIR", "/home/code"),
    ("AGENT_DIR", "/home/agent"),
)


@dataclass(frozen=True)
class Image:
    """One of our images.

    Attributes:
        name: its tag.
        digest: of its contents and settings, which identifies it for ever.
        created: as the daemon reports it, ISO 8601.
        bytes: its size including its base images.
        recipe: the hash of the files that it was built from; empty if it was not built here.
        environment: the same of the mlebench-env that it starts from; empty if it starts from another image.
    """

    name: str
    digest: str
    created: str
    bytes: int
    recipe: str
    environment: str = ""


@dataclass(frozen=True)
class Recipe:
    """How one image is built.

    Attributes:
        name: of the image.
        folders: the build context: the folder itself if there is one, otherwise all of them side by side.
        dockerfile: the Dockerfile.
        arguments: build arguments.
        on_a_base: whether it starts from an operating system's image instead of one of ours.
    """

    name: str
    folders: tuple[Path, ...]
    dockerfile: Path
    arguments: tuple[tuple[str, str], ...] = ()
    on_a_base: bool = False

    def version(self) -> str:
        """Return a hash of all files that affect the image, without an agent's config.yaml, which only hosts read."""
        if not self.on_a_base:
            config = self.folders[0] / CONFIG_NAME
            return content_digest(self.folders[0], ignored=IGNORED, left_out=[config])[:_DIGITS]
        total = hashlib.sha256(self.dockerfile.read_bytes() + repr(self.arguments).encode())
        for name in copied(self.dockerfile.read_text(encoding="utf-8")):
            for folder in self.folders:
                path = folder / name
                digest = (
                    path.read_bytes()
                    if path.is_file()
                    else content_digest(path, ignored=_NOT_COPIED).encode()
                )
                total.update(f"{folder.name}/{name}\n".encode() + hashlib.sha256(digest).digest())
        return total.hexdigest()[:_DIGITS]

    @contextmanager
    def context(self) -> Iterator[Path]:
        """Provide the build context, copied together if there are several folders."""
        if len(self.folders) == 1:
            yield self.folders[0]
            return
        with TemporaryDirectory(prefix="mlebench-build-") as place:
            for folder in self.folders:
                shutil.copytree(folder, Path(place, folder.name), ignore=shutil.ignore_patterns(*_NOT_COPIED))
            yield Path(place)


def completed(order: BuildImages, operator: Mapping[str, str]) -> BuildImages:
    """Return the order with absolute paths, and with files from the operator's environment where it has none."""

    def absolute(given: str, *variables: str) -> str:
        named = given or next((operator[name] for name in variables if operator.get(name)), "")
        return str(Path(named).expanduser().absolute()) if named else ""

    return replace(
        order,
        agents_dir=absolute(order.agents_dir.strip()),
        certificates=absolute(order.certificates, *SECRETS["ca"]),
        pip_configuration=absolute(order.pip_configuration, *SECRETS["pip"]),
    )


def build(client: APIClient, recipe: Recipe, order: BuildImages, on_line: Callable[[str], None]) -> Image:
    """Build and return one image.

    Args:
        client: of the daemon that the builder uses.
        recipe: what to build.
        order: the operator's choices.
        on_line: called with each line that the builder prints.

    Raises:
        EnvironmentProblem: there is no builder, or the build failed.
    """
    builder = find_builder(os.environ, podman=is_podman(client))
    doing = f"the image {recipe.name} could not be built"
    secrets = {
        name: file for name, file in (("ca", order.certificates), ("pip", order.pip_configuration)) if file
    }
    with recipe.context() as context, _with_secrets_in_steps(recipe.dockerfile, secrets) as dockerfile:
        try:
            _run([*builder, *_arguments(recipe, order, dockerfile, secrets), str(context)], doing, on_line)
        except EnvironmentProblem as problem:
            base = order.base_image or _DEFAULT_BASE
            # The builder's last lines contain the base image only if it could not be pulled.
            if not recipe.on_a_base or base not in problem.why or find_image(client, base) is not None:
                raise
            raise EnvironmentProblem(
                doing,
                f"its base image {base} is not on this machine and could not be pulled: {problem.why}",
                "Give an existing one with --base-image, or make one from this machine's packages: "
                "sudo mlebench-console images base",
            ) from problem
    return require_image(client, recipe.name)


def make_base(client: APIClient, name: str, on_line: Callable[[str], None]) -> Image:
    """Make a base image from this machine's Debian or Ubuntu packages, for hosts without an image registry.

    Raises:
        EnvironmentProblem: it needs root or a program that is missing, or it failed.
    """
    doing = f"the base image {name} could not be made"
    if os.geteuid() != 0:
        raise EnvironmentProblem(
            doing, "debootstrap needs root", f"Run: sudo mlebench-console images base {name}"
        )
    for program, package in (("debootstrap", "debootstrap"), ("docker", "docker-cli or docker.io")):
        if shutil.which(program) is None:
            raise EnvironmentProblem(doing, f"{program} is not installed", f"Install {package}.")
    _run(["bash", str(_package("environment") / "base-image.sh"), name], doing, on_line)
    return require_image(client, name)


def recipes_for(names: Iterable[str], agents: Iterable[Agent]) -> list[Recipe]:
    """Return the recipes of images in the order in which they must be built; by default of all images.

    Raises:
        UsageProblem: there is no such image, or nothing to build it from.
    """
    known = {ENV_IMAGE: _env_recipe(), GRADER_IMAGE: _grader_recipe()}
    for agent in agents:
        if agent.dockerfile is not None:
            known[agent.image_name] = _agent_recipe(agent)
    wanted = set(names) or set(known)
    unknown = sorted(wanted - known.keys())
    if unknown:
        raise UsageProblem(f"there is no image '{unknown[0]}'", "", f"Choose one of {', '.join(known)}.")
    return [recipe for name, recipe in known.items() if name in wanted]


def find_image(client: APIClient, name: str) -> Image | None:
    """Return an image by its name; None where there is none.

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
    recipe, environment = (labels.get(label, "") for label in (RECIPE_LABEL, ENVIRONMENT_LABEL))
    return Image(name, found["Id"], found["Created"], found["Size"], recipe, environment)


def require_image(client: APIClient, name: str) -> Image:
    """Return an image that is needed.

    Raises:
        EnvironmentProblem: it does not exist.
    """
    found = find_image(client, name)
    if found is None:
        raise EnvironmentProblem(f"there is no image {name}", "", f"Build it: {build_command([name])}")
    return found


@dataclass(frozen=True)
class NeededImage:
    """An image that a run needs, built from the current files.

    Attributes:
        labels: of the image that was built from these files.
        files: a description of these files.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    files: str

    def fault(self, client: APIClient) -> str:
        """Return what the existing image of this name is instead of the needed one, as text; empty if it is that.

        Raises:
            EnvironmentProblem: the daemon refuses.
        """
        found = find_image(client, self.name)
        return "not built" if found is None else self.fault_of(found.recipe, found.environment)

    def fault_of(self, recipe: str, environment: str) -> str:
        """Return what an image of this recipe and environment is instead of the needed one; empty if it is that."""
        if not recipe:
            return "not built by this program"
        has = {RECIPE_LABEL: recipe, ENVIRONMENT_LABEL: environment}
        wrong = [name for name, value in self.labels if has[name] != value]
        if not wrong:
            return ""
        if wrong == [ENVIRONMENT_LABEL]:
            return f"built on an {ENV_IMAGE} of other files"
        return f"built from other files than {self.files}"


def images_of_runs(agent: Agent, *, kept: bool = False) -> tuple[NeededImage, NeededImage]:
    """Return the images that an agent's runs need: its own and the grader's.

    Args:
        agent: the agent.
        kept: whether its folder is a snapshot, which never changes.
    """
    recipe = _agent_recipe(agent)
    environment, grader = _versions_within_a_minute(int(time.monotonic() // 60))
    own = (
        (RECIPE_LABEL, _version_of_kept(recipe) if kept else recipe.version()),
        (ENVIRONMENT_LABEL, environment),
    )
    return (
        NeededImage(agent.image_name, own, f"those in {agent.folder}"),
        NeededImage(GRADER_IMAGE, ((RECIPE_LABEL, grader),), "those of this version"),
    )


@lru_cache(maxsize=64)
def _version_of_kept(recipe: Recipe) -> str:
    return recipe.version()


@lru_cache(maxsize=1)
def _versions_within_a_minute(_minute: int) -> tuple[str, str]:
    # Hashing all competitions takes a tenth of a second, which is too long for each start of a run.
    return _env_recipe().version(), _grader_recipe().version()


def require_needed(client: APIClient, image: NeededImage, agents_dir: str) -> None:
    """Check that an image exists and was built from the current files.

    Raises:
        EnvironmentProblem: it is missing, or was built from other files.
    """
    if fault := image.fault(client):
        build = build_command([image.name], agents_dir)
        raise EnvironmentProblem(f"the image {image.name} is {fault}", "", f"Build it: {build}")


def with_environment(
    client: APIClient, recipes: list[Recipe], order: BuildImages
) -> list[tuple[Recipe, BuildImages]]:
    """Prepend mlebench-env to images that start from it, if it is missing or stale, with its last choices.

    Raises:
        EnvironmentProblem: the daemon refuses.
    """
    orders = [(recipe, order) for recipe in recipes]
    environment = _env_recipe()
    if all(recipe.on_a_base for recipe in recipes) or any(recipe.name == ENV_IMAGE for recipe in recipes):
        return orders
    found = find_image(client, ENV_IMAGE)
    if found is not None and found.recipe == environment.version():
        return orders
    base, heavy = _choices(client) if found is not None else ("", "")
    again = replace(order, base_image=order.base_image or base, heavy=order.heavy or bool(heavy))
    return [(environment, again), *orders]


def _choices(client: APIClient) -> tuple[str, str]:
    with daemon_problems(f"the image {ENV_IMAGE} can't be looked up"):
        labels = (client.inspect_image(ENV_IMAGE).get("Config") or {}).get("Labels") or {}
    return labels.get(_BASE_LABEL, ""), labels.get(_HEAVY_LABEL, "")


def list_images(client: APIClient) -> list[Image]:
    """List all images that were built here, by name.

    Raises:
        EnvironmentProblem: the daemon refuses.
    """
    with daemon_problems("the images can't be listed"):
        found: list[dict[str, Any]] = client.images(filters={"label": RECIPE_LABEL})
    names = sorted(
        {tag.removesuffix(":latest") for one in found for tag in one.get("RepoTags") or () if tag != _UNNAMED}
    )
    return [image for name in names if (image := find_image(client, name)) is not None]


def find_builder(operator: Mapping[str, str], *, podman: bool) -> list[str]:
    """Return the daemon's own builder on the PATH; the daemon would not see the images of another builder.

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


@contextmanager
def _with_secrets_in_steps(dockerfile: Path, secrets: Mapping[str, str]) -> Iterator[Path]:
    """Provide the Dockerfile with the secrets in each step; without secrets, the original one."""
    if not secrets:
        yield dockerfile
        return
    with TemporaryDirectory(prefix="mlebench-build-") as place:
        followed = Path(place, dockerfile.name)
        followed.write_text(with_secrets(dockerfile.read_text(encoding="utf-8"), secrets), encoding="utf-8")
        ignore = dockerfile.with_name(f"{dockerfile.name}.dockerignore")
        if ignore.is_file():  # the builder looks for it beside the Dockerfile
            shutil.copy(ignore, place)
        yield followed


def _arguments(recipe: Recipe, order: BuildImages, dockerfile: Path, secrets: Mapping[str, str]) -> list[str]:
    arguments, version = dict(recipe.arguments), recipe.version()
    labels = {RECIPE_LABEL: version}
    if recipe.on_a_base:
        if order.base_image:
            arguments["BASE_IMAGE"] = order.base_image
        if order.heavy:
            arguments["INSTALL_HEAVY_DEPENDENCIES"] = "true"
    if recipe.name == ENV_IMAGE:
        labels |= {
            ENVIRONMENT_LABEL: version,
            _BASE_LABEL: order.base_image,
            _HEAVY_LABEL: "yes" if order.heavy else "",
        }
    return [
        f"--tag={recipe.name}",
        f"--file={dockerfile}",
        *(f"--label={name}={value}" for name, value in labels.items()),
        *(f"--build-arg={name}={value}" for name, value in arguments.items()),
        *(f"--secret=id={name},src={file}" for name, file in secrets.items()),
        *(["--no-cache"] if order.fresh else []),
    ]


def _run(command: list[str], doing: str, on_line: Callable[[str], None]) -> None:
    last: deque[str] = deque(maxlen=_TAIL_LINES)
    step = host = ""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # The builder must use the same daemon as we do.
        env={**os.environ, **_BUILDKIT, "DOCKER_HOST": find_host(os.environ)},
    ) as process:
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace").rstrip()
                if line:
                    last.append(line)
                    on_line(line)
                    found = _UNREACHED.search(line)
                    host = found.group(1) if found else host
                    found = _STEP.match(line)
                    step = _OURS.sub("", found.group(1)) if found else step
        except BaseException:  # an interrupted build must not continue in the background
            process.terminate()
            raise
    if process.returncode != 0 and host and step:
        raise EnvironmentProblem(
            doing,
            f"its step '{step[:_STEP_LENGTH]}' needs {host}, which could not be reached",
            "Build it where this host can be reached, or change the step to use another host.",
        )
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


def _agent_recipe(agent: Agent) -> Recipe:
    dockerfile = agent.dockerfile or agent.folder / "Dockerfile"
    return Recipe(agent.image_name, (agent.folder,), dockerfile, _AGENT_ARGUMENTS)


def _package(name: str) -> Path:
    """Return the folder of one of our packages, installed or in a working tree."""
    from importlib.util import find_spec

    spec = find_spec(f"mlebench_console.{name}")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).resolve().parent  # in a working tree, the package's folder is a link
