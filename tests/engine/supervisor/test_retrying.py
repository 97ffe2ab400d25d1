"""Infrastructure failures are retried a few times, each time later; agents' own failures never."""

from __future__ import annotations

import pytest

from mlebench_console.engine.runs.scheduling import RETRY_BACKOFF, Retrier
from mlebench_console.state import runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, RunState, SweepState
from mlebench_console.state.records import Run
from mlebench_console.state.transitions import Failure
from tests.clocks import HandClock
from tests.conditions import spec_of
from tests.engine.states import new_sweep


def sweep(state: Database, *, retries: int) -> Run:
    new_sweep(state, spec_of("agent", "", ("leaf-classification",), 1, 10.0, retries=retries))
    (run,) = runs.of_sweep(state, "s")
    return run


def fail(state: Database, run: Run, kind: FailureClass, clock: HandClock) -> None:
    number = runs.get(state, run.id).attempts + 1
    attempt = transitions.launch(state, run.id, directory=f"a{number}", runtime="plain", now=clock.now())
    transitions.failed(state, attempt.id, Failure(kind, "text"), now=clock.now())


def test_an_infrastructure_failure_is_retried_later_and_later_and_not_for_ever(state: Database) -> None:
    clock = HandClock()
    run = sweep(state, retries=2)
    retrier = Retrier(state, clock)
    for failures in (1, 2):
        fail(state, run, FailureClass.INFRASTRUCTURE, clock)
        clock.moment += RETRY_BACKOFF.seconds(failures) - 1
        retrier.step()
        assert runs.get(state, run.id).state is RunState.FAILED
        clock.moment += 1
        retrier.step()
        assert runs.get(state, run.id).state is RunState.QUEUED
    fail(state, run, FailureClass.INFRASTRUCTURE, clock)
    clock.moment += 1e6
    retrier.step()
    assert runs.get(state, run.id).state is RunState.FAILED
    assert runs.get(state, run.id).rerolls == 0


@pytest.mark.parametrize("kind", [kind for kind in FailureClass if kind is not FailureClass.INFRASTRUCTURE])
def test_an_agents_own_failure_is_never_retried(state: Database, kind: FailureClass) -> None:
    clock = HandClock()
    run = sweep(state, retries=2)
    fail(state, run, kind, clock)
    clock.moment += 1e6
    Retrier(state, clock).step()
    assert runs.get(state, run.id).state is RunState.FAILED


def test_a_class_that_an_operator_gave_starts_nothing(state: Database) -> None:
    clock = HandClock()
    run = sweep(state, retries=2)
    fail(state, run, FailureClass.CRASH, clock)
    transitions.classified(
        state, run.id, FailureClass.INFRASTRUCTURE, note="it was the disk", by="operator", now=clock.now()
    )
    clock.moment += 1e6
    Retrier(state, clock).step()
    assert runs.get(state, run.id).state is RunState.FAILED


def test_a_wall_clock_that_was_set_back_delays_no_retry(state: Database) -> None:
    class TwoClocks(HandClock):
        steady = 0.0

        def monotonic(self) -> float:
            return self.steady

    clock = TwoClocks()
    run = sweep(state, retries=1)
    retrier = Retrier(state, clock)
    fail(state, run, FailureClass.INFRASTRUCTURE, clock)
    clock.moment -= 500.0
    retrier.step()
    assert runs.get(state, run.id).state is RunState.FAILED
    clock.steady += RETRY_BACKOFF.seconds(1)
    retrier.step()
    assert runs.get(state, run.id).state is RunState.QUEUED


def test_what_will_be_retried_is_counted_and_nothing_else(state: Database) -> None:
    clock = HandClock()
    run = sweep(state, retries=1)
    assert sweeps.counts(state)["s"].retrying == 0
    fail(state, run, FailureClass.INFRASTRUCTURE, clock)
    assert sweeps.counts(state)["s"].retrying == 1
    sweeps.set_state(state, "s", SweepState.PAUSED, now=clock.now())
    assert sweeps.counts(state)["s"].retrying == 0
    sweeps.set_state(state, "s", SweepState.ACTIVE, now=clock.now())
    clock.moment += RETRY_BACKOFF.seconds(1)
    Retrier(state, clock).step()
    assert sweeps.counts(state)["s"].retrying == 0
    fail(state, run, FailureClass.INFRASTRUCTURE, clock)
    assert (sweeps.counts(state)["s"].failed, sweeps.counts(state)["s"].retrying) == (1, 0)
