"""What needs a person in runs is grouped by cause, in the order in which to look at it, and can be acknowledged."""

from __future__ import annotations

from dataclasses import replace

from mlebench_console.console.nouns.need import group_text
from mlebench_console.engine.needs.causes import CauseKind, group_by_cause, read_causes
from mlebench_console.engine.places import Places
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state import acknowledgements, runs
from mlebench_console.state.lifecycle import FailureClass, RunState
from mlebench_console.state.records import Acknowledgement, Run
from tests.console import worlds
from tests.console.world import HOUR, NOW

RUN = Run(
    id=1, sweep_id="a", competition_id="leaf-classification", seed=1, state=RunState.FAILED, outcome=None,
    failure_class=FailureClass.INFRASTRUCTURE, failure_text="GPU 1 lost", standing=None, score=None, valid=None,
    attempts=1, rerolls=0, queued_at=0.0, started_at=10.0, ended_at=100.0, last_activity_at=90.0, submissions=0,
    position=0, cause="GPU # lost",
)  # fmt: skip
CRASHED = replace(RUN, id=2, failure_class=FailureClass.CRASH, ended_at=50.0)
SUSPECTED = replace(
    RUN, id=3, failure_class=FailureClass.CRASH, suspected=ProblemCode.GPU_LOST, cause="gpu_lost"
)
RUNNING = replace(RUN, state=RunState.RUNNING, failure_class=None, failure_text="", cause="", ended_at=None)
LATE = replace(RUNNING, id=4, last_activity_at=950.0)
IDLE = replace(RUNNING, id=5, sweep_id="long", valid=True, last_activity_at=900.0 - 3 * HOUR)
UNGRADABLE = replace(
    RUNNING, id=6, state=RunState.GRADING, grading_problem="answers of 3 are gone", grading_fails_since=80.0
)
EVERY = (CRASHED, LATE, IDLE, SUSPECTED, UNGRADABLE, RUN)
LIMITS = {"a": 1000.0, "long": 100 * HOUR}


def test_infrastructure_comes_first_agents_own_failures_last_and_nobody_shares_a_group() -> None:
    groups = group_by_cause(EVERY, LIMITS, {}, 950.0)
    assert [group.kind.value for group in groups] == [
        "infrastructure", "suspected", "ungradable", "late", "idle", "crash",
    ]  # fmt: skip
    assert [group.is_own for group in groups] == [False] * 5 + [True]
    assert [group.is_free for group in groups] == [True] + [False] * 5
    assert len({group.key for group in groups}) == 6
    assert groups[3].due == 1010.0
    assert group_by_cause([replace(RUNNING, valid=True, last_activity_at=900.0)], LIMITS, {}, 950.0) == ()


def test_runs_with_one_cause_are_one_group_with_the_newest_first() -> None:
    other = replace(RUN, id=7, sweep_id="b", failure_text="GPU 2 lost", ended_at=300.0)
    third = replace(RUN, id=8, ended_at=200.0)
    (group,) = group_by_cause([RUN, other, third], LIMITS, {}, 950.0)
    assert [run.id for run in group.runs] == [7, 8, 1]
    assert (group.since, group.newest, group.sweep_ids, group.text) == (
        100.0,
        300.0,
        ("a", "b"),
        "GPU # lost",
    )
    (same,) = group_by_cause([RUN, third], LIMITS, {}, 950.0, {third.id})
    assert same.text == "GPU 1 lost", "what all say"
    assert group_text(same, 950.0) == "GPU 1 lost, 1 of them to be retried"
    assert same.key == group.key


def test_what_is_acknowledged_comes_back_with_a_newer_run_and_what_is_snoozed_when_its_time_is_over() -> None:
    (group,) = group_by_cause([RUN], LIMITS, {}, 120.0)
    known = Acknowledgement(group.key, group.text, "op", 110.0, "driver reset")

    def is_hidden(run: Run, said: Acknowledgement, now: float) -> bool:
        newer = (RUN, replace(run, id=9))
        (again,) = group_by_cause(newer, LIMITS, {group.key: said}, now)
        return again.is_acknowledged(now)

    later = replace(RUN, ended_at=130.0)
    assert is_hidden(RUN, known, 1e9)
    assert not is_hidden(later, known, 131.0)
    assert is_hidden(later, replace(known, until=200.0), 199.0)
    assert not is_hidden(RUN, replace(known, until=200.0), 200.0)


def test_an_outage_in_a_state_of_225_runs_is_one_group_of_its_runs(places: Places) -> None:
    world = worlds.outage(places)
    first, *others = read_causes(world.database, NOW)
    assert (first.kind, len(first.runs), first.is_free) == (CauseKind.INFRASTRUCTURE, 18, True)
    assert first.sweep_ids == ("aide-o3-all", "dummy-2")
    assert [(group.kind.value, len(group.runs)) for group in others] == [
        ("late", 1),
        ("crash", 2),
        ("crash", 1),
    ]
    (narrow,) = read_causes(world.database, NOW, "dummy-2")
    assert (narrow.key, len(narrow.runs)) == (first.key, 1)
    said = Acknowledgement(first.key, first.text, "op@here", NOW, "driver reset, ticket 12")
    acknowledgements.acknowledge(world.database, said)
    assert read_causes(world.database, NOW)[0].acknowledgement == said
    assert all(run.cause == "" for run in runs.live(world.database))
    world.database.close()
