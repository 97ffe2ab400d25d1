"""Slurm as a placement: one job for each attempt, submitted, found again and judged by what it has left and says.

What counts, in this order: exit.json, heartbeats, squeue, sacct. An id alone says nothing: Slurm gives it again after
a crash. An attempt's token names its job and no other, and a claim in its directory decides which job may run it,
so that one that is submitted twice runs once.
"""

from __future__ import annotations

import hashlib
import math
import os
import shlex
import socket
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from engine.placements.commands import Job, NoAccounting, SlurmAway, SlurmCommands, SlurmRefuses
from engine.placements.model import Look
from engine.settings import SlurmProfile, slurm_profiles
from environment.container import output
from environment.container.output import Ending
from environment.runner import protocol, runtimes, secrets
from environment.runner.protocol import Heartbeat, Order, Stop
from foundation import files, jsonlines
from foundation.clock import Clock
from foundation.daemon_log import Log
from foundation.problems import Problem, UsageProblem
from state.lifecycle import FailureClass
from state.records import HERE, Attempt
from state.transitions import Failure

SLURM = "slurm"
# Of a job beside its agent: runner, shim and validation server.
_OWN_MEMORY_BYTES = 1 << 30
_SIGNAL_SECONDS = 60.0  # by which Slurm may send a signal too early
_SHORTEST_SIGNAL = 60
_MANY_JOBS = 200
_LONGEST_BACK_OFF_SECONDS = 300.0
_ASK_RECORDS_SECONDS = 60.0
_CANCEL_SECONDS = 30.0
_LOOKS_A_SECOND = 8.0  # at heartbeats, for all attempts together
# What a file system between hosts takes to show what is there.
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
# Slurm itself has not seen these processes end: they may run on where nobody can reach them.
_UNSEEN = frozenset({"NODE_FAIL", "BOOT_FAIL"})
# Why a job would wait for ever.
_NEVER = (
    *(
        "PartitionTimeLimit",
        "PartitionNodeLimit",
        "BadConstraints",
        "InvalidAccount",
        "InvalidQOS",
        "AccountNotAllowed",
    ),
    *("QOSNotAllowed", "AssociationJobLimit"),
)
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
    SUBMIT = "sbatch"
    CANCEL = "scancel"


@dataclass
class _Held:
    """What is known of an attempt.

    Attributes:
        unknown: how many more answers of squeue without its job it takes until there is none; 0 where that is known.
        is_submitted: whether there is or was a job, as far as is known.
        missing_since: since when squeue has answered without it.
        beat_at: when a heartbeat last came, by our clock.
    """

    attempt: Attempt
    folder: Path
    order: Order
    unknown: int = 0
    is_submitted: bool = False
    submissions: int = 0
    job: Job | None = None
    missing_since: float | None = None
    ended_at: float | None = None
    is_in_records: bool | None = None
    beat: Heartbeat | None = None
    beat_at: float = 0.0
    beats_offset: int = 0
    version: int = 0
    end_by: float | None = None
    failure: Failure | None = None
    pauses: bool = False

    @property
    def said(self) -> str:
        """What Slurm says of the end of its job; empty while it lives, or may."""
        if self.job is not None and self.job.state in _ENDED:
            return self.job.in_words()
        return "Slurm lists no such job" if self.missing_since is not None else ""

    @property
    def is_watched(self) -> bool:
        """Whether its job may have written something."""
        return (
            self.beat is not None
            or self.missing_since is not None
            or (self.job is not None and self.job.state != "PENDING")
        )


@dataclass
class _Turn:
    """When a kind of call is due again."""

    at: float = -math.inf
    failures: int = 0


@dataclass
class _Pending:
    kind: _Call
    answer: Future[Any]
    about: _Held | None = None
    names: tuple[str, ...] = field(default=())


class Slurm:
    """Submits attempts as jobs, looks what becomes of them, cancels them; one call of Slurm's commands at a time."""

    def __init__(
        self,
        name: str,
        profile: SlurmProfile,
        state_dir: Path,
        commands: SlurmCommands,
        clock: Clock,
        log: Log,
        worker: Executor,
    ) -> None:
        """Prepare.

        Args:
            name: the placement's.
            profile: how jobs are submitted.
            state_dir: whose attempts they are.
            commands: of Slurm.
            clock: of this host.
            log: takes what goes wrong.
            worker: makes the calls, which may be slow.
        """
        self._profile = profile
        self._state_dir = state_dir
        self._commands = commands
        self._clock = clock
        self._log = log
        self._worker = worker
        self.prefix = job_prefix(state_dir, name)
        self._held: dict[str, _Held] = {}
        self._queue: deque[_Held] = deque()
        self._watched: deque[tuple[float, _Held]] = deque()
        self._cancelled: dict[str, str] = {}  # jobs to be cancelled, by their number
        self._live: frozenset[str] | None = None
        self._may_be_left = True  # jobs that nobody wants any more
        self._pending: _Pending | None = None
        self._turns = {kind: _Turn() for kind in _Call}
        self._has_records = True
        self._away_since: float | None = None
        self._refusal = ""

    @property
    def problem(self) -> str:
        """Say since when Slurm does not answer."""
        if self._away_since is None:
            return ""
        since = time.strftime("%H:%M:%S", time.localtime(self._away_since))
        return f"Slurm does not answer since {since}, jobs go on: {self._refusal}"

    @property
    def room(self) -> int:
        """Return how many more jobs the profile lets us have."""
        return max(0, self._profile.max_jobs - len(self._held))

    def runtime(self, wanted: str) -> str:
        """Return what a sweep's runtime is on nodes."""
        return runtime_on_nodes(wanted)

    def recover(self) -> None:
        """Do nothing: what the last engine did is found by the names of its jobs."""

    def place(self, attempt: Attempt) -> None:
        """Submit an attempt soon; one that may have been submitted before, only when Slurm knows nothing of it."""
        if attempt.token in self._held:
            return
        folder = (self._state_dir / attempt.directory).resolve()
        held = _Held(attempt, folder, protocol.read(folder / protocol.ORDER, Order))
        if self._is_claimed(held):
            secrets.discard(self._state_dir / attempt.directory)
        else:
            secrets.send(self._state_dir / attempt.directory, folder)
        if (folder / protocol.JOB_SCRIPT).exists():
            held.unknown = _ANSWERS_WITHOUT_IT
        else:
            # Its script is the note that it may have been submitted.
            files.write_text(folder / protocol.JOB_SCRIPT, job_script(folder, held.order, self._profile))
            self._queue.append(held)
        self._held[attempt.token] = held
        if (folder / protocol.STOP).exists():
            self.end(attempt)

    def is_placed(self, attempt: Attempt) -> bool:
        """Tell whether it is to be submitted, or was."""
        return attempt.token in self._held

    def look(self, attempt: Attempt, /) -> Look:
        """Return what was known of it at the last answer."""
        held = self._held.get(attempt.token)
        if held is None:
            return Look(version=0, job=attempt.job, node=attempt.node)
        job = held.job
        waits = job is None or job.state == "PENDING"
        reason = "to be submitted" if job is None else job.reason
        return Look(
            version=held.version,
            events_bytes=0 if held.beat is None else held.beat.events,
            job="" if job is None else job.id,
            node=held.beat.node if held.beat is not None else "" if job is None else job.node,
            waits_for=reason if waits and held.beat is None else "",
            said=held.said,
            failure=held.failure,
            pauses=held.pauses,
        )

    def end(self, attempt: Attempt, /) -> None:
        """End what waits at once; what runs is ended by its own runner, and cancelled if that does not do it."""
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
        """Let go of it; what is left of its job is cancelled once that is seen."""
        held = self._held.pop(attempt.token, None)
        if held is not None:
            secrets.withdraw(held.folder)

    def keep_only(self, live: Sequence[Attempt]) -> None:
        """Cancel jobs of other attempts when the next answer names them."""
        self._live = frozenset(attempt.token for attempt in live)
        for token in self._held.keys() - self._live:
            self._cancel(self._held.pop(token))

    def step(self) -> None:
        """Take the answer to the last call, make the next one that is due, and look at heartbeats."""
        if self._pending is not None and self._pending.answer.done():
            pending, self._pending = self._pending, None
            self._take(pending)
        if self._pending is None:
            self._pending = self._next_call()
        self._look_at_heartbeats()

    # Calls

    def _next_call(self) -> _Pending | None:
        now = self._clock.monotonic()
        due = {kind for kind, turn in self._turns.items() if now >= turn.at}
        if self._cancelled and _Call.CANCEL in due:
            numbers = tuple(self._cancelled)
            return self._call(_Call.CANCEL, self._commands.cancel, numbers, names=numbers)
        if _Call.POLL in due and (self._held or self._may_be_left):
            return self._call(_Call.POLL, self._commands.jobs)
        if _Call.RECORDS in due and self._has_records:
            vanished = [
                held for held in self._held.values() if held.missing_since and held.is_in_records is None
            ]
            if vanished:
                names = tuple(self._name(held) for held in vanished)
                since = min(held.attempt.created_at for held in vanished) - 3600
                text = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
                return self._call(_Call.RECORDS, self._commands.ended, names, text, names=names)
        while self._queue and _Call.SUBMIT in due and self._away_since is None:
            held = self._queue.popleft()
            if held.attempt.token in self._held and not (held.folder / protocol.JOB_CLAIM).exists():
                held.submissions += 1
                order = held.order
                comment = f"{order.sweep_id}/{order.competition_id}/seed-{order.seed}/attempt-{order.attempt}"
                options = job_options(order, self._name(held), comment, held.folder, self._profile)
                script = held.folder / protocol.JOB_SCRIPT
                return self._call(_Call.SUBMIT, self._commands.submit, script, options, about=held)
        return None

    def _call(
        self,
        kind: _Call,
        function: Any,
        *arguments: Any,
        about: _Held | None = None,
        names: tuple[str, ...] = (),
    ) -> _Pending:
        self._turns[kind].at = self._clock.monotonic() + self._seconds_between(kind)
        return _Pending(kind, self._worker.submit(function, *arguments), about, names)

    def _seconds_between(self, kind: _Call) -> float:
        every = self._profile.poll_seconds * (2 if len(self._held) > _MANY_JOBS else 1)
        usual = {
            _Call.POLL: every,
            _Call.RECORDS: max(every, min(_ASK_RECORDS_SECONDS, 2 * every)),
            _Call.CANCEL: min(every, _CANCEL_SECONDS),
            _Call.SUBMIT: 60.0 / self._profile.submissions_per_minute,
        }[kind]
        if kind is _Call.SUBMIT:
            return usual
        return min(usual * 2.0 ** self._turns[kind].failures, max(usual, _LONGEST_BACK_OFF_SECONDS))

    def _take(self, pending: _Pending) -> None:
        turn = self._turns[pending.kind]
        try:
            answer = pending.answer.result()
        except NoAccounting:
            self._has_records = False
            return
        except SlurmRefuses as refusal:
            assert pending.about is not None  # only a submission is refused
            self._refuse(pending.about, refusal.why)
            return
        except SlurmAway as problem:
            if pending.about is not None:  # whether it was submitted is not known
                pending.about.unknown = _ANSWERS_WITHOUT_IT
            turn.failures += 1
            turn.at = self._clock.monotonic() + self._seconds_between(pending.kind)
            if self._away_since is None:
                self._log("Slurm does not answer", problem)
                self._away_since = self._clock.now()
            self._refusal = problem.why
            return
        turn.failures = 0
        self._away_since = None
        match pending.kind:
            case _Call.POLL:
                self._take_jobs(answer)
            case _Call.RECORDS:
                self._take_records(answer, pending.names)
            case _Call.CANCEL:
                for number in pending.names:
                    del self._cancelled[number]
            case _Call.SUBMIT:
                assert pending.about is not None
                pending.about.is_submitted = True

    def _take_jobs(self, jobs: Sequence[Job]) -> None:
        found: dict[str, Job] = {}
        for job in jobs:
            if job.name.startswith(self.prefix):
                token = job.name.removeprefix(self.prefix)
                before = found.get(token)
                # Of two jobs of one attempt the one that lives counts, else the later one.
                if before is None or before.state in _ENDED:
                    found[token] = job
        now = self._clock.monotonic()
        alive = {token: job for token, job in found.items() if job.state not in _ENDED}
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
                held.missing_since = now
                held.version += 1
                self._watch(held)
            self._judge(held)

    def _note_job(self, held: _Held, job: Job) -> None:
        held.unknown, held.is_submitted = 0, True
        held.missing_since = held.is_in_records = None
        was_watched = held.is_watched
        if job.state in _ENDED and held.ended_at is None:
            held.ended_at = self._clock.monotonic()
            held.version += 1  # what it has left is there, or soon
        held.job = job
        if not was_watched and held.is_watched:
            self._watch(held)

    def _settle_unknown(self, held: _Held) -> None:
        """Decide about an attempt that was to be submitted before, and of which Slurm knows nothing."""
        if (held.folder / protocol.JOB_CLAIM).exists():
            held.is_submitted = True
            held.missing_since = self._clock.monotonic()
            self._watch(held)
        else:
            self._queue.append(held)

    def _take_records(self, jobs: Sequence[Job], names: Sequence[str]) -> None:
        by_name = {job.name: job for job in jobs}
        for held in self._held.values():
            name = self._name(held)
            if name in names and held.missing_since is not None:
                held.is_in_records = name in by_name
                if name in by_name:
                    held.job = by_name[name]
                    held.ended_at = held.ended_at or self._clock.monotonic()
                self._judge(held)

    # What becomes of jobs

    def _judge(self, held: _Held) -> None:
        """Decide whether an attempt is lost, by what is known now."""
        if held.failure is not None or (held.beat is not None and held.beat.ended):
            return
        now, job = self._clock.monotonic(), held.job
        if held.end_by is not None and now >= held.end_by:
            held.end_by = None
            self._cancel(held)
        if job is not None and job.state == "PENDING" and job.reason.strip("()") in _NEVER:
            self._refuse(held, f"its job would wait for ever: {job.in_words()}")
        elif job is not None and held.ended_at is not None:
            unseen = job.state in _UNSEEN
            patience = self._silence if unseen else min(_EXIT_PATIENCE_SECONDS, self._profile.silent_seconds)
            if now - max(held.ended_at, held.beat_at) >= patience or not self._is_claimed(held):
                self._give_up(held, job)
        elif held.missing_since is not None:
            self._judge_missing(held, held.missing_since, now)

    def _judge_missing(self, held: _Held, since: float, now: float) -> None:
        if not self._is_claimed(held) and now - since >= self._profile.poll_seconds:
            # A controller that was killed has forgotten it.
            held.is_submitted, held.missing_since, held.job = False, None, None
            if held.submissions < _MOST_SUBMISSIONS:
                self._queue.append(held)
            else:
                self._fail(held, FailureClass.INFRASTRUCTURE, "Slurm loses its job again and again", "")
        elif now - max(since, held.beat_at) >= self._silence:
            if self._has_left_report(held):
                return
            text = "Slurm knows nothing of its job any more, and it does not write either"
            self._fail(held, FailureClass.INFRASTRUCTURE, text, self._evidence(held, None))

    @property
    def _silence(self) -> float:
        """After how long a runner that writes nothing has ended its agent."""
        return self._profile.silent_seconds + min(_MARGIN_SECONDS, self._profile.silent_seconds)

    def _is_claimed(self, held: _Held) -> bool:
        return (held.folder / protocol.JOB_CLAIM).exists()

    def _has_left_report(self, held: _Held) -> bool:
        """Look once more, in a directory that is listed first, as some file systems show what is new only then."""
        if protocol.EXIT not in {path.name for path in held.folder.iterdir()}:
            return False
        held.version += 1
        return True

    def _give_up(self, held: _Held, job: Job) -> None:
        """Conclude from what Slurm says of a job that has ended and left no report."""
        if self._has_left_report(held):
            return
        claimed = not self._claim(held)
        words = _WORDS.get(job.state, f"its job ended: {job.state}")
        kind = FailureClass.INFRASTRUCTURE
        if job.state == "OUT_OF_MEMORY":
            kind, words = FailureClass.MEMORY, "its job ran out of memory"
        elif (
            claimed
            and held.order.runtime == protocol.PLAIN
            and job.state in ("CANCELLED", "COMPLETED", "FAILED")
        ):
            kind = FailureClass.UNKNOWN  # an agent that nothing isolates can do that itself
        if not claimed:
            words = f"{words}, before it began"
        self._fail(held, kind, words, self._evidence(held, job))

    def _evidence(self, held: _Held, job: Job | None) -> str:
        told = [held.said if job is None else job.in_words()]
        if held.beat is not None:
            ago = self._clock.monotonic() - held.beat_at
            told.append(f"heartbeat {held.beat.number} of {held.beat.node}, {ago:.0f} s ago")
        return "; ".join(told)

    def _refuse(self, held: _Held, why: str) -> None:
        """Fail an attempt that Slurm will never run, unless some job of it does."""
        if self._claim(held):
            self._cancel(held)
            self._fail(held, FailureClass.INFRASTRUCTURE, f"Slurm does not run it: {why}", "")
            held.pauses = True

    def _fail(self, held: _Held, kind: FailureClass, text: str, evidence: str) -> None:
        held.failure = Failure(kind, text, evidence)
        self._cancel(held)
        # A runner that lives on, where Slurm can't see it, ends its agent when it reads this.
        if not (held.folder / protocol.STOP).exists():
            protocol.write(held.folder / protocol.STOP, Stop("engine", self._clock.now()))

    def _claim(self, held: _Held) -> bool:
        """Take the claim that a job would need to begin; False where one has."""
        if not output.claim(held.folder / protocol.JOB_CLAIM):
            return False
        secrets.withdraw(held.folder)
        return True

    def _cancel(self, held: _Held) -> None:
        # A number that the last answer did not name may be another's by now.
        if held.job is not None and held.missing_since is None and held.job.state not in _ENDED:
            self._cancelled[held.job.id] = held.job.name

    # Heartbeats

    def _watch(self, held: _Held) -> None:
        held.beat_at = max(held.beat_at, self._clock.monotonic())
        self._watched.append((-math.inf, held))

    def _look_at_heartbeats(self) -> None:
        """Look at those whose turn it is: each at most once in a while, and not too many a second."""
        now = self._clock.monotonic()
        every = max(self._profile.poll_seconds / 2, len(self._watched) / _LOOKS_A_SECOND)
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


def profile_named(placement: str, config_file: Path) -> SlurmProfile:
    """Return the profile of a placement: `slurm` is that of the name `default`, `slurm:NAME` any other.

    Raises:
        UsageProblem: there is no such placement.
    """
    kind, _, name = placement.partition(":")
    profiles = slurm_profiles(config_file)
    found = profiles.get(name or "default") if kind == SLURM else None
    if found is None:
        known = (HERE, *(f"{SLURM}:{each}" if each != "default" else SLURM for each in profiles))
        raise UsageProblem(
            f"there is no placement '{placement}'",
            "",
            f"Known are: {', '.join(known)}. Others are tables [slurm.NAME] in {config_file}.",
        )
    return found


def runtime_on_nodes(wanted: str) -> str:
    """Return which runtime of the protocol a sweep's is on nodes, which may offer less than this host.

    Raises:
        UsageProblem: it needs a daemon, or there is none of that name.
    """
    if wanted == protocol.PLAIN:
        return wanted
    if wanted in (runtimes.PROCESS, protocol.BUBBLEWRAP):
        return protocol.BUBBLEWRAP
    known = ", ".join((runtimes.PROCESS, protocol.BUBBLEWRAP, protocol.PLAIN))
    raise UsageProblem(f"jobs of Slurm can't have the runtime '{wanted}'", "", f"Known are: {known}.")


def job_prefix(state_dir: Path, name: str) -> str:
    """Return what the names of all jobs of a state's placement begin with, and of no other's."""
    identity = hashlib.sha256(f"{socket.gethostname()}:{state_dir}:{name}".encode()).hexdigest()[:8]
    return f"mlebench-{identity}-"


class Limits(Protocol):
    """What a job is sized by: an order, or the sweep that it will be of."""

    @property
    def time_limit_seconds(self) -> float:
        """How long its agent may take."""

    @property
    def grace_seconds(self) -> float:
        """How long that has to end."""

    @property
    def cpus(self) -> float:
        """Its processors."""

    @property
    def memory_bytes(self) -> int | None:
        """Its memory, without what is beside it."""


def job_seconds(limits: Limits, profile: SlurmProfile) -> float:
    """Return how long a job may take: its agent's limit, twice the grace, what tidying takes, and the slack."""
    own = limits.time_limit_seconds + 2 * limits.grace_seconds + output.TIDY_SECONDS + 2 * _SIGNAL_SECONDS
    return own + profile.slack_minutes * 60


def job_options(limits: Limits, name: str, comment: str, folder: Path, profile: SlurmProfile) -> list[str]:
    """Return the options of sbatch for an attempt."""
    memory = None if limits.memory_bytes is None else limits.memory_bytes + _OWN_MEMORY_BYTES
    before_end = max(_SHORTEST_SIGNAL, math.ceil(limits.grace_seconds + _SIGNAL_SECONDS))
    wanted: dict[str, str | None] = {
        "job-name": name,
        "comment": comment,
        "chdir": str(folder),
        "output": str(folder / protocol.JOB_LOG),
        "open-mode": "append",
        # Nothing of the engine's environment goes along, where secrets are.
        "export": "NIL",
        # Two jobs of one attempt, after a submission that nobody saw succeed, never run at the same time.
        "dependency": "singleton",
        "signal": f"B:TERM@{before_end}",
        "time": str(math.ceil(job_seconds(limits, profile) / 60)),
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(math.ceil(limits.cpus)),
        "mem": None if memory is None else f"{math.ceil(memory / (1 << 20))}M",
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


def job_script(folder: Path, order: Order, profile: SlurmProfile) -> str:
    """Write the script of a job: it becomes the runner of one attempt, so that signals reach that."""
    command = shlex.join(
        [
            *(f"{order.python_prefix}/bin/python", "-I", "-m", "environment.runner", "--once", str(folder)),
            *("--job", f"--silent-seconds={profile.silent_seconds:g}"),
        ]
    )
    scratch = shlex.quote(profile.scratch) if profile.scratch else '"${TMPDIR:-/tmp}"'
    return (
        "#!/bin/bash\n"
        f"export PATH={shlex.quote(os.environ.get('PATH', os.defpath))} LANG=C.UTF-8\n"
        f"exec {command} --scratch={scratch}\n"
    )
