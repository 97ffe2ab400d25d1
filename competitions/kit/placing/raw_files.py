"""What the kit asks of raw files beyond their bytes: to be regular, to be walked through."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar, cast

from competitions.raw import RawPath

AnyPath = TypeVar("AnyPath", bound=RawPath)


def is_regular(path: RawPath) -> bool:
    """Whether it is a file itself, and no link to one."""
    return path.is_file() and not (isinstance(path, Path) and path.is_symlink())


def walk(folder: AnyPath) -> Iterator[tuple[AnyPath, list[str]]]:
    """A folder and all those below it, each with the names of what it holds besides folders."""
    if isinstance(folder, Path):  # it tells files from folders without a look at each
        for base, _, names in os.walk(folder):
            yield cast(AnyPath, Path(base)), names
        return
    inside = list(folder.iterdir())
    yield folder, [path.name for path in inside if not path.is_dir()]
    for path in inside:
        if path.is_dir():
            yield from walk(path)
