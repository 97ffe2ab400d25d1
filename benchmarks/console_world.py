"""States for measuring the console, and an engine that is played: it writes as a real one with 64 live runs does.

Run as `python -m benchmarks.console_world FOLDER LINES_PER_SECOND`, it plays until it is ended.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.engine.control.status import EngineStatus, lock_path, publish
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.loop import USAGE_SECONDS_PER_ATTEMPT
from mlebench_console.foundation.conditions import RunConditions
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database, open_for_reading, open_for_writing
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.records import Grade, Run, SweepSpec

LIVE = 64
PLAYED = "played"
_HOUR = 3600.0
_HEARTBEAT_SECONDS = 2.0
_SNAPSHOT_SECONDS = 15.0
_PRINT_SECONDS = 0.1
_LINE = b"epoch %d  step %d  \x1b[32mval 0.0840\x1b[0m (best 0.0812)  trying another learning rate, then the folds\n"


def places_in(folder: Path) -> Places:
    """Return the paths below a folder."""
    return Places(folder / "config.toml", folder / "data", folder / "state")


def build(places: Places, *, ended: int = 0) -> None:
    """Create a state with 225 runs, of which 64 are live, and with older sweeps of ended runs."""
    places.state_dir.mkdir(parents=True)
    database = open_for_writing(places.state_dir)
    with database.transaction():
        for number in range(-(-ended // 225)):
            _end_all(database, _sweep(database, f"older-{number}", hours_ago=100.0 + number))
        played = _sweep(database, PLAYED, hours_ago=2.0)
        _end_all(database, played[LIVE : 2 * LIVE])
        for place, run in enumerate(played[:LIVE]):
            _start(places, database, run, ago=60.0 * (place + 1))
    database.close()


def first_live(places: Places, competition_id: str) -> int:
    """Return the live run of a competition."""
    database = open_for_reading(places.state_dir)
    try:
        return next(run.id for run in runs.live(database) if run.competition_id == competition_id)
    finally:
        database.close()


def play(places: Places, lines_per_second: float) -> None:
    """Be the engine: heartbeats, reports, graded submissions, and what 64 agents print."""
    lock = FileLock(lock_path(places))
    if not lock.acquire():
        raise SystemExit("an engine is there already")
    database = open_for_writing(places.state_dir)
    live = [attempt.id for attempt in runs.live_attempts(database)]
    logs = [(places.state_dir / runs.attempt(database, each).directory / protocol.LOG) for each in live]
    printed, taken = [log.open("ab", buffering=0) for log in logs], itertools.count(1)
    due = dict.fromkeys(("heartbeat", "reports", "snapshot", "print"), 0.0)
    every = {
        "heartbeat": _HEARTBEAT_SECONDS,
        "reports": USAGE_SECONDS_PER_ATTEMPT * len(live),
        "snapshot": _SNAPSHOT_SECONDS,
        "print": _PRINT_SECONDS,
    }
    while True:
        for what in [what for what in due if due[what] <= time.monotonic()]:
            due[what] = time.monotonic() + every[what]
            number = next(taken)
            if what == "heartbeat":
                _publish(places, len(live))
            elif what == "reports":
                for attempt in live:
                    with database.transaction():
                        runs.set_report_offsets(database, attempt, number, number)
            elif what == "snapshot":
                _snapshot(database, live[number % len(live)], number)
            else:
                count = max(1, round(lines_per_second * _PRINT_SECONDS / len(live)))
                text = b"".join(_LINE % (number, step) for step in range(count))
                for stream in printed if lines_per_second else ():
                    stream.write(text)
        time.sleep(max(0.0, min(due.values()) - time.monotonic()))


def _sweep(database: Database, name: str, *, hours_ago: float) -> list[Run]:
    spec = SweepSpec(
        agent_id="aide",
        agents_dir="/agents",
        competitions=registry.splits()["split75"],
        seeds=3,
        conditions=RunConditions(24 * _HOUR),
    )
    sweeps.create(
        database,
        sweep_id=name,
        name=name,
        spec=spec,
        agent_version="4f1c22d90aa1",
        concurrency=LIVE,
        now=time.time() - hours_ago * _HOUR,
    )
    return runs.of_sweep(database, name)


def _start(places: Places, database: Database, run: Run, *, ago: float) -> None:
    directory = places.runs_dir / run.sweep_id / f"run-{run.id}"
    (directory / protocol.LOG).parent.mkdir(parents=True)
    (directory / protocol.LOG).write_bytes(b"".join(_LINE % (0, step) for step in range(1000)))
    attempt = _attempt(places.state_dir, database, run, directory, ago=ago)
    _snapshot(database, attempt, 1)


def _attempt(state_dir: Path, database: Database, run: Run, directory: Path, *, ago: float) -> int:
    at = time.time() - ago
    made = transitions.launch(
        database, run.id, directory=str(directory.relative_to(state_dir)), runtime="docker", now=at
    )
    transitions.started(database, made.id, isolated=True, at=at, now=at)
    return made.id


def _snapshot(database: Database, attempt: int, sequence: int) -> None:
    now = time.time()
    snapshot = submissions.Snapshot(sequence, now, 60.0, "ab" * 32, 84_213, "/s.csv")
    submissions.add(database, attempt, snapshot)
    added = submissions.of_attempt(database, attempt)[-1]
    grade = Grade(added.id, now, "v1", 0.5 + sequence / 1e6, True, Outcome.ABOVE_MEDIAN, "")
    submissions.add_grade(database, grade, now=now)


def _end_all(database: Database, found: list[Run]) -> None:
    outcomes = (Outcome.BRONZE, Outcome.BELOW_MEDIAN, Outcome.ABOVE_MEDIAN, Outcome.NO_SUBMISSION)
    for place, run in enumerate(found):
        directory = Path("/nowhere") / f"run-{run.id}"
        attempt = _attempt(Path("/nowhere"), database, run, directory, ago=3 * _HOUR)
        at = time.time() - _HOUR - place
        transitions.agent_ended(database, attempt, EndReason.EXITED, exit_code=0, at=at, now=at)
        transitions.collected(database, attempt, now=at)
        transitions.finished(database, attempt, outcomes[place % len(outcomes)], now=at)


def _publish(places: Places, live: int) -> None:
    publish(
        places,
        EngineStatus(
            pid=1,
            host="played",
            heartbeat_at=time.time(),
            live=live,
            queued=225 - 2 * live,
            state_disk_free=1_712_000_000_000,
            state_disk_total=3_600_000_000_000,
        ),
    )


if __name__ == "__main__":
    play(places_in(Path(sys.argv[1])), float(sys.argv[2]))
