"""What is made of the table of keys: bindings, footer, help, and their names as people know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.binding import Binding, BindingType

from console.tui.key_table import TABLE, Context, Key

SHOWN = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "ampersand": "&",
    "number_sign": "#",
    "at": "@",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "space": "space",
    "escape": "esc",
    "pagedown": "PgDn",
    "pageup": "PgUp",
}
_ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "enter": "⏎"}


@dataclass(frozen=True)
class KeyTable:
    """The keys as they are in this console: the table with the operator's changes."""

    keys: tuple[Key, ...] = TABLE

    def of(self, *contexts: Context) -> tuple[Key, ...]:
        """The keys of some contexts, in the order of the contexts."""
        return tuple(key for context in contexts for key in self.keys if key.context == context)

    def named(self, name: str) -> Key:
        """The key of an id."""
        return next(key for key in self.keys if key.id == name)

    def footer(self, *contexts: Context) -> tuple[Key, ...]:
        """The keys that matter most in some contexts, in the footer's order."""
        shown = [key for key in self.of(*contexts) if key.footer is not None]
        return tuple(sorted(shown, key=lambda key: key.footer or 0))

    def keymap(self) -> dict[str, str]:
        """What differs from the table, as Textual wants to be told."""
        return {
            key.id: ",".join(key.keys)
            for key, original in zip(self.keys, TABLE, strict=True)
            if key.keys != original.keys
        }


def bindings(*contexts: Context) -> list[BindingType]:
    """The table's keys of some contexts as a Textual class wants them; rebinding is by their ids."""
    return [
        Binding(",".join(key.keys), key.does, key.label, show=False, id=key.id)
        for key in KeyTable().of(*contexts)
    ]


def shown_key(table: KeyTable, *, ascii_only: bool = False) -> Callable[[str], str]:
    """Make what tells the first key of an action, as people know it, by the action's id."""
    first = {key.id: key.keys[0] for key in table.keys}
    return lambda name: shown(first[name], ascii_only=ascii_only)


def shown(key: str, *, ascii_only: bool = False) -> str:
    """A key's name as people know it."""
    if key in _ARROWS:
        return key if ascii_only else _ARROWS[key]
    return SHOWN.get(key, key.replace("ctrl+", "^"))
