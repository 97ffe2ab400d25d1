"""Slurm as a placement: submits one job for each attempt, finds it again, and decides when an attempt is lost.

Evidence counts in this order: exit.json, heartbeats, squeue, sacct. A job id alone proves nothing, because Slurm reuses
ids after a crash. An attempt's token is part of its job's name, and a claim in its directory decides which job may run
it, so that an attempt that is submitted twice runs once.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from mlebench_console.engine.placements import nodes
from mlebench_console.engine.placements.commands import (
    MOST_NAMES,
    Job,
    NoAccounting,
    SlurmAway,
    SlurmCommands,
    SlurmFull,
    SlurmRefuses,
    SlurmUnfit,
    output_option,
)
from mlebench_console.engine.placements.model import Look
from mlebench_console.engine.placements.staging import DIRECT, Images, staging_seconds
from mlebench_console.engine.settings import SlurmProfile, slurm_profiles
from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol, runtimes, secrets
from mlebench_console.environment.runner.protocol import Heartbeat, Order, Stop
from mlebench_console.foundation import files, jsonlines
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemon_log import Log
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem, UsageProblem
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import HERE, Attempt
from mlebench_console.state.transitions import Failure

SLURM = "slurm"
TO_BE_SUBMITTED = "to be submitted"
OF_AN_IMAGE = "image of its dataset"
# The memory of a job beyond its agent's: for runner, shim and validation server.
_OWN_MEMORY_BYTES = 1 << 30
_IMAGES_SECONDS = 5.0
_GIGABYTES = 1e8  # larger sizes are written in GB
_SIGNAL_SECONDS = 60.0  # Slurm may send a signal this much too early
_SHORTEST_SIGNAL = 60
_USUAL_POLL_SECONDS = SlurmProfile().poll_seconds
_MANY_JOBS = 200
_LONGEST_BACK_OFF_SECONDS = 300.0
# The other calls are made at most every second time of squeue's: in all five calls a minute at the usual pace.
_OTHERS = 2
# How long to wait for Slurm's records of a job that has left a report and is gone.
_RECORDS_SECONDS = 180.0
_LOOKS_A_SECOND = 8.0  # reads of heartbeats, for all attempts together
# How long a file system between hosts may take to show new files.
_EXIT_PATIENCE_SECONDS = 60.0
_MARGIN_SECONDS = 60.0
_ANSWERS_WITHOUT_IT = 2
_MOST_SUBMISSIONS = 3
_ENDED = frozenset(
    (
        *(
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "DEADLINE",
            "FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PREEMPTED",
        ),
        *("REVOKED", "TIMEOUT"),
    )
)
# In these states Slurm has not seen the processes end: they may still run on an unreachable node.
_UNSEEN = frozenset({"NODE_FAIL", "BOOT_FAIL"})
# Reasons for which a job waits for ever; of the limits of accounts and qos, only those of single jobs.
_NEVER = re.compile(
    "PartitionTimeLimit|PartitionNodeLimit|BadConstraints|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed"
    r"|(?:QOS|Assoc)(?:Max|Min)\w*Per(?:Job|Node)(?:Limit)?|(?:QOS|Assoc)MaxWallDurationPerJobLimit"
)
# More than one, because a controller that has just started may report wrong reasons for a moment.
_ANSWERS_OF_NEVER = 2
_OUT_OF_MEMORY = re.compile(
    r"(slurmstepd\S*|slurm_?\w*): error: .*(memory limit|oom[-_ ]kill|out of memory)", re.I
)
_LOG_BYTES = 16_384
_LOG_LINE = 300
_LAUNCH_FAILED = "launch_failed_requeued_held"
# Stopped by Slurm with their resources: these jobs can't write, and continue later.
_HELD_STATES = frozenset({"SUSPENDED", "STOPPED"})
_NOT_YET = frozenset({"PENDING", "CONFIGURING"})
# Options that the engine needs to name, find, start and end jobs; jobs of other clusters are not in squeue's answer.
_OWN_OPTIONS = frozenset(
    (
        *(
            "job-name",
            "output",
            "error",
            "open-mode",
            "requeue",
            "no-requeue",
            "export",
            "export-file",
            "signal",
        ),
        *(
            "dependency",
            "array",
            "cluster",
            "clusters",
            "chdir",
            "parsable",
            "test-only",
            "wait",
            "wrap",
            "time",
        ),
    )
)
_OWN_LETTERS = ("-J", "-o", "-e", "-d", "-a", "-M", "-D", "-W", "-t")
_WORDS = {
    "PREEMPTED": "other jobs took its place",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not boot",
    "TIMEOUT": "its job's time was up, which is longer than its own: give the profile more slack_minutes",
    "DEADLINE": "its job's deadline has passed",
    "CANCELLED": "its job was cancelled, and not by this engine",
    "COMPLETED": "its job ended without a report",
    "FAILED": "its job failed without a report",
}


class _Call(Enum):
    POLL = "squeue"
    RECORDS = "sacct"
    NODES = "sinfo"
    SUBMIT = "sbatch"
    CANCEL = "scancel"


_TROUBLES = {
    _Call.POLL: "Slurm has not answered since {since}, jobs go on",
    _Call.RECORDS: "Slurm's records have not answered since {since}",
    _Call.NODES: "Slurm has not listed its nodes since {since}",
    _Call.SUBMIT: "Slurm has taken no job since {since}",
    _Call.CANCEL: "no job could be cancelled since {since}",
}


@dataclass
class _Held:
    """An attempt with everything known about its job.

    Attributes:
        profile: of its placement.
        unknown: after how many more answers of squeue without its job it has none; 0 if that is certain.
        hopeless: how many answers in a row have said that its job will wait for ever.
        is_submitted: whether there is or was a job, as far as known.
        missing_since: since when squeue has answered without its job.
        waits_since: since when its job waits although it had begun.
        asks_records: whether Slurm's records of it may still arrive.
        memory_line: Slurm's message about its memory in the job's log.
        beat_at: when the last heartbeat was read, by our clock.
        staging_seconds: how long staging its data may take.
    """

    attempt: Attempt
    folder: Path
    order: Order
    profile: SlurmProfile
    staging_seconds: float = 0.0
    unknown: int = 0
    hopeless: int = 0
    is_submitted: bool = False
    submissions: int = 0
    job: Job | None = None
    missing_since: float | None = None
    waits_since: float | None = None
    memory_line: str = ""
    ended_at: float | None = None
    is_in_records: bool | None = None
    beat: Heartbeat | None = None
    beat_at: float = 0.0
    beats_offset: int = 0
    version: int = 0
    end_by: float | None = None
    failure: Failure | None = None
    pauses: bool = False
    asks_records: bool = False

    @property
    def said(self) -> str:
        """What Slurm reports about the end of its job; empty while the job is or may be alive."""
        if self.job is not None and self.job.state in _ENDED:
            return "; ".join(filter(None, (self.job.in_words(), self.memory_line)))
        return "Slurm lists no such job" if self.missing_since is not None and not self.asks_records else ""

    @property
    def is_watched(self) -> bool:
        """Whether its job may have written something."""
        return (
            self.beat is not None
            or self.missing_since is not None
            or (self.job is not None and self.job.state not in _NOT_YET)
        )

    @property
    def is_waiting(self) -> bool:
        """Whether its job has not begun, or is suspended."""
        if self.job is not None and self.job.state in _HELD_STATES:
            return True
        return self.beat is None and (self.job is None or self.job.state in _NOT_YET)

    @property
    def silence(self) -> float:
        """After how many seconds a runner that can't write has ended its agent."""
        return self.profile.silent_seconds + min(_MARGIN_SECONDS, self.profile.silent_seconds)


@dataclass
class _Turn:
    """When a kind of call is due again, and since when and why it fails."""

    at: float = -math.inf
    failures: int = 0
    since: float | None = None
    why: str = ""

    def in_words(self, kind: _Call) -> str:
        """Return since when it fails and why, as text; empty if it does not."""
        if self.since is None:
            return ""
        since = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"{_TROUBLES[kind].format(since=since)}: {self.why}"


@dataclass
class _Profile:
    """A profile in use, with its attempts to be submitted."""

    profile: SlurmProfile
    queue: deque[_Held] = field(default_factory=deque)
    submit: _Turn = field(default_factory=_Turn)


@dataclass
class _Pending:
    kind: _Call
    answer: Future[Any]
    about: _Held | None = None
    names: tuple[str, ...] = field(default=())


class Slurm:
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
        """Create it without calling Slurm.

        Args:
            profile_of: returns the profile of a placement.
            state_dir: of the attempts.
            commands: of Slurm.
            clock: of this host.
            log: for problems.
            worker: makes the calls, which may block.
        """
        self._profile_of = profile_of
        self._profiles: dict[str, _Profile] = {}
        self._state_dir = state_dir
        self._commands = commands
        self._clock = clock
        self._log = log
        self._worker = worker
        self.prefix = job_prefix(state_dir)
        self._held: dict[str, _Held] = {}
        self._images = Images()
        self._images_at = 0.0
        self._without_image: dict[str, _Held] = {}
        self._watched: deque[tuple[float, _Held]] = deque()
        self._cancelled: dict[str, str] = {}  # jobs to be cancelled, by their number
        self._live: frozenset[str] | None = None
        self._may_be_left = True  # whether there may be jobs of attempts that are not live
        self._pending: _Pending | None = None
        self._turns = {kind: _Turn() for kind in _Call}
        self._has_records = True

    @property
    def problem(self) -> str:
        """Which calls of Slurm fail and since when; empty without a problem."""
        if whole := self._turns[_Call.POLL].in_words(_Call.POLL):
            return whole
        parts = [turn.in_words(kind) for kind, turn in self._turns.items()]
        parts += [used.submit.in_words(_Call.SUBMIT) for used in self._profiles.values()]
        return "; ".join(dict.fromkeys(filter(None, parts)))

    @property
    def waiting(self) -> int:
        """The number of attempts whose jobs have not begun, or are suspended."""
        return sum(held.is_waiting for held in self._held.values())

    def room(self, placement: str) -> int:
        """Return how many more jobs a profile allows."""
        profile = self.use(placement).profile
        return max(0, profile.max_jobs - sum(held.profile is profile for held in self._held.values()))

    def share_of_rates(self, placement: str, /) -> float:
        """Return one divided by the most jobs, because jobs on different nodes can't share rates."""
        return 1 / self.use(placement).profile.max_jobs

    def runtime(self, wanted: str) -> str:
        """Return the actual runtime on nodes for a sweep's runtime."""
        return runtime_on_nodes(wanted)

    def recover(self) -> None:
        """Do nothing: jobs of the last engine are found by their names."""

    def place(self, attempt: Attempt) -> None:
        """Submit an attempt soon; if it may have been submitted before, only after Slurm says that it has no job."""
        if attempt.token in self._held:
            return
        used = self.use(attempt.placement)
        folder = (self._state_dir / attempt.directory).resolve()
        order, profile = protocol.read(folder / protocol.ORDER, Order), used.profile
        held = _Held(attempt, folder, order, profile, staging_seconds(Path(order.prepared_dir), profile))
        is_claimed = self._is_claimed(held)
        if is_claimed:
            secrets.discard(self._state_dir / attempt.directory)
            # Read now, because after an existing report the heartbeats are not read again.
            self._look_at_heartbeat(held)
        else:
            secrets.send(self._state_dir / attempt.directory, folder)
        # Claimed without a script: an engine was killed while it ended an attempt that was never submitted.
        if is_claimed or (folder / protocol.JOB_SCRIPT).exists():
            held.unknown = _ANSWERS_WITHOUT_IT
        elif not self._make_script(held):
            self._without_image[attempt.token] = held
        self._held[attempt.token] = held
        if (folder / protocol.STOP).exists():
            self.end(attempt)

    def _make_script(self, held: _Held) -> bool:
        """Write a job's script and queue it; return False while the image of its data is being made.

        Raises:
            Problem: its data can't be staged.
        """
        if held.profile.staging != DIRECT:
            staging = self._images.order(Path(held.order.prepared_dir), held.profile)
            if staging is None:
                return False
            protocol.write(held.folder / protocol.STAGING, staging)
        # The script also records that the attempt may have been submitted.
        files.write_text(held.folder / protocol.JOB_SCRIPT, job_script(held.folder, held.order, held.profile))
        self.use(held.attempt.placement).queue.append(held)
        return True

    def _queue_with_image(self) -> None:
        """Queue attempts whose images are made; checked only every few seconds, as the images are on a shared disk."""
        now = self._clock.monotonic()
        if not self._without_image or now < self._images_at:
            return
        self._images_at = now + _IMAGES_SECONDS
        waiting, self._without_image = self._without_image, {}
        for held in waiting.values():
            if self._held.get(held.attempt.token) is not held or self._is_claimed(held):
                continue
            try:
                if not self._make_script(held):
                    self._without_image[held.attempt.token] = held
            except Problem as problem:
                self._refuse(held, f"its data can't be brought to a node: {problem.in_one_line()}")

    def is_placed(self, attempt: Attempt) -> bool:
        """Return whether it was or will be submitted."""
        return attempt.token in self._held

    def look(self, attempt: Attempt, /) -> Look:
        """Return what the last answers of Slurm and its heartbeats say about an attempt."""
        held = self._held.get(attempt.token)
        if held is None:
            return Look(version=0, job=attempt.job, node=attempt.node)
        job = held.job
        is_waiting = held.beat is None and (job is None or job.state in _NOT_YET)
        waits_for = "" if held.beat is None else _staged_in_words(held.beat)
        if job is not None and (job.state in _HELD_STATES or (is_waiting and job.state != "PENDING")):
            waits_for = job.state
        elif attempt.token in self._without_image:
            waits_for = OF_AN_IMAGE
        elif is_waiting:
            waits_for = TO_BE_SUBMITTED if job is None else job.reason
        is_pending = is_waiting and job is not None and job.state == "PENDING"
        return Look(
            version=held.version,
            events_bytes=0 if held.beat is None else held.beat.events,
            model_calls_bytes=0 if held.beat is None else held.beat.model_calls,
            beat=held.beat if held.ended_at is None and held.missing_since is None else None,
            job=job.id if job is not None else "" if held.beat is None else held.beat.job,
            node=held.beat.node if held.beat is not None else "" if job is None else job.node,
            waits_for=waits_for,
            starts_at=moment_of(job.starts) if is_pending and job is not None else None,
            priority=int(job.priority)
            if is_pending and job is not None and job.priority.isdecimal()
            else None,
            said=held.said,
            took_too_much_memory=held.job is not None
            and held.job.state in _ENDED
            and (held.job.state == "OUT_OF_MEMORY" or bool(held.memory_line)),
            failure=held.failure,
            pauses=held.pauses,
        )

    def request_number(self, token: str) -> int | None:
        """Return a number that changes with each request of an attempt for a larger allowance."""
        held = self._held.get(token)
        return None if held is None else held.beat.asked if held.beat is not None else 0

    def end(self, attempt: Attempt, /) -> None:
        """End a waiting attempt immediately; a running one is ended by its runner, and cancelled if that fails."""
        held = self._held.get(attempt.token)
        if held is None:
            return
        if self._claim(held):
            protocol.write(held.folder / protocol.EXIT, Ending.unseen("stopped"))
            held.version += 1
            self._cancel(held)
        else:
            held.end_by = self._clock.monotonic() + held.order.grace_seconds + 2 * _MARGIN_SECONDS

    def forget(self, attempt: Attempt) -> None:
        """Forget an attempt; its job, if one is left, is cancelled at the next answer of squeue."""
        held = self._held.pop(attempt.token, None)
        if held is not None:
            self._may_be_left = True
            secrets.withdraw(held.folder)

    def keep_only(self, live: Sequence[Attempt]) -> None:
        """Cancel the jobs of all other attempts at the next answer of squeue."""
        self._live = frozenset(attempt.token for attempt in live)
        for token in self._held.keys() - self._live:
            self._cancel(self._held.pop(token))
            self._may_be_left = True

    def step(self) -> None:
        """Process the answer to the last call, make the next due call, and read heartbeats."""
        if self._pending is not None and self._pending.answer.done():
            pending, self._pending = self._pending, None
            self._take(pending)
        self._queue_with_image()
        if self._pending is None:
            self._pending = self._next_call()
        self._look_at_heartbeats()

    # Calls

    def _next_call(self) -> _Pending | None:
        now = self._clock.monotonic()
        due = {kind for kind, turn in self._turns.items() if now >= turn.at}
        answers = self._turns[_Call.POLL].since is None
        if self._cancelled and answers and _Call.CANCEL in due:
            numbers = tuple(self._cancelled)[:MOST_NAMES]
            return self._call(_Call.CANCEL, self._commands.cancel, numbers, names=numbers)
        if _Call.POLL in due and (self._held or self._may_be_left):
            return self._call(_Call.POLL, self._commands.jobs)
        if not answers:
            return None
        if _Call.RECORDS in due and self._has_records:
            vanished = [
                held
                for held in self._held.values()
                if held.missing_since is not None and not held.is_in_records and held.failure is None
            ][:MOST_NAMES]
            if vanished:
                names = tuple(self._name(held) for held in vanished)
                since = min(held.attempt.created_at for held in vanished) - 3600
                text = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
                return self._call(_Call.RECORDS, self._commands.ended, names, text, names=names)
        for used in self._profiles.values():
            while used.queue and now >= used.submit.at:
                held = used.queue[0]
                is_wanted = held.attempt.token in self._held and not self._is_claimed(held)
                used.queue.popleft()
                if is_wanted:
                    return self._submit(held, used)
        if _Call.NODES in due and self._held:
            return self._call(_Call.NODES, self._commands.nodes, self._partitions())
        return None

    def _submit(self, held: _Held, used: _Profile) -> _Pending:
        used.submit.at = self._clock.monotonic() + 60.0 / used.profile.submissions_per_minute
        held.submissions += 1
        order = held.order
        comment = f"{order.sweep_id}/{order.competition_id}/seed-{order.seed}/attempt-{order.attempt}"
        options = job_options(
            order,
            self._name(held),
            comment,
            held.folder,
            used.profile,
            staging_seconds=held.staging_seconds,
        )
        script = held.folder / protocol.JOB_SCRIPT
        return _Pending(_Call.SUBMIT, self._worker.submit(self._commands.submit, script, options), held)

    def _call(
        self,
        kind: _Call,
        function: Any,
        *arguments: Any,
        names: tuple[str, ...] = (),
    ) -> _Pending:
        self._turns[kind].at = self._clock.monotonic() + self._seconds_between(kind)
        return _Pending(kind, self._worker.submit(function, *arguments), names=names)

    @property
    def _poll_seconds(self) -> float:
        usual = min(
            (used.profile.poll_seconds for used in self._profiles.values()), default=_USUAL_POLL_SECONDS
        )
        return usual * (2 if len(self._held) > _MANY_JOBS else 1)

    def _seconds_between(self, kind: _Call, failures: int = 0) -> float:
        usual = self._poll_seconds * (1 if kind is _Call.POLL else _OTHERS)
        return min(usual * 2.0**failures, max(usual, _LONGEST_BACK_OFF_SECONDS))

    def _partitions(self) -> tuple[str, ...]:
        """Return the partitions that jobs may be in; empty if a profile leaves that open."""
        named = {used.profile.partition for used in self._profiles.values()}
        return () if "" in named else tuple(sorted({each for one in named for each in one.split(",")}))

    def _take(self, pending: _Pending) -> None:
        held = pending.about
        turn = self._turns[pending.kind] if held is None else self.use(held.attempt.placement).submit
        try:
            answer = pending.answer.result()
        except NoAccounting as problem:
            self._log("what becomes of jobs is not looked for in Slurm's records", problem)
            self._has_records = False
            return
        except SlurmUnfit as refusal:
            assert held is not None
            self._note_failure(turn, pending.kind, refusal)
            self._submit_again(held, refusal.why)
            return
        except SlurmRefuses as refusal:
            assert held is not None  # only a submission is refused
            self._refuse(held, f"Slurm does not run it: {refusal.why}")
            return
        except SlurmFull as problem:
            assert held is not None
            held.submissions -= 1
            self.use(held.attempt.placement).queue.appendleft(held)
            self._note_failure(turn, pending.kind, problem)
            return
        except Exception as problem:
            if held is not None:  # it is unknown whether it was submitted
                held.unknown = _ANSWERS_WITHOUT_IT
            if not isinstance(problem, SlurmAway):
                raise
            self._note_failure(turn, pending.kind, problem)
            return
        turn.failures, turn.since = 0, None
        match pending.kind:
            case _Call.POLL:
                self._take_jobs(answer)
            case _Call.RECORDS:
                self._take_records(answer, pending.names)
            case _Call.CANCEL:
                for number in pending.names:
                    self._cancelled.pop(number, None)
            case _Call.NODES:
                nodes.write(self._state_dir, nodes.Nodes(self._clock.now(), tuple(answer)))
            case _Call.SUBMIT:
                assert held is not None
                held.is_submitted = True

    def _note_failure(self, turn: _Turn, kind: _Call, problem: EnvironmentProblem) -> None:
        turn.failures += 1
        turn.at = self._clock.monotonic() + self._seconds_between(kind, turn.failures)
        turn.why = problem.why
        if turn.since is None:
            self._log(problem.what, problem)
            turn.since = self._clock.now()

    def _take_jobs(self, jobs: Sequence[Job]) -> None:
        found: dict[str, Job] = {}
        for job in jobs:
            if job.name.startswith(self.prefix):
                token = job.name.removeprefix(self.prefix)
                before = found.get(token)
                # Of two jobs of one attempt the live one counts, otherwise the later one.
                if before is None or before.state in _ENDED:
                    found[token] = job
        now = self._clock.monotonic()
        alive = {token: job for token, job in found.items() if job.state not in _ENDED}
        # A job to be cancelled must still have its name: after a crash its number may be another job's.
        known = {job.id: job.name for job in jobs if job.state not in _ENDED}
        self._cancelled = {
            number: name for number, name in self._cancelled.items() if known.get(number) == name
        }
        self._may_be_left = self._live is None or bool(alive)
        for token, job in alive.items():
            is_unwanted = self._live is not None and token not in self._live and token not in self._held
            if is_unwanted and job.state != "COMPLETING":
                self._cancelled[job.id] = job.name
        for held in list(self._held.values()):
            job_of_it = found.get(held.attempt.token)
            if job_of_it is not None:
                self._note_job(held, job_of_it)
            elif held.unknown:
                held.unknown -= 1
                if not held.unknown:
                    self._settle_unknown(held)
            elif held.is_submitted and held.missing_since is None:
                self._note_missing(held)
            elif held.asks_records and held.missing_since is not None:
                # By now the records were queried several times, unless they don't answer.
                held.asks_records = self._has_records and now - held.missing_since < _RECORDS_SECONDS
                held.version += not held.asks_records
            self._judge(held)
        self._forget_troubles()

    def _forget_troubles(self) -> None:
        """Clear failures of calls that are no longer needed, because no success would clear them."""
        held = self._held.values()
        if not self._cancelled:
            self._turns[_Call.CANCEL].since = None
        if not any(one.missing_since is not None and one.failure is None for one in held):
            self._turns[_Call.RECORDS].since = None
        if not held:
            self._turns[_Call.NODES].since = None
        for used in self._profiles.values():
            if not used.queue and not any(one.unknown and one.profile is used.profile for one in held):
                used.submit.since = None

    def _note_missing(self, held: _Held) -> None:
        held.missing_since = self._clock.monotonic()
        held.asks_records = self._has_records
        held.version += 1
        self._watch(held)

    def _note_job(self, held: _Held, job: Job) -> None:
        held.unknown, held.is_submitted = 0, True
        hopeless = job.state in ("PENDING", "FAILED") and _NEVER.fullmatch(job.reason.strip("()")) is not None
        held.hopeless = held.hopeless + 1 if hopeless else 0
        held.missing_since = held.is_in_records = None
        if job.state != "PENDING":
            held.waits_since = None
        was_watched = held.is_watched
        if job.state in _ENDED and held.ended_at is None:
            held.ended_at = self._clock.monotonic()
            held.version += 1  # its reports are in the directory, or will be soon
            held.memory_line = self._memory_line(held)
        held.job = job
        if not was_watched and held.is_watched:
            self._watch(held)

    def _memory_line(self, held: _Held) -> str:
        """Return Slurm's message about memory in a job's log, because not every such end has a state of its own."""
        try:
            with files.reading_untrusted(held.folder / protocol.JOB_LOG) as stream:
                stream.seek(max(0, stream.seek(0, os.SEEK_END) - _LOG_BYTES))
                text = stream.read(_LOG_BYTES).decode("utf-8", "replace")
        except (DataProblem, OSError):
            return ""  # a job that has not begun has no log
        return next((line[:_LOG_LINE] for line in text.splitlines() if _OUT_OF_MEMORY.match(line)), "")

    def _settle_unknown(self, held: _Held) -> None:
        """Decide about an attempt that may have been submitted before, and has no job in Slurm."""
        if (held.folder / protocol.JOB_CLAIM).exists():
            held.is_submitted = True
            self._note_missing(held)
        else:
            self._submit_again(held, self.use(held.attempt.placement).submit.why)

    def _submit_again(self, held: _Held, why: str) -> None:
        """Submit an attempt again that has no job in Slurm, a limited number of times."""
        if held.submissions < _MOST_SUBMISSIONS:
            self.use(held.attempt.placement).queue.append(held)
        else:
            self._refuse(
                held, f"it was submitted {held.submissions} times in vain: {why or 'its job is lost'}"
            )

    def _take_records(self, jobs: Sequence[Job], names: Sequence[str]) -> None:
        # A record of a job that squeue does not list may say RUNNING for ever.
        by_name = {job.name: job for job in jobs if job.state in _ENDED}
        for held in self._held.values():
            name = self._name(held)
            if name in names and held.missing_since is not None:
                held.is_in_records = name in by_name
                if name in by_name:
                    held.version += 1
                    held.job = by_name[name]
                    held.ended_at = held.ended_at or self._clock.monotonic()
                self._judge(held)

    # Decisions about jobs

    def _judge(self, held: _Held) -> None:
        """Decide whether an attempt is lost, by the current evidence."""
        if held.failure is not None:
            return
        now, job = self._clock.monotonic(), held.job
        if held.end_by is not None and now >= held.end_by:
            held.end_by = None
            self._cancel(held)
        if job is not None and held.hopeless >= (_ANSWERS_OF_NEVER if job.state == "PENDING" else 1):
            self._refuse(held, f"Slurm does not run it: its job would wait for ever: {job.in_words()}")
        elif job is not None and held.ended_at is not None:
            unseen = job.state in _UNSEEN
            patience = held.silence if unseen else min(_EXIT_PATIENCE_SECONDS, held.profile.silent_seconds)
            if not self._is_claimed(held) or self._is_silent(held, held.ended_at, patience):
                self._give_up(held, job)
        elif job is not None and job.state == "PENDING" and held.missing_since is None:
            self._judge_waiting(held, job)
        elif held.missing_since is not None:
            self._judge_missing(held, held.missing_since, now)

    def _judge_waiting(self, held: _Held, job: Job) -> None:
        """Decide about an attempt whose job waits, perhaps although it had begun, as after a controller's crash."""
        if not self._is_claimed(held):
            if job.reason.strip("()") == _LAUNCH_FAILED and self._claim(held):
                self._fail(
                    held, FailureClass.INFRASTRUCTURE, "its node could not begin its job", job.in_words()
                )
            return
        if held.waits_since is None:
            held.waits_since = self._clock.monotonic()
        elif self._is_silent(held, held.waits_since, held.silence) and not self._has_left_report(held):
            text = "its job waits again, though it had begun, and does not write"
            self._fail(held, FailureClass.INFRASTRUCTURE, text, self._evidence(held, job))

    def _judge_missing(self, held: _Held, since: float, now: float) -> None:
        if not self._is_claimed(held):
            if now - since >= self._poll_seconds:  # a killed controller has lost the job
                held.is_submitted, held.missing_since, held.job = False, None, None
                self._submit_again(held, "")
        elif self._is_silent(held, since, held.silence) and not self._has_left_report(held):
            text = "Slurm knows nothing of its job any more, and it does not write either"
            self._fail(held, FailureClass.INFRASTRUCTURE, text, self._evidence(held, None))

    def _is_silent(self, held: _Held, since: float, patience: float) -> bool:
        """Return whether nothing was written for `patience` seconds, reading the heartbeat again before saying so."""
        now = self._clock.monotonic()
        if now - max(since, held.beat_at) < patience:
            return False
        self._look_at_heartbeat(held)
        return now - max(since, held.beat_at) >= patience

    def _is_claimed(self, held: _Held) -> bool:
        return (held.folder / protocol.JOB_CLAIM).exists()

    def _has_left_report(self, held: _Held) -> bool:
        """Return whether the attempt has left a report, after listing its directory to refresh network file systems."""
        if protocol.EXIT not in {path.name for path in held.folder.iterdir()}:
            return False
        held.version += 1
        return True

    def _give_up(self, held: _Held, job: Job) -> None:
        """Fail an attempt whose job has ended without a report, with the cause that Slurm gives."""
        if self._has_left_report(held):
            return
        claimed = not self._claim(held)
        words = _WORDS.get(job.state, f"its job ended: {job.state}")
        kind = FailureClass.INFRASTRUCTURE
        if job.state == "OUT_OF_MEMORY" or held.memory_line:
            kind, words = FailureClass.MEMORY, "its job ran out of memory"
        elif (
            claimed
            and held.order.runtime == protocol.PLAIN
            and job.state in ("CANCELLED", "COMPLETED", "FAILED")
        ):
            kind = FailureClass.UNKNOWN  # an agent without isolation can cause that itself
        if not claimed:
            words = f"{words}, before it began"
        self._fail(held, kind, words, self._evidence(held, job))

    def _evidence(self, held: _Held, job: Job | None) -> str:
        parts = [held.said or (job.in_words() if job is not None else "")]
        if held.beat is not None:
            ago = self._clock.monotonic() - held.beat_at
            parts.append(f"heartbeat {held.beat.number} of {held.beat.node}, {ago:.0f} s ago")
        return "; ".join(parts)

    def _refuse(self, held: _Held, why: str) -> None:
        """Fail an attempt that can't run, unless a job of it does run, and pause its sweep, which would fail too."""
        if self._claim(held):
            self._cancel(held)
            self._fail(held, FailureClass.INFRASTRUCTURE, why, "")
            held.pauses = True

    def _fail(self, held: _Held, kind: FailureClass, text: str, evidence: str) -> None:
        held.failure = Failure(kind, text, evidence)
        self._cancel(held)
        # A runner that is still alive on an unreachable node ends its agent when it reads this.
        if not (held.folder / protocol.STOP).exists():
            protocol.write(held.folder / protocol.STOP, Stop("engine", self._clock.now()))

    def _claim(self, held: _Held) -> bool:
        """Take the claim that a job needs to begin; return False if a job has it."""
        if not output.claim(held.folder / protocol.JOB_CLAIM):
            return False
        secrets.withdraw(held.folder)
        return True

    def _cancel(self, held: _Held) -> None:
        # A number that was not in the last answer may be another job's by now.
        if held.job is not None and held.missing_since is None and held.job.state not in _ENDED:
            self._cancelled[held.job.id] = held.job.name

    # Heartbeats

    def _watch(self, held: _Held) -> None:
        held.beat_at = max(held.beat_at, self._clock.monotonic())
        if all(watched is not held for _, watched in self._watched):
            self._watched.append((-math.inf, held))

    def _look_at_heartbeats(self) -> None:
        """Read the heartbeats that are due: each at most once per interval, and at most eight a second."""
        now = self._clock.monotonic()
        every = max(self._poll_seconds / 2, len(self._watched) / _LOOKS_A_SECOND)
        for _ in range(len(self._watched)):
            looked_at, held = self._watched[0]
            if looked_at > now - every:
                return
            self._watched.popleft()
            if self._held.get(held.attempt.token) is held and not (held.beat is not None and held.beat.ended):
                self._look_at_heartbeat(held)
                self._watched.append((now, held))

    def _look_at_heartbeat(self, held: _Held) -> None:
        try:
            lines = jsonlines.read(held.folder / protocol.HEARTBEATS, held.beats_offset)
        except (Problem, OSError) as problem:
            self._log(f"the heartbeats of run {held.attempt.run_id} can't be read", problem)
            return
        held.beats_offset = lines.offset
        beats = [beat for line in lines.values if (beat := protocol.heartbeat_from_line(line)) is not None]
        if not beats:
            return
        before, held.beat = held.beat, beats[-1]
        held.beat_at = self._clock.monotonic()
        if before is None or (before.events, before.usage, before.model_calls, before.ended) != (
            held.beat.events,
            held.beat.usage,
            held.beat.model_calls,
            held.beat.ended,
        ):
            held.version += 1

    def _name(self, held: _Held) -> str:
        return f"{self.prefix}{held.attempt.token}"

    def use(self, placement: str) -> _Profile:
        """Return the profile of a placement, and use it from now on.

        Raises:
            UsageProblem: config.toml has no such profile.
        """
        used = self._profiles.get(placement)
        if used is None:
            used = self._profiles[placement] = _Profile(self._profile_of(placement))
        return used


def profile_named(placement: str, config_file: Path) -> SlurmProfile:
    """Return the profile of a placement: `default` for `slurm`, NAME for `slurm:NAME`.

    Raises:
        UsageProblem: there is no such placement, or its options have one that the engine sets.
    """
    kind, _, name = placement.partition(":")
    profiles = slurm_profiles(config_file)
    found = profiles.get(name or "default") if kind == SLURM else None
    if found is None:
        known = (HERE, *(f"{SLURM}:{each}" if each != "default" else SLURM for each in profiles))
        raise UsageProblem(
            f"there is no placement '{placement}'",
            "",
            f"Choose one of {', '.join(known)}, or add a table [slurm.NAME] to {config_file}.",
        )
    for option in found.options:
        given = option.partition("=")[0].strip()
        if given.lstrip("-") in _OWN_OPTIONS or given[:2] in _OWN_LETTERS:
            raise UsageProblem(
                f"{config_file}: [{SLURM}.{name or 'default'}] options can't have '{option}'",
                "the engine gives that option itself",
                "Take it out.",
            )
    return found


def runtime_on_nodes(wanted: str) -> str:
    """Return the runtime of the protocol on nodes for a sweep's runtime.

    Raises:
        UsageProblem: it needs a daemon, or does not exist.
    """
    if wanted == runtimes.PROCESS:
        return protocol.BUBBLEWRAP
    if wanted in runtimes.RUNTIMES and wanted != protocol.DOCKER:
        return wanted
    known = ", ".join(name for name in runtimes.RUNTIMES if name != protocol.DOCKER)
    raise UsageProblem(f"jobs of Slurm can't have the runtime '{wanted}'", "", f"Choose one of {known}.")


def job_prefix(state_dir: Path) -> str:
    """Return the prefix of the names of all jobs of a state, which no other state's jobs have."""
    identity = hashlib.sha256(f"{socket.gethostname()}:{state_dir}".encode()).hexdigest()[:8]
    return f"mlebench-{identity}-"


def moment_of(text: str) -> float | None:
    """Parse a time in Slurm's format, rounded to the minute; None for `N/A`."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) // 60 * 60
    except (ValueError, OverflowError):
        return None


class Limits(Protocol):
    """The limits of a job, from an order or from the options of a sweep."""

    @property
    def time_limit_seconds(self) -> float:
        """The time limit of its agent."""

    @property
    def grace_seconds(self) -> float:
        """How long the agent has to end."""

    @property
    def cpus(self) -> float:
        """Its processors."""

    @property
    def memory_bytes(self) -> int | None:
        """The memory of its agent."""

    @property
    def gpus(self) -> int:
        """Its GPUs."""


def job_seconds(limits: Limits, profile: SlurmProfile, staging_seconds: float) -> float:
    """Return the time limit of a job: staging, its agent's limit, twice the grace, cleaning up, and the slack."""
    own = limits.time_limit_seconds + 2 * limits.grace_seconds + output.TIDY_SECONDS + 2 * _SIGNAL_SECONDS
    return staging_seconds + own + profile.slack_minutes * 60


def gres_option(gpus: int, profile: SlurmProfile) -> str:
    """Return a profile's `--gres` value for a number of GPUs; empty for none.

    Raises:
        UsageProblem: the profile can't request them.
    """
    if not gpus:
        return ""
    if gpus < 0:
        raise UsageProblem(
            "a job can't ask for all GPUs of a node", "how many that are is not known", "Give --gpus."
        )
    if profile.gres.count("{n}") != 1 or profile.gres.startswith("mps"):
        raise UsageProblem(
            f"the gres '{profile.gres}' can't be asked for",
            "MPS lets runs disturb each other" if profile.gres.startswith("mps") else "it has no {n}",
            "Write it in the profile as gpu:{n}, gpu:a100:{n} or shard:{n}.",
        )
    return profile.gres.replace("{n}", str(gpus))


def job_options(
    limits: Limits,
    name: str,
    comment: str,
    folder: Path,
    profile: SlurmProfile,
    *,
    staging_seconds: float = 0.0,
) -> list[str]:
    """Return the options of sbatch for an attempt."""
    memory = None if limits.memory_bytes is None else limits.memory_bytes + _OWN_MEMORY_BYTES
    before_end = max(_SHORTEST_SIGNAL, math.ceil(limits.grace_seconds + _SIGNAL_SECONDS))
    wanted: dict[str, str | None] = {
        "job-name": name,
        "comment": comment,
        "chdir": str(folder),
        "output": output_option(folder / protocol.JOB_LOG),
        "open-mode": "append",
        # The job gets nothing of the engine's environment, which contains secrets.
        "export": "NIL",
        # Two jobs of one attempt, after a submission with an unknown result, never run at the same time.
        "dependency": "singleton",
        "signal": f"B:TERM@{before_end}",
        "time": str(math.ceil(job_seconds(limits, profile, staging_seconds) / 60)),
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(math.ceil(limits.cpus)),
        "mem": None if memory is None else f"{math.ceil(memory / (1 << 20))}M",
        "gres": gres_option(limits.gpus, profile) or None,
        "partition": profile.partition or None,
        "account": profile.account or None,
        "qos": profile.qos or None,
        "constraint": profile.constraint or None,
        "exclude": profile.exclude or None,
        "licenses": profile.licences or None,
    }
    given = [f"--{option}={value}" for option, value in wanted.items() if value is not None]
    kept = [option for option in given if option[2:].partition("=")[0] not in profile.leave_out]
    return [*kept, "--no-requeue", *profile.options]


def _staged_in_words(beat: Heartbeat) -> str:
    """Return the progress of a job's staging as text; empty once its data are staged."""
    if beat.staged is None:
        return ""
    if not beat.to_stage:
        return "staging"
    unit, name = (1e9, "GB") if beat.to_stage >= _GIGABYTES else (1e6, "MB")
    percent = math.floor(100 * beat.staged / beat.to_stage)
    return f"staging {percent}%: {beat.staged / unit:.1f} of {beat.to_stage / unit:.1f} {name}"


def _proxy_lines(profile: SlurmProfile) -> str:
    """Return the script lines that set the site's proxy for a job's model gateway, not for its agent."""
    if not profile.proxy:
        return ""
    address = shlex.quote(profile.proxy)
    return f"export HTTP_PROXY={address} HTTPS_PROXY={address} NO_PROXY=localhost,127.0.0.1\n"


def job_script(folder: Path, order: Order, profile: SlurmProfile) -> str:
    """Return the script of a job, which replaces itself with the runner of one attempt, so that signals reach it."""
    command = shlex.join(
        [
            *(
                f"{order.python_prefix}/bin/python",
                "-I",
                "-m",
                "mlebench_console.environment.runner",
                "--once",
                str(folder),
            ),
            *("--job", f"--silent-seconds={profile.silent_seconds:g}"),
        ]
    )
    scratch = shlex.quote(profile.scratch) if profile.scratch else '"${TMPDIR:-/tmp}"'
    return (
        "#!/bin/bash\n"
        f"export PATH={shlex.quote(os.environ.get('PATH', os.defpath))} LANG=C.UTF-8\n"
        f"{_proxy_lines(profile)}"
        f"exec {command} --scratch={scratch}\n"
    )
