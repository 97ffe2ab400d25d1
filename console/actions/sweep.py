"""Launching, changing and removing sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlebench_console.console.actions.action import Action, Affected, Question
from mlebench_console.engine.requests import AnnotateSweep, PauseSweep, RemoveSweep, ResumeSweep, StopSweep
from mlebench_console.state.annotations import Annotation
from mlebench_console.state.lifecycle import SweepState

if TYPE_CHECKING:
    from mlebench_console.engine.sweeps.removal import Loss
    from mlebench_console.state.records import Sweep


def annotate(
    sweep_id: str, note: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Action:
    """Replace the note of a sweep, if one is given, and add and remove tags."""
    change = Annotation(note, tuple(add), tuple(remove))
    return Action((AnnotateSweep(sweep_id=sweep_id, change=change),))


def stop(sweep_id: str) -> Action:
    """Stop a sweep for good."""
    affected = Affected(note="Its live runs are ended, its queued ones never start; files are kept.")
    question = Question(f"Stop sweep {sweep_id}?", "yes, stop", (affected,))
    return Action((StopSweep(sweep_id=sweep_id),), question)


def pause_or_resume(sweep: Sweep) -> Action:
    """Pause an active sweep, resume any other."""
    request = PauseSweep if sweep.state is SweepState.ACTIVE else ResumeSweep
    return Action((request(sweep_id=sweep.id),))


def remove(loss: Loss, *, with_results: bool) -> Action:
    """Remove a sweep with all files of its runs."""
    affected = Affected(note=f"What is lost: {loss.in_words()}.", is_warning=True)
    question = Question(f"Remove sweep {loss.sweep_id}?", "yes, remove", (affected,))
    return Action((RemoveSweep(sweep_id=loss.sweep_id, with_results=with_results),), question)
