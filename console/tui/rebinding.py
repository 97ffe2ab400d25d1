"""Giving keys other meanings, as config.toml says: what clashes is refused, what would be hidden is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from console.tui.key_table import TABLE, Key
from console.tui.keys import SHOWN, KeyTable
from foundation.problems import UsageProblem

# Screens on which a log is read; the others show lists.
_WITH_LOG = frozenset({"run", "file", "merged"})
_WITH_MATRIX = frozenset({"sweep", "board", "experiment"})


def rebound(changes: Mapping[str, str]) -> KeyTable:
    """The table with keys replaced as config.toml says, `"sweep.relaunch" = "R,f5"`.

    Raises:
        UsageProblem: there is no such action, or the key already does something else there.
    """
    known = {key.id for key in TABLE}
    for name in changes:
        if name not in known:
            raise UsageProblem(
                f"config.toml rebinds '{name}', which no key does", "", "docs/keys.md lists the names."
            )
    table = tuple(
        replace(key, keys=tuple(_textual_name(part.strip()) for part in changes[key.id].split(",")))
        if key.id in changes
        else key
        for key in TABLE
    )
    _refuse_clashes(table)
    return KeyTable(table)


def shadowed(table: KeyTable, name: str) -> tuple[str, ...]:
    """What works wherever a key works too, and would no longer be reached because of it."""
    chosen = table.named(name)
    return tuple(
        key.id
        for key in table.keys
        if chosen.context != key.context
        and (chosen.context == "app" or _is_beside(key.context, chosen.context))
        and set(chosen.keys) & set(key.keys)
    )


def _is_beside(shared: str, context: str) -> bool:
    """Whether keys that several screens share work on a screen."""
    if shared == "log":
        return context in _WITH_LOG
    if shared == "matrix":
        return context in _WITH_MATRIX
    return shared == "app" or (shared == "list" and context not in _WITH_LOG)


def _textual_name(key: str) -> str:
    return next((name for name, known in SHOWN.items() if known == key), key)


def _refuse_clashes(table: Iterable[Key]) -> None:
    taken: dict[tuple[str, str], str] = {}
    for entry in table:
        for key in entry.keys:
            other = taken.setdefault((entry.context, key), entry.id)
            if other != entry.id:
                raise UsageProblem(f"the key '{key}' is given to both '{other}' and '{entry.id}'")
