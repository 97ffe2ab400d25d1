"""Keys in bursts, as over a slow link: what is typed behind a key that opens a field belongs into the field."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import events

from console.screens.base import ConsoleScreen

if TYPE_CHECKING:
    from console.app import ConsoleApp
    from console.keys import Key

# A field that is not there by then will not come; what follows is a key like any other.
_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.002


class TypeAhead:
    """Holds keys back from when a field is to open until it is open."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._held: list[events.Key] | None = None

    def holds(self, event: events.Event) -> bool:
        """Keep a key for later, if it came behind one that opens a field; tells whether it is kept."""
        if self._held is None or not isinstance(event, events.Key) or event.is_forwarded:
            return False
        self._held.append(event)
        return True

    def notice(self, event: events.Event) -> None:
        """Begin to hold keys back if this one opens a field."""
        if self._held is None and _opens_field(self._app, event):
            self._held = []
            self._app.run_worker(self._release(self._held), exit_on_error=False)

    async def _release(self, held: list[events.Key]) -> None:
        give_up = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while not _is_typing(self._app) and asyncio.get_running_loop().time() < give_up:
            await asyncio.sleep(_LOOK_SECONDS)
        self._held = None
        for event in held:
            self._app.post_message(event)


def _opens_field(app: ConsoleApp, event: events.Event) -> bool:
    if not isinstance(event, events.Key) or event.is_forwarded or _is_typing(app):
        return False
    screen = app.screen
    if not isinstance(screen, ConsoleScreen):
        return False
    known = app.settings.keys.of(*screen.contexts(), "app")
    return any(event.key in key.keys for key in known if _is_opener(key))


def _is_opener(key: Key) -> bool:
    return key.does in ("filter", "app.command_line") or key.does.startswith("ask(")


def _is_typing(app: ConsoleApp) -> bool:
    # Not every console ever opens a field, so its class need not be imported to ask for it.
    return app.focused is not None and app.focused._css_type_name == "Input"
