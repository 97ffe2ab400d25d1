"""What a console does about what a launch lacks: building images, as `images build` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from engine.agents import find_agents
from engine.images import ENV_IMAGE, build, connect, find_image, recipes_for, usual_settings
from engine.places import own_agents_folder


def build_images(names: Sequence[str], agents_dir: str, tell: Callable[[str], None]) -> str:
    """Build images in order and say so; `tell` gets each line of the builder. It takes minutes.

    Raises:
        Problem: Docker or a recipe is not there, or a build failed.
    """
    own = [Path(agents_dir.strip()).expanduser()] if agents_dir.strip() else []
    agents = find_agents([*own, own_agents_folder()]).agents
    client = connect()
    base = [] if find_image(client, ENV_IMAGE) is not None else [ENV_IMAGE]
    for recipe in recipes_for([*base, *names], agents):
        said = partial(_said, recipe.name, tell)
        said("begun")
        build(client, recipe, usual_settings(os.environ), said)
    return f"built: {', '.join(names)}"


def _said(name: str, tell: Callable[[str], None], line: str) -> None:
    tell(f"{name}: {line}")
