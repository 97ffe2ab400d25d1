"""Budgets that runs share are never exceeded by what is handed out, whoever dies when, and come to an end once."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench_console.engine.places import Places
from mlebench_console.engine.runs.budgets import SharedBudgets
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import AllowanceRequest, RunAllowance
from mlebench_console.foundation import files
from mlebench_console.foundation.amounts import Amounts, Budget
from mlebench_console.state import database, events, experiments, runs, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import budgets, model_calls
from mlebench_console.state.usage.budgets import BudgetScope, SharingAttempt
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
        self.asked: int | None = None

        def asked(_attempt: SharingAttempt) -> int | None:
            return self.asked

        self.logged: list[str] = []

        def log(text: str, _error: BaseException | None) -> None:
            self.logged.append(text)

        self.engine = SharedBudgets(self.state, self.places.state_dir, self.clock, log, asked)

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

    def want(self, attempt: int, *, calls: int = 1, tokens: int = 0) -> None:
        """A gateway has calls under way, and another one to make."""
        least, more = Amounts(calls, tokens), Amounts(calls + 1, 2 * tokens)
        files.write_json(
            self.folder(attempt) / protocol.ALLOWANCE_REQUEST, asdict(AllowanceRequest(least, more))
        )

    def step(self) -> None:
        self.clock.moment += 5.0
        self.engine.step()

    def given(self, attempt: int) -> RunAllowance:
        return protocol.read(self.folder(attempt) / protocol.ALLOWANCE, RunAllowance)

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


def test_each_run_gets_what_its_next_call_needs_and_some_more(world: World) -> None:
    world.set(tokens=100_000)
    world.want(world.attempts[0], tokens=1000)
    world.step()
    first, second, _ = map(world.given, world.attempts)
    assert first.tokens is not None
    assert 1000 < first.tokens < 5000
    assert (second.tokens, second.calls, second.usd) == (0, None, None)


def test_of_runs_on_nodes_a_request_is_read_when_they_say_that_there_is_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.set(tokens=100_000)
    world.asked = 0
    world.step()
    first = world.attempts[0]
    read = protocol.read_if_there
    reads: list[Path] = []

    def noted(path: Path, kind: type[AllowanceRequest]) -> AllowanceRequest | None:
        reads.append(path)
        return read(path, kind)

    monkeypatch.setattr(protocol, "read_if_there", noted)
    world.want(first, tokens=1000)
    world.step()
    assert reads == []
    assert world.given(first).tokens == 0
    world.asked = 7
    for _ in range(5):
        world.step()
    assert len(reads) == len(world.attempts)
    assert (world.given(first).tokens or 0) > 1000


def test_one_that_asks_for_much_again_and_again_gets_no_more_of_it(world: World) -> None:
    world.set(tokens=1000)
    files.write_json(
        world.folder(world.attempts[0]) / protocol.ALLOWANCE_REQUEST,
        asdict(AllowanceRequest(Amounts(1, 10), Amounts(2, 100_000))),
    )
    world.step()
    first = world.given(world.attempts[0])
    for _ in range(20):
        world.step()
    assert world.given(world.attempts[0]) == first
    assert 10 < (first.tokens or 0) < 200
    assert world.told() == []


def test_a_used_up_budget_is_told_once_refuses_and_starts_no_more_runs_until_it_is_raised(
    world: World,
) -> None:
    world.set(calls=4)
    first, second, third = world.attempts
    for attempt in (first, second, third):
        world.want(attempt, calls=1)
        world.step()
    world.use(first, calls=1)
    world.want(first, calls=2)
    world.step()
    assert world.engine.has_room("s") is False
    world.use(first, calls=1)
    world.want(first, calls=3)
    world.step()
    world.step()
    assert [world.given(attempt).calls for attempt in world.attempts] == [2, 1, 1]
    assert world.given(first).used_up
    assert world.told() == ["sweep.budget_used_up"]
    world.set(calls=100)
    world.step()
    assert world.engine.has_room("s")
    assert not world.given(first).used_up
    assert (world.given(first).calls or 0) >= 3


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


def test_what_an_ended_run_has_not_used_goes_to_others(world: World) -> None:
    world.set(calls=3)
    first, second, third = world.attempts
    for attempt in (first, second, third):
        world.want(attempt, calls=1)
    world.step()
    world.want(second, calls=2)
    world.step()
    assert world.given(second).used_up
    world.end(first)
    world.step()
    assert (world.given(second).calls, world.given(second).used_up) == (2, False)


def test_sweeps_of_an_experiment_share_its_budget_beside_their_own(world: World) -> None:
    create_sweep(world.state, "other", competitions=("alpha",), seeds=1)
    (run,) = runs.of_sweep(world.state, "other")
    another = transitions.launch(world.state, run.id, directory="runs/o", runtime="docker", now=1.0).id
    world.folder(another).mkdir()
    for sweep in ("s", "other"):
        experiments.assign(world.state, "row", sweep, now=1.0)
    world.set(BudgetScope.EXPERIMENT, "row", calls=2)
    world.set(calls=50)
    for attempt in (world.attempts[0], another):
        world.want(attempt, calls=1)
        world.step()
    world.want(another, calls=2)
    world.step()
    told = world.given(another)
    assert (told.calls, told.used_up, told.of) == (1, True, "the experiment row")
    assert world.told() == ["experiment.budget_used_up"]


def test_a_budget_that_is_taken_away_limits_nothing_any_more(world: World) -> None:
    world.set(calls=1)
    world.step()
    world.set()
    world.step()
    assert [world.given(attempt).calls for attempt in world.attempts] == [None] * 3


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("want", "use", "end", "restart", "step")), st.integers(0, 2), st.integers(1, 40)
        ),
        max_size=40,
    )
)
def test_allowances_of_the_living_and_use_of_the_ended_never_exceed_a_budget(
    tmp_path_factory: pytest.TempPathFactory, empty_state: Path, history: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("world")
    shutil.copyfile(empty_state, folder / empty_state.name)
    opened = database.open_for_writing(folder)
    world = World(folder, opened)
    world.set(tokens=100)
    used = dict.fromkeys(world.attempts, 0)
    living = set(world.attempts)
    for what, which, amount in history:
        attempt = world.attempts[which]
        if what == "restart":
            world.start()
        elif what == "step":
            world.step()
        elif attempt in living:
            path = world.folder(attempt) / protocol.ALLOWANCE
            given = (protocol.read(path, RunAllowance).tokens or 0) if path.exists() else 0
            if what == "want":
                world.want(attempt, tokens=used[attempt] + amount)
            elif what == "use":
                more = min(amount, given - used[attempt])  # as a gateway lets through
                used[attempt] += more
                world.use(attempt, tokens=more)
            else:
                world.end(attempt)
                living.remove(attempt)
        kept = budgets.allowances(world.state)
        taken = sum(
            max(used[one], kept[one].tokens if one in kept else 0) if one in living else used[one]
            for one in world.attempts
        )
        assert taken <= 100
    opened.close()


def test_a_run_whose_directory_takes_nothing_keeps_no_other_from_its_allowance(world: World) -> None:
    world.set(tokens=100_000)
    (world.folder(world.attempts[0])).rmdir()
    world.want(world.attempts[1], tokens=1000)
    world.step()
    given = world.given(world.attempts[1])
    assert given.tokens is not None
    assert given.tokens >= 1000
    for _ in range(20):
        world.step()
    assert len(world.logged) == 1
    world.folder(world.attempts[0]).mkdir()
    world.step()
    assert world.given(world.attempts[0]).tokens == 0


def test_a_budget_in_money_is_used_by_what_calls_were_charged(world: World) -> None:
    """Not by what the versions that answered cost, which need not be known."""
    world.set(usd=1.0)
    first, *_ = world.attempts
    world.use(first, calls=3, usd=0.99)
    world.end(first)
    world.step()
    assert world.engine.has_room("s") is False
    assert world.told() == ["sweep.budget_warning"]
