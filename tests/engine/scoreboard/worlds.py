"""Building sweeps whose runs have ended in all ways, through the state's own transitions."""

from __future__ import annotations

from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.measurements import Hardware
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import datasets, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import Grade, Run, SweepSpec
from mlebench_console.state.transitions import Failure
from tests.conditions import spec_of

SPEC = spec_of("dummy", "/agents", ("leaf-classification",), seeds=1, time_limit_seconds=7200)


def sweep(
    database: Database,
    name: str,
    spec: SweepSpec,
    *,
    version: str = "1",
    now: float = 1.0,
    demo: bool = False,
) -> list[Run]:
    """A sweep with its queued runs, on prepared datasets, which are the demo's if it is said so."""
    for competition_id in spec.competitions:
        datasets.found(database, competition_id, spec.conditions.edition, steps=(), now=now)
        datasets.set_demo(database, competition_id, spec.conditions.edition, demo)
    sweeps.create(
        database,
        sweep_id=name,
        name=name,
        spec=spec,
        agent_version=version,
        concurrency=2,
        now=now,
    )
    runs.mark_demo(database, name)
    return runs.of_sweep(database, name)


def start(database: Database, run: Run, *, image: str = "", hardware: Hardware | None = None) -> int:
    token = transitions.new_token()
    directory = protocol.attempt_folder(run.sweep_id, run.competition_id, run.seed, 1, token)
    attempt = transitions.launch(
        database, run.id, directory=directory, runtime="process", now=2.0, token=token
    )
    transitions.started(database, attempt.id, isolated=True, at=2.0, now=2.0, image=image, hardware=hardware)
    return attempt.id


def finish(
    database: Database,
    run: Run,
    outcome: Outcome,
    *,
    score: float | None = None,
    image: str = "",
    hardware: Hardware | None = None,
) -> None:
    attempt_id = start(database, run, image=image, hardware=hardware)
    transitions.agent_ended(database, attempt_id, EndReason.EXITED, exit_code=0, at=3.0, now=3.0)
    transitions.collected(database, attempt_id, now=3.0)
    if score is not None:
        snapshot = submissions.Snapshot(1, 2.5, 0.5, "00", 1, "1.csv")
        submissions.add(database, attempt_id, snapshot)
        with database.transaction():
            submissions.set_final(database, attempt_id, 1)
        taken = submissions.of_attempt(database, attempt_id)[0].id
        submissions.add_grade(database, Grade(taken, 3.0, "v1", score, True, outcome, ""), now=3.0)
    transitions.finished(database, attempt_id, outcome, now=3.0)


def fail(database: Database, run: Run, kind: FailureClass = FailureClass.CRASH) -> None:
    transitions.failed(database, start(database, run), Failure(kind, "exit code 1"), now=3.0)
