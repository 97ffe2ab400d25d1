"""Building images by the engine and following the build, for the command and the launch screen."""

from __future__ import annotations

import os
from collections.abc import Callable

from mlebench_console.engine.control import ask
from mlebench_console.engine.images import Image, completed, follow_build
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import BuildImages, StopBuild


def start_build(places: Places, order: BuildImages) -> None:
    """Start a build of images by the engine, and return; `engine.images.build_status` has its progress.

    Raises:
        Problem: the engine is not running, or is already building.
    """
    ask(places, completed(order, os.environ))


def build_images(places: Places, order: BuildImages, on_line: Callable[[str], None]) -> list[Image]:
    """Build images by the engine, wait, and return them; an interrupt stops the build.

    Args:
        places: the paths of the state whose engine builds.
        order: what to build, and how; files that it does not name are taken from the environment variables.
        on_line: called with each line of the build's log.

    Raises:
        Problem: the engine or Docker is not available, an image is unknown, or a build failed.
    """
    start_build(places, order)
    try:
        return follow_build(places.state_dir, on_line)
    except KeyboardInterrupt:
        ask(places, StopBuild())
        raise
