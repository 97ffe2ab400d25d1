"""Reviewing the detectors' findings in runs."""

from __future__ import annotations

from mlebench_console.console.actions.action import Action, NotApplicable
from mlebench_console.engine.requests import ReviewFinding


def review(run_id: int, finding: str, *, cleared: bool, reason: str) -> Action:
    """Clear or confirm the finding with a key.

    Raises:
        NotApplicable: there is no reason.
    """
    if not reason.strip():
        raise NotApplicable("a review needs a reason: it is kept and disclosed with the row")
    return Action((ReviewFinding(run_id=run_id, finding=finding, cleared=cleared, reason=reason.strip()),))
