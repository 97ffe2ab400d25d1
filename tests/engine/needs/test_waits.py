"""Why a queued run waits, when it may start, and when a failed one is retried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.waits import Wait, WaitKind, read_queued_run, retry_at
from mlebench_console.foundation.problems import ProblemRecord
from mlebench_console.state import datasets, runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, SweepState
from mlebench_console.state.records import DatasetState, PreparationOptions, Run
from mlebench_console.state.transitions import Failure
from tests.conditions import spec_of
from tests.engine.states import new_sweep

NAME = "spooky-author-identification"
SPEC = spec_of("dummy", "", (NAME,), 4, 3600.0, cpus=2.0, gpus=1, memory_bytes=8_000_000_000, retries=1)
ROOMY = EngineStatus(running=True, slots=64.0, gpus=8, memory_for_runs=256_000_000_000)


def waits(state: Database, run: Run, engine: EngineStatus | None) -> list[Wait]:
    found = read_queued_run(state, run, sweeps.get(state, run.sweep_id), 100.0)
    assert found is not None
    return found.waits(engine)


def prepare(state: Database) -> None:
    datasets.request(state, NAME, "v1", steps=(), options=PreparationOptions(), now=1.0)
    datasets.set_state(state, NAME, "v1", DatasetState.PREPARED, now=2.0)


def start(state: Database, run: Run, *, at: float) -> None:
    attempt = transitions.launch(state, run.id, directory=f"runs/{run.id}", runtime="process", now=at)
    transitions.started(state, attempt.id, isolated=True, at=at, now=at)


def test_what_lasts_until_a_person_acts_is_said_first(state: Database) -> None:
    sweep = new_sweep(state, SPEC)
    last = runs.of_sweep(state, sweep.id)[-1]
    sweeps.set_state(state, sweep.id, SweepState.PAUSED, now=2.0)
    assert [wait.kind for wait in waits(state, last, None)] == [
        WaitKind.ENGINE,
        WaitKind.PAUSED,
        WaitKind.DATASET,
        WaitKind.ORDER,
    ]
    datasets.request(state, NAME, "v1", steps=(), options=PreparationOptions(), now=3.0)
    datasets.set_state(
        state,
        NAME,
        "v1",
        DatasetState.REFUSED,
        now=3.0,
        problem=ProblemRecord("rules_not_accepted", "accept its rules"),
    )
    sweeps.set_state(state, sweep.id, SweepState.ACTIVE, now=4.0)
    assert waits(state, last, ROOMY)[0].text == "its dataset is refused: accept its rules"


@pytest.mark.parametrize(
    ("engine", "text", "data"),
    [
        (replace(ROOMY, slots=3.0), "2 of 3 processors are taken", ("processors", 2, 3)),
        (replace(ROOMY, gpus=1), "1 of 1 GPUs are taken", ("GPUs", 1, 1)),
        (replace(ROOMY, gpus=0), "the host has no GPU", ("GPUs", 1, 0)),
        (replace(ROOMY, memory_for_runs=10**10), "8 of 10 GB of memory are taken", ("memory", 8e9, 1e10)),
    ],
)
def test_what_the_host_lacks_is_named(
    state: Database, engine: EngineStatus, text: str, data: tuple[str, float, float]
) -> None:
    prepare(state)
    sweep = new_sweep(state, SPEC, concurrency=4)
    first, second, *_rest = runs.of_sweep(state, sweep.id)
    start(state, first, at=50.0)
    assert waits(state, second, ROOMY) == []
    (wait,) = waits(state, second, engine)
    assert (wait.kind, wait.text, wait.needs_person) == (WaitKind.HOST, text, False)
    assert (wait.subject, wait.taken, wait.of) == data


def test_starts_that_are_spaced_out_hold_it_until_the_next_one(state: Database) -> None:
    prepare(state)
    sweep = new_sweep(state, replace(SPEC, start_ramp_seconds=60.0), concurrency=4)
    first, second, *_rest = runs.of_sweep(state, sweep.id)
    assert waits(state, second, ROOMY)[0].kind is WaitKind.ORDER, "none was started yet"
    start(state, first, at=75.0)
    (wait,) = waits(state, second, ROOMY)
    assert (wait.text, wait.until) == ("runs of its sweep start 60 s apart, 35 s left", 135.0)
    found = read_queued_run(state, second, sweep, 135.0)
    assert found is not None and found.waits(ROOMY) == []


def test_it_may_start_when_the_runs_before_it_have_ended(state: Database) -> None:
    prepare(state)
    sweep = new_sweep(state, SPEC)
    first, second, third, _last = runs.of_sweep(state, sweep.id)
    start(state, first, at=50.0)
    found = [read_queued_run(state, run, sweep, 100.0) for run in (runs.get(state, first.id), second, third)]
    assert found[0] is None
    assert [each.free_at.at for each in found if each and each.free_at] == [3650.0, 2 * 3600.0 + 50.0]
    assert [wait.text for wait in waits(state, third, ROOMY)] == [
        "its sweep runs one at a time",
        "1 run goes first",
    ]


def test_a_failed_run_is_retried_after_a_delay_as_often_as_its_sweep_allows(state: Database) -> None:
    sweep = new_sweep(state, SPEC)
    run = runs.of_sweep(state, sweep.id)[0]
    lost = Failure(FailureClass.INFRASTRUCTURE, "GPU lost")
    transitions.failed(
        state,
        transitions.launch(state, run.id, directory="runs/1", runtime="process", now=1.0).id,
        lost,
        now=10.0,
    )
    assert retry_at(state, runs.get(state, run.id)) == 40.0
    transitions.requeued(state, run.id, by="engine", now=50.0)
    assert retry_at(state, runs.get(state, run.id)) is None
    transitions.failed(
        state,
        transitions.launch(state, run.id, directory="runs/2", runtime="process", now=51.0).id,
        lost,
        now=60.0,
    )
    assert retry_at(state, runs.get(state, run.id)) is None, "it was retried as often as allowed"
