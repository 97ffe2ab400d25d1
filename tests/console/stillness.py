"""Waiting until nothing is on its way to the screen: whatever draws late is waited for by name, not by time."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from mlebench_console.console.app.app import ConsoleApp
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.widgets.log_view import LogView

PATIENCE_STEPS = 1500
_LOOK_SECONDS = 0.1
_SAME_LOOKS = 4


def screen_text(app: ConsoleApp) -> str:
    """Return what is on the screen, line by line; Textual has no public way that is as fast."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


async def stillness(app: ConsoleApp, pilot: Pilot[Any]) -> None:
    """Wait until nothing that could change the screen is under way, and it has not changed."""
    seen: list[str] = []
    for _step in range(PATIENCE_STEPS):
        # It waits until all widgets have worked off their messages, too.
        await pilot.pause(_LOOK_SECONDS)
        if under_way(app):
            seen.clear()
            continue
        if not seen:
            # What only a tick draws, such as that a slow read is over, need not be waited for.
            app.redraw_all()
        seen.append(screen_text(app))
        if len(seen) >= _SAME_LOOKS and len(set(seen[-_SAME_LOOKS:])) == 1:
            return
    raise AssertionError(f"never still: {', '.join(under_way(app)) or 'it changes by itself'}")


def under_way(app: ConsoleApp) -> list[str]:
    """Return what may yet change the screen."""
    found = {
        "the state is being read": not app.reader.is_idle,
        "its condition is not known yet": app.condition.health is StateHealth.UNKNOWN,
        "the engine is being looked at": app.engine is None,
        # On a busy machine the first screen is imported for longer than it takes to look the same several times.
        "the screen is being opened": isinstance(app.screen, ConsoleScreen)
        and app.screen._unanswered != set(),
        "something works in the background": any(not worker.is_finished for worker in app.workers),
        "a log is being read": any(view.is_reading for view in app.screen.query(LogView) if view.display),
    }
    return [what for what, holds in found.items() if holds]
