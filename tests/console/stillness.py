"""Waiting until nothing is on its way to the screen: whatever draws late is waited for by name, not by time."""

from __future__ import annotations

import threading
from typing import Any

from textual.pilot import Pilot

from console.tui.app import ConsoleApp
from console.tui.widgets.log_view import LogView

PATIENCE_STEPS = 1500
_LOOK_SECONDS = 0.1
_SAME_LOOKS = 4


async def stillness(app: ConsoleApp, pilot: Pilot[Any]) -> None:
    """Wait until nothing that could change the screen is under way, and it has not changed."""
    seen: list[str] = []
    for _step in range(PATIENCE_STEPS):
        await pilot.pause(_LOOK_SECONDS)
        if under_way(app):
            seen.clear()
            continue
        if not seen:
            # What only a tick draws, such as that a slow read is over, need not be waited for.
            app._tick()
        seen.append("".join(strip.text for strip in app.screen._compositor.render_strips()))
        if len(seen) >= _SAME_LOOKS and len(set(seen[-_SAME_LOOKS:])) == 1:
            return
    raise AssertionError(f"never still: {', '.join(under_way(app)) or 'it changes by itself'}")


def under_way(app: ConsoleApp) -> list[str]:
    """What may yet change the screen."""
    screen, reader = app.screen, app.reader
    found = {
        "the state is being read": reader._busy_since is not None
        or any(watch.due for watch in reader._watches.values()),
        "what was read is not told yet": app.condition is not reader._condition,
        "the engine is being looked at": app.engine is None,
        "a thread works for a screen": any(each.name == "console-work" for each in threading.enumerate()),
        "keys are held back": any(not worker.is_finished for worker in app.workers),
        "a log is being read": any(_is_reading(view) for view in screen.query(LogView) if view.display),
        "the screen is not drawn yet": screen._layout_required
        or screen._repaint_required
        or bool(screen._dirty_widgets)
        or bool(screen._callbacks),
    }
    return [what for what, holds in found.items() if holds]


def _is_reading(view: LogView) -> bool:
    pager = view._pager
    return pager is not None and (
        pager._shown is None
        or not pager._commands.empty()
        or pager._current != pager._newest
        or pager._shown.counting
        or view._page != pager._shown
    )
