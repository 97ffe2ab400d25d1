"""What holds after every history of the fault test, whatever happened in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import locks
from mlebench_console.state import events, runs, submissions
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import Event
from mlebench_console.state.lifecycle import ALLOWED_AFTER, ENDED, RunState
from mlebench_console.state.records import Attempt, Run
from tests.soak.behaviours import GRADED, Course, Disturbance, Submissions, Verdict, allowed
from tests.soak.history import Model

_EVENT_LIMIT = 100_000
_CLOSE = 1e-5  # to which scores are rounded


def broken_invariants(database: Database, state_dir: Path, model: Model, at_hand: Submissions) -> list[str]:
    """Return what does not hold in a state that has come to rest."""
    found = list(_in_the_state(database))
    known: set[Path] = set()
    everything = runs.of_all_sweeps(database)
    if strangers := {run.sweep_id for run in everything} ^ set(model.sweeps):
        found.append(f"these sweeps are there and should not be, or the other way round: {sorted(strangers)}")
        return found
    for run in everything:
        attempts = runs.attempts(database, run.id)
        known.update(state_dir / attempt.directory for attempt in attempts)
        told = list(reversed(events.newest(database, run_id=run.id, limit=_EVENT_LIMIT)))
        problems = [*_of_run(run, attempts, told, model)]
        for attempt in attempts:
            verdict = _verdict(attempt, told)
            problems += _of_attempt(database, state_dir, run, attempt, verdict, model, at_hand)
        found += [f"run {run.id} ({run.sweep_id}/{run.seed}): {problem}" for problem in problems]
    found += [f"{path} belongs to no attempt" for path in _attempt_folders(state_dir) if path not in known]
    return [*found, *_left_over(state_dir)]


def _in_the_state(database: Database) -> Iterator[str]:
    for pragma, good in (("integrity_check", [("ok",)]), ("foreign_key_check", [])):
        rows = [tuple(row) for row in database.rows(f"PRAGMA {pragma}")]
        if rows != good:
            yield f"{pragma} of the state says {rows}"
    for row in database.rows("SELECT id, kind FROM requests WHERE state = 'filed'"):
        yield f"request {row['id']} ({row['kind']}) was never answered"


def _of_run(run: Run, attempts: list[Attempt], told: list[Event], model: Model) -> Iterator[str]:
    """Its events tell one life, in which each attempt begins once and ends once."""
    steps = [
        RunState(event.kind.partition(".")[2]) for event in told if event.kind.partition(".")[2] in _STATES
    ]
    state = RunState.QUEUED
    for step in steps:
        if step not in ALLOWED_AFTER[state]:
            yield f"its events tell that it became {step} when it was {state}"
        state = step
    if state is not run.state:
        yield f"it is {run.state}, its events end with {state}"
    starts = steps.count(RunState.STARTING)
    if not starts == run.attempts == len(attempts):
        yield f"{starts} starts are told, it counts {run.attempts} attempts, and {len(attempts)} are kept"
    endings = sum(step in ENDED for step in steps)
    if endings != model.relaunches[run.id] + 1:
        yield f"it ended {endings} times and was relaunched {model.relaunches[run.id]} times"
    if run.rerolls != model.rerolls[run.id]:
        yield f"it counts {run.rerolls} re-rolls, it had {model.rerolls[run.id]}"
    if endings > starts and run.id not in model.stopped_queued:
        yield "it was stopped in the queue by nobody"


def _verdict(attempt: Attempt, told: list[Event]) -> Verdict | None:
    """Return how an attempt ended, as events and state say it in one voice."""
    began = next(
        number
        for number, event in enumerate(told)
        if event.kind == "run.starting" and event.attempt_id == attempt.id
    )
    ending = next(
        (event for event in told[began:] if event.kind in ("run.finished", "run.failed", "run.stopped")), None
    )
    if ending is None:
        return None
    match ending.kind:
        case "run.finished":
            return Verdict(RunState.FINISHED, attempt.outcome)
        case "run.failed":
            return Verdict(RunState.FAILED, attempt.failure_class)
    return Verdict(RunState.STOPPED)


def _of_attempt(
    database: Database,
    state_dir: Path,
    run: Run,
    attempt: Attempt,
    verdict: Verdict | None,
    model: Model,
    at_hand: Submissions,
) -> Iterator[str]:
    folder = state_dir / attempt.directory
    order = protocol.read_if_there(folder / protocol.ORDER, Order)
    if order is None and attempt.isolated is not None:
        yield f"{attempt.directory} holds no order"
    if order is not None and (order.token, order.attempt_id) != (attempt.token, attempt.id):
        yield f"{attempt.directory} holds the order of {order.token}"
    if attempt.runtime != model.runtimes[run.sweep_id]:
        yield f"its attempt {attempt.number} ran in {attempt.runtime}"
    starts = folder / protocol.CODE / "starts"
    begun = starts.read_text().splitlines() if starts.exists() else []
    if len(begun) > 1:
        yield f"the agent of attempt {attempt.number} was started {len(begun)} times"
    left, content = at_hand.left_in(folder, order.submission_limit_bytes if order else 0)
    disturbances = model.disturbances.get(attempt.token, set()) | set(_of_the_host(attempt, folder, model))
    course = Course(
        model.sweeps[run.sweep_id],
        isolated=attempt.runtime == protocol.BUBBLEWRAP,
        started=attempt.isolated is not None,
        begun=bool(begun),
        let_go=(folder / protocol.CODE / "go").exists(),
        left=left,
        disturbances=frozenset(disturbances),
    )
    if verdict not in allowed(course):
        possible = ", ".join(sorted(map(str, allowed(course)))) or "none"
        yield (
            f"its attempt {attempt.number} is {verdict} (reason '{attempt.exit_reason}', '{attempt.failure_text}');"
            f" possible: {possible}; {course}"
        )
    if verdict is not None and verdict.state is RunState.FINISHED:
        yield from _of_grade(database, state_dir, run, attempt, content if left in GRADED else None, at_hand)
    for name in (protocol.SCRATCH, protocol.SERVICES):
        if (folder / name).exists():
            yield f"{attempt.directory}/{name} is left over"
    if locks.is_held(folder / protocol.LOCK):
        yield f"the lock of {attempt.directory} is held"


def _of_the_host(attempt: Attempt, folder: Path, model: Model) -> Iterator[Disturbance]:
    """Yield what met all attempts that lived at that time."""
    exit_file = folder / protocol.EXIT
    ended = exit_file.stat().st_mtime if exit_file.exists() else float("inf")
    if any(began <= ended and attempt.created_at <= until for began, until in model.full):
        yield Disturbance.DISK_FULL


def _of_grade(
    database: Database,
    state_dir: Path,
    run: Run,
    attempt: Attempt,
    content: bytes | None,
    at_hand: Submissions,
) -> Iterator[str]:
    """The grade is that of the bytes which the attempt left, from whatever snapshot it was made."""
    final = submissions.final_of(database, attempt.id)
    if content is None:
        if final is not None:
            yield f"its attempt {attempt.number} left no submission, and has a final one"
        return
    if final is None:
        yield f"its attempt {attempt.number} left a submission, and has no final one"
        return
    sha256 = hashlib.sha256(content).hexdigest()
    snapshot = state_dir / final.path
    kept = hashlib.sha256(snapshot.read_bytes()).hexdigest() if snapshot.is_file() else "missing"
    if not sha256 == final.sha256 == kept:
        yield f"attempt {attempt.number} left {sha256}, its snapshot is {kept}, and {final.sha256} was graded"
    if snapshot.parent.parent != state_dir / attempt.directory:
        yield f"attempt {attempt.number} was graded by {final.path}"
    score = at_hand.score(content)
    for which, found in (("final submission", final.score), ("run", run.score)):
        if which == "run" and (attempt.number != run.attempts or run.state is not RunState.FINISHED):
            continue
        same = found is None if score is None else found is not None and abs(found - score) < _CLOSE
        if not same:
            yield f"the score of its {which} is {found}, that of what attempt {attempt.number} left is {score}"


def _attempt_folders(state_dir: Path) -> Iterator[Path]:
    yield from (state_dir / "runs").glob("*/*/*/attempt-*")


def _left_over(state_dir: Path) -> Iterator[str]:
    """Yield processes, locks and files that nobody needs any more."""
    needle = os.fsencode(state_dir) + b"/"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if needle in command or needle in (entry / "environ").read_bytes():
                    yield f"process {entry.name} is left over: {command.replace(bytes(1), b' ').decode()}"
    for lock in (locks.ENGINE_LOCK, f"{protocol.RUNNER}/{protocol.RUNNER_LOCK}"):
        if locks.is_held(state_dir / lock):
            yield f"{lock} is held"
    for folder in (state_dir, state_dir / protocol.RUNNER, protocol.inbox(state_dir)):
        yield from (f"{path} is left over" for path in folder.glob(".*.partial"))


_STATES = frozenset(RunState)
