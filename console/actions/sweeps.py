"""Launching, changing and removing sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from mlebench_console.console.actions.action import Action, Affected, Question, Request
from mlebench_console.engine.options.requests import Annotate
from mlebench_console.state.lifecycle import SweepState

if TYPE_CHECKING:
    from mlebench_console.engine.options.sweep import Launch
    from mlebench_console.engine.sweeps.removal import Loss
    from mlebench_console.state.records import Sweep
    from mlebench_console.state.usage.budgets import BudgetScope


def launch(wanted: Launch) -> Action:
    """Launch a sweep."""
    return Action((Request("sweep.launch", wanted.to_arguments()),))


def change(kind: str, sweep_id: str, **values: object) -> Action:
    """Change a sweep by a request of a kind such as `sweep.pause`."""
    return Action((Request(kind, {"sweep_id": sweep_id, **values}),))


def annotate(
    sweep_id: str, note: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Action:
    """Replace the note of a sweep, if one is given, and add and remove tags."""
    return change(
        "sweep.annotate", sweep_id, **asdict(Annotate(note=note, add=tuple(add), remove=tuple(remove)))
    )


def set_budget(
    scope: BudgetScope, name: str, calls: int | None, tokens: int | None, usd: float | None
) -> Action:
    """Change the shared budget of a sweep or an experiment; None keeps a limit, 0 removes it."""
    values = {"calls": calls, "tokens": tokens, "usd": usd}
    given = {unit: value for unit, value in values.items() if value is not None}
    return Action((Request("budget.set", {"scope": scope.value, "name": name, **given}),))


def stop(sweep_id: str) -> Action:
    """Stop a sweep for good."""
    affected = Affected(note="Its live runs are ended, its queued ones never start; files are kept.")
    question = Question(f"Stop sweep {sweep_id}?", "yes, stop", (affected,))
    return replace(change("sweep.stop", sweep_id), question=question)


def pause_or_resume(sweep: Sweep) -> Action:
    """Pause an active sweep, resume any other."""
    return change("sweep.pause" if sweep.state is SweepState.ACTIVE else "sweep.resume", sweep.id)


def remove(loss: Loss, *, with_results: bool) -> Action:
    """Remove a sweep with all files of its runs."""
    affected = Affected(note=f"What is lost: {loss.in_words()}.", is_warning=True)
    question = Question(f"Remove sweep {loss.sweep_id}?", "yes, remove", (affected,))
    return replace(change("sweep.remove", loss.sweep_id, with_results=with_results), question=question)
