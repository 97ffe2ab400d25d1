"""A sweep with a start ramp starts its runs one by one, also after a restart and when clocks are set."""

from __future__ import annotations

from dataclasses import dataclass

from mlebench_console.engine.runs.scheduling import StartRamp
from mlebench_console.state import runs, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import RunState
from mlebench_console.state.records import Sweep
from tests.conditions import spec_of
from tests.engine.states import new_sweep


@dataclass
class Clocks:
    wall: float = 1000.0
    steady: float = 50.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def ramped(state: Database, seconds: float) -> Sweep:
    spec = spec_of("agent", "", ("leaf-classification",), 9, 10.0, start_ramp_seconds=seconds)
    return new_sweep(state, spec, concurrency=9)


def launch(state: Database, ramp: StartRamp, clocks: Clocks) -> None:
    run = next(run for run in runs.of_sweep(state, "s") if run.state is RunState.QUEUED)
    transitions.launch(state, run.id, directory=f"a{run.id}", runtime="plain", now=clocks.now())
    ramp.note_start("s")


def test_without_a_ramp_everything_may_start(state: Database) -> None:
    assert StartRamp(state, Clocks()).may_start(ramped(state, 0.0), 8) == 8


def test_runs_start_one_by_one_and_a_restart_forgets_nothing(state: Database) -> None:
    clocks, sweep = Clocks(), ramped(state, 30.0)
    ramp = StartRamp(state, clocks)
    assert ramp.may_start(sweep, 8) == 1
    launch(state, ramp, clocks)
    clocks.pass_(29)
    assert ramp.may_start(sweep, 8) == 0
    ramp = StartRamp(state, clocks)
    assert ramp.may_start(sweep, 8) == 0
    clocks.pass_(1)
    assert ramp.may_start(sweep, 8) == 1
    assert ramp.may_start(sweep, 0) == 0


def test_a_wall_clock_that_is_set_neither_hastens_nor_stops_the_ramp(state: Database) -> None:
    clocks, sweep = Clocks(), ramped(state, 30.0)
    ramp = StartRamp(state, clocks)
    launch(state, ramp, clocks)
    clocks.wall += 1e6
    assert ramp.may_start(sweep, 8) == 0
    clocks.wall -= 2e6
    restarted = StartRamp(state, clocks)
    assert restarted.may_start(sweep, 8) == 0
    clocks.steady += 30
    assert ramp.may_start(sweep, 8) == restarted.may_start(sweep, 8) == 1
