"""What follows from the facts about a job: a table of histories, without a Slurm, a file or a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mlebench_console.engine.placements import jobs
from mlebench_console.engine.placements.commands import Job
from mlebench_console.engine.placements.jobs import (
    JobPhase,
    JobRecord,
    Verdict,
    Waiting,
    judge,
    listed,
    not_listed,
    recorded,
)
from mlebench_console.engine.placements.model import JobEnd, Lost
from mlebench_console.environment.runner.protocol import Heartbeat
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import OwnReason

NEW = JobRecord(silent_seconds=300.0)
UNCERTAIN = NEW.entered(JobPhase.UNCERTAIN, 0.0)
SUBMITTED = NEW.entered(JobPhase.SUBMITTED, 0.0)
CLAIMED = replace(SUBMITTED, is_claimed=True)
TAKEN = JobEnd("PREEMPTED", "PREEMPTED", problem=ProblemCode.PREEMPTED)

Change = Callable[[JobRecord, float], JobRecord]


def squeue(state: str, reason: str = "None") -> Change:
    """An answer of squeue with the job."""
    return lambda record, now: listed(record, _job(state, reason), now)


def sacct(state: str) -> Change:
    """A record of the job."""
    return lambda record, now: recorded(record, _job(state, "0:0"), now)


def beats(record: JobRecord, now: float) -> JobRecord:
    """Read a heartbeat."""
    heartbeat = Heartbeat(1, "n1", "7", 0, 0, 0, ended=False)
    return replace(record, is_claimed=True, heartbeat=heartbeat, heartbeat_at=now)


def claims(record: JobRecord, _now: float) -> JobRecord:
    """Find the claim of a job."""
    return replace(record, is_claimed=True)


def reports(record: JobRecord, _now: float) -> JobRecord:
    """Find exit.json."""
    return replace(record, has_report=True)


def _job(state: str, reason: str) -> Job:
    return Job("7", state, reason, "n1", "2026-01-01T00:00:00", None, 1, "mlebench-x-t1")


def after(record: JobRecord, *history: tuple[float, Change]) -> JobRecord:
    for now, change in history:
        record = change(record, now)
    return record


SILENT = 360.0  # a runner that can't write has ended its agent
REPORTED = 60.0  # a report is visible everywhere


@pytest.mark.parametrize(
    ("record", "history", "now", "verdict"),
    [
        # Before it is known to Slurm.
        (NEW, [], 0, Waiting(OwnReason.TO_SUBMIT)),
        (NEW.entered(JobPhase.IMAGE, 0.0), [], 9, Waiting(OwnReason.IMAGE)),
        (NEW.entered(JobPhase.QUEUED, 0.0), [(30, not_listed)], 30, Waiting(OwnReason.TO_SUBMIT)),
        (SUBMITTED, [], 1, Waiting(OwnReason.TO_SUBMIT)),
        # Perhaps submitted: two answers without it are needed.
        (UNCERTAIN, [(30, not_listed)], 30, Waiting(OwnReason.TO_SUBMIT)),
        (UNCERTAIN, [(30, not_listed), (60, not_listed)], 60, Waiting(OwnReason.TO_SUBMIT)),
        (UNCERTAIN, [(30, squeue("PENDING", "Priority"))], 30, Waiting("Priority")),
        (UNCERTAIN, [(1, claims), (30, not_listed), (60, not_listed)], 60, None),
        # Waiting.
        (SUBMITTED, [(30, squeue("PENDING", "Resources"))], 9000, Waiting("Resources")),
        (
            SUBMITTED,
            [(30, squeue("PENDING", "(ReqNodeNotAvail, UnavailableNodes:n1)"))],
            30,
            Waiting("ReqNodeNotAvail"),
        ),
        (SUBMITTED, [(30, squeue("CONFIGURING"))], 30, Waiting("CONFIGURING")),
        (SUBMITTED, [(30, squeue("PENDING", "InvalidQOS"))], 30, Waiting("InvalidQOS")),
        # Others of the account hold it up, which ends.
        *(
            (SUBMITTED, [(30, squeue("PENDING", code)), (60, squeue("PENDING", code))], 9000, Waiting(code))
            for code in ("AssociationJobLimit", "QOSMaxJobsPerUserLimit", "AssocGrpCpuLimit")
        ),
        (
            SUBMITTED,
            [(30, squeue("PENDING", "InvalidQOS")), (60, squeue("PENDING", "Priority"))],
            60,
            Waiting("Priority"),
        ),
        # A killed controller has lost it before it began.
        (SUBMITTED, [(30, not_listed)], 30, Waiting(OwnReason.TO_SUBMIT)),
        (SUBMITTED, [(30, not_listed), (60, not_listed)], 60, Waiting(OwnReason.TO_SUBMIT)),
        (
            SUBMITTED,
            [(30, squeue("PENDING", "Priority")), (60, not_listed), (90, not_listed)],
            90,
            Waiting(OwnReason.TO_SUBMIT),
        ),
        # Running, suspended, waiting again for a moment.
        (SUBMITTED, [(30, squeue("RUNNING"))], 90_000, None),
        (CLAIMED, [(30, squeue("COMPLETING"))], 90_000, None),
        (CLAIMED, [(30, squeue("SUSPENDED"))], 90_000, Waiting("SUSPENDED")),
        (CLAIMED, [(30, squeue("PENDING", "BeginTime"))], 30 + SILENT - 1, None),
        (
            CLAIMED,
            [(30, squeue("PENDING", "BeginTime")), (300, beats), (400, squeue("PENDING", "BeginTime"))],
            400,
            None,
        ),
        # Not listed although it has begun: records may say why.
        (CLAIMED, [(30, squeue("RUNNING")), (60, not_listed)], 100, None),
        (
            CLAIMED,
            [(30, squeue("RUNNING")), (60, not_listed), (90, sacct("RUNNING"))],
            60 + 179,
            None,
        ),
        (
            CLAIMED,
            [(30, squeue("RUNNING")), (60, not_listed)],
            60 + 181,
            JobEnd("", "Slurm lists no such job"),
        ),
        # Ended: its report is awaited, and counts more than what Slurm says.
        (CLAIMED, [(30, squeue("COMPLETED"))], 30 + REPORTED - 1, JobEnd("COMPLETED", "COMPLETED")),
        (
            CLAIMED,
            [(30, squeue("NODE_FAIL"))],
            30 + SILENT - 1,
            JobEnd("NODE_FAIL", "NODE_FAIL", problem=ProblemCode.NODE_FAILED),
        ),
        (CLAIMED, [(30, reports), (60, squeue("FAILED"))], 9000, JobEnd("FAILED", "FAILED")),
        (CLAIMED, [(30, not_listed), (60, sacct("PREEMPTED"))], 61, TAKEN),
        # A live job of the attempt counts more than one that has ended.
        (CLAIMED, [(30, squeue("NODE_FAIL")), (60, squeue("RUNNING"))], 9000, None),
    ],
)  # fmt: skip
def test_what_follows_from_a_history(
    record: JobRecord, history: list[tuple[float, Change]], now: float, verdict: Verdict
) -> None:
    found = judge(after(record, *history), now, has_records=True)
    if isinstance(verdict, JobEnd) and verdict.state:
        assert isinstance(found, JobEnd)
        assert verdict.text in found.text
        found = replace(found, text=verdict.text)
    assert found == verdict


INFRASTRUCTURE, UNKNOWN, MEMORY = FailureClass.INFRASTRUCTURE, FailureClass.UNKNOWN, FailureClass.MEMORY


@pytest.mark.parametrize(
    ("record", "history", "now", "kind", "text", "pauses"),
    [
        # No job of its sweep will ever run.
        *(
            (
                SUBMITTED,
                [(30, squeue("PENDING", code)), (60, squeue("PENDING", code))],
                60,
                INFRASTRUCTURE,
                code,
                True,
            )
            for code in (
                *("PartitionTimeLimit", "InvalidAccount", "BadConstraints"),
                *("QOSMaxWallDurationPerJobLimit", "AssocMaxCpuPerJobLimit"),
            )
        ),
        (SUBMITTED, [(30, squeue("FAILED", "BadConstraints"))], 30, INFRASTRUCTURE, "BadConstraints", True),
        (
            replace(NEW, submissions=3, refusal="no such node"),
            [],
            0,
            INFRASTRUCTURE,
            "3 times in vain: no such node",
            True,
        ),
        (
            replace(SUBMITTED, submissions=3),
            [(30, not_listed), (60, not_listed)],
            60,
            INFRASTRUCTURE,
            "its job is lost",
            True,
        ),
        # This one alone.
        (
            SUBMITTED,
            [(30, squeue("PENDING", "launch_failed_requeued_held"))],
            30,
            INFRASTRUCTURE,
            "its node could not begin its job",
            False,
        ),
        (SUBMITTED, [(30, squeue("CANCELLED"))], 30, INFRASTRUCTURE, "before it began", False),
        (CLAIMED, [(30, squeue("COMPLETED"))], 30 + REPORTED, INFRASTRUCTURE, "without a report", False),
        (CLAIMED, [(30, squeue("NODE_FAIL"))], 30 + SILENT, INFRASTRUCTURE, "its node failed", False),
        (CLAIMED, [(30, squeue("OUT_OF_MEMORY"))], 30 + REPORTED, MEMORY, "out of memory", False),
        (CLAIMED, [(30, squeue("TIMEOUT"))], 30 + REPORTED, INFRASTRUCTURE, "slack_minutes", False),
        (CLAIMED, [(30, squeue("CANCELLED"))], 30 + REPORTED, INFRASTRUCTURE, "not by this engine", False),
        (CLAIMED, [(30, squeue("FAILED"))], 30 + REPORTED, INFRASTRUCTURE, "failed without a report", False),
        (CLAIMED, [(30, squeue("DEADLINE"))], 30 + REPORTED, INFRASTRUCTURE, "deadline", False),
        (CLAIMED, [(30, squeue("REVOKED"))], 30 + REPORTED, INFRASTRUCTURE, "its job ended: REVOKED", False),
        (
            CLAIMED,
            [(30, squeue("PENDING", "BeginTime"))],
            30 + SILENT,
            INFRASTRUCTURE,
            "its job waits again",
            False,
        ),
        (
            CLAIMED,
            [(30, beats), (60, not_listed)],
            60 + SILENT,
            INFRASTRUCTURE,
            "Slurm knows nothing of its job",
            False,
        ),
        # What an agent that nothing isolates can bring about is no failure of the infrastructure.
        (
            replace(CLAIMED, is_isolated=False),
            [(30, squeue("CANCELLED"))],
            30 + REPORTED,
            UNKNOWN,
            "its job was cancelled",
            False,
        ),
        (
            replace(CLAIMED, is_isolated=False),
            [(30, squeue("PREEMPTED"))],
            30 + REPORTED,
            INFRASTRUCTURE,
            "other jobs took its place",
            False,
        ),
    ],
)
def test_what_is_lost_has_a_class_and_says_why(
    record: JobRecord,
    history: list[tuple[float, Change]],
    now: float,
    kind: FailureClass,
    text: str,
    pauses: bool,
) -> None:
    lost = judge(after(record, *history), now, has_records=True)
    assert isinstance(lost, Lost)
    assert lost.failure.kind is kind
    assert text in lost.failure.text
    assert lost.pauses is pauses


def test_a_short_patience_of_a_profile_is_kept() -> None:
    record = after(replace(CLAIMED, silent_seconds=15.0), (30, squeue("COMPLETED")))
    assert isinstance(judge(record, 44, has_records=True), JobEnd)
    assert isinstance(judge(record, 45, has_records=True), Lost)


def test_without_records_a_job_that_is_not_listed_has_ended() -> None:
    record = after(CLAIMED, (30, not_listed))
    assert judge(record, 30, has_records=False) == JobEnd("", "Slurm lists no such job")


def test_the_number_of_a_job_that_is_not_listed_is_not_used() -> None:
    running = after(CLAIMED, (30, squeue("RUNNING")))
    assert running.live_job is not None
    assert not_listed(running, 60.0).live_job is None
    assert after(running, (60, squeue("TIMEOUT"))).live_job is None


def test_a_directory_is_read_again_when_it_may_have_new_content_and_not_otherwise() -> None:
    def revision(record: JobRecord) -> object:
        return jobs.status_of(record, judge(record, 60.0, has_records=True)).revision

    running = after(CLAIMED, (30, squeue("RUNNING")), (31, beats))
    assert revision(after(running, (40, beats))) == revision(running)
    assert running.heartbeat is not None
    more = replace(running, heartbeat=replace(running.heartbeat, number=2, usage=5))
    changed = [more, reports(running, 40), not_listed(running, 40), after(running, (40, squeue("TIMEOUT")))]
    assert len({revision(record) for record in (running, *changed)}) == 5
