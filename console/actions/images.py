"""Building images: the engine is asked for it and followed until it has ended, by the command and the launch screen."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from engine.control import ask
from engine.images import Image, follow_build, usual_settings
from engine.options.requests import BuildImages
from engine.places import Places


def build_images(
    places: Places,
    names: Sequence[str],
    on_line: Callable[[str], None],
    *,
    agents_dir: str = "",
    base_image: str = "",
    heavy: bool = False,
    certificates: Path | None = None,
    pip_configuration: Path | None = None,
    fresh: bool = False,
) -> list[Image]:
    """Let the engine build images, and return them; one that interrupts this stops the build.

    Args:
        places: whose engine builds.
        names: which; all that are known if none.
        on_line: gets each line of the build's log as it comes.
        agents_dir: an agents folder in MLE-bench's format, searched before the built-in one.
        base_image: in place of the Dockerfile's own.
        heavy: install the large machine learning packages into the agents' environment.
        certificates: of a network that inspects TLS; as the environment says if not given.
        pip_configuration: a pip.conf, likewise.
        fresh: use nothing of earlier builds.

    Raises:
        Problem: the engine or Docker is not there, an image is not known, or a build failed.
    """
    usual = usual_settings(os.environ)
    order = BuildImages(
        names=tuple(names),
        agents_dir=_absolute(agents_dir.strip()),
        base_image=base_image,
        heavy=heavy,
        certificates=_absolute(certificates or usual.certificates),
        pip_configuration=_absolute(pip_configuration or usual.pip_configuration),
        fresh=fresh,
    )
    ask(places, "image.build", asdict(order) | {"names": list(order.names)})
    try:
        return follow_build(places.state_dir, on_line)
    except KeyboardInterrupt:
        ask(places, "image.stop", {})
        raise


def _absolute(path: str | Path | None) -> str:
    """A path as the engine finds it from where it works; empty for none."""
    return str(Path(path).expanduser().absolute()) if path else ""
