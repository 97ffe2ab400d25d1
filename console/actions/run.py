"""Relaunching, stopping, regrading, annotating and classifying runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlebench_console.console import wording
from mlebench_console.console.actions.action import Action, Affected, NotApplicable, Question
from mlebench_console.engine.requests import (
    AnnotateRuns,
    ChosenRun,
    ClassifyRuns,
    RegradeRuns,
    RelaunchRuns,
    StopRuns,
)
from mlebench_console.foundation.text import plural
from mlebench_console.state.annotations import Annotation
from mlebench_console.state.lifecycle import FailureClass, RunState
from mlebench_console.state.records import Run
from mlebench_console.state.transitions import is_reroll


def relaunch(
    chosen: Sequence[Run], *, all_or_none: bool = False, limits: Mapping[str, float] | None = None
) -> Action:
    """Launch ended runs again; warns about those whose seeds it re-rolls, and offers the others alone.

    Args:
        chosen: the runs.
        all_or_none: refuse if one of them has not ended.
        limits: the time limit of each sweep, from which follows how long they take at most.

    Raises:
        NotApplicable: none of them has ended, or with `all_or_none` one has not.
    """
    ended = _those(chosen, lambda run: run.has_ended, "relaunched", "only runs that have ended", all_or_none)
    rerolled = [run for run in ended if is_reroll(run)]
    free = [run for run in ended if not is_reroll(run)]
    affected = []
    if free:
        lost = [run.failure_class is FailureClass.INFRASTRUCTURE for run in free]
        causes = ["lost to infrastructure"] * any(lost) + ["never started"] * (not all(lost))
        heading = f"{plural(len(free), 'run')} {' or '.join(causes)}"
        items = _items(free, with_states=len(causes) > 1)
        affected.append(Affected(heading, items, "Free: launching again changes no statistics."))
    if rerolled:
        heading = f"{plural(len(rerolled), 'run')} that finished or failed by the agent's own doing"
        note = (
            "Another chance for these seeds makes the result look better than a single try."
            " They count as re-rolled, and the exported row says so."
        )
        affected.append(Affected(heading, _items(rerolled), note, is_warning=True))
    if limits and all(run.sweep_id in limits for run in ended):
        affected.append(Affected(note=_takes_at_most([limits[run.sweep_id] for run in ended])))
    title = f"Relaunch {plural(len(ended), 'run')}?"
    request = RelaunchRuns(runs=_as_seen(ended))
    if not free or not rerolled:
        return Action((request,), Question(title, "yes, relaunch", tuple(affected)))
    question = Question(
        title, f"yes, all {len(ended):,}: {len(rerolled):,} count as re-rolled", tuple(affected)
    )
    only = Question(title, f"only the {len(free):,} lost (free)", ())
    return Action((request,), question, Action((RelaunchRuns(runs=_as_seen(free)),), only))


def stop(chosen: Sequence[Run], *, all_or_none: bool = False, now: float | None = None) -> Action:
    """Stop queued and live runs: agents are ended, queued runs never start.

    Args:
        chosen: the runs.
        all_or_none: refuse if one of them is neither queued nor live.
        now: the time, from which follows how much work is lost.

    Raises:
        NotApplicable: none of them is queued or live, or with `all_or_none` one is not.
    """
    going = _those(chosen, _can_be_stopped, "stopped", "only runs that are queued or running", all_or_none)
    live = [run for run in going if run.is_live]
    queued = len(going) - len(live)
    counted = [f"{len(live):,} running"] * bool(live) + [f"{queued:,} queued"] * bool(queued)
    began = [run.started_at for run in live if run.started_at is not None]
    note = "Their agents are ended and get no result; their files are kept."
    if now is not None and began:
        note = f"{wording.duration(sum(now - at for at in began))} of running time is lost. {note}"
    affected = Affected(", ".join(counted), _items(going, now), note)
    title = f"Stop {plural(len(going), 'run')}?"
    return Action((StopRuns(runs=_as_seen(going)),), Question(title, "yes, stop", (affected,)))


def regrade(chosen: Sequence[Run], *, all_or_none: bool = False) -> Action:
    """Retry the grading of runs whose grading has failed at once, instead of at the next scheduled time.

    Raises:
        NotApplicable: the grading of none has failed, or with `all_or_none` that of one has not.
    """
    waiting = _those(
        chosen, _is_ungradable, "graded again", "only runs whose grading has failed", all_or_none
    )
    return Action((RegradeRuns(runs=_as_seen(waiting)),))


def annotate(
    chosen: Sequence[Run], note: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Action:
    """Replace the note of runs, if one is given, and add and remove tags.

    Raises:
        NotApplicable: no run was chosen.
    """
    if not chosen:
        raise NotApplicable("there is no run here to note or tag")
    change = Annotation(note, tuple(add), tuple(remove))
    return Action((AnnotateRuns(run_ids=tuple(run.id for run in chosen), change=change),))


def classify(chosen: Sequence[Run], failure_class: FailureClass, note: str) -> Action:
    """Correct the failure class of failed runs; the note is kept with their attempts.

    Raises:
        NotApplicable: one of them has not failed.
    """
    failed = _those(chosen, _has_failed, "classified", "only runs that have failed", all_or_none=True)
    return Action((ClassifyRuns(runs=_as_seen(failed), failure_class=failure_class, note=note),))


def classify_question(chosen: Sequence[Run]) -> tuple[Question, tuple[Run, ...]]:
    """Return the question for the right failure class, and the failed runs that it is about.

    Raises:
        NotApplicable: none of them has failed.
    """
    failed = _those(chosen, _has_failed, "classified", "only runs that have failed", all_or_none=False)
    title = f"Why did {plural(len(failed), 'run')} fail?"
    return Question(title, "", (Affected(items=_items(failed)),)), failed


def _has_failed(run: Run) -> bool:
    return run.state is RunState.FAILED


def _is_ungradable(run: Run) -> bool:
    return bool(run.grading_problem)


def _can_be_stopped(run: Run) -> bool:
    return not run.has_ended and run.state is not RunState.GRADING


def _those(
    chosen: Sequence[Run], applies: Callable[[Run], bool], done: str, only: str, all_or_none: bool
) -> tuple[Run, ...]:
    """Return the runs that an action applies to.

    Raises:
        NotApplicable: there are none, or with `all_or_none` not all are.
    """
    found = tuple(run for run in chosen if applies(run))
    if all_or_none and len(found) < len(chosen):
        other = next(run for run in chosen if not applies(run))
        raise NotApplicable(f"run {other.id} can't be {done}", f"it is {other.state}")
    if not found:
        raise NotApplicable(f"{only} can be {done}")
    return found


def _items(
    runs: Sequence[Run], now: float | None = None, *, with_states: bool = True
) -> tuple[tuple[str, str], ...]:
    """Return each run's competition, and its seed, its sweep where there are several, and if asked its state."""
    several = len({run.sweep_id for run in runs}) > 1

    def known(run: Run) -> str:
        return ", ".join(
            (f"seed {run.seed}", *[run.sweep_id] * several, *([_state(run, now)] if with_states else []))
        )

    return tuple((run.competition_id, known(run)) for run in runs)


def _state(run: Run, now: float | None) -> str:
    if run.failure_class is not None:
        return wording.failure(run)
    if now is not None and run.is_live and run.started_at is not None:
        standing = f", now {wording.outcome(run.standing)}" if run.standing else ""
        return f"{run.state} {wording.span(now - run.started_at)}{standing}"
    return (run.outcome or run.state).replace("_", " ")


def _takes_at_most(limits: Sequence[float]) -> str:
    """Write how long runs with these time limits take at most."""
    each = " or ".join(wording.duration(one) for one in sorted(set(limits)))
    if len(limits) == 1:
        return f"It takes up to {each}."
    return f"Each takes up to {each}, {wording.duration(sum(limits))} of running time in all."


def _as_seen(runs: Sequence[Run]) -> tuple[ChosenRun, ...]:
    """Name runs with their current attempts: the engine refuses a request for runs that have changed meanwhile."""
    return tuple(ChosenRun(run.id, run.attempts, is_reroll(run)) for run in runs)
