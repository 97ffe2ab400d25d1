"""The timeline: attempts on lanes as slots held them, what ended them, and when a sweep ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.engine.scoreboard.timeline import (
    Bar,
    ExpectedEnd,
    MarkKind,
    NoEnd,
    counted_marks,
    end_of_sweep,
    expected_end,
    lanes_of,
    read_timeline,
)
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.state import database as state_database
from mlebench_console.state import datasets, events, runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import DatasetState, Run
from mlebench_console.state.transitions import Failure
from tests.conditions import changed
from tests.engine.scoreboard.worlds import SPEC, sweep

HOUR = 3600.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = state_database.open_for_writing(tmp_path)
    yield opened
    opened.close()


def bar(run_id: int, begin: float, end: float | None, node: str = "") -> Bar:
    return Bar(run_id, "s", "c", 1, 1, 1, begin, end, RunState.FINISHED, node=node)


def launch(database: Database, run: Run, at: float) -> int:
    attempt = transitions.launch(database, run.id, directory=f"{run.id}-{at}", runtime="process", now=at)
    transitions.started(database, attempt.id, isolated=True, at=at, now=at)
    return attempt.id


def finish(database: Database, attempt_id: int, outcome: Outcome, at: float) -> None:
    transitions.agent_ended(database, attempt_id, EndReason.EXITED, exit_code=0, at=at, now=at)
    transitions.collected(database, attempt_id, now=at)
    transitions.finished(database, attempt_id, outcome, now=at)


def fail(
    database: Database,
    attempt_id: int,
    kind: FailureClass,
    text: str,
    at: float,
    problem: ProblemCode | None = None,
) -> None:
    transitions.agent_ended(database, attempt_id, EndReason.EXITED, exit_code=1, at=at, now=at)
    transitions.failed(database, attempt_id, Failure(kind, text, problem=problem), now=at)


def test_an_attempt_takes_the_first_lane_that_is_free_when_it_begins() -> None:
    bars = [bar(1, 0, 10), bar(2, 1, 5), bar(3, 5, None), bar(4, 10, 12), bar(5, 11, 13)]
    assert [[one.run_id for one in lane.bars] for lane in lanes_of(reversed(bars))] == [[1, 4], [2, 3], [5]]


def test_hosts_have_lanes_of_their_own() -> None:
    lanes = lanes_of([bar(1, 0, 4, "n1"), bar(2, 5, 6, "n2"), bar(3, 5, None, "n1"), bar(4, 5, 6, "n2")])
    assert [(lane.node, lane.number, len(lane.bars)) for lane in lanes] == [
        ("n1", 1, 2),
        ("n2", 1, 1),
        ("n2", 2, 1),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.one_of(st.none(), st.integers(0, 20))), max_size=40),
)
def test_no_lane_has_two_at_once_and_no_lane_too_many_is_made(spans: list[tuple[int, int | None]]) -> None:
    bars = [
        bar(number, begin, None if took is None else begin + took)
        for number, (begin, took) in enumerate(spans)
    ]
    lanes = lanes_of(bars)
    assert sorted(one.run_id for lane in lanes for one in lane.bars) == list(range(len(bars)))
    for lane in lanes:
        for before, behind in zip(lane.bars, lane.bars[1:], strict=False):
            assert before.end is not None and before.end <= behind.begin
    at_once = [
        sum(one.begin <= other.begin and (one.end is None or one.end > other.begin) for one in bars)
        for other in bars
    ]
    # One that ends as it begins holds its lane for no time, and still has one.
    assert len(lanes) <= max(
        (count + (other.end == other.begin) for count, other in zip(at_once, bars, strict=True)), default=0
    )


def queued(database: Database, *, concurrency: int = 2, seeds: int = 6) -> list[Run]:
    found = sweep(database, "s", changed(SPEC, seeds=seeds, time_limit_seconds=10 * HOUR), now=0.0)
    for name in SPEC.competitions:
        datasets.set_state(database, name, SPEC.conditions.edition, DatasetState.PREPARED, now=0.0)
    sweeps.set_concurrency(database, "s", concurrency, now=0.0)
    return found


def test_before_anything_has_ended_every_run_is_taken_to_use_its_whole_time(database: Database) -> None:
    first, *_others = queued(database, seeds=5)
    launch(database, first, HOUR)
    members = runs.of_sweep(database, "s")
    # One slot is free at 11 h, the other now: 2 h, 12 h, 22 h there and 11 h, 21 h here.
    assert expected_end(members, concurrency=2, limit_seconds=10 * HOUR, now=2 * HOUR) == ExpectedEnd(
        31 * HOUR, True
    )


def test_what_is_left_takes_as_long_as_what_has_ended(database: Database) -> None:
    first, second, third, *_others = queued(database)
    for run in (first, second):
        finish(database, launch(database, run, 0.0), Outcome.GOLD, 4 * HOUR)
    launch(database, third, 4 * HOUR)
    sweep_now = sweeps.get(database, "s")
    members = runs.of_sweep(database, "s")
    # Until 8 h the third; beside it one from 5 h on, then two more behind them.
    assert end_of_sweep(database, sweep_now, members, 5 * HOUR) == ExpectedEnd(13 * HOUR, False)
    # Who takes longer than usual may take all of its time.
    assert end_of_sweep(database, sweep_now, members, 9 * HOUR) == ExpectedEnd(18 * HOUR, False)


def test_no_end_is_told_of_what_is_over_or_waits_for_a_person(database: Database) -> None:
    (run,) = queued(database, seeds=1)
    sweeps.set_state(database, "s", SweepState.PAUSED, now=1.0)
    assert (
        end_of_sweep(database, sweeps.get(database, "s"), runs.of_sweep(database, "s"), 2.0) is NoEnd.PAUSED
    )
    sweeps.set_state(database, "s", SweepState.ACTIVE, now=3.0)
    for state in DatasetState:
        datasets.set_state(database, run.competition_id, SPEC.conditions.edition, state, now=3.0)
        ends = end_of_sweep(database, sweeps.get(database, "s"), runs.of_sweep(database, "s"), 3.0)
        comes = state in (DatasetState.PREPARED, DatasetState.WORKING, DatasetState.WAITING)
        assert isinstance(ends, ExpectedEnd) == comes
        assert (ends is NoEnd.DATASETS) != comes
    finish(database, launch(database, run, 4.0), Outcome.GOLD, 5.0)
    assert end_of_sweep(database, sweeps.get(database, "s"), runs.of_sweep(database, "s"), 6.0) is NoEnd.OVER


def test_a_relaunch_is_a_bar_of_its_own_and_a_lost_gpu_and_a_restart_are_marks(database: Database) -> None:
    first, second, *_others = queued(database, seeds=2)
    fail(
        database,
        launch(database, first, 10.0),
        FailureClass.INFRASTRUCTURE,
        "the driver does not find MIG-1 any more",
        20.0,
        ProblemCode.GPU_LOST,
    )
    fail(database, launch(database, second, 10.0), FailureClass.CRASH, "exit code 1", 30.0)
    transitions.requeued(database, first.id, by="op", now=40.0)
    with database.transaction():
        events.append(database, 5.0, EventKind.ENGINE_STARTED, "before anything began")
        events.append(database, 45.0, EventKind.ENGINE_STARTED, "engine 7 is up")
    finish(database, launch(database, first, 50.0), Outcome.SILVER, 60.0)
    found = read_timeline(database, sweeps.all_sweeps(database), 70.0)
    told = [
        (one.run_id, one.attempt, one.of, one.begin, one.end, one.state, one.outcome)
        for one in found.lanes[0].bars
    ]
    assert told == [
        (first.id, 1, 2, 10.0, 20.0, RunState.FAILED, None),
        (first.id, 2, 2, 50.0, 60.0, RunState.FINISHED, Outcome.SILVER),
    ]
    assert [(mark.at, mark.kind) for mark in found.marks] == [
        (20.0, MarkKind.GPU_LOST),
        (45.0, MarkKind.ENGINE),
    ]
    assert list(counted_marks(found.marks)) == [MarkKind.GPU_LOST, MarkKind.ENGINE]
    assert found.medals == ((60.0, Outcome.SILVER),)
    assert (found.begin, found.ends) == (10.0, None)
    assert found.interim is not None and (found.interim.ended, found.interim.runs) == (2, 2)


def test_a_live_attempt_has_no_end_and_tells_what_it_would_get(database: Database) -> None:
    first, *_others = queued(database)
    launch(database, first, 10.0)
    (live,) = read_timeline(database, sweeps.all_sweeps(database), 70.0).bars
    assert live.is_live and live.end is None and live.until(70.0) == 70.0 and live.standing is None
