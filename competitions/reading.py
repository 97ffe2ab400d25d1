"""Reading a `competition.toml` into a `Competition`; the format is described in docs/adding-a-competition.md."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from competitions.model import Competition
from foundation.problems import DataProblem


@cache
def read_competition(folder: Path) -> Competition:
    """Read the facts of the competition whose folder is given.

    Raises:
        DataProblem: the file is missing, no TOML, or a field is missing or not of its type.
    """
    path = folder / "competition.toml"
    try:
        facts = _stripped(tomllib.loads(path.read_text(encoding="utf-8")))
        files, obfuscation = facts.pop("files", {}), facts.pop("obfuscation", {})
        competition = msgspec.convert({**facts, **files, **obfuscation, "folder": folder}, Competition)
    except FileNotFoundError as error:
        raise DataProblem(f"{path} is missing") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise DataProblem(f"{path} cannot be read", str(error)) from error
    if competition.id != folder.name:
        raise DataProblem(f"{path} cannot be read", f"its id {competition.id!r} is not the folder's name")
    return competition


def _stripped(value: Any) -> Any:
    """The same without the blanks and line ends around texts, which are often written over several lines."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return {name: _stripped(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    return value
