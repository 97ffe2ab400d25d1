"""Slurm as a placement: submits one job for each attempt, keeps what is known of it, and carries out what follows.

What follows from the facts about a job is decided in `jobs`; what a job is submitted with, in `sbatch`.
"""

from __future__ import annotations

import heapq
import math
import os
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mlebench_console.engine.placements import jobs, nodes
from mlebench_console.engine.placements.commands import (
    MOST_NAMES,
    Job,
    NoAccounting,
    Node,
    SlurmAway,
    SlurmCommands,
    SlurmFull,
    SlurmRefuses,
    SlurmUnfit,
)
from mlebench_console.engine.placements.jobs import JobPhase, JobRecord, Verdict, Waiting
from mlebench_console.engine.placements.model import AttemptStatus, Lost, Placement
from mlebench_console.engine.placements.sbatch import job_options, job_prefix, job_script, runtime_on_nodes
from mlebench_console.engine.placements.staging import DIRECT, Images, staging_seconds
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.protocol import Order, Stop
from mlebench_console.foundation import files, jsonlines
from mlebench_console.foundation.backoff import Backoff
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem
from mlebench_console.state.records import Attempt, JobFacts, OwnReason

Answer = TypeVar("Answer")

_NAMED = 5  # jobs in one message
_IMAGES_SECONDS = 5.0
_USUAL_POLL_SECONDS = SlurmProfile().poll_seconds
_MANY_JOBS = 200
_LONGEST_BACK_OFF_SECONDS = 300.0
# The other calls are made at most every second time of squeue's: in all five calls a minute at the usual pace.
_OTHERS = 2
_HEARTBEATS_A_SECOND = 8  # that are read, for all attempts together
_MARGIN_SECONDS = 60.0
_OUT_OF_MEMORY = re.compile(
    r"(slurmstepd\S*|slurm_?\w*): error: .*(memory limit|oom[-_ ]kill|out of memory)", re.I
)
_LOG_BYTES = 16_384
_LOG_LINE = 300


@dataclass
class _Turn:
    """When a kind of call is due again, and since when and why it fails.

    Attributes:
        trouble: what it means that it fails, since a time.
        problem: why it fails; None if it does not.
    """

    trouble: str
    at: float = -math.inf
    failures: int = 0
    since: float = 0.0
    problem: EnvironmentProblem | None = None

    def __str__(self) -> str:
        """Return since when it fails and why; empty if it does not."""
        if self.problem is None:
            return ""
        since = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"{self.trouble.format(since=since)}: {self.problem.why}"


@dataclass(frozen=True)
class _Call:
    """A call of Slurm's commands that is under way, and what is done with its answer, or with its failure."""

    turn: _Turn
    answer: Future[Any]
    take: Callable[[Any], None]
    fail: Callable[[Exception], None] | None = None


@dataclass
class _Profile:
    """A profile in use, with the attempts to be submitted."""

    profile: SlurmProfile
    queue: deque[_Placed] = field(default_factory=deque)
    turn: _Turn = field(default_factory=lambda: _Turn("Slurm has taken no job since {since}"))


@dataclass
class _Placed:
    """An attempt with what is known of its job and what follows from it.

    Attributes:
        status: what others need to know of it, kept because it is asked for far more often than it changes.
        staging_seconds: how long staging its data may take.
        heartbeats_offset: up to where its heartbeats are read, and when that was.
    """

    attempt: Attempt
    name: str
    folder: Path
    order: Order
    used: _Profile
    staging_seconds: float
    record: JobRecord
    verdict: Verdict = None
    status: AttemptStatus = field(default_factory=AttemptStatus)
    heartbeats_offset: int = 0
    heartbeats_at: float = -math.inf


class Slurm(Placement):
    """Submits attempts as jobs, watches and cancels them; with one call of Slurm's commands at a time.

    One object serves all profiles, so that Slurm is queried once for all of them.
    """

    def __init__(
        self,
        profile_of: Callable[[str], SlurmProfile],
        state_dir: Path,
        commands: SlurmCommands,
        clock: Clock,
        log: Log,
        worker: Executor,
    ) -> None:
        """Create it without calling Slurm; `worker` makes the calls, which may block."""
        self._profile_of = profile_of
        self._profiles: dict[str, _Profile] = {}
        self._state_dir = state_dir
        self._commands = commands
        self._clock = clock
        self._log = log
        self._worker = worker
        self.prefix = job_prefix(state_dir)
        self._placed: dict[str, _Placed] = {}  # by token
        self._images = Images()
        self._images_at = self._heartbeats_at = -math.inf
        self._cancelled: dict[str, str] = {}  # names of the jobs to be cancelled, by their numbers
        self._live: frozenset[str] | None = None
        self._knows: Callable[[str], bool] = lambda _token: False
        self._unknown: tuple[str, ...] = ()  # jobs of attempts that the state does not know
        self._may_be_left = True  # whether there may be jobs of attempts that are not live
        self._call: _Call | None = None
        self._squeue = _Turn("Slurm has not answered since {since}, jobs go on")
        self._sacct = _Turn("Slurm's records have not answered since {since}")
        self._sinfo = _Turn("Slurm has not listed its nodes since {since}")
        self._scancel = _Turn("no job could be cancelled since {since}")
        self._has_records = True

    @property
    def problem(self) -> str:
        """Which calls of Slurm fail and since when, and jobs that need a person; empty without a problem."""
        turns = (self._sacct, self._sinfo, self._scancel, *(used.turn for used in self._profiles.values()))
        others = [str(turn) for turn in turns]
        if self._unknown and not str(self._squeue):
            listed = ", ".join(self._unknown[:_NAMED])
            more = f" and {len(self._unknown) - _NAMED} more" if len(self._unknown) > _NAMED else ""
            others.append(f"jobs of attempts that this state does not know go on: {listed}{more}")
        return str(self._squeue) or "; ".join(dict.fromkeys(filter(None, others)))

    @property
    def waiting(self) -> int:
        """The number of attempts whose jobs have not begun, or are suspended."""
        return sum(isinstance(placed.verdict, Waiting) for placed in self._placed.values())

    def room(self, placement: str, /) -> int:
        """Return how many more jobs a profile allows."""
        used = self.use(placement)
        return max(0, used.profile.max_jobs - sum(each.used is used for each in self._placed.values()))

    def share_of_rates(self, placement: str, /) -> float:
        """Return one divided by the most jobs, because jobs on different nodes can't share rates."""
        return 1 / self.use(placement).profile.max_jobs

    def runtime(self, wanted: str) -> str:
        """Return the actual runtime on nodes for a sweep's runtime."""
        return runtime_on_nodes(wanted)

    def use(self, placement: str) -> _Profile:
        """Return the profile of a placement, and use it from now on.

        Raises:
            UsageProblem: config.toml has no such profile.
        """
        used = self._profiles.get(placement)
        if used is None:
            used = self._profiles[placement] = _Profile(self._profile_of(placement))
        return used

    def place(self, attempt: Attempt) -> None:
        """Submit an attempt soon; if it may have been submitted before, only after Slurm says that it has no job."""
        if attempt.token in self._placed:
            return
        used = self.use(attempt.placement)
        folder = (self._state_dir / attempt.directory).resolve()
        order = protocol.read(folder / protocol.ORDER, Order)
        staging = staging_seconds(Path(order.prepared_dir), used.profile)
        record = JobRecord(
            used.profile.silent_seconds, is_isolated=order.conditions.runtime != protocol.PLAIN
        )
        name = f"{self.prefix}{attempt.token}"
        placed = _Placed(attempt, name, folder, order, used, staging, record)
        if (folder / protocol.JOB_CLAIM).exists():
            placed.record = replace(record, is_claimed=True)
            secrets.discard(self._state_dir / attempt.directory)
            # Now, because its report is taken in together with what its last heartbeat says.
            self._read_heartbeat(placed)
        else:
            secrets.send(self._state_dir / attempt.directory, folder)
        # Claimed without a script: an engine was killed while it ended an attempt that was never submitted.
        if placed.record.is_claimed or (folder / protocol.JOB_SCRIPT).exists():
            self._note(placed, placed.record.entered(JobPhase.UNCERTAIN, self._clock.monotonic()))
        else:
            self._prepare(placed)
        self._placed[attempt.token] = placed
        if (folder / protocol.STOP).exists():
            self.end(attempt)

    def is_placed(self, attempt: Attempt) -> bool:
        """Return whether it was or will be submitted."""
        return attempt.token in self._placed

    def status(self, attempt: Attempt, /) -> AttemptStatus:
        """Return what the last answers of Slurm and its heartbeats say about an attempt."""
        placed = self._placed.get(attempt.token)
        if placed is None:
            return AttemptStatus(revision=(), job=JobFacts(job=attempt.job, node=attempt.node))
        status = placed.status
        if status.job.waits_for == OwnReason.TO_SUBMIT:
            return replace(status, job=replace(status.job, waits_for=self._why_unsubmitted(placed)))
        return status

    def _why_unsubmitted(self, placed: _Placed) -> OwnReason:
        match self._squeue.problem or placed.used.turn.problem:
            case None:
                return OwnReason.TO_SUBMIT
            case SlurmFull():
                return OwnReason.SUBMIT_LIMIT
            case SlurmUnfit():
                return OwnReason.NO_NODE
        return OwnReason.AWAY

    def end(self, attempt: Attempt, /) -> None:
        """End a waiting attempt immediately; a running one is ended by its runner, and cancelled if that fails."""
        placed = self._placed.get(attempt.token)
        if placed is None:
            return
        if self._claim(placed):
            protocol.write(placed.folder / protocol.EXIT, Ending.unseen(EndReason.STOPPED))
            self._note(placed, replace(placed.record, has_report=True))
            self._cancel(placed)
        else:
            patience = placed.order.conditions.grace_seconds + 2 * _MARGIN_SECONDS
            self._note(placed, replace(placed.record, stop_by=self._clock.monotonic() + patience))

    def forget(self, attempt: Attempt) -> None:
        """Forget an attempt; its job, if one is left, is cancelled at the next answer of squeue."""
        placed = self._placed.pop(attempt.token, None)
        if placed is not None:
            self._may_be_left = True
            secrets.withdraw(placed.folder)

    def keep_only(self, live: Sequence[Attempt], knows: Callable[[str], bool]) -> None:
        """Cancel the jobs of all other attempts that the state knows at the next answer of squeue."""
        self._knows = knows
        self._live = frozenset(attempt.token for attempt in live)
        for token in self._placed.keys() - self._live:
            self._cancel(self._placed.pop(token))
            self._may_be_left = True

    def step(self) -> None:
        """Process the answer to the last call, make the next due call, and read heartbeats."""
        if self._call is not None and self._call.answer.done():
            call, self._call = self._call, None
            self._finish(call)
        self._prepare_with_images()
        if self._call is None:
            self._call = self._next_call()
        self._read_heartbeats()

    # Submissions

    def _prepare(self, placed: _Placed) -> None:
        """Write a job's script and queue it, unless the image of its data is still being made.

        Raises:
            Problem: its data can't be staged.
        """
        if placed.used.profile.staging != DIRECT:
            staging = self._images.order(Path(placed.order.prepared_dir), placed.used.profile)
            if staging is None:
                self._note(placed, placed.record.entered(JobPhase.IMAGE, self._clock.monotonic()))
                return
            protocol.write(placed.folder / protocol.STAGING, staging)
        # The script also records that the attempt may have been submitted.
        script = job_script(placed.folder, placed.order, placed.used.profile)
        files.write_text(placed.folder / protocol.JOB_SCRIPT, script)
        self._queue(placed)

    def _prepare_with_images(self) -> None:
        """Queue attempts whose images are made; checked only every few seconds, as the images are on a shared disk."""
        now = self._clock.monotonic()
        if now < self._images_at:
            return
        self._images_at = now + _IMAGES_SECONDS
        for placed in [each for each in self._placed.values() if each.record.phase is JobPhase.IMAGE]:
            try:
                if not placed.record.is_claimed:
                    self._prepare(placed)
            except Problem as problem:
                self._give_up(
                    placed, jobs.refused(f"its data can't be brought to a node: {problem.in_one_line()}")
                )

    def _queue(self, placed: _Placed) -> None:
        self._note(placed, placed.record.entered(JobPhase.QUEUED, self._clock.monotonic()))
        placed.used.queue.append(placed)

    def _submit(self, placed: _Placed) -> _Call:
        profile, order, turn = placed.used.profile, placed.order, placed.used.turn
        turn.at = self._clock.monotonic() + 60.0 / profile.submissions_per_minute
        self._note(placed, replace(placed.record, submissions=placed.record.submissions + 1))
        comment = f"{order.sweep_id}/{order.competition_id}/seed-{order.seed}/attempt-{order.attempt}"
        staging = placed.staging_seconds
        options = job_options(
            order.conditions, placed.name, comment, placed.folder, profile, staging_seconds=staging
        )
        script = placed.folder / protocol.JOB_SCRIPT
        answer = self._worker.submit(self._commands.submit, script, options)
        return _Call(turn, answer, partial(self._take_number, placed), partial(self._fail_to_submit, placed))

    def _take_number(self, placed: _Placed, _number: str) -> None:
        """Note that sbatch has accepted a job; its number is read from squeue, which names it too."""
        self._note(placed, placed.record.entered(JobPhase.SUBMITTED, self._clock.monotonic()))

    def _fail_to_submit(self, placed: _Placed, problem: Exception) -> None:
        now, record = self._clock.monotonic(), placed.record
        match problem:
            case SlurmUnfit():
                self._act(placed, replace(record.entered(JobPhase.UNSUBMITTED, now), refusal=problem.why))
            case SlurmRefuses():
                self._give_up(placed, jobs.refused(f"Slurm does not run it: {problem.why}"))
            case SlurmFull():
                self._note(placed, replace(record, submissions=record.submissions - 1))
                placed.used.queue.appendleft(placed)
            case _:
                why = problem.why if isinstance(problem, SlurmAway) else ""
                self._note(placed, replace(record.entered(JobPhase.UNCERTAIN, now), refusal=why))

    # Calls

    def _next_call(self) -> _Call | None:
        now, commands = self._clock.monotonic(), self._commands
        answers = self._squeue.problem is None
        if self._cancelled and answers and now >= self._scancel.at:
            numbers = tuple(self._cancelled)[:MOST_NAMES]
            return self._start(
                self._scancel, partial(self._forget_cancelled, numbers), commands.cancel, numbers
            )
        if now >= self._squeue.at and (self._placed or self._may_be_left):
            return self._start(self._squeue, self._take_jobs, commands.jobs)
        if not answers:
            return None
        if now >= self._sacct.at and self._has_records and (missing := self._missing[:MOST_NAMES]):
            names = tuple(placed.name for placed in missing)
            since = min(placed.attempt.created_at for placed in missing) - 3600
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
            return self._start(self._sacct, partial(self._take_records, missing), commands.ended, names, text)
        for used in self._profiles.values():
            while used.queue and now >= used.turn.at:
                placed = used.queue.popleft()
                is_placed = self._placed.get(placed.attempt.token) is placed
                if is_placed and placed.record.phase is JobPhase.QUEUED and not self._is_claimed(placed):
                    return self._submit(placed)
        if now >= self._sinfo.at and self._placed:
            return self._start(self._sinfo, self._take_nodes, commands.nodes, self._partitions())
        return None

    def _start(
        self,
        turn: _Turn,
        take: Callable[[Answer], None],
        command: Callable[..., Answer],
        *arguments: object,
    ) -> _Call:
        turn.at = self._clock.monotonic() + self._seconds_between(turn)
        return _Call(turn, self._worker.submit(command, *arguments), take)

    @property
    def _missing(self) -> list[_Placed]:
        """The attempts whose jobs Slurm does not list any more, and which are not given up."""
        return [
            placed
            for placed in self._placed.values()
            if placed.record.phase is JobPhase.MISSING and placed.record.lost is None
        ]

    @property
    def _poll_seconds(self) -> float:
        paces = (used.profile.poll_seconds for used in self._profiles.values())
        return min(paces, default=_USUAL_POLL_SECONDS) * (2 if len(self._placed) > _MANY_JOBS else 1)

    def _seconds_between(self, turn: _Turn) -> float:
        usual = self._poll_seconds * (1 if turn is self._squeue else _OTHERS)
        backoff = Backoff(usual, max(usual, _LONGEST_BACK_OFF_SECONDS))
        return backoff.seconds(turn.failures + 1)

    def _partitions(self) -> tuple[str, ...]:
        """Return the partitions that jobs may be in; empty if a profile leaves that open."""
        named = {used.profile.partition for used in self._profiles.values()}
        return () if "" in named else tuple(sorted({each for one in named for each in one.split(",")}))

    def _finish(self, call: _Call) -> None:
        try:
            answer = call.answer.result()
        except NoAccounting as problem:
            self._log("what becomes of jobs is not looked for in Slurm's records", problem)
            self._has_records = False
        except Exception as problem:
            if isinstance(problem, SlurmAway | SlurmFull | SlurmUnfit):
                self._note_failure(call.turn, problem)
            if call.fail is not None:
                call.fail(problem)
            if not isinstance(problem, SlurmAway | SlurmFull | SlurmRefuses):
                raise
        else:
            call.turn.failures, call.turn.problem = 0, None
            call.take(answer)

    def _note_failure(self, turn: _Turn, problem: EnvironmentProblem) -> None:
        turn.failures += 1
        turn.at = self._clock.monotonic() + self._seconds_between(turn)
        if turn.problem is None:
            self._log(problem.what, problem)
            turn.since = self._clock.now()
        turn.problem = problem

    def _take_jobs(self, listed: Sequence[Job]) -> None:
        found: dict[str, Job] = {}
        for job in listed:
            # Of two jobs of one attempt the live one counts, otherwise the later one.
            if job.name.startswith(self.prefix) and (
                job.name not in found or jobs.has_ended(found[job.name])
            ):
                found[job.name] = job
        # A job to be cancelled must still have its name: after a crash its number may be another job's.
        names = {job.id: job.name for job in listed if not jobs.has_ended(job)}
        self._cancelled = {
            number: name for number, name in self._cancelled.items() if names.get(number) == name
        }
        ours = [job for job in found.values() if not jobs.has_ended(job)]
        self._may_be_left = self._live is None or bool(ours)
        tokens = {job: job.name.removeprefix(self.prefix) for job in ours}
        left = [
            job for job, token in tokens.items() if token not in self._placed and job.state != "COMPLETING"
        ]
        if self._live is not None:
            left = [job for job in left if tokens[job] not in self._live]
            unknown = [job for job in left if not self._knows(tokens[job])]
            self._unknown = tuple(job.id for job in unknown)
            self._cancelled |= {job.id: job.name for job in left if job not in unknown}
        for placed in list(self._placed.values()):
            self._take_job(placed, found.get(placed.name))
        self._forget_troubles()

    def _take_job(self, placed: _Placed, job: Job | None) -> None:
        """Take what an answer of squeue says about an attempt's job, None where it does not list it."""
        now, record = self._clock.monotonic(), placed.record
        if record.phase not in (JobPhase.IMAGE, JobPhase.QUEUED) and not record.is_claimed:
            record = replace(record, is_claimed=self._is_claimed(placed))
        record = jobs.not_listed(record, now) if job is None else jobs.listed(record, job, now)
        self._act(placed, record)
        if record.stop_by is not None and now >= record.stop_by:
            self._note(placed, replace(placed.record, stop_by=None))
            self._cancel(placed)

    def _take_records(self, missing: Sequence[_Placed], found: Sequence[Job]) -> None:
        by_name = {job.name: job for job in found if jobs.has_ended(job)}
        for placed in missing:
            if placed.name in by_name:
                now = self._clock.monotonic()
                self._act(placed, jobs.recorded(placed.record, by_name[placed.name], now))

    def _take_nodes(self, found: Sequence[Node]) -> None:
        nodes.write(self._state_dir, nodes.Nodes(self._clock.now(), tuple(found)))

    def _forget_cancelled(self, numbers: Sequence[str], _answer: None) -> None:
        for number in numbers:
            self._cancelled.pop(number, None)

    def _forget_troubles(self) -> None:
        """Clear failures of calls that are no longer needed, because no success would clear them."""
        if not self._cancelled:
            self._scancel.problem = None
        if not self._missing:
            self._sacct.problem = None
        if not self._placed:
            self._sinfo.problem = None
        uncertain = [each for each in self._placed.values() if each.record.phase is JobPhase.UNCERTAIN]
        for used in self._profiles.values():
            if not used.queue and not any(placed.used is used for placed in uncertain):
                used.turn.problem = None

    # Facts and what follows

    def _note(self, placed: _Placed, record: JobRecord) -> None:
        """Keep what is known of an attempt's job, without acting on it."""
        if record.phase is JobPhase.ENDED and placed.record.phase is not JobPhase.ENDED:
            record = replace(record, memory_line=_memory_line(placed.folder / protocol.JOB_LOG))
        placed.record = record
        placed.verdict = jobs.judge(record, self._clock.monotonic(), has_records=self._has_records)
        placed.status = jobs.status_of(record, placed.verdict)

    def _act(self, placed: _Placed, record: JobRecord) -> None:
        """Keep what is known of an attempt's job, and carry out what follows."""
        self._note(placed, record)
        if record.lost is not None:
            return
        if isinstance(placed.verdict, Lost):
            self._read_directory(placed)
        if isinstance(placed.verdict, Lost):
            self._give_up(placed, placed.verdict)
        elif placed.record.phase is JobPhase.UNSUBMITTED:
            self._queue(placed)

    def _read_directory(self, placed: _Placed) -> None:
        """Read what an attempt has left, after listing its directory to refresh network file systems."""
        names = {path.name for path in placed.folder.iterdir()}
        record = replace(
            placed.record, is_claimed=protocol.JOB_CLAIM in names, has_report=protocol.EXIT in names
        )
        self._note(placed, record)
        if record.is_claimed:
            self._read_heartbeat(placed)

    def _give_up(self, placed: _Placed, lost: Lost) -> None:
        """Fail an attempt, unless a job has begun it since."""
        if not placed.record.is_claimed and not self._claim(placed):
            return
        self._cancel(placed)
        self._note(placed, replace(placed.record, lost=lost))
        # A runner that is still alive on an unreachable node ends its agent when it reads this.
        if not (placed.folder / protocol.STOP).exists():
            protocol.write(placed.folder / protocol.STOP, Stop("engine", self._clock.now()))

    def _is_claimed(self, placed: _Placed) -> bool:
        return placed.record.is_claimed or (placed.folder / protocol.JOB_CLAIM).exists()

    def _claim(self, placed: _Placed) -> bool:
        """Take the claim that a job needs to begin; return False if a job has it."""
        is_ours = output.claim(placed.folder / protocol.JOB_CLAIM)
        self._note(placed, replace(placed.record, is_claimed=True))
        if is_ours:
            secrets.withdraw(placed.folder)
        return is_ours

    def _cancel(self, placed: _Placed) -> None:
        job = placed.record.live_job
        if job is not None:
            self._cancelled[job.id] = job.name

    # Heartbeats

    def _read_heartbeats(self) -> None:
        """Read the heartbeats that are due, the longest unread first: each at most once per interval."""
        now = self._clock.monotonic()
        if now < self._heartbeats_at:
            return
        self._heartbeats_at = now + 1.0
        writing = [placed for placed in self._placed.values() if placed.record.may_write]
        every = max(self._poll_seconds / 2, len(writing) / _HEARTBEATS_A_SECOND)
        due = (placed for placed in writing if now - placed.heartbeats_at >= every)
        for placed in heapq.nsmallest(_HEARTBEATS_A_SECOND, due, key=lambda each: each.heartbeats_at):
            self._read_heartbeat(placed)

    def _read_heartbeat(self, placed: _Placed) -> None:
        now = placed.heartbeats_at = self._clock.monotonic()
        try:
            lines = jsonlines.read(placed.folder / protocol.HEARTBEATS, placed.heartbeats_offset)
        except (Problem, OSError) as problem:
            self._log(f"the heartbeats of run {placed.attempt.run_id} can't be read", problem)
            return
        placed.heartbeats_offset = lines.offset
        beats = [beat for line in lines.values if (beat := protocol.heartbeat_from_line(line)) is not None]
        if beats:
            self._note(placed, replace(placed.record, is_claimed=True, heartbeat=beats[-1], heartbeat_at=now))


def _memory_line(log: Path) -> str:
    """Return Slurm's message about memory in a job's log; empty without one."""
    try:
        with files.reading_untrusted(log) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _LOG_BYTES))
            text = stream.read(_LOG_BYTES).decode("utf-8", "replace")
    except (DataProblem, OSError):
        return ""  # a job that has not begun has no log
    return next((line[:_LOG_LINE] for line in text.splitlines() if _OUT_OF_MEMORY.match(line)), "")
