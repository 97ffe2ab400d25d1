"""Changing one value in config.toml and leaving all else, remarks included, as the operator wrote it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from foundation import files
from foundation.problems import UsageProblem

Value = str | bool | int | float | list[str] | None


def write_value(config_file: Path, table: str, name: str, value: Value) -> None:
    """Set `name` in `[table]`, or take it out if the value is None.

    Raises:
        UsageProblem: the file can't be read or written, or is not laid out so that one line can be changed.
    """
    try:
        # A link to the file, as people keep them among their dotfiles, stays a link.
        place = config_file.resolve()
        before = place.read_text(encoding="utf-8") if place.exists() else ""
        wanted = _changed(tomllib.loads(before), table, name, value)
        after = with_value(before, table, name, value)
        if _parsed(after) != wanted:
            raise UsageProblem(
                f"{config_file} can't be changed by a line", "", f"Set {name} under [{table}] in it yourself."
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o600
        with files.replacing(place) as stream:
            # Addresses for notifications hold tokens: nobody may read more than before.
            Path(stream.name).chmod(mode)
            stream.write(after.encode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{config_file} can't be changed", str(error)) from error


def with_value(text: str, table: str, name: str, value: Value) -> str:
    """The text with one line replaced, added at the end of its table, or taken out."""
    line = None if value is None else _line(name, value)
    # Not splitlines: it also splits at characters that may stand in a value.
    lines = text.removesuffix("\n").split("\n") if text else []
    start = next((place for place, each in enumerate(lines) if _header(each) == table), None)
    if start is None:
        if line is None:
            return text
        gap = [""] if lines and lines[-1].strip() else []
        return _joined([*lines, *gap, f"[{table}]", line])
    end = next(
        (place for place in range(start + 1, len(lines)) if _header(lines[place]) is not None), len(lines)
    )
    for place in range(start + 1, end):
        if _name_of(lines[place]) == name:
            kept = [] if line is None else [line + _remark(lines[place])]
            return _joined([*lines[:place], *kept, *lines[place + 1 :]])
    if line is None:
        return text
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return _joined([*lines[:end], line, *lines[end:]])


def _changed(values: dict[str, Any], table: str, name: str, value: Value) -> dict[str, Any]:
    inside = values.setdefault(table, {}) if value is not None else values.get(table, {})
    if value is None:
        inside.pop(name, None)
    else:
        inside[name] = value
    return values


def _line(name: str, value: Value) -> str:
    import tomli_w

    # On one line: only single lines are ever replaced.
    return " ".join(part.strip() for part in tomli_w.dumps({name: value}).strip("\n").split("\n"))


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _header(line: str) -> str | None:
    """The table that a line opens, if it opens one."""
    stripped = line.strip()
    if not stripped.startswith("["):
        return None
    name, closed, _rest = stripped.strip("[").partition("]")
    return name.strip() if closed else None


def _name_of(line: str) -> str | None:
    """The name that a line gives a value to, if it does so alone."""
    values = _parsed(line)
    return next(iter(values)) if values is not None and len(values) == 1 and "=" in line else None


def _remark(line: str) -> str:
    """What is remarked behind a value, with the space before it."""
    whole = _parsed(line)
    for place, letter in enumerate(line):
        if letter == "#" and _parsed(line[:place]) == whole:
            code = line[:place].rstrip()
            return line[len(code) :]
    return ""


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
