"""Keys in bursts, as over a slow link: what is typed behind a key belongs where that key leads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from textual import events

from console.tui.screen import ConsoleScreen

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.widget import Widget

    from console.tui.app import ConsoleApp
    from console.tui.keys import Key

# A field that is not there by then will not come; what follows is a key like any other.
_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.002
# Textual gives letters to a field at once, but what other keys do only once they have gone through all of the
# field's ancestors; then what the field tells them of it goes the same way.
_PASSES = 2


class TypeAhead:
    """Holds keys back from when a field is to open until it is open, and behind one that edits or leaves it.

    Args:
        app: whose keys.
        take: what is done with a key otherwise.
    """

    def __init__(self, app: ConsoleApp, take: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app = app
        self._take = take
        self._held: deque[events.Key] | None = None

    async def on_event(self, event: events.Event) -> None:
        """Take an event, or hold it back if it is a key behind one that opens, edits or leaves a field."""
        if not isinstance(event, events.Key) or event.is_forwarded:
            await self._take(event)
        elif self._held is not None:
            self._held.append(event)
        elif _opens_field(self._app, event):
            self._held = deque((event,))
            # Not here: a field is opened by messages that wait behind this event.
            self._app.run_worker(self._take_held(self._held))
        else:
            worked = _field_worked(self._app, event)
            await self._take(event)
            if worked is not None:
                self._held = deque()
                self._app.run_worker(self._take_held(self._held, worked))

    async def _take_held(self, held: deque[events.Key], worked: Widget | None = None) -> None:
        """Take keys in their order, those too that come meanwhile, once a field has worked off its last one."""
        if worked is not None:
            await self._worked_off(worked)
        while held:
            event = held.popleft()
            opens, worked = _opens_field(self._app, event), _field_worked(self._app, event)
            await self._take(event)
            if opens:
                await self._until(lambda: _is_typing(self._app))
            if worked is not None:
                await self._worked_off(worked)
        self._held = None

    async def _worked_off(self, field: Widget) -> None:
        """Wait until a field has lost the focus, or a key has been worked off that leaves it there."""
        for node in [*field.ancestors_with_self] * _PASSES:
            if self._app.focused is field:
                await self._passed(node, field)

    async def _passed(self, node: DOMNode, field: Widget) -> None:
        passed = asyncio.Event()
        if node.call_later(passed.set):
            await self._until(lambda: passed.is_set() or self._app.focused is not field)

    async def _until(self, holds: Callable[[], bool]) -> None:
        give_up = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while not holds() and asyncio.get_running_loop().time() < give_up:
            await asyncio.sleep(_LOOK_SECONDS)


def _opens_field(app: ConsoleApp, event: events.Key) -> bool:
    screen = app.screen
    if _is_typing(app) or not isinstance(screen, ConsoleScreen):
        return False
    known = app.settings.keys.of(*screen.contexts(), "app")
    return any(event.key in key.keys for key in known if _is_opener(key))


def _field_worked(app: ConsoleApp, event: events.Key) -> Widget | None:
    return app.focused if not event.is_printable and _is_typing(app) else None


def _is_opener(key: Key) -> bool:
    return key.does in ("filter", "app.command_line") or key.does.startswith("ask(")


def _is_typing(app: ConsoleApp) -> bool:
    # Not every console ever opens a field, so its class need not be imported to ask for it.
    return app.focused is not None and "Input" in app.focused._css_type_names
