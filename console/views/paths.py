"""Completing the path of a file that a person types."""

from __future__ import annotations

import os
from pathlib import Path

_MOST_NAMES = 5000


def complete(typed: str) -> str | None:
    """The typed path, completed as far as the names on disk allow; None when nothing begins so."""
    folder, _, beginning = typed.rpartition("/")
    base = Path(folder + "/" if typed.startswith("/") or folder else ".").expanduser()
    names = _names(base, beginning)
    if not names:
        return None
    # Names are compared letter by letter, which is what is wanted here.
    common = os.path.commonprefix(names)  # noqa: RUF071 see above
    if len(names) == 1 and (base / common).is_dir():
        common += "/"
    completed = f"{folder}/{common}" if "/" in typed else common
    return completed if completed != typed else None


def _names(folder: Path, beginning: str) -> list[str]:
    try:
        with os.scandir(folder) as scan:
            names = [entry.name for _place, entry in zip(range(_MOST_NAMES), scan, strict=False)]
    except OSError:
        return []
    hidden = beginning.startswith(".")
    return [name for name in names if name.startswith(beginning) and (hidden or not name.startswith("."))]
