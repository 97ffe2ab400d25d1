"""Which images the daemon has, and under which digest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.images.recipes import LABEL
from environment.runner.docker.daemon import telling
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient

_UNNAMED = "<none>:<none>"


@dataclass(frozen=True)
class Image:
    """One image of ours.

    Attributes:
        name: as given when it was built.
        digest: of its contents and settings; it names an image for ever.
        created: as the daemon tells it, ISO 8601.
        bytes: its size with all that it starts from.
        recipe: hash of the folder that it was built from; empty for one that was not built here.
    """

    name: str
    digest: str
    created: str
    bytes: int
    recipe: str


def find_image(client: APIClient, name: str) -> Image | None:
    """Find an image by its name.

    Raises:
        EnvironmentProblem: the daemon refuses.
    """
    from docker.errors import ImageNotFound

    with telling(f"the image {name} can't be looked up"):
        try:
            found: dict[str, Any] = client.inspect_image(name)
        except ImageNotFound:
            return None
    labels = (found.get("Config") or {}).get("Labels") or {}
    return Image(name, found["Id"], found["Created"], found["Size"], labels.get(LABEL, ""))


def require_image(client: APIClient, name: str) -> Image:
    """Find an image that something needs.

    Raises:
        EnvironmentProblem: it is not there.
    """
    found = find_image(client, name)
    if found is None:
        raise EnvironmentProblem(
            f"there is no image {name}", "", f"Build it: mlebench-console images build {name}"
        )
    return found


def list_images(client: APIClient) -> list[Image]:
    """All images that were built here, by name.

    Raises:
        EnvironmentProblem: the daemon refuses.
    """
    with telling("the images can't be listed"):
        found: list[dict[str, Any]] = client.images(filters={"label": LABEL})
    names = sorted(
        {tag.removesuffix(":latest") for one in found for tag in one.get("RepoTags") or () if tag != _UNNAMED}
    )
    return [image for name in names if (image := find_image(client, name)) is not None]
