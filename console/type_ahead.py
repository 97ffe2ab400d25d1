"""Keys in bursts, as over a slow link: what is typed behind a key that opens a field belongs into the field."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
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
    """Holds keys back from when a field is to open until it is open.

    Args:
        app: whose keys.
        take: what is done with a key otherwise.
    """

    def __init__(self, app: ConsoleApp, take: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app = app
        self._take = take
        self._held: deque[events.Key] | None = None

    async def on_event(self, event: events.Event) -> None:
        """Take an event, or hold it back if it is a key behind one that opens a field."""
        if not isinstance(event, events.Key) or event.is_forwarded:
            await self._take(event)
        elif self._held is not None:
            self._held.append(event)
        elif _opens_field(self._app, event):
            self._held = deque((event,))
            # Not here: a field is opened by messages that wait behind this event.
            self._app.run_worker(self._take_held(self._held))
        else:
            await self._take(event)

    async def _take_held(self, held: deque[events.Key]) -> None:
        """Take keys in their order, those too that come meanwhile."""
        while held:
            event = held.popleft()
            opens = _opens_field(self._app, event)
            await self._take(event)
            give_up = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
            while opens and not _is_typing(self._app) and asyncio.get_running_loop().time() < give_up:
                await asyncio.sleep(_LOOK_SECONDS)
        self._held = None


def _opens_field(app: ConsoleApp, event: events.Key) -> bool:
    screen = app.screen
    if _is_typing(app) or not isinstance(screen, ConsoleScreen):
        return False
    known = app.settings.keys.of(*screen.contexts(), "app")
    return any(event.key in key.keys for key in known if _is_opener(key))


def _is_opener(key: Key) -> bool:
    return key.does in ("filter", "app.command_line") or key.does.startswith("ask(")


def _is_typing(app: ConsoleApp) -> bool:
    # Not every console ever opens a field, so its class need not be imported to ask for it.
    return app.focused is not None and app.focused._css_type_name == "Input"
