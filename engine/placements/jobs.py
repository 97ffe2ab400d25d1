"""What is known of an attempt's job, how answers of Slurm change it, and what follows: pure functions over one record.

Evidence counts in this order: exit.json, heartbeats, squeue, sacct. A claim in the attempt's directory decides which
job may run it, so that an attempt without a claim has not begun and one with a claim never begins again. `slurm`
gathers the facts and carries out the verdicts. All times are those of the engine's monotonic clock.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import Enum

from mlebench_console.engine.placements.commands import Job
from mlebench_console.engine.placements.model import AttemptStatus, JobEnd, Lost
from mlebench_console.environment.runner.protocol import Heartbeat
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import JobFacts, OwnReason
from mlebench_console.state.transitions import Failure

# More than one, because a controller that has just started lists jobs late, and gives wrong reasons for a moment.
_SURE_ANSWERS = 2
_MOST_SUBMISSIONS = 3
# How long to wait for Slurm's records of a job that it does not list any more.
_RECORDS_SECONDS = 180.0
# How long a file system between hosts may take to show new files, and what a runner may need beyond its silence.
_MARGIN_SECONDS = 60.0
_PENDING, _CONFIGURING = "PENDING", "CONFIGURING"
_ENDED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
        *("PREEMPTED", "REVOKED", "TIMEOUT"),
    }
)
# In these states Slurm has not seen the processes end: they may still run on an unreachable node.
_UNSEEN = frozenset({"NODE_FAIL", "BOOT_FAIL"})
# Slurm's own decisions, and nodes that fail.
_PROBLEMS = {"PREEMPTED": ProblemCode.PREEMPTED} | dict.fromkeys(_UNSEEN, ProblemCode.NODE_FAILED)
# Stopped by Slurm with their resources: these jobs can't write, and continue later.
_SUSPENDED = frozenset({"SUSPENDED", "STOPPED"})
# An agent that nothing isolates can bring these about itself.
_BY_AGENT = frozenset({"CANCELLED", "COMPLETED", "FAILED"})
_OUT_OF_MEMORY = "OUT_OF_MEMORY"
_LAUNCH_FAILED = "launch_failed_requeued_held"
# Reasons for which a job waits for ever; of the limits of accounts and qos, only those of single jobs.
_NEVER = re.compile(
    "PartitionTimeLimit|PartitionNodeLimit|BadConstraints|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed"
    r"|(?:QOS|Assoc)(?:Max|Min)\w*Per(?:Job|Node)(?:Limit)?|(?:QOS|Assoc)MaxWallDurationPerJobLimit"
)
_UNLISTED = JobEnd("", "Slurm lists no such job")
_TEXTS = {
    "PREEMPTED": "other jobs took its place",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not boot",
    "TIMEOUT": "its job's time was up, which is longer than its own: give the profile more slack_minutes",
    "DEADLINE": "its job's deadline has passed",
    "CANCELLED": "its job was cancelled, and not by this engine",
    "COMPLETED": "its job ended without a report",
    "FAILED": "its job failed without a report",
}


class JobPhase(Enum):
    """How far an attempt has come with Slurm, by the last answers.

    Attributes:
        IMAGE: an image of its dataset is being made, before it can be submitted.
        QUEUED: it is submitted as soon as its profile's rate allows.
        UNCERTAIN: it may have been submitted; squeue's next answers show whether it was.
        UNSUBMITTED: it has no job.
        SUBMITTED: sbatch has accepted it, and squeue has not listed it yet.
        PENDING: its job waits.
        HOPELESS: its job would wait for ever.
        RUNNING: its job has begun, and has not ended.
        REQUEUED: its job waits although it had begun, as for a moment after a controller's crash.
        MISSING: Slurm does not list its job any more.
        ENDED: its job has ended.
    """

    IMAGE = "image"
    QUEUED = "queued"
    UNCERTAIN = "uncertain"
    UNSUBMITTED = "unsubmitted"
    SUBMITTED = "submitted"
    PENDING = "pending"
    HOPELESS = "hopeless"
    RUNNING = "running"
    REQUEUED = "requeued"
    MISSING = "missing"
    ENDED = "ended"


@dataclass(frozen=True)
class JobRecord:
    """Everything known about an attempt's job.

    Attributes:
        silent_seconds: after how long a runner that can't write ends its agent.
        is_isolated: whether its agent can't end or cancel its own job.
        phase: and since when, and the number of squeue's answers in a row that have found it there.
        submissions: how often it was submitted, without those that Slurm had no room for.
        refusal: why the last submission failed; empty if it did not.
        job: as Slurm has reported it last.
        memory_line: Slurm's message about its memory, in the log of its job that has ended.
        is_claimed: whether a job has begun it, or the engine has decided that none ever will.
        has_report: whether exit.json exists.
        heartbeat: the last one, and when it was read.
        stop_by: when it is cancelled, unless its runner has stopped it before.
    """

    silent_seconds: float
    is_isolated: bool = True
    phase: JobPhase = JobPhase.UNSUBMITTED
    since: float = 0.0
    answers: int = 0
    submissions: int = 0
    refusal: str = ""
    job: Job | None = None
    memory_line: str = ""
    is_claimed: bool = False
    has_report: bool = False
    heartbeat: Heartbeat | None = None
    heartbeat_at: float = -math.inf
    stop_by: float | None = None
    lost: Lost | None = None

    @property
    def may_write(self) -> bool:
        """Whether its job may write heartbeats from now on."""
        has_begun = self.is_claimed or self.phase in (JobPhase.RUNNING, JobPhase.MISSING, JobPhase.ENDED)
        return has_begun and (self.heartbeat is None or not self.heartbeat.ended)

    @property
    def live_job(self) -> Job | None:
        """Its job that Slurm has listed in its last answer and that has not ended.

        The number of another one may be another job's by now.
        """
        return None if self.phase in (JobPhase.MISSING, JobPhase.ENDED) else self.job

    def entered(self, phase: JobPhase, now: float) -> JobRecord:
        """Return it in another phase, which no answer of squeue has confirmed."""
        return replace(self, phase=phase, since=now, answers=0)


@dataclass(frozen=True)
class Waiting:
    """Verdict: it does not run, or not at the moment; with Slurm's reason, or one of our own."""

    reason: str


Verdict = Waiting | JobEnd | Lost | None
"""None: nothing says that it does not run."""


def has_ended(job: Job) -> bool:
    """Return whether a job has ended."""
    return job.state in _ENDED


def listed(record: JobRecord, job: Job, now: float) -> JobRecord:
    """Return what is known after an answer of squeue with its job."""
    if has_ended(job):
        phase = JobPhase.ENDED
    elif record.is_claimed:
        phase = JobPhase.REQUEUED if job.state == _PENDING else JobPhase.RUNNING
    elif job.state not in (_PENDING, _CONFIGURING):
        phase = JobPhase.RUNNING
    else:
        phase = JobPhase.HOPELESS if _NEVER.fullmatch(job.reason_code) else JobPhase.PENDING
    return replace(_confirmed(record, phase, now), job=job, refusal="")


def not_listed(record: JobRecord, now: float) -> JobRecord:
    """Return what is known after an answer of squeue without its job."""
    match record.phase:
        case JobPhase.IMAGE | JobPhase.QUEUED | JobPhase.UNSUBMITTED | JobPhase.ENDED:
            return record
        case JobPhase.UNCERTAIN:
            found = _confirmed(record, JobPhase.UNCERTAIN, now)
            if found.answers < _SURE_ANSWERS:
                return found
            return record.entered(JobPhase.MISSING if record.is_claimed else JobPhase.UNSUBMITTED, now)
    found = _confirmed(record, JobPhase.MISSING, now)
    if found.is_claimed or found.answers < _SURE_ANSWERS:
        return found
    return replace(
        record.entered(JobPhase.UNSUBMITTED, now), job=None
    )  # a killed controller has lost the job


def _confirmed(record: JobRecord, phase: JobPhase, now: float) -> JobRecord:
    """Return a record that an answer of squeue has found in a phase, perhaps again."""
    found = record if record.phase is phase else record.entered(phase, now)
    return replace(found, answers=found.answers + 1)


def recorded(record: JobRecord, job: Job, now: float) -> JobRecord:
    """Return what is known of a job that squeue does not list by a record of sacct, which may say RUNNING for ever."""
    if record.phase is not JobPhase.MISSING or not has_ended(job):
        return record
    return replace(record.entered(JobPhase.ENDED, now), job=job)


def judge(record: JobRecord, now: float, *, has_records: bool) -> Verdict:
    """Return what the facts about an attempt's job mean.

    Args:
        record: the facts. Those of its directory may be old: before an attempt is given up, they are read again.
        now: the time.
        has_records: whether Slurm keeps records of jobs that it does not list.
    """
    if record.lost is not None:
        return record.lost
    lost = None if record.has_report else _lost(record, now)
    if lost is not None:
        return lost
    match record.phase:
        case JobPhase.UNSUBMITTED:
            return Waiting(OwnReason.TO_SUBMIT)
        case JobPhase.IMAGE:
            return Waiting(OwnReason.IMAGE)
        case JobPhase.ENDED:
            assert record.job is not None
            return _end(record, record.job)
        case JobPhase.MISSING if record.is_claimed:
            return None if has_records and now - record.since < _RECORDS_SECONDS else _UNLISTED
    job = record.job
    if job is not None and job.state in _SUSPENDED:
        return Waiting(job.state)
    if record.is_claimed or record.phase is JobPhase.RUNNING:
        return None
    if job is None:
        return Waiting(OwnReason.TO_SUBMIT)
    return Waiting(job.reason_code if job.state == _PENDING else job.state)


def _lost(record: JobRecord, now: float) -> Lost | None:
    """Return why an attempt must be given up; None while it need not be.

    One that no job has begun is lost only if the engine gets its claim: see `JobRecord.is_claimed`.
    """
    job, phase = record.job, record.phase
    if phase is JobPhase.UNSUBMITTED and record.submissions >= _MOST_SUBMISSIONS:
        why = record.refusal or "its job is lost"
        return refused(f"it was submitted {record.submissions} times in vain: {why}")
    if job is not None and not record.is_claimed:
        is_hopeless = phase is JobPhase.HOPELESS and record.answers >= _SURE_ANSWERS
        if is_hopeless or (phase is JobPhase.ENDED and _NEVER.fullmatch(job.reason_code)):
            return refused(f"Slurm does not run it: its job would wait for ever: {job.in_words()}")
        if phase is JobPhase.PENDING and job.reason_code == _LAUNCH_FAILED:
            return _infrastructure("its node could not begin its job", job.in_words())
    if phase is JobPhase.ENDED:
        assert job is not None
        unseen = job.state in _UNSEEN
        patience = _longest_silence(record) if unseen else min(_MARGIN_SECONDS, record.silent_seconds)
        return _without_report(record, job, now) if _is_silent(record, now, patience) else None
    if not record.is_claimed or not _is_silent(record, now, _longest_silence(record)):
        return None
    if phase is JobPhase.REQUEUED and job is not None:
        text = "its job waits again, though it had begun, and does not write"
        return _infrastructure(text, _evidence(record, job.in_words(), now))
    if phase is JobPhase.MISSING:
        text = "Slurm knows nothing of its job any more, and it does not write either"
        return _infrastructure(text, _evidence(record, _UNLISTED.text, now))
    return None


def refused(why: str) -> Lost:
    """Return the loss of an attempt that Slurm can't run, as it can't run the others of its sweep."""
    return replace(_infrastructure(why, ""), pauses=True)


def _infrastructure(text: str, evidence: str) -> Lost:
    return Lost(Failure(FailureClass.INFRASTRUCTURE, text, evidence))


def _without_report(record: JobRecord, job: Job, now: float) -> Lost:
    """Return the loss of an attempt whose job has ended without a report, with the cause that Slurm gives."""
    end = _end(record, job)
    text, kind = _TEXTS.get(job.state, f"its job ended: {job.state}"), FailureClass.INFRASTRUCTURE
    if end.by_memory:
        text, kind = "its job ran out of memory", FailureClass.MEMORY
    elif record.is_claimed and not record.is_isolated and job.state in _BY_AGENT:
        kind = FailureClass.UNKNOWN
    if not record.is_claimed:
        text = f"{text}, before it began"
    return Lost(Failure(kind, text, _evidence(record, end.text, now), problem=end.problem))


def _end(record: JobRecord, job: Job) -> JobEnd:
    """Return how a job has ended; not every end for its memory has a state of its own."""
    text = "; ".join(filter(None, (job.in_words(), record.memory_line)))
    by_memory = job.state == _OUT_OF_MEMORY or bool(record.memory_line)
    return JobEnd(job.state, text, by_memory=by_memory, problem=_PROBLEMS.get(job.state))


def _evidence(record: JobRecord, found: str, now: float) -> str:
    if record.heartbeat is None:
        return found
    ago = now - record.heartbeat_at
    return f"{found}; heartbeat {record.heartbeat.number} of {record.heartbeat.node}, {ago:.0f} s ago"


def _longest_silence(record: JobRecord) -> float:
    """Return after how many seconds a runner that can't write has ended its agent."""
    return record.silent_seconds + min(_MARGIN_SECONDS, record.silent_seconds)


def _is_silent(record: JobRecord, now: float, seconds: float) -> bool:
    """Return whether it has written nothing for so long in its phase; at once if no job can have begun it."""
    return not record.is_claimed or now - max(record.since, record.heartbeat_at) >= seconds


def status_of(record: JobRecord, verdict: Verdict) -> AttemptStatus:
    """Return what others need to know of an attempt."""
    job, heartbeat = record.job, record.heartbeat
    is_over = record.lost is not None or record.phase in (JobPhase.MISSING, JobPhase.ENDED)
    ended = verdict if isinstance(verdict, JobEnd) else None
    if record.lost is not None and job is not None and has_ended(job):
        ended = _end(record, job)
    return AttemptStatus(
        # A lost one may still leave a report until it is given up.
        revision=None if record.lost is not None else _revision(record, ended),
        events_bytes=0 if heartbeat is None else heartbeat.events,
        model_calls_bytes=0 if heartbeat is None else heartbeat.model_calls,
        heartbeat=None if is_over else heartbeat,
        job=_job_facts(record, verdict),
        ended=ended,
        lost=record.lost,
    )


def _job_facts(record: JobRecord, verdict: Verdict) -> JobFacts:
    job, heartbeat = record.job, record.heartbeat
    known = JobFacts(
        job=job.id if job is not None else "" if heartbeat is None else heartbeat.job,
        node=heartbeat.node if heartbeat is not None else "" if job is None else job.node,
    )
    if isinstance(verdict, Waiting):
        known = replace(known, waits_for=verdict.reason)
        if job is not None and job.state == _PENDING:
            known = replace(known, starts_at=job.starts_at, job_priority=job.priority)
    elif heartbeat is not None and heartbeat.staged is not None:
        known = replace(
            known,
            waits_for=OwnReason.STAGING,
            staged_bytes=heartbeat.staged,
            to_stage_bytes=heartbeat.to_stage,
        )
    return known


def _revision(record: JobRecord, ended: JobEnd | None) -> Hashable:
    """Return what changes whenever its directory may have new content, or may be read with other eyes."""
    heartbeat = record.heartbeat
    written = (
        None
        if heartbeat is None
        else (heartbeat.events, heartbeat.usage, heartbeat.model_calls, heartbeat.ended)
    )
    return written, record.has_report, record.phase in (JobPhase.MISSING, JobPhase.ENDED), ended
