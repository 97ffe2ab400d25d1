"""Building an image with the operator's own builder, because only that takes secrets (the SDK can't)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.images.listing import Image, require_image
from engine.images.recipes import LABEL, Recipe
from environment.runner.docker.daemon import find_host, is_podman
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient

_PROBE_SECONDS = 30
_BUILDKIT = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}
_TAIL_LINES = 3


@dataclass(frozen=True)
class BuildSettings:
    """What an operator chooses for builds.

    Attributes:
        base_image: in place of the Dockerfile's own; empty to leave that.
        heavy: install the large machine learning packages into the agents' environment.
        certificates: in place of the system's while packages are installed; kept out of the image.
        pip_configuration: a pip.conf, likewise.
        fresh: use nothing of earlier builds.
    """

    base_image: str = ""
    heavy: bool = False
    certificates: Path | None = None
    pip_configuration: Path | None = None
    fresh: bool = False


_CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
_PIP_CONFIGURATION = "PIP_CONFIG_FILE"


def usual_settings(operator: Mapping[str, str]) -> BuildSettings:
    """What the operator's environment says of the network that packages come through."""
    certificates = next((operator[name] for name in _CERTIFICATES if operator.get(name)), None)
    configuration = operator.get(_PIP_CONFIGURATION)
    return BuildSettings(
        certificates=Path(certificates) if certificates else None,
        pip_configuration=Path(configuration) if configuration else None,
    )


def build(client: APIClient, recipe: Recipe, settings: BuildSettings, tell: Callable[[str], None]) -> Image:
    """Build one image and find it.

    Args:
        client: of the daemon that the builder builds with.
        recipe: what to build.
        settings: the operator's choices.
        tell: gets each line that the builder prints.

    Raises:
        EnvironmentProblem: there is no builder, or the build failed.
    """
    builder = find_builder(os.environ, podman=is_podman(client))
    with recipe.context() as context:
        command = [*builder, *_arguments(recipe, settings), str(context)]
        _run(command, recipe.name, tell)
    return require_image(client, recipe.name)


def find_builder(operator: Mapping[str, str], *, podman: bool) -> list[str]:
    """The daemon's own builder on the PATH: another one's images would lie where the daemon does not look.

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


def _environment() -> dict[str, str]:
    # The builder must find the daemon that we have found.
    return {**os.environ, **_BUILDKIT, "DOCKER_HOST": find_host(os.environ)}


def _arguments(recipe: Recipe, settings: BuildSettings) -> list[str]:
    arguments = dict(recipe.arguments)
    if recipe.on_a_base:
        if settings.base_image:
            arguments["BASE_IMAGE"] = settings.base_image
        if settings.heavy:
            arguments["INSTALL_HEAVY_DEPENDENCIES"] = "true"
    secrets = (("ca", settings.certificates), ("pip", settings.pip_configuration))
    return [
        f"--tag={recipe.name}",
        f"--file={recipe.dockerfile}",
        f"--label={LABEL}={recipe.version()}",
        *(f"--build-arg={name}={value}" for name, value in arguments.items()),
        *(f"--secret=id={name},src={file}" for name, file in secrets if file is not None),
        *(["--no-cache"] if settings.fresh else []),
    ]


def _run(command: list[str], name: str, tell: Callable[[str], None]) -> None:
    last: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
    ) as process:
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace").rstrip()
                if line:
                    last = [*last, line][-_TAIL_LINES:]
                    tell(line)
        except BaseException:  # an interrupted build must not go on behind our back
            process.terminate()
            raise
    if process.returncode != 0:
        raise EnvironmentProblem(f"the image {name} could not be built", " | ".join(last))
