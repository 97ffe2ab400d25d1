"""Find and build images; the operator's own builder builds, because the SDK can't pass secrets."""

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

from engine.agents import CONFIG_NAME, IGNORED, Agent
from engine.images.dockerfiles import SECRETS, copied, with_secrets
from engine.options.requests import BuildImages
from environment.runner.docker.daemon import build_command, daemon_problems, find_host, is_podman
from foundation.folders import content_digest
from foundation.problems import EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from docker import APIClient

_PROBE_SECONDS = 30
_BUILDKIT = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}
_TAIL_LINES = 3
_STEP_LENGTH = 200
# How programs say that a host can't be reached.
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
# Labels of images: what one was built from; what mlebench-env was, which all that start from it inherit; and how
# that was built, to build it likewise again.
RECIPE_LABEL = "mlebench.recipe"
ENVIRONMENT_LABEL = "mlebench.environment"
_BASE_LABEL = "mlebench.base-image"
_HEAVY_LABEL = "mlebench.heavy"
NOT_BUILT = "is not built"
_DIGITS = 12
# As in environment/Dockerfile and Dockerfile.grader.
_DEFAULT_BASE = "ubuntu:24.04"
PACKAGES_OF_THE_GRADER = ("msgspec", "numpy", "pandas", "rapidfuzz", "scipy")
_NOT_COPIED = IGNORED | {"agents"}
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
        recipe: hash of the files that it was built from; empty for one that was not built here.
        environment: the same of the mlebench-env that it starts from; empty for one that starts from another.
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
        """A hash of all files that decide what is in the image; not an agent's config.yaml, which this host reads."""
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
        """Provide the folder that the build sees, put together of several where it has to be."""
        if len(self.folders) == 1:
            yield self.folders[0]
            return
        with TemporaryDirectory(prefix="mlebench-build-") as place:
            for folder in self.folders:
                shutil.copytree(folder, Path(place, folder.name), ignore=shutil.ignore_patterns(*_NOT_COPIED))
            yield Path(place)


def completed(order: BuildImages, operator: Mapping[str, str]) -> BuildImages:
    """The order with files as the operator's environment names them where it names none, found from anywhere."""

    def absolute(given: str, *variables: str) -> str:
        named = given or next((operator[name] for name in variables if operator.get(name)), "")
        return str(Path(named).expanduser().absolute()) if named else ""

    return replace(
        order,
        agents_dir=absolute(order.agents_dir.strip()),
        certificates=absolute(order.certificates, *SECRETS["ca"]),
        pip_configuration=absolute(order.pip_configuration, *SECRETS["pip"]),
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
    secrets = {
        name: file for name, file in (("ca", order.certificates), ("pip", order.pip_configuration)) if file
    }
    with recipe.context() as context, _followed(recipe.dockerfile, secrets) as dockerfile:
        try:
            _run([*builder, *_arguments(recipe, order, dockerfile, secrets), str(context)], doing, tell)
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
            known[agent.image_name] = _agent_recipe(agent)
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
    told = (labels.get(label, "") for label in (RECIPE_LABEL, ENVIRONMENT_LABEL))
    return Image(name, found["Id"], found["Created"], found["Size"], *told)


def require_image(client: APIClient, name: str) -> Image:
    """Find an image that something needs.

    Raises:
        EnvironmentProblem: it is not there.
    """
    found = find_image(client, name)
    if found is None:
        raise EnvironmentProblem(f"there is no image {name}", "", f"Build it: {build_command([name])}")
    return found


@dataclass(frozen=True)
class MeantImage:
    """An image as a run needs it.

    Attributes:
        labels: that it has when it was built from the files that are meant.
        files: which those are, in words.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    files: str

    def fault(self, client: APIClient) -> str:
        """Say what is wrong with the image that has its name; empty where that is the one that is meant.

        Raises:
            EnvironmentProblem: the daemon refuses.
        """
        found = find_image(client, self.name)
        return NOT_BUILT if found is None else self.fault_of(found.recipe, found.environment)

    def fault_of(self, recipe: str, environment: str) -> str:
        """Say what is wrong with an image that was built from these; empty where it is the one that is meant."""
        if not recipe:
            return "was not built by this program"
        has = {RECIPE_LABEL: recipe, ENVIRONMENT_LABEL: environment}
        wrong = [name for name, value in self.labels if has[name] != value]
        if not wrong:
            return ""
        if wrong == [ENVIRONMENT_LABEL]:
            return f"starts from an {ENV_IMAGE} that was built from other files"
        return f"was built from other files than {self.files}"


def images_of_runs(agent: Agent, *, kept: bool = False) -> tuple[MeantImage, MeantImage]:
    """Say which images an agent's runs need: its own and the grader's.

    Args:
        agent: as its folder is now.
        kept: whether that is a snapshot, which never changes.
    """
    recipe = _agent_recipe(agent)
    environment, grader = _versions_within_a_minute(int(time.monotonic() // 60))
    own = (
        (RECIPE_LABEL, _version_of_kept(recipe) if kept else recipe.version()),
        (ENVIRONMENT_LABEL, environment),
    )
    return (
        MeantImage(agent.image_name, own, f"those in {agent.folder}"),
        MeantImage(GRADER_IMAGE, ((RECIPE_LABEL, grader),), "those of this version"),
    )


@lru_cache(maxsize=64)
def _version_of_kept(recipe: Recipe) -> str:
    return recipe.version()


@lru_cache(maxsize=1)
def _versions_within_a_minute(_minute: int) -> tuple[str, str]:
    # Hashing all competitions takes a tenth of a second, too long for each start of a run.
    return _env_recipe().version(), _grader_recipe().version()


def require_meant(client: APIClient, image: MeantImage, agents_dir: str) -> None:
    """Refuse an image that is not the one that is meant.

    Raises:
        EnvironmentProblem: it is missing, or was built from other files.
    """
    if fault := image.fault(client):
        build = build_command([image.name], agents_dir)
        raise EnvironmentProblem(f"the image {image.name} {fault}", "", f"Build it: {build}")


def with_environment(
    client: APIClient, recipes: list[Recipe], order: BuildImages
) -> list[tuple[Recipe, BuildImages]]:
    """Put mlebench-env before what starts from it where that is missing or stale, built as it was the last time.

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


@contextmanager
def _followed(dockerfile: Path, secrets: Mapping[str, str]) -> Iterator[Path]:
    """Provide the Dockerfile that the builder follows: the same, where there is no secret to give to its steps."""
    if not secrets:
        yield dockerfile
        return
    with TemporaryDirectory(prefix="mlebench-build-") as place:
        followed = Path(place, dockerfile.name)
        followed.write_text(with_secrets(dockerfile.read_text(encoding="utf-8"), secrets), encoding="utf-8")
        ignore = dockerfile.with_name(f"{dockerfile.name}.dockerignore")
        if ignore.is_file():  # the builder looks for it beside the file that it follows
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


def _run(command: list[str], doing: str, tell: Callable[[str], None]) -> None:
    last: deque[str] = deque(maxlen=_TAIL_LINES)
    step = host = ""
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
                    found = _UNREACHED.search(line)
                    host = found.group(1) if found else host
                    found = _STEP.match(line)
                    step = _OURS.sub("", found.group(1)) if found else step
        except BaseException:  # an interrupted build must not go on behind our back
            process.terminate()
            raise
    if process.returncode != 0 and host and step:
        raise EnvironmentProblem(
            doing,
            f"its step '{step[:_STEP_LENGTH]}' needs {host}, which could not be reached",
            "Build it where that can be reached, or let the step use what this machine reaches.",
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
    """Return where one of our packages lies, installed or in a working tree."""
    from importlib.util import find_spec

    spec = find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
