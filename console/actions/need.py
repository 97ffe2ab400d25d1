"""Acknowledging and snoozing the things that need a person."""

from __future__ import annotations

from mlebench_console.console.actions.action import Action, NotApplicable
from mlebench_console.engine.requests import AcknowledgeCause, WithdrawAcknowledgement


def acknowledge(key: str, reason: str, *, seconds: float | None = None, text: str = "") -> Action:
    """Acknowledge something that needs a person, for some seconds or until something is added to it.

    Raises:
        NotApplicable: there is no reason.
    """
    if not reason.strip():
        raise NotApplicable("an acknowledgement needs a reason: it is kept, and other consoles show it")
    return Action((AcknowledgeCause(key=key, reason=reason.strip(), text=text, seconds=seconds),))


def take_back(key: str) -> Action:
    """Withdraw an acknowledgement."""
    return Action((WithdrawAcknowledgement(key=key),))
