"""Container images: building, listing and exporting them, and checking that an agent's image works for runs."""

from mlebench_console.engine.images.building import (
    ENV_IMAGE,
    GRADER_IMAGE,
    Image,
    NeededImage,
    Recipe,
    build,
    completed,
    find_image,
    images_of_runs,
    list_images,
    make_base,
    recipes_for,
    require_image,
    require_needed,
)
from mlebench_console.engine.images.builds import BuildStatus, ImageBuilds, build_status, follow_build
from mlebench_console.engine.images.checking import CheckResult, check
from mlebench_console.engine.images.exporting import export, exported, find_exported, import_image
from mlebench_console.environment.runner.docker.daemon import connect

__all__ = [
    "ENV_IMAGE",
    "GRADER_IMAGE",
    "BuildStatus",
    "CheckResult",
    "Image",
    "ImageBuilds",
    "NeededImage",
    "Recipe",
    "build",
    "build_status",
    "check",
    "completed",
    "connect",
    "export",
    "exported",
    "find_exported",
    "find_image",
    "follow_build",
    "images_of_runs",
    "import_image",
    "list_images",
    "make_base",
    "recipes_for",
    "require_image",
    "require_needed",
]
