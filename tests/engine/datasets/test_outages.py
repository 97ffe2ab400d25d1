"""While Kaggle can't be reached datasets wait, whoever is killed, and no request more is made than allowed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.engine.datasets import outage
from mlebench_console.engine.datasets.plans import Plan, request
from mlebench_console.engine.datasets.queue import Capacity, DatasetQueue
from mlebench_console.engine.datasets.sources.published import SourceFailure
from mlebench_console.engine.kaggle import CredentialsRefused, KaggleUnreachable, unreachable
from mlebench_console.engine.kaggle.credentials import Credentials
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.foundation.workers import Ended, JobLimits, WorkerPool
from mlebench_console.state import datasets
from mlebench_console.state.database import Database
from mlebench_console.state.records import Dataset, DatasetState, PreparationOptions
from tests.clocks import HandClock

NAMES = (
    "aerial-cactus-identification",
    "dog-breed-identification",
    "leaf-classification",
    "spaceship-titanic",
    "spooky-author-identification",
    "tweet-sentiment-extraction",
)
BAD = NAMES[0]
KILLED = EnvironmentProblem("the task's process died", "SIGKILL", "")
PATIENCE = 86_400.0

Answer = Callable[[str, float], dict[str, Any] | KaggleUnreachable | None]


class Jobs(WorkerPool):
    """Jobs that are not done but noted; the test says how they end."""

    def __init__(self) -> None:
        super().__init__()
        self.going: dict[int, tuple[str, str]] = {}
        self.started = 0

    def start(
        self,
        function: str,
        arguments: Mapping[str, Any],
        limits: JobLimits | None = None,
        *,
        fresh: bool = False,
    ) -> int:
        self.started += 1
        self.going[self.started] = (function.rpartition(":")[2], str(arguments["competition_id"]))
        return self.started


@dataclass
class World:
    """A queue with its engine, that may be killed, and a Kaggle that answers as it is told."""

    database: Database
    data_dir: Path
    answer: Answer
    clock: HandClock = field(default_factory=HandClock)
    asked: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start the engine, again if it was killed."""
        self.jobs = Jobs()
        capacity = Capacity(downloads=3, preparations=2)
        self.queue = DatasetQueue(
            self.database, self.jobs, self.clock, data_dir=self.data_dir, capacity=capacity, patience=PATIENCE
        )
        self.queue.recover()

    def request(self, *names: str) -> None:
        for name in names:
            request(
                self.database, Plan(name, "v1", PreparationOptions(), download=True), now=self.clock.now()
            )

    def dataset(self, name: str) -> Dataset:
        found = datasets.find(self.database, name, "v1")
        assert found is not None
        return found

    def states(self) -> set[DatasetState]:
        return {each.state for each in datasets.all_datasets(self.database)}

    def begin(self) -> None:
        """Let jobs begin, each of which asks Kaggle at once if it does at all."""
        before = self.jobs.started
        self.queue.step()
        for number in range(before + 1, self.jobs.started + 1):
            task, name = self.jobs.going[number]
            if task != "prepare_dataset":
                self.asked.append((self.clock.moment, name))

    def end(self, number: int) -> None:
        task, name = self.jobs.going.pop(number)
        value: dict[str, Any] | KaggleUnreachable | None
        if task == "prepare_dataset":
            self._make(name)
            value = {"bytes_on_disk": 1, "demo": False}
        else:
            value = self.answer(name, self.clock.moment)
            if value == {} and task == "fetch_zip":
                self._folder(name).root.mkdir(parents=True, exist_ok=True)
                (self._folder(name).root / f"{name}.zip").touch()
            if value == {} and task == "check_access":
                value = {"bytes": 10}
        if isinstance(value, KaggleUnreachable):
            self.queue.take_event(Ended(number, problem=value, raised=True))
        elif value is None:
            problem = CredentialsRefused("Kaggle does not accept the credentials", "it answered 401", "")
            self.queue.take_event(Ended(number, problem=problem))
        else:
            self.queue.take_event(Ended(number, value=value))

    def kill(self, number: int, *, lost: bool = False) -> None:
        del self.jobs.going[number]
        self.queue.take_event(Ended(number, problem=KILLED, signal=0 if lost else 9, lost=lost))

    def rest(self) -> None:
        """Let everything end that is going on, and what follows from it, until nothing can begin now."""
        while True:
            self.begin()
            if not self.jobs.going:
                return
            for number in list(self.jobs.going):
                self.end(number)

    def _folder(self, name: str) -> Any:
        return dataset_folder(registry.get(name), self.data_dir)

    def _make(self, name: str) -> None:
        competition, folder = registry.get(name), self._folder(name)
        for place in (competition.answers, competition.sample_submission):
            (folder.prepared / place).parent.mkdir(parents=True, exist_ok=True)
            (folder.prepared / place).touch()


def well(name: str, now: float) -> dict[str, Any]:
    return {}


@pytest.fixture
def world(state: Database, tmp_path: Path) -> World:
    return World(state, tmp_path / "data", well)


def keeps_the_back_off(asked: list[float]) -> bool:
    """Whether each try came at least twice as long after the one before as that had, up to ten minutes."""
    return all(
        later - sooner >= min(600.0, 2.0**number) for number, (sooner, later) in enumerate(pairwise(asked))
    )


@pytest.mark.parametrize("seed", range(3))
def test_an_hour_without_kaggle_a_limit_and_a_new_token_are_waited_out_whoever_is_killed(
    state: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random.seed(seed)  # waits are of random length too
    token = ["old"]
    monkeypatch.setattr(outage, "find_credentials", lambda: (Credentials("here", token=token[0]),))

    def answer(name: str, now: float) -> dict[str, Any] | KaggleUnreachable | None:
        if 1_030 <= now < 4_610:
            return unreachable("Connection refused")
        if 4_700 <= now < 5_300:
            return unreachable("Kaggle answered 429", 5_300 - now)
        return None if 5_400 <= now < 5_430 or (now >= 5_430 and token[0] == "old") else {}

    world = World(state, tmp_path / "data", answer)
    world.request(*NAMES)
    failing: defaultdict[str, list[float]] = defaultdict(list)
    kills = 0
    while world.states() != {DatasetState.PREPARED}:
        assert world.clock.moment < 20_000, world.states()
        before = len(world.asked)
        world.begin()
        for at, _name in world.asked[before:]:
            for period, (start, end) in {"hour": (1_030, 4_610), "limit": (4_700, 5_300)}.items():
                if start <= at < end and state is not None and datasets.kaggle(state).unreachable_since:
                    failing[period].append(at)
        what = random.random()
        if what < 0.3:
            world.start()
            kills += 1
        elif what < 0.4 and world.jobs.going:
            world.kill(random.choice(list(world.jobs.going)), lost=what < 0.35)
            kills += 1
        elif what < 0.8:
            for number in list(world.jobs.going):
                world.end(number)
        waits = [each.retry_at for each in datasets.all_datasets(state) if each.retry_at]
        waits += [datasets.kaggle(state).retry_at or 0.0]
        later = [moment for moment in waits if moment > world.clock.moment]
        # By small steps while there is work, else to the next moment at which something may begin.
        world.clock.moment = min(later) if later and not world.jobs.going else world.clock.moment + 7.0
        if world.clock.moment > 5_450:
            token[0] = "new"
    assert kills
    assert keeps_the_back_off(failing["hour"]) and len(failing["hour"]) <= 16
    assert len(failing["limit"]) <= 2


def test_all_wait_for_kaggle_and_one_of_them_tries(world: World) -> None:
    world.answer = lambda name, now: unreachable("Kaggle answered 503")
    world.request(*NAMES)
    world.rest()
    assert len(world.asked) == 4  # those that had begun before the first had an answer
    kaggle = datasets.kaggle(world.database)
    assert (kaggle.unreachable_since, kaggle.problem) == (world.clock.moment, "Kaggle answered 503")
    for _ in range(5):
        world.clock.moment += 0.3
        world.rest()
    assert len(world.asked) <= 6
    tries = []
    while world.clock.moment < 1_000 + 3_600:
        before = len(world.asked)
        world.rest()
        assert len(world.asked) - before <= 1
        tries += [at for at, _ in world.asked[before:]]
        world.clock.moment += max(1.0, (world.clock.moment - 1_000) / 20)
    assert keeps_the_back_off(tries)
    assert len({name for _, name in world.asked}) == len(NAMES), "another one tries each time"
    assert world.states() == {DatasetState.WAITING}
    world.answer = well
    world.clock.moment += 700
    world.rest()
    assert world.states() == {DatasetState.PREPARED}
    assert datasets.kaggle(world.database).unreachable_since is None


def test_one_dataset_that_kaggle_can_not_give_stops_no_other(world: World) -> None:
    world.answer = lambda name, now: unreachable("Kaggle answered 500") if name == BAD else {}
    world.request(*NAMES)
    for _ in range(60):
        world.rest()
        world.clock.moment += 1.0
    assert [name for name in NAMES if world.dataset(name).state is not DatasetState.PREPARED] == [BAD]
    waiting = world.dataset(BAD)
    assert waiting.state is DatasetState.WAITING and waiting.problem_text.endswith("Kaggle answered 500")
    world.clock.moment += PATIENCE
    world.rest()
    assert world.dataset(BAD).state is DatasetState.FAILED


def test_a_source_that_is_not_kaggle_is_tried_again_and_stops_no_other(world: World) -> None:
    world.request(BAD, NAMES[1])
    for problem in (SourceFailure("the labels can't be downloaded", "503"),) * 2:
        while not (of_bad := [number for number, (task, name) in world.jobs.going.items() if name == BAD]):
            world.clock.moment += 10.0
            world.begin()
        del world.jobs.going[of_bad[0]]
        world.queue.take_event(Ended(of_bad[0], problem=problem))
        assert world.dataset(BAD).state is DatasetState.WAITING
        assert datasets.kaggle(world.database).unreachable_since is None
    world.rest()
    assert world.dataset(NAMES[1]).state is DatasetState.PREPARED
    world.clock.moment += 3_600.0
    world.rest()
    assert world.dataset(BAD).state is DatasetState.PREPARED


def test_a_killed_worker_is_started_again_but_not_for_ever(world: World) -> None:
    world.request(NAMES[0])
    for _ in range(4):
        world.begin()
        world.kill(max(world.jobs.going))
        assert world.dataset(NAMES[0]).state is DatasetState.WAITING
        world.begin()
        assert not world.jobs.going, "not at once"
        world.clock.moment += 300
    world.rest()
    assert world.dataset(NAMES[0]).state is DatasetState.PREPARED
    world.request(NAMES[1])
    for _ in range(5):
        world.begin()
        world.kill(max(world.jobs.going))
        world.clock.moment += 300
    assert world.dataset(NAMES[1]).state is DatasetState.FAILED


def test_credentials_that_were_never_accepted_fail_all_by_one_request_each_at_once(world: World) -> None:
    world.answer = lambda name, now: None
    world.request(*NAMES)
    world.rest()
    assert world.states() == {DatasetState.FAILED}
    assert len(world.asked) == 4
    assert {world.dataset(name).problem_text for name in NAMES} == {
        "Kaggle does not accept the credentials: it answered 401"
    }


def test_what_is_waited_for_too_long_fails_for_all(world: World) -> None:
    world.answer = lambda name, now: unreachable("Network is unreachable")
    world.request(*NAMES)
    world.rest()
    for moment in (500.0, 1_000.0 + PATIENCE):  # a clock that is set back shortens nothing
        world.clock.moment = moment
        world.rest()
        assert world.states() == {DatasetState.WAITING}
    world.clock.moment += 1
    world.rest()
    assert world.states() == {DatasetState.FAILED}
    assert "Network is unreachable, for 24 h" in world.dataset(BAD).problem_text
