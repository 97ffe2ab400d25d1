"""Launching, pausing, resuming, limiting, ranking, assigning, stopping and removing sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.actions.action import Action, Affected, Question, Request
from state.lifecycle import SweepState

if TYPE_CHECKING:
    from engine.options.sweep import Launch
    from engine.sweeps.removal import Loss
    from state.records import Sweep


def launch(wanted: Launch) -> Action:
    """Launch a sweep."""
    return Action((Request("sweep.launch", wanted.to_arguments()),))


def pause(sweep_id: str) -> Action:
    """Start no more runs of a sweep; live ones go on."""
    return Action((Request("sweep.pause", {"sweep_id": sweep_id}),))


def resume(sweep_id: str) -> Action:
    """Start runs of a sweep again."""
    return Action((Request("sweep.resume", {"sweep_id": sweep_id}),))


def pause_or_resume(sweep: Sweep) -> Action:
    """Pause an active sweep, resume any other."""
    return pause(sweep.id) if sweep.state is SweepState.ACTIVE else resume(sweep.id)


def stop(sweep_id: str) -> Action:
    """Stop a sweep for good: its live runs are ended, its queued ones never start."""
    return Action((Request("sweep.stop", {"sweep_id": sweep_id}),))


def set_concurrency(sweep_id: str, runs: int) -> Action:
    """Change how many runs of a sweep are live at once."""
    return Action((Request("sweep.concurrency", {"sweep_id": sweep_id, "value": runs}),))


def set_priority(sweep_id: str, priority: int) -> Action:
    """Change which sweep's runs start first when slots come free."""
    return Action((Request("sweep.priority", {"sweep_id": sweep_id, "value": priority}),))


def assign(sweep_id: str, experiment: str) -> Action:
    """Let a sweep belong to an experiment, whose sweeps make one row of the scoreboard."""
    return Action((Request("experiment.assign", {"sweep_id": sweep_id, "experiment_id": experiment}),))


def remove(loss: Loss, *, with_results: bool) -> Action:
    """Remove a sweep with everything of its runs."""
    affected = Affected(note=f"What is lost: {loss.in_words()}.", is_warning=True)
    question = Question(f"Remove sweep {loss.sweep_id}?", "yes, remove", (affected,))
    request = Request("sweep.remove", {"sweep_id": loss.sweep_id, "with_results": with_results})
    return Action((request,), question)
