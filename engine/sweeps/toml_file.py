"""Sweeps as TOML: a file that asks for one is read, one that is there is written; keys are the flags' names."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from competitions.registry import resembling, splits
from engine.options.sweep import LaunchForm
from foundation.problems import DataProblem, UsageProblem

_Read = Callable[[Any], Any]


def read_toml(path: Path) -> LaunchForm:
    """Read what a file asks for; relative paths in it are meant from its own folder.

    Raises:
        DataProblem: the file can't be read.
        UsageProblem: it says something that is not understood.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataProblem(f"{path} can't be read", str(error)) from error
    hints = get_type_hints(LaunchForm)
    said = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in hints:
            close = resembling(name, hints)
            known = f"Did you mean {close[0]}?" if close else f"Known are: {', '.join(hints)}."
            raise UsageProblem(f"{path}: a sweep has no '{key}'", "", known)
        wanted = get_args(hints[name])[0]
        read, text = _KINDS[wanted]
        said[name] = read(value)
        if said[name] is None:
            raise UsageProblem(f"{path}: '{key}' is not {text}", f"it says {value!r}")
    return _from_its_folder(LaunchForm(**said), path.absolute().parent)


def write_toml(form: LaunchForm) -> str:
    """Write what a form says, so that reading it says the same."""
    import tomli_w

    values = {name: list(value) if isinstance(value, tuple) else value for name, value in form.said().items()}
    return tomli_w.dumps(values)


def _from_its_folder(form: LaunchForm, folder: Path) -> LaunchForm:
    def found(text: str | None) -> str | None:
        return None if text is None else str(folder / Path(text).expanduser())

    named = form.split is None or form.split in splits()
    return replace(
        form,
        agents_dir=found(form.agents_dir),
        container_config=found(form.container_config),
        split=form.split if named else found(form.split),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) else None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    """A list of texts, or one text for a list of one."""
    found = [value] if isinstance(value, str) else value
    good = isinstance(found, list) and all(isinstance(item, str) for item in found)
    return tuple(found) if good else None


_KINDS: dict[Any, tuple[_Read, str]] = {
    str: (_text, "a text"),
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
    bool: (_truth, "true or false"),
    tuple[str, ...]: (_texts, "a list of texts"),
}
