"""The engine calls a person with no console open: once for each thing, also across restarts and lost networks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.causes import IDLE_SECONDS, read_causes
from mlebench_console.engine.needs.need import Need, disk_needs
from mlebench_console.engine.notifications import notifier
from mlebench_console.engine.notifications import notifier as notifier_module
from mlebench_console.engine.notifications.news import GROUPING_SECONDS, in_short, of_events
from mlebench_console.engine.notifications.notifier import NOTE_NAME, Notifier
from mlebench_console.engine.places import Places
from mlebench_console.engine.settings import NotificationKind, NotificationSettings, read_table
from mlebench_console.foundation.problems import EnvironmentProblem, Problem, ProblemRecord, UsageProblem
from mlebench_console.state import acknowledgements, datasets, events, transitions
from mlebench_console.state.event_records import EventData, EventKind, ExperimentBudget, OutageChanged
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import Acknowledgement, DatasetState
from tests.console import worlds
from tests.console.world import NOW, World

PATIENCE = 30.0
EVERYTHING = (
    '[notifications]\non = ["finished", "failed", "medal", "idle", "disk"]\nurls = ["json://somewhere"]\n'
)
# Before Python 3.13 apprise imports a module that is gone in it.
OLD_MODULE = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@dataclass
class Clock:
    """A clock that is moved by hand."""

    at: float = NOW

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


@dataclass
class Post:
    """Takes what is sent, or refuses it."""

    sent: list[str] = field(default_factory=list)
    tried: int = 0
    refuses: int = 0

    def send(self, urls: tuple[str, ...], text: str) -> None:
        self.tried += 1
        if self.refuses:
            self.refuses -= 1
            raise EnvironmentProblem("a notification was not delivered")
        self.sent.append(text)


@dataclass
class Setup:
    """A state, its config.toml and the post."""

    world: World
    config: Path
    post: Post = field(default_factory=Post)
    clock: Clock = field(default_factory=Clock)
    full_disks: tuple[Need, ...] = ()

    def notifier(self) -> Notifier:
        return Notifier(
            self.config, self.world.database, self.clock, lambda: self.full_disks, send=self.post.send
        )

    def fail(self, seed: int, text: str = "boom") -> None:
        lost = self.world.launch(self.world.run("openhands-1", worlds.DEMO[0], seed), ago=600)
        self.world.fail(lost, FailureClass.CRASH, text, ago=100)


@pytest.fixture
def setup(places: Places) -> Iterator[Setup]:
    world = worlds.busy(places)
    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text(EVERYTHING)
    yield Setup(world, places.config_file)
    world.database.close()


def settle(notifier: Notifier) -> list[Problem]:
    """Step until nothing is being sent; the problems that were told on the way."""
    told: list[Problem] = []
    give_up = time.monotonic() + PATIENCE
    for _turn in range(3):
        try:
            notifier.step()
        except Problem as problem:
            told.append(problem)
        if notifier._sending is not None:
            notifier._sending.exception(give_up - time.monotonic())
    return told


def test_what_happened_before_anybody_asked_is_not_told(setup: Setup) -> None:
    settle(setup.notifier())
    told = [text for text in setup.post.sent if "idle" not in text]
    assert told == []


def test_ends_of_runs_are_told_once_also_across_restarts(setup: Setup) -> None:
    first = setup.notifier()
    settle(first)
    setup.post.sent.clear()
    setup.fail(2)
    settle(first)
    settle(first)
    settle(setup.notifier())
    assert len(setup.post.sent) == 1 and "boom" in setup.post.sent[0]


def test_what_happens_while_no_engine_runs_is_told_by_the_next_one(setup: Setup) -> None:
    settle(setup.notifier())
    setup.post.sent.clear()
    setup.fail(2)
    settle(setup.notifier())
    assert len(setup.post.sent) == 1 and "boom" in setup.post.sent[0]


def test_an_engine_that_was_killed_after_its_first_look_has_kept_from_where_on_it_looks(setup: Setup) -> None:
    setup.config.write_text("")
    settle(setup.notifier())
    setup.fail(2)
    setup.config.write_text(EVERYTHING)
    settle(setup.notifier())
    assert any("boom" in text for text in setup.post.sent)


def test_what_is_not_taken_is_tried_again_and_at_last_given_up(setup: Setup) -> None:
    made = setup.notifier()
    settle(made)
    setup.post.sent.clear()
    setup.post.refuses = 1
    setup.fail(2)
    assert len(settle(made)) == 1 and setup.post.sent == []
    setup.clock.at += notifier_module._AGAIN_SECONDS
    assert settle(made) == [] and len(setup.post.sent) == 1
    setup.post.sent.clear()
    setup.post.refuses = 1000
    setup.fail(3, "bang")
    before = setup.post.tried
    for _turn in range(10):
        settle(made)
        setup.clock.at += notifier_module._AGAIN_SECONDS
    assert setup.post.tried - before == notifier_module._TRIES


def test_a_quiet_run_is_told_once_until_it_has_moved(setup: Setup) -> None:
    made = setup.notifier()
    settle(made)
    setup.post.sent.clear()
    setup.clock.at += IDLE_SECONDS * 20
    settle(made)
    setup.clock.at += 120
    settle(made)
    assert len(setup.post.sent) == 1 and "idle" in setup.post.sent[0]


def test_a_full_disk_is_told_when_it_becomes_so(setup: Setup) -> None:
    made = setup.notifier()
    settle(made)
    setup.post.sent.clear()
    full = [
        disk_needs(EngineStatus(running=True, state_disk_free=free, state_disk_total=100)) for free in (3, 2)
    ]
    setup.full_disks = full[0]
    settle(made)
    settle(made)
    setup.full_disks = full[1]  # fuller, which is not news
    settle(made)
    assert setup.post.sent == ["the disk with the state is 97 % full"]
    setup.full_disks = ()
    settle(made)
    setup.full_disks = full[0]
    settle(made)
    assert len(setup.post.sent) == 2


def test_only_what_is_wanted_is_sent_and_a_change_of_config_counts_at_once(setup: Setup) -> None:
    setup.config.write_text('[notifications]\non = ["medal"]\nurls = ["json://somewhere"]\n')
    made = setup.notifier()
    settle(made)
    setup.fail(2)
    settle(made)
    assert setup.post.sent == []
    setup.config.write_text('[notifications]\non = ["failed"]\nurls = ["json://somewhere", "json://else"]\n')
    setup.fail(3)
    settle(made)
    assert len(setup.post.sent) == 1


def test_a_wrong_config_is_told_and_the_last_good_one_stays(setup: Setup) -> None:
    made = setup.notifier()
    settle(made)
    setup.post.sent.clear()
    setup.config.write_text("[notifications\n")
    assert len(settle(made)) == 1
    setup.fail(2)
    assert settle(made) == [] and len(setup.post.sent) == 1


@pytest.mark.parametrize("note", ["", "[]", '{"event": "x", "idle": {}, "host": []}', "{"])
def test_a_damaged_note_begins_anew_without_a_flood(setup: Setup, note: str) -> None:
    (setup.world.database.path.parent / NOTE_NAME).write_text(note)
    setup.fail(2)
    made = setup.notifier()
    settle(made)
    assert not any("boom" in text for text in setup.post.sent)


def test_ends_of_runs_are_news_and_steps_between_are_not(setup: Setup) -> None:
    before = events.newest(setup.world.database, limit=1)[0].id
    attempt = setup.world.launch(setup.world.run("openhands-1", worlds.DEMO[0], 2), ago=600)
    setup.world.finish(attempt, Outcome.GOLD, 1.0, ago=300)
    setup.fail(3)
    found = of_events(reversed(events.newest(setup.world.database, limit=100, after_id=before)))
    assert [each.kind for each in found] == [NotificationKind.MEDAL, NotificationKind.FAILED]
    assert "boom" in found[1].text and in_short(found).endswith(", and 1 more")


def test_outages_of_providers_and_ends_of_budgets_are_news_and_changes_of_budgets_are_not(
    setup: Setup,
) -> None:
    database = setup.world.database
    before = events.newest(database, limit=1)[0].id
    told: dict[EventKind, EventData | None] = {
        EventKind.PROVIDER_OUTAGE: OutageChanged(1, "openai"),
        EventKind.SWEEP_BUDGET: None,
        EventKind.SWEEP_BUDGET_WARNING: None,
        EventKind.EXPERIMENT_BUDGET_USED_UP: ExperimentBudget("e"),
    }
    with database.transaction():
        for kind, detail in told.items():
            events.append(database, 1.0, kind, f"told of {kind}", detail=detail)
    found = of_events(reversed(events.newest(database, limit=10, after_id=before)))
    assert [(each.kind, each.text) for each in found] == [
        (NotificationKind.PROVIDER, "told of provider.outage"),
        (NotificationKind.BUDGET, "told of sweep.budget_warning"),
        (NotificationKind.BUDGET, "told of experiment.budget_used_up"),
    ]


def test_datasets_that_are_prepared_refused_or_failed_are_news_and_those_that_were_there_are_not(
    setup: Setup,
) -> None:
    database = setup.world.database
    before = events.newest(database, limit=1)[0].id
    one, two, three, four = worlds.DEMO[:4]
    with database.transaction():
        datasets.found(database, one, "corrected", steps=("prepare",), now=1.0)
        datasets.set_state(database, two, "v1", DatasetState.PREPARED, now=2.0)
        datasets.set_state(
            database,
            three,
            "v1",
            DatasetState.REFUSED,
            now=3.0,
            problem=ProblemRecord("rules_not_accepted", "accept the rules"),
        )
        datasets.set_state(
            database,
            four,
            "v1",
            DatasetState.FAILED,
            now=4.0,
            problem=ProblemRecord("data", "train.csv is damaged"),
        )
    found = of_events(reversed(events.newest(database, limit=100, after_id=before)))
    assert [(each.kind, each.text) for each in found] == [
        (NotificationKind.PREPARED, f"{two}: prepared"),
        (NotificationKind.REFUSED, f"{three}: accept the rules"),
        (NotificationKind.FAILED, f"{four}: could not be prepared: train.csv is damaged"),
    ]


def outage(setup: Setup, *places: tuple[int, int]) -> None:
    with setup.world.database.transaction():
        for place, seed in places:
            run = setup.world.run("openhands-1", registry.splits()["low"][place], seed)
            setup.world.lose_gpu(run, ago=NOW - setup.clock.at)


def test_an_outage_of_many_runs_is_told_once_and_its_further_runs_together(setup: Setup) -> None:
    made = setup.notifier()
    settle(made)
    setup.post.sent.clear()
    outage(setup, *((place, seed) for place in range(1, 9) for seed in (1, 2)))
    settle(made)
    common = "infrastructure: GPU lost: Failed to initialize NVML: Unknown Error"
    assert setup.post.sent == [f"16 runs of openhands-1: {common}"]
    setup.clock.at += 60
    outage(setup, (1, 3), (2, 3))
    settle(made)
    settle(setup.notifier())  # another engine, that takes over
    assert len(setup.post.sent) == 1
    setup.clock.at += GROUPING_SECONDS
    settle(setup.notifier())
    assert setup.post.sent[1:] == [f"2 more runs: {common}"]
    setup.clock.at += GROUPING_SECONDS
    settle(setup.notifier())
    outage(setup, (3, 3))
    settle(setup.notifier())
    assert len(setup.post.sent) == 3 and "GPU-0000" in setup.post.sent[2], (
        "a new outage, told of as a single run"
    )


def test_what_is_snoozed_is_not_told_and_other_causes_are(setup: Setup) -> None:
    made = setup.notifier()
    settle(made)
    setup.post.sent.clear()
    (gpu, *_) = read_causes(setup.world.database, NOW)
    assert "GPU" in gpu.text
    known = Acknowledgement(gpu.key, gpu.text, "op", NOW, "x", setup.clock.at + 3600)
    acknowledgements.acknowledge(setup.world.database, known)
    outage(setup, (1, 1), (2, 1))
    setup.fail(2)
    settle(made)
    assert len(setup.post.sent) == 1 and "boom" in setup.post.sent[0]


def test_what_can_not_be_graded_is_snoozed_by_the_cause_that_is_shown(setup: Setup) -> None:
    made, state = setup.notifier(), setup.world.database
    first, second = (
        setup.world.launch(setup.world.run("openhands-1", worlds.DEMO[0], seed), ago=600) for seed in (2, 3)
    )

    def fail(attempt_id: int) -> None:
        problem = f"the answers of {worlds.DEMO[0]} are gone since {attempt_id}"
        transitions.grading_failed(state, attempt_id, problem, retry_at=NOW + 60, now=NOW)

    settle(made)
    fail(first)
    settle(made)
    assert any("are gone" in text for text in setup.post.sent)
    setup.post.sent.clear()
    (shown,) = (group for group in read_causes(state, NOW) if "are gone" in group.text)
    until = setup.clock.at + 7 * 86_400
    acknowledgements.acknowledge(state, Acknowledgement(shown.key, shown.text, "op", NOW, "known", until))
    setup.clock.at += 2 * GROUPING_SECONDS
    settle(made)
    setup.post.sent.clear()
    fail(second)
    settle(made)
    assert not any("are gone" in text for text in setup.post.sent)


@OLD_MODULE
def test_the_real_apprise_delivers_to_a_receiver(
    setup: Setup, receiver: tuple[str, list[dict[str, Any]]]
) -> None:
    url, taken = receiver
    setup.config.write_text(f'[notifications]\non = ["failed"]\nurls = ["{url}"]\n')
    made = Notifier(setup.config, setup.world.database, setup.clock, lambda: ())
    assert settle(made) == []
    setup.fail(2, "bad\x1b[2J")
    assert settle(made) == []
    assert len(taken) == 1 and taken[0]["title"] == notifier.TITLE
    assert "\x1b" not in taken[0]["message"] and "bad\\u001b[2J" in taken[0]["message"]


@OLD_MODULE
def test_a_receiver_that_is_not_there_is_told_without_its_address(
    setup: Setup, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EnvironmentProblem) as told:
        notifier.send(("json://user:secret-token@127.0.0.1:1/hook",), "text")
    with pytest.raises(EnvironmentProblem) as unknown:
        notifier.send(("nonsense://secret-token",), "text")
    printed = capfd.readouterr()
    for text in (str(told.value), str(unknown.value), printed.out, printed.err):
        assert "secret-token" not in text


def test_without_apprise_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    with pytest.raises(EnvironmentProblem, match=r"mlebench-console\[notify\]"):
        notifier.send(("json://x",), "text")


def test_what_to_be_called_for_is_read_from_config_toml(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    assert read_table(config, NotificationSettings) == NotificationSettings()
    config.write_text('[notifications]\non = ["medal", "disk"]\nbell = true\nurls = ["json://x"]\n')
    assert read_table(config, NotificationSettings) == NotificationSettings(
        frozenset({NotificationKind.MEDAL, NotificationKind.DISK}), True, False, ("json://x",)
    )
    assert "json://x" not in repr(read_table(config, NotificationSettings))


@pytest.mark.parametrize(
    "text",
    ['[notifications]\non = ["everything"]\n', '[notifications]\nurls = "x"\n', "notifications = 3\n", "["],
)
def test_a_table_that_says_nothing_known_is_refused(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    with pytest.raises(UsageProblem):
        read_table(config, NotificationSettings)
