"""Container images: building them, listing them, and checking that an agent's image can hold a run."""

from engine.images.building import (
    ENV_IMAGE,
    GRADER_IMAGE,
    Image,
    Recipe,
    build,
    completed,
    find_image,
    list_images,
    make_base,
    recipes_for,
    require_image,
)
from engine.images.builds import ImageBuilds, follow_build
from engine.images.checking import CheckResult, check
from environment.runner.docker.daemon import connect

__all__ = [
    "ENV_IMAGE",
    "GRADER_IMAGE",
    "CheckResult",
    "Image",
    "ImageBuilds",
    "Recipe",
    "build",
    "check",
    "completed",
    "connect",
    "find_image",
    "follow_build",
    "list_images",
    "make_base",
    "recipes_for",
    "require_image",
]
