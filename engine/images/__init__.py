"""Container images: building them, listing them, and checking that an agent's image can hold a run."""

from engine.images.building import BuildSettings, build, usual_settings
from engine.images.checking import CheckResult, check
from engine.images.listing import Image, find_image, list_images, require_image
from engine.images.recipes import ENV_IMAGE, GRADER_IMAGE, Recipe, recipes_for
from environment.runner.docker.daemon import connect

__all__ = [
    "ENV_IMAGE",
    "GRADER_IMAGE",
    "BuildSettings",
    "CheckResult",
    "Image",
    "Recipe",
    "build",
    "check",
    "connect",
    "find_image",
    "list_images",
    "recipes_for",
    "require_image",
    "usual_settings",
]
