"""Acknowledging and snoozing what needs a person."""

from __future__ import annotations

from dataclasses import asdict

from console.actions.action import Action, NotApplicable, Request
from engine.options.requests import AcknowledgeCause, OneCause


def acknowledge(key: str, reason: str, *, seconds: float | None = None, text: str = "") -> Action:
    """Put something that needs a person out of the way, for so long or until something new joins it.

    Raises:
        NotApplicable: there is no reason.
    """
    if not reason.strip():
        raise NotApplicable("an acknowledgement needs a reason: it is kept, and other consoles show it")
    arguments = AcknowledgeCause(key=key, reason=reason.strip(), text=text, seconds=seconds)
    return Action((Request("cause.acknowledge", asdict(arguments)),))


def take_back(key: str) -> Action:
    """Show again what was acknowledged."""
    return Action((Request("cause.take_back", asdict(OneCause(key=key))),))
