"""Building images: the engine is asked for it and followed until it has ended, by the command and the launch screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict

from engine.control import ask
from engine.images import Image, completed, follow_build
from engine.options.requests import BuildImages
from engine.places import Places


def start_build(places: Places, order: BuildImages) -> None:
    """Let the engine build images, and return; `engine.images.build_status` says how far that is.

    Raises:
        Problem: the engine is not there, or builds already.
    """
    ask(places, "image.build", asdict(completed(order, os.environ)))


def build_images(places: Places, order: BuildImages, on_line: Callable[[str], None]) -> list[Image]:
    """Let the engine build images, and return them; one that interrupts this stops the build.

    Args:
        places: whose engine builds.
        order: what is built, and how; files that it leaves out are as the environment says.
        on_line: gets each line of the build's log as it comes.

    Raises:
        Problem: the engine or Docker is not there, an image is not known, or a build failed.
    """
    start_build(places, order)
    try:
        return follow_build(places.state_dir, on_line)
    except KeyboardInterrupt:
        ask(places, "image.stop", {})
        raise
