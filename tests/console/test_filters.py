"""The words of `/` choose runs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.console.lists import words_accept
from mlebench_console.console.nouns.event import EVENT, ListedEvent, accepted, listed_events
from mlebench_console.console.nouns.run import RUN, RunRow
from mlebench_console.console.roles import Drawing
from mlebench_console.console.screens.grading import best_fits
from mlebench_console.state import events
from mlebench_console.state.causes import cause_key
from mlebench_console.state.database import open_for_writing
from mlebench_console.state.event_records import (
    DatasetChanged,
    Event,
    EventData,
    EventKind,
    RunFailed,
    RunFinished,
)
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import DatasetState, Run, Tag

QUEUED = Run(
    id=1, sweep_id="s", competition_id="leaf-classification", seed=2, state=RunState.QUEUED, outcome=None,
    failure_class=None, failure_text="", standing=None, score=None, valid=None, attempts=0, rerolls=0,
    queued_at=0.0, started_at=None, ended_at=None, last_activity_at=None, submissions=0, position=0,
)  # fmt: skip
FAILED = replace(
    QUEUED,
    state=RunState.FAILED,
    failure_class=FailureClass.INFRASTRUCTURE,
    failure_text="GPU lost",
    cause="GPU lost",
    seed=1,
)
GOLD = replace(QUEUED, state=RunState.FINISHED, outcome=Outcome.GOLD, standing=Outcome.GOLD)
NOTED = replace(QUEUED, seed=3, note="look at the GPU", tags=(Tag("night", "me", 1.0),))
RUNNING = replace(QUEUED, state=RunState.RUNNING, standing=Outcome.ABOVE_MEDIAN)


def accepts(text: str, run: Run) -> bool:
    return RUN.filter(text).accepts(RunRow(run, 3600.0), Drawing(0.0))


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("", [QUEUED, FAILED, GOLD, RUNNING]),
        ("state:failed", [FAILED]),
        ("state:fail", [FAILED]),
        ("!state:failed", [QUEUED, GOLD, RUNNING]),
        ("class:infra", [FAILED]),
        ("cause:infrastructure-", [FAILED]),
        (f"cause:{cause_key('infrastructure', 'GPU lost')}", [FAILED]),
        ("cause:lost", [FAILED]),
        ("cause:", [FAILED]),
        ("cause:nvml", []),
        ("!cause:gpu", [QUEUED, GOLD, RUNNING]),
        ("state:live", [RUNNING]),
        ("seed:1", [FAILED]),
        ("split:low seed:2", [QUEUED, GOLD, RUNNING]),
        ("split:high", []),
        ("outcome:medal", [GOLD]),
        ("outcome:gold", [GOLD]),
        ("standing:above", [RUNNING]),
        ("leaf !gpu", [QUEUED, GOLD, RUNNING]),
        ("LEAF", [QUEUED, FAILED, GOLD, RUNNING]),
        ("class:", []),
        ("!", [QUEUED, FAILED, GOLD, RUNNING]),
    ],
)
def test_a_filter_chooses(text: str, accepted: list[Run]) -> None:
    assert [run for run in (QUEUED, FAILED, GOLD, RUNNING) if accepts(text, run)] == accepted


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("tag:night", True),
        ("tag:NIGHT", True),
        ("tag:nigh", False),
        ("tag:", True),
        ("note:gpu", True),
        ("note:", True),
        ("!tag:night", False),
        ("night gpu", True),
    ],
)
def test_tags_are_found_whole_and_notes_by_a_part(text: str, accepted: bool) -> None:
    assert accepts(text, NOTED) is accepted
    assert not accepts("tag:", QUEUED) and not accepts("note:", QUEUED)


def test_a_field_that_does_not_exist_is_told() -> None:
    assert RUN.filter("sate:failed leaf").unknown == ("sate",)


def happened(
    number: int, kind: EventKind, text: str, run: Run | None = None, detail: EventData | None = None
) -> ListedEvent:
    sweep_id, run_id = (None, None) if run is None else (run.sweep_id, run.id)
    competition_id = None if run is None else run.competition_id
    event = Event(number, 0.0, kind, text, sweep_id, run_id, None, competition_id, 1, detail)
    return ListedEvent(event, None if run is None else run.seed)


EVENTS = (
    happened(1, EventKind.ENGINE_STARTED, "engine 7 is up"),
    happened(2, EventKind.RUN_FAILED, "infrastructure: GPU lost", FAILED),
    happened(3, EventKind.RUN_FINISHED, "gold", GOLD, RunFinished(Outcome.GOLD)),
    happened(4, EventKind.RUN_FINISHED, "no submission", QUEUED, RunFinished(Outcome.NO_SUBMISSION)),
    happened(5, EventKind.DATASET_FAILED, "no room"),
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("sweep:s", [2, 3, 4]),
        ("kind:run", [2, 3, 4]),
        ("kind:run.failed", [2]),
        ("kind:failed", [2, 5]),
        ("sev:error", [2, 5]),
        ("sev:warn", [4]),
        ("sev:good", [3]),
        ("!sev:error sweep:s", [3, 4]),
        ("comp:leaf seed:1", [2]),
        ("run:1 gold", [3]),
        ("GPU", [2]),
        ("sev:", []),
        ("severity:error", [2, 5]),
        ("sve:bad", [1, 2, 3, 4, 5]),
    ],
)
def test_a_filter_chooses_events_in_the_same_words(text: str, ids: list[int]) -> None:
    chosen = EVENT.filter(text)
    assert [one.event.id for one in accepted(chosen, EVENTS)] == ids
    assert chosen.unknown == (("sve",) if text.startswith("sve") else ())


def test_words_choose_and_negate() -> None:
    assert words_accept("leaf prep", "leaf-classification", "prepared")
    assert not words_accept("leaf !prep", "leaf-classification", "prepared")


def test_names_are_found_by_a_part_and_else_by_letters() -> None:
    names = ("spooky-author-identification", "spaceship-titanic", "leaf-classification")
    assert best_fits("titan", names) == ("spaceship-titanic",)
    assert best_fits("spid", names) == ("spooky-author-identification",)
    assert best_fits("zzz", names) == ()


@pytest.mark.parametrize(
    "text", ["leaf", "GPU", "kind:failed", "sev:error", "sev:no", "sev:good leaf", "sweep:s !GPU", "ÉTÉ", "x"]
)
def test_a_query_leaves_out_no_event_that_a_filter_accepts(tmp_path: Path, text: str) -> None:
    with closing(open_for_writing(tmp_path)) as database:
        with database.transaction():
            for one in EVENTS:
                event = one.event
                detail = event.detail
                if event.kind == EventKind.RUN_FAILED:
                    detail = RunFailed(FailureClass.INFRASTRUCTURE, "GPU lost", "infrastructure-0a")
                if event.kind == EventKind.DATASET_FAILED:
                    detail = DatasetChanged("v1", DatasetState.FAILED)
                events.append(
                    database,
                    event.at,
                    EventKind(event.kind),
                    f"{event.text}, l'été",
                    sweep_id=event.sweep_id,
                    competition_id=event.competition_id,
                    detail=detail,
                )
        chosen = EVENT.filter(text)
        every = listed_events(database, EVENT.filter(""), limit=100)
        assert [one.event.id for one in listed_events(database, chosen, limit=100)] == [
            one.event.id for one in accepted(chosen, every)
        ]
