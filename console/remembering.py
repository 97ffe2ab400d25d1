"""Gathering from the screens of an open console where its operator is, and keeping that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.screens.base import ConsoleScreen
from console.session import Session, write_session

if TYPE_CHECKING:
    from console.app import ConsoleApp


def remember(app: ConsoleApp) -> Session:
    """Keep where the operator is, if that has changed since it was kept; tells what is kept."""
    kept = app.session
    at = app.base_screen()
    if not isinstance(at, ConsoleScreen) or not at.REMEMBERED_AS:
        return kept
    found = {
        screen.REMEMBERED_AS: screen.whereabouts()
        for screen in app.base_screens()
        if isinstance(screen, ConsoleScreen) and screen.REMEMBERED_AS and screen.is_whole()
    }
    now = Session(at.REMEMBERED_AS, app.sweep_id or "", {**kept.screens, **found})
    if now != kept:
        write_session(app.places.state_dir, now)
    return now
