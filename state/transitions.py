"""Changes of a run's state, only here: each transition is checked, atomic, and leaves an event."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.measurements import Hardware
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode, ProblemSubject
from mlebench_console.foundation.problems import StateProblem
from mlebench_console.foundation.text import names_of_limits
from mlebench_console.state import events, runs
from mlebench_console.state.causes import cause_key, cause_of, group_of, ungradable_key
from mlebench_console.state.database import Database, to_json
from mlebench_console.state.event_records import (
    AgentEnded,
    AttemptRunning,
    AttemptStarting,
    EventData,
    EventKind,
    GradingFailed,
    RunFailed,
    RunFinished,
    RunQueued,
    RunStopped,
)
from mlebench_console.state.lifecycle import ENDED, ENGINE, FailureClass, Outcome, RunState, require_allowed
from mlebench_console.state.records import Attempt, Run

_TOKEN_BYTES = 6
_GRADING_WORKS = {"grading_problem": "", "grading_fails_since": None, "grading_retry_at": None}


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed: the class, the reason in words, and the evidence.

    Attributes:
        problem: what ended it that is not its own doing; None for none, or where its text alone says it.
        subject: the devices, folder or provider that the problem is about.
        suspected: a problem that only the agent's log, or its model calls, suggest; None for none.
        excused: whether it does not count until the run is launched again.
    """

    kind: FailureClass
    text: str
    evidence: str = ""
    by: str = ENGINE
    problem: ProblemCode | None = None
    subject: ProblemSubject = ProblemSubject()  # noqa: RUF009 - it is immutable
    suspected: ProblemCode | None = None
    excused: bool = False


def new_token() -> str:
    """Return a token that is unique among the attempts of all states."""
    return secrets.token_hex(_TOKEN_BYTES)


def launch(
    database: Database,
    run_id: int,
    *,
    directory: str,
    runtime: str,
    now: float,
    token: str | None = None,
    placement: str = HERE,
) -> Attempt:
    """Queued to starting: create the next attempt, before anything of it exists outside the state.

    Its token is generated unless it is given, as for a directory that has it in its name.
    """
    with database.transaction():
        run = runs.get(database, run_id)
        number = run.attempts + 1
        attempt_id = database.insert(
            "attempts",
            {
                "run_id": run_id,
                "number": number,
                "token": token or new_token(),
                "directory": directory,
                "runtime": runtime,
                "placement": placement,
                "created_at": now,
                "reroll": run.rerolls > 0,
            },
        )
        database.update(
            "runs",
            run_id,
            attempts=number,
            started_at=None,
            ended_at=None,
            outcome=None,
            standing=None,
            failure_class=None,
            failure_text="",
            problem=None,
            suspected=None,
            cause="",
            excused=False,
            score=None,
            valid=None,
            submissions=0,
            last_activity_at=now,
            **_GRADING_WORKS,
        )
        runs.mark_demo(database, run.sweep_id, run_id)
        text = f"attempt {number} is starting"
        _move(database, run, RunState.STARTING, text, now, attempt_id, AttemptStarting(number))
    return runs.attempt(database, attempt_id)


def started(
    database: Database,
    attempt_id: int,
    *,
    isolated: bool,
    at: float,
    now: float,
    image: str = "",
    hardware: Hardware | None = None,
    unenforced: tuple[str, ...] = (),
    recipe: str = "",
    runtime: str = "",
) -> None:
    """Starting to running: the agent's process was started, in this image and on this hardware."""
    with database.transaction():
        run, attempt = _current(database, attempt_id)
        kept = to_json(hardware) if hardware is not None else None
        database.update(
            "attempts",
            attempt_id,
            started_at=at,
            isolated=isolated,
            image=image,
            hardware=kept,
            unenforced=json.dumps(unenforced),
            recipe=recipe,
            runtime=runtime or attempt.runtime,
        )
        database.update("runs", run.id, started_at=at, last_activity_at=at)
        mark = "" if isolated else ", not isolated"
        limits = f", limits not enforced: {names_of_limits(unenforced)}" if unenforced else ""
        text = f"attempt {attempt.number} is running{mark}{limits}"
        detail = AttemptRunning(attempt.number, isolated, tuple(unenforced))
        _move(database, run, RunState.RUNNING, text, now, attempt_id, detail)


def agent_ended(
    database: Database,
    attempt_id: int,
    reason: EndReason,
    *,
    exit_code: int | None,
    signal: int | None = None,
    at: float,
    now: float,
) -> None:
    """Running (or starting) to collecting: the agent has ended, and its results are being collected."""
    with database.transaction():
        run, attempt = _current(database, attempt_id)
        database.update(
            "attempts", attempt_id, ended_at=at, exit_code=exit_code, exit_signal=signal, exit_reason=reason
        )
        how = f"signal {signal}" if signal is not None else f"exit code {exit_code}"
        text = f"attempt {attempt.number} ended ({reason}, {how})"
        detail = AgentEnded(reason, exit_code, signal)
        _move(database, run, RunState.COLLECTING, text, now, attempt_id, detail)


def collected(
    database: Database, attempt_id: int, *, now: float, suspected: ProblemCode | None = None
) -> None:
    """Collecting to grading: all results of the attempt are in its directory."""
    with database.transaction():
        run, attempt = _current(database, attempt_id)
        database.update("attempts", attempt_id, suspected=suspected)
        database.update("runs", run.id, suspected=suspected)
        text = f"attempt {attempt.number} is being graded"
        _move(database, run, RunState.GRADING, text, now, attempt_id)


def grading_failed(database: Database, attempt_id: int, problem: str, *, retry_at: float, now: float) -> None:
    """Record why an attempt's submission can't be graded now and when that is retried; its run only waits."""
    with database.transaction():
        run, _attempt = _current(database, attempt_id)
        since = run.grading_fails_since or now
        database.update(
            "runs", run.id, grading_problem=problem, grading_fails_since=since, grading_retry_at=retry_at
        )
        if problem != run.grading_problem:
            detail = GradingFailed(problem, ungradable_key(problem, (run.sweep_id, run.competition_id)))
            kind, text = EventKind.GRADING_FAILED, f"grading fails: {problem}"
            events.append(database, now, kind, text, run=run, attempt_id=attempt_id, detail=detail)


def grading_works(database: Database, attempt_id: int, *, now: float) -> None:
    """Record that an attempt's submission could be graded, with an event if it could not before."""
    with database.transaction():
        run, _attempt = _current(database, attempt_id)
        if run.grading_problem:
            database.update("runs", run.id, **_GRADING_WORKS)
            kind, text = EventKind.GRADING_WORKS, "grading works again"
            events.append(database, now, kind, text, run=run, attempt_id=attempt_id)


def regrade(database: Database, run_id: int, *, by: str, now: float) -> None:
    """Have a run whose grading has failed graded again at once."""
    with database.transaction():
        run = runs.get(database, run_id)
        if not run.grading_problem:
            why = "its agent is running" if run.state is RunState.RUNNING else f"it is {run.state}"
            raise StateProblem(
                f"run {run_id} can't be graded again", f"{why}, and its grading has not failed"
            )
        database.update("runs", run_id, grading_retry_at=None)
        kind, text = EventKind.RUN_REGRADE_REQUESTED, f"regrade requested by {by}"
        events.append(database, now, kind, text, run=run)


def finished(database: Database, attempt_id: int, outcome: Outcome, *, now: float, why: str = "") -> None:
    """Grading to finished: the run has its outcome; `why` adds what the report does not say."""
    with database.transaction():
        run, _attempt = _current(database, attempt_id)
        database.update("attempts", attempt_id, outcome=outcome)
        database.update("runs", run.id, outcome=outcome, standing=outcome, ended_at=now, **_GRADING_WORKS)
        text = ": ".join(part for part in (outcome.replace("_", " "), why) if part)
        _move(database, run, RunState.FINISHED, text, now, attempt_id, RunFinished(outcome, run.score))


def failed(database: Database, attempt_id: int, failure: Failure, *, now: float) -> None:
    """Any live state to failed, with the class and its evidence."""
    with database.transaction():
        run, _attempt = _current(database, attempt_id)
        cause = _write_failure(database, run, attempt_id, failure)
        database.update("runs", run.id, ended_at=now, **_GRADING_WORKS)
        suspected = f", suspected: {failure.suspected.words}" if failure.suspected else ""
        text = ": ".join(filter(None, (f"{failure.kind}{suspected}", failure.text)))
        key = cause_key(group_of(failure.kind, failure.suspected), cause)
        detail = RunFailed(failure.kind, failure.text, key, failure.problem, failure.suspected)
        _move(database, run, RunState.FAILED, text, now, attempt_id, detail)


def stopped(database: Database, run_id: int, *, by: str, now: float) -> None:
    """Queued or live to stopped, at an operator's request."""
    with database.transaction():
        run = runs.get(database, run_id)
        database.update("runs", run_id, ended_at=now)
        latest = runs.latest_attempt(database, run_id)
        attempt_id = latest.id if latest else None
        _move(database, run, RunState.STOPPED, f"stopped by {by}", now, attempt_id, RunStopped(by))


def requeued(database: Database, run_id: int, *, by: str, now: float) -> None:
    """Ended to queued: launch the run once more; `is_reroll` decides whether that counts as a re-roll."""
    with database.transaction():
        run = runs.get(database, run_id)
        reroll = is_reroll(run)
        # Each launch sets last_activity_at: a run that is stopped before its next launch has None.
        database.update("runs", run_id, queued_at=now, last_activity_at=None, rerolls=run.rerolls + reroll)
        text = "queued again as a re-roll" if reroll else "queued again"
        _move(database, run, RunState.QUEUED, f"{text} by {by}", now, detail=RunQueued(by, reroll))


def classified(
    database: Database, run_id: int, kind: FailureClass, *, note: str, by: str, now: float
) -> None:
    """Correct the class of a failure by hand, with a note as the reason."""
    with database.transaction():
        run = runs.get(database, run_id)
        latest = runs.latest_attempt(database, run_id)
        if run.state is not RunState.FAILED or latest is None:
            raise StateProblem(f"run {run_id} can't be classified", f"it is {run.state}, not failed")
        text = note or run.failure_text
        _write_failure(database, run, latest.id, Failure(kind, text, latest.evidence, by))
        what = f"{kind} by {by}: {text}"
        events.append(database, now, EventKind.RUN_CLASSIFIED, what, run=run, attempt_id=latest.id)


def is_reroll(run: Run) -> bool:
    """Return whether relaunching an ended run would change the statistics of its seed.

    It would not for a run that was stopped while it was queued again, as that re-roll has been counted.
    """
    spared = run.failure_class is FailureClass.INFRASTRUCTURE or run.excused or run.last_activity_at is None
    return run.state in ENDED and not spared


def _current(database: Database, attempt_id: int) -> tuple[Run, Attempt]:
    attempt = runs.attempt(database, attempt_id)
    run = runs.get(database, attempt.run_id)
    if attempt.number != run.attempts:
        raise StateProblem(f"attempt {attempt.number} of run {run.id} is not the latest")
    return run, attempt


def _move(
    database: Database,
    run: Run,
    wanted: RunState,
    text: str,
    now: float,
    attempt_id: int | None = None,
    detail: EventData | None = None,
) -> None:
    """Set a run's state, with an event."""
    require_allowed(str(run.id), run.state, wanted)
    database.update("runs", run.id, state=wanted)
    kind = EventKind.of_run(wanted)
    events.append(database, now, kind, text, run=run, attempt_id=attempt_id, detail=detail)


def _write_failure(database: Database, run: Run, attempt_id: int, failure: Failure) -> str:
    """Record why an attempt and its run failed, and return the cause by which failures are grouped."""
    cause = cause_of(
        failure.kind,
        failure.text,
        problem=failure.problem,
        suspected=failure.suspected,
        provider=failure.subject.provider,
        evidence=failure.evidence,
        names=(run.sweep_id, run.competition_id),
    )
    what = {
        "failure_class": failure.kind,
        "failure_text": failure.text,
        "problem": failure.problem,
        "suspected": failure.suspected,
        "cause": cause,
    }
    database.update(
        "attempts",
        attempt_id,
        **what,
        problem_subject=to_json(failure.subject),
        evidence=failure.evidence,
        classified_by=failure.by,
    )
    database.update("runs", run.id, **what, excused=failure.excused)
    return cause
