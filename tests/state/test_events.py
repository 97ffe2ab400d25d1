"""Events are read with the data of their kind; what this version does not know keeps its text."""

from __future__ import annotations

import math

import pytest

from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.state import events, runs
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import (
    DATA,
    AgentEnded,
    DatasetChanged,
    DatasetVerified,
    EventData,
    EventKind,
    EventSeverity,
    RunFailed,
    RunFinished,
    SubmissionGraded,
)
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import DatasetState
from tests.state.worlds import create_sweep

SUMS = ({"name": "train.csv", "known": None, "found": "0a"},)


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        (EventKind.SUBMISSION_GRADED, SubmissionGraded(0.123456789012345, Outcome.GOLD, Outcome.SILVER)),
        (EventKind.SUBMISSION_GRADED, SubmissionGraded(None, Outcome.INVALID)),
        (EventKind.SUBMISSION_GRADED, SubmissionGraded(math.inf, Outcome.BELOW_MEDIAN)),
        (EventKind.RUN_COLLECTING, AgentEnded(EndReason.DEADLINE, None, 9)),
        (EventKind.RUN_FINISHED, RunFinished(Outcome.NO_SUBMISSION)),
        (
            EventKind.RUN_FAILED,
            RunFailed(FailureClass.CRASH, "it said: no", "crash-0a", None, ProblemCode.DISK_FAILED),
        ),
        (EventKind.DATASET_FAILED, DatasetChanged("v1", DatasetState.FAILED, "no room")),
        (EventKind.DATASET_VERIFIED, DatasetVerified("v1", sums=SUMS, files=7, missing=("a", "b"))),
        (EventKind.ENGINE_STARTED, None),
    ],
)
def test_an_event_is_read_as_it_was_written(
    database: Database, kind: EventKind, detail: EventData | None
) -> None:
    with database.transaction():
        events.append(database, 1.0, kind, "what happened", detail=detail)
    (found,) = events.newest(database)
    assert (found.kind, found.text, found.times, found.detail) == (kind, "what happened", 1, detail)
    assert isinstance(found.kind, EventKind)


def test_an_event_has_the_data_of_its_kind_and_no_other(database: Database) -> None:
    for kind, detail in (
        (EventKind.RUN_FAILED, None),
        (EventKind.ENGINE_STARTED, RunFinished(Outcome.GOLD)),
        (EventKind.RUN_FINISHED, AgentEnded(EndReason.EXITED, 0)),
    ):
        with pytest.raises(TypeError), database.transaction():
            events.append(database, 1.0, kind, "text", detail=detail)
    assert events.newest(database) == []


@pytest.mark.parametrize(
    ("kind", "detail", "severity"),
    [
        ("weather.rain", '{"mm": 3}', EventSeverity.NOTE),
        ("run.failed", None, EventSeverity.ERROR),
        ("run.failed", '{"failure_class": "weather", "failure_text": "", "cause": ""}', EventSeverity.ERROR),
        ("run.finished", "[", EventSeverity.NOTE),
        ("engine.started", '{"weather": 1}', EventSeverity.NOTE),
    ],
)
def test_a_kind_or_data_of_another_version_leave_an_event_its_text(
    database: Database, kind: str, detail: str | None, severity: EventSeverity
) -> None:
    with database.transaction():
        database.insert("events", {"at": 1.0, "kind": kind, "text": "it rained", "detail": detail})
    (found,) = events.newest(database)
    assert (found.kind, found.text, found.detail, found.severity) == (kind, "it rained", None, severity)
    assert (found.subject, found.is_routine) == (kind.partition(".")[0], False)


def test_each_state_has_its_kind_of_event_and_those_that_change_often_have_data() -> None:
    assert {EventKind.of_run(state) for state in RunState} - {EventKind.RUN_GRADING} <= DATA.keys()
    assert len({EventKind.of_sweep(state) for state in SweepState}) == len(SweepState)
    assert {DATA[EventKind.of_dataset(state)] for state in DatasetState} == {DatasetChanged}


def test_what_repeats_without_end_is_counted_in_the_last_event(database: Database) -> None:
    create_sweep(database)
    run = runs.of_sweep(database, "dummy-1")[0]
    with database.transaction():
        for number in range(5):
            events.append_or_count(
                database, float(number), EventKind.RUN_PROVIDER, f"{number}", run=run, attempt_id=1, most=2
            )
    assert [(found.text, found.times, found.at) for found in events.newest(database, run_id=run.id)] == [
        ("4", 4, 4.0),
        ("0", 1, 0.0),
    ]
