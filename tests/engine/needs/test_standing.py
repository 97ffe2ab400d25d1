"""How a sweep stands: when it ends or why that is not known, and why none of its runs starts."""

from __future__ import annotations

import pytest

from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.standing import SweepStanding, read_standings
from mlebench_console.engine.needs.waits import WaitKind
from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, NoEnd
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import datasets, runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome, RunState, SweepState
from mlebench_console.state.records import DatasetState, JobFacts, PreparationOptions
from tests.conditions import spec_of
from tests.engine.states import new_sweep

NAME = "spooky-author-identification"
UP, DOWN = EngineStatus(running=True), EngineStatus(running=False)


def standing(state: Database) -> SweepStanding:
    (found,) = read_standings(state, sweeps.all_sweeps(state), 100.0)
    return found


def prepare(state: Database) -> None:
    datasets.request(state, NAME, "v1", steps=(), options=PreparationOptions(), now=1.0)
    datasets.set_state(state, NAME, "v1", DatasetState.PREPARED, now=2.0)


def test_where_no_end_can_be_told_the_reason_is(state: Database) -> None:
    new_sweep(state, spec_of("dummy", "", (NAME,), 1, 3600.0))
    assert standing(state).end(UP) is NoEnd.DATASETS
    prepare(state)
    assert standing(state).end(UP) == ExpectedEnd(3700.0, at_most=True)
    assert standing(state).end(DOWN) is NoEnd.ENGINE
    sweeps.set_state(state, "s", SweepState.PAUSED, now=3.0)
    assert standing(state).end(UP) is NoEnd.PAUSED
    sweeps.set_state(state, "s", SweepState.ACTIVE, now=4.0)
    (run,) = runs.of_sweep(state, "s")
    attempt = transitions.launch(state, run.id, directory="runs/1", runtime="process", now=5.0)
    transitions.started(state, attempt.id, isolated=True, at=5.0, now=5.0)
    transitions.agent_ended(state, attempt.id, EndReason.EXITED, exit_code=0, at=6.0, now=6.0)
    transitions.collected(state, attempt.id, now=6.0)
    transitions.finished(state, attempt.id, Outcome.GOLD, now=6.0)
    found = standing(state)
    assert found.is_over
    assert found.end(UP) is found.end(DOWN) is NoEnd.OVER
    assert (found.ended, dict(found.tally), found.next) == (1, {Outcome.GOLD: 1}, None)
    assert found.interim is not None
    assert found.interim.is_final


def test_why_nothing_starts_is_said_only_where_no_run_can_start(state: Database) -> None:
    new_sweep(state, spec_of("dummy", "", (NAME,), 2, 3600.0))
    missing = standing(state).wait(UP)
    assert missing is not None
    assert missing.kind is WaitKind.DATASET
    assert standing(state).obstacle(UP) == missing
    prepare(state)
    assert standing(state).wait(UP) is None  # the order in which runs start holds up none
    engine = standing(state).wait(DOWN)
    assert engine is not None
    assert engine.needs_person
    assert standing(state).obstacle(DOWN) is None  # it stands where the engine's state is


@pytest.mark.parametrize(
    ("waits_for", "kind"),
    [("Priority", RunState.QUEUED), ("staging", RunState.RUNNING), ("", RunState.RUNNING)],
)
def test_a_run_counts_as_running_once_its_job_has_begun(
    state: Database, waits_for: str, kind: RunState
) -> None:
    new_sweep(state, spec_of("dummy", "", (NAME,), 1, 3600.0, placement="slurm"))
    (run,) = runs.of_sweep(state, "s")
    attempt = transitions.launch(
        state, run.id, directory="runs/1", runtime="process", now=5.0, placement="slurm"
    )
    runs.note_jobs(state, {attempt.id: JobFacts(job="7", waits_for=waits_for)})
    assert dict(standing(state).tally) == {kind: 1}
