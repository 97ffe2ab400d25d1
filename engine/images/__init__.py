"""Container images: building them, listing them, and checking that an agent's image can hold a run."""

from engine.images.building import (
    ENV_IMAGE,
    GRADER_IMAGE,
    BuildSettings,
    Image,
    Recipe,
    build,
    find_image,
    list_images,
    recipes_for,
    require_image,
    usual_settings,
)
from engine.images.builds import ImageBuilds, follow_build
from engine.images.checking import CheckResult, check
from environment.runner.docker.daemon import connect

__all__ = [
    "ENV_IMAGE",
    "GRADER_IMAGE",
    "BuildSettings",
    "CheckResult",
    "Image",
    "ImageBuilds",
    "Recipe",
    "build",
    "check",
    "connect",
    "find_image",
    "follow_build",
    "list_images",
    "recipes_for",
    "require_image",
    "usual_settings",
]
