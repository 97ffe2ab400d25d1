"""Runs that have ended, made of the files that an agent would have left."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlebench_console.engine.integrity.material import ExaminedRun, examined_runs
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.records import SweepSpec
from tests.conditions import spec_of

COMPETITION = "spaceship-titanic"
SPEC = spec_of("dummy", "/agents", (COMPETITION,), seeds=1, time_limit_seconds=7200)
STARTED = 1_000.0


@dataclass(frozen=True)
class MadeRun:
    """What a run's agent has left.

    Attributes:
        submissions: in order; the last one is final.
        validations: calls of the validation server: seconds after the start, and the content's hash.
        log_times: when bytes of the log were printed: offset and seconds after the start.
        submitted: how many seconds after the start the final submission appeared.
        network_bytes: as they were measured.
        refused: how often hosts were asked for in vain.
    """

    code: Mapping[str, str | bytes] = field(default_factory=dict)
    log: str = "epoch 1 loss 0.5\nepoch 2 loss 0.4\nwriting submission.csv\n"
    submissions: Sequence[str | bytes] = ()
    validations: Sequence[tuple[float, str]] = ()
    log_times: Sequence[tuple[int, float]] = ()
    submitted: float = 600.0
    network_bytes: int | None = None
    refused: Mapping[str, int] = field(default_factory=dict)
    competition_id: str = COMPETITION
    spec: SweepSpec = SPEC


def add_run(database: Database, made: MadeRun, name: str) -> int:
    """Add a run to the state, in a sweep of its own, with its files; return its number."""
    state_dir = database.path.parent
    spec = replace(made.spec, competitions=(made.competition_id,))
    sweeps.create(
        database,
        sweep_id=name,
        name=name,
        spec=spec,
        agent_version="1",
        concurrency=1,
        now=1.0,
    )
    (run,) = runs.of_sweep(database, name)
    token = transitions.new_token()
    directory = protocol.attempt_folder(name, run.competition_id, run.seed, 1, token)
    folder = state_dir / directory
    protocol.make_folders(folder)
    for path, content in made.code.items():
        _write(folder / protocol.CODE / path, content)
    _write(folder / protocol.LOG, made.log)
    _write(
        folder / protocol.LOG.replace(".log", ".times"),
        _lines(f"{at} {STARTED + s}" for at, s in made.log_times),
    )
    _write(
        folder / protocol.VALIDATIONS,
        _lines(
            json.dumps({"time": STARTED + at, "sha256": digest, "bytes": 9, "valid": True, "message": ""})
            for at, digest in made.validations
        ),
    )
    if made.network_bytes is not None:
        _write(folder / protocol.USAGE, _lines([json.dumps({"network_bytes": made.network_bytes})]))
    if made.refused:
        hosts = {"pypi.org": {"connections": 2, "sent_bytes": 900, "received_bytes": 5000}}
        _write(folder / protocol.TRAFFIC, json.dumps({"hosts": hosts, "refused": made.refused}))
    attempt = transitions.launch(
        database, run.id, directory=directory, runtime="docker", now=STARTED, token=token
    )
    transitions.started(database, attempt.id, isolated=True, at=STARTED, now=STARTED)
    for number, content in enumerate(made.submissions, start=1):
        raw = content.encode() if isinstance(content, str) else content
        path = f"{directory}/{protocol.snapshot_name(number)}"
        _write(state_dir / path, raw)
        taken = STARTED + made.submitted
        snapshot = submissions.Snapshot(
            number, taken, made.submitted, hashlib.sha256(raw).hexdigest(), len(raw), path
        )
        submissions.add(database, attempt.id, snapshot)
    ended = STARTED + made.submitted + 5
    transitions.agent_ended(database, attempt.id, EndReason.EXITED, exit_code=0, at=ended, now=ended)
    transitions.collected(database, attempt.id, now=ended)
    if made.submissions:
        submissions.set_final(database, attempt.id, len(made.submissions))
    outcome = Outcome.ABOVE_MEDIAN if made.submissions else Outcome.NO_SUBMISSION
    transitions.finished(database, attempt.id, outcome, now=ended)
    return run.id


def examined_run(database: Database, made: MadeRun, name: str = "made") -> ExaminedRun:
    """Add a run and return it as detectors see it."""
    (found,) = examined_runs(database, [add_run(database, made, name)])
    return found


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
