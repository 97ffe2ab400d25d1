"""Budgets that runs share end for all of them at once, and gateways hear from the engine that counts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.engine.runs.budgets import SharedBudgets
from mlebench_console.environment.gateway.budget import SILENCE_SECONDS
from mlebench_console.environment.gateway.orders import BudgetNotice
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.conditions import Budget
from mlebench_console.state import events, experiments, runs, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import budgets, model_calls
from mlebench_console.state.usage.budgets import BudgetScope
from mlebench_console.state.usage.model_calls import ModelUse
from tests.clocks import HandClock
from tests.state.worlds import create_sweep


class World:
    """A sweep with living runs, and the files by which its gateways and the engine meet."""

    def __init__(self, folder: Path, database: Database, *, live: int = 3) -> None:
        self.places = Places(folder / "config.toml", folder / "data", folder)
        self.state = database
        self.clock = HandClock()
        create_sweep(database, "s", seeds=4)
        self.attempts = [
            transitions.launch(database, run.id, directory=f"runs/{run.id}", runtime="docker", now=1.0).id
            for run in runs.of_sweep(database, "s")[:live]
        ]
        for attempt in self.attempts:
            self.folder(attempt).mkdir(parents=True)
        self.start()

    def start(self) -> None:
        """A new engine on what the last one has left."""
        self.logged: list[str] = []

        def log(text: str, _error: BaseException | None) -> None:
            self.logged.append(text)

        self.engine = SharedBudgets(self.state, self.places.state_dir, self.clock, log)

    def folder(self, attempt: int) -> Path:
        return self.places.state_dir / runs.attempt(self.state, attempt).directory

    def set(
        self,
        scope: BudgetScope = BudgetScope.SWEEP,
        name: str = "s",
        *,
        usd: float | None = None,
        **limits: int,
    ) -> None:
        budgets.set_limits(self.state, scope, name, Budget(**limits, usd=usd), now=1.0)

    def step(self, *, seconds: float = 1.0) -> None:
        self.clock.moment += seconds
        self.engine.step()

    def notice(self, attempt: int) -> BudgetNotice | None:
        """What the gateway of an attempt reads."""
        return protocol.read_if_there(self.folder(attempt) / protocol.SHARED_BUDGET, BudgetNotice)

    def refusals(self) -> list[str | None]:
        """Whose budgets the gateways are told to be used up; None for one that is told nothing."""
        notices = [self.notice(attempt) for attempt in self.attempts]
        return [None if notice is None else notice.used_up for notice in notices]

    def use(self, attempt: int, *, calls: int = 0, tokens: int = 0, usd: float = 0.0) -> None:
        """Calls have ended and are counted."""
        use = ModelUse(attempt, "openai", "m", calls=calls, input_tokens=tokens, charged=usd)
        model_calls.add(self.state, attempt, [use], 0)

    def end(self, attempt: int) -> None:
        failure = Failure(FailureClass.CRASH, "it died")
        transitions.failed(self.state, attempt, failure, now=2.0)

    def told(self) -> list[str]:
        found = [event.kind for event in events.newest(self.state) if ".budget_" in event.kind]
        return found[::-1]


@pytest.fixture
def world(tmp_path: Path, state: Database) -> World:
    return World(tmp_path, state)


def test_gateways_go_on_until_the_budget_is_used_up_and_again_when_it_is_raised(world: World) -> None:
    world.set(calls=4)
    world.step()
    assert world.refusals() == ["", "", ""]
    world.use(world.attempts[0], calls=2)
    world.use(world.attempts[1], calls=1)
    world.step()
    assert (world.refusals(), world.engine.has_room("s")) == (["", "", ""], True)
    world.use(world.attempts[1], calls=3)  # those under way may exceed it
    world.step()
    world.step()
    assert (world.refusals(), world.engine.has_room("s")) == (["the sweep s"] * 3, False)
    assert world.told() == ["sweep.budget_used_up"]
    world.set(calls=100)
    world.step()
    assert (world.refusals(), world.engine.has_room("s")) == (["", "", ""], True)


def test_a_new_attempt_has_its_notice_before_its_gateway_starts(world: World) -> None:
    assert world.engine.notice_for("s") is None
    world.set(calls=4, usd=2.0)
    assert world.engine.notice_for("s") == BudgetNotice(world.clock.moment, "", in_money=True)
    world.use(world.attempts[0], calls=4)
    assert world.engine.notice_for("s") == BudgetNotice(world.clock.moment, "the sweep s", in_money=True)


def test_notices_are_repeated_as_a_sign_of_life_long_before_gateways_give_the_engine_up(world: World) -> None:
    world.set(calls=4)
    written = []
    for _ in range(int(SILENCE_SECONDS)):
        world.step()
        notice = world.notice(world.attempts[0])
        assert notice is not None
        written.append(notice.at)
    assert written == sorted(written)
    assert 5 <= len(set(written)) <= 20
    world.start()
    world.step()
    notice = world.notice(world.attempts[0])
    assert notice is not None
    assert notice.at == world.clock.now(), "an engine tells at once that it is there"


def test_a_clock_that_is_set_back_does_not_silence_the_engine(world: World) -> None:
    world.set(calls=4)
    world.step()
    world.step(seconds=-3600.0)
    notice = world.notice(world.attempts[0])
    assert notice is not None
    assert notice.at == world.clock.now()


def test_most_of_a_budget_is_told_before_its_end(world: World) -> None:
    world.set(tokens=100)
    world.use(world.attempts[0], tokens=79)
    world.step()
    assert world.told() == []
    world.use(world.attempts[0], tokens=2)
    world.step()
    world.step()
    assert world.told() == ["sweep.budget_warning"]
    assert "81 of 100 tokens" in next(e.text for e in events.newest(world.state) if "warning" in e.kind)


def test_sweeps_of_an_experiment_share_its_budget_beside_their_own(world: World) -> None:
    create_sweep(world.state, "other", competitions=("alpha",), seeds=1)
    (run,) = runs.of_sweep(world.state, "other")
    another = transitions.launch(world.state, run.id, directory="runs/o", runtime="docker", now=1.0).id
    world.folder(another).mkdir()
    for sweep in ("s", "other"):
        experiments.assign(world.state, "row", sweep, now=1.0)
    world.set(BudgetScope.EXPERIMENT, "row", calls=2)
    world.set(calls=50)
    world.use(world.attempts[0], calls=1)
    world.use(another, calls=1)
    world.step()
    told = world.notice(another)
    assert told is not None
    assert (told.used_up, world.refusals()) == ("the experiment row", ["the experiment row"] * 3)
    assert world.told() == ["experiment.budget_used_up"]
    world.use(world.attempts[0], calls=50)
    world.step()
    assert world.refusals() == ["the experiment row and the sweep s"] * 3


@pytest.mark.parametrize("restarted", [False, True])
def test_a_budget_that_is_taken_away_limits_nothing_any_more(world: World, *, restarted: bool) -> None:
    world.set(calls=1)
    world.step()
    world.set()
    if restarted:
        world.start()
    world.step()
    assert world.refusals() == [None] * 3


def test_a_run_whose_directory_takes_nothing_keeps_no_other_from_its_notice(world: World) -> None:
    world.set(tokens=100)
    first, second, _ = world.attempts
    (world.folder(first)).rmdir()
    (world.folder(first)).write_text("in its place")
    for _ in range(20):
        world.step()
    assert world.notice(second) is not None
    assert len(world.logged) == 1
    world.folder(first).unlink()
    world.step()
    world.folder(first).mkdir()
    world.step()
    assert world.refusals() == ["", "", ""]
    assert len(world.logged) == 1


def test_a_budget_in_money_is_used_by_what_calls_were_charged(world: World) -> None:
    """Not by what the versions that answered cost, which need not be known."""
    world.set(usd=1.0)
    first, *_ = world.attempts
    world.use(first, calls=3, usd=0.99)
    world.end(first)
    world.step()
    assert world.engine.has_room("s")
    assert world.told() == ["sweep.budget_warning"]
    world.use(first, calls=1, usd=0.02)
    world.step()
    assert world.engine.has_room("s") is False
    assert world.told() == ["sweep.budget_warning", "sweep.budget_used_up"]
