"""One attempt on this host: start or adopt it, watch it, end it on time and collect its results, by its directory."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, replace
from enum import Enum
from functools import partial
from pathlib import Path

from mlebench_console.environment.container import output, trees
from mlebench_console.environment.container.output import (
    Ending,
    HostProblem,
    ServiceRestarted,
    Started,
    Tidied,
)
from mlebench_console.environment.container.processes import ProcessTree
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.code_snapshots import CodeSnapshots
from mlebench_console.environment.runner.gateway.keeper import GatewayKeeper
from mlebench_console.environment.runner.host.disk import DiskMeter, DiskUse, WriteMeter
from mlebench_console.environment.runner.host.problems import HostMonitor
from mlebench_console.environment.runner.host.readings import Gpu, GpuReader, hardware_of
from mlebench_console.environment.runner.host.usage import UsageMeter, limit_exceeded
from mlebench_console.environment.runner.protocol import (
    AgentStarted,
    Collected,
    LimitExceeded,
    Order,
    RunEvent,
    Shortfall,
    SubmissionRefused,
    SubmissionTaken,
)
from mlebench_console.environment.runner.sandbox import AgentStatus, Sandbox
from mlebench_console.environment.runner.submissions import Refusals, SubmissionWatch
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.files import TooLarge
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.foundation.problems import DataProblem

# How long an agent's main process has to end it after its deadline, and to report that.
OVERDUE_SECONDS = 15.0
ROOM_SECONDS = 2.0  # in which a main process that waited for room on the disk finds it
_INCOMPLETE_IN_A_ROW = 3  # measurements of the disk, before that is reported
# For how long the other attempts wait while the results of one are collected.
_TURN_SECONDS = 0.1
_MOST_PROBLEMS_NAMED = 3
_CODE_SECONDS = 20.0
_RESERVED_FILES, _RESERVED_BYTES = 32, 1 << 20
# How often a disk is asked for room; a job's file system is shared by hundreds of nodes.
_FULL_EVERY_SECONDS, _FULL_EVERY_SECONDS_IN_JOB = 2.0, 900.0


# In a job, where a walk through an attempt's directory asks a file system that hundreds of nodes share.
_REST_SECONDS, _LONGEST_REST_SECONDS = 54.0, 14_400.0
_REST_SECONDS_PER_ENTRY = 40.0
_SHARE_OF_IDLE_LIMIT = 1 / 3


def seconds_between_walks(order: Order, entries: int, idle_seconds: float) -> float:
    """Return how long a job waits before it measures its directory again, after a walk over so many entries.

    Before an agent is ended for idleness it is measured once more for changes.
    """
    rest = min(entries * _REST_SECONDS_PER_ENTRY, _LONGEST_REST_SECONDS)
    if order.conditions.idle_limit_seconds is not None:
        share = order.conditions.idle_limit_seconds * _SHARE_OF_IDLE_LIMIT
        rest = min(rest, share) if idle_seconds >= share else rest
    return max(_REST_SECONDS, rest)


class Stage(Enum):
    """The stage of an attempt."""

    NEW = "new"
    RUNNING = "running"
    DONE = "done"


class RunnerAttempt:
    """An attempt under this runner; after a kill at any point another runner can repeat each step.

    Attributes:
        names: the names in its directory when it was last listed while its agent ran.
        events_bytes, usage_bytes: the sizes of the files that only this runner appends to, as far as it has written.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        sandbox_for: Callable[[Path, Order], Sandbox],
        gpus: GpuReader,
        disk_worker: Executor,
        code_worker: Executor,
        *,
        as_job: bool = False,
    ) -> None:
        self.folder = folder
        self.names: frozenset[str] = frozenset()
        self._clock = clock
        self._gpus = gpus
        self._order = protocol.read_order(folder)
        self._sandbox = sandbox_for(folder, self._order)
        self._gateway = GatewayKeeper(folder, self._order)
        events = jsonlines.read(folder / protocol.EVENTS)
        self.events_bytes, self.usage_bytes = events.offset, 0
        self._reported = [
            event for line in events.values if (event := protocol.event_from_line(line)) is not None
        ]
        self._unwritten: list[RunEvent] = []
        self._refusals = Refusals(event for event in self._reported if isinstance(event, SubmissionRefused))
        hidden = partial(secrets.read_hidden, folder) if self._order.secret else tuple
        self._submissions = SubmissionWatch(
            folder,
            limit_bytes=self._order.submission_limit_bytes,
            every_seconds=self._order.conditions.grade_every_seconds,
            taken=[event for event in self._reported if isinstance(event, SubmissionTaken)],
            hidden=hidden,
        )
        self._code = CodeSnapshots(folder, hidden, code_worker, clock)
        self._code_until: float | None = None
        self._measure_until: float | None = None
        self._room_at: float | None = None
        self._measures_last = self._measured_last = False
        self._started: Started | None = None
        self._given_up: Ending | None = None
        self._root: int | None = None
        self._incomplete = 0
        self._restarts_offset = 0
        self._asked_at: float | None = None
        self._overdue: LimitExceeded | None = None
        self._kill_at: float | None = None
        self._removal: Generator[None, None, list[str]] | None = None
        self._meter = UsageMeter(folder, self._order)
        self._host = HostMonitor(folder, self._order, gpus)
        self._disk = DiskMeter(
            folder,
            self._sandbox.bytes_outside,
            disk_worker,
            self._order.conditions.disk_limit_bytes,
            self._sandbox.bytes_seen_by_root,
        )
        self._as_job = as_job
        self._writes = WriteMeter()
        # When it was measured, and when wholly; what was found, and how much had been written by then.
        self._disk_at = self._whole_at = -math.inf
        self._held_bytes = self._written_bytes = 0
        self._idle_seconds = 0.0
        self.stage = Stage.DONE if (folder / protocol.EXIT).exists() else Stage.NEW

    @property
    def has_gpus(self) -> bool:
        """Whether GPUs were given to it."""
        return bool(self._order.gpu_uuids)

    def step(self) -> None:
        """Take the next step."""
        if self.stage is Stage.DONE:
            return
        self._write_events()
        match self._sandbox.status():
            case AgentStatus.GONE:
                self._gather(self._sandbox.ending())
            case AgentStatus.ALIVE:
                self._watch()
            case AgentStatus.ABSENT:
                self._start()
            case AgentStatus.STARTING:
                pass

    def measure(self, tree: ProcessTree, *, with_disk: bool, gpus: Sequence[Gpu] = ()) -> None:
        """Add a line to usage.jsonl if the attempt is running, and end it if it exceeds a limit."""
        if self._root is None or self.stage is not Stage.RUNNING:
            return
        disk = self._disk.take()
        disk_bytes = None if disk is None else disk.bytes
        self._held_bytes = self._held_bytes if disk is None else disk.bytes
        if with_disk:
            self._measure_disk(self._root, [process.pid for process in tree.below(self._root)])
        if disk is not None and self._order.conditions.disk_limit_bytes is not None:
            self._note_unmeasured(disk)
        if disk is not None:
            self._note_disk_use(disk)
        usage = self._meter.measure(
            tree,
            self._root,
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
            disk_bytes=disk_bytes,
            gpus=gpus,
        )
        self.usage_bytes = jsonlines.append(self.folder / protocol.USAGE, [asdict(usage)])
        self._idle_seconds = usage.idle_seconds
        exceeded = limit_exceeded(usage, self._order)
        if exceeded is not None and not (self.folder / protocol.LIMIT).exists():
            protocol.write(self.folder / protocol.LIMIT, exceeded)

    def _measure_disk(self, root: int, processes: Sequence[int]) -> None:
        """Start a measurement of the disk if one is due; on this host's own disk it always is.

        A job with a limit measures the files on its node every minute. Its directory on the shared file system is
        walked when its processes may have written more than is left of the limit, and as often as without one.
        """
        now, limit = self._clock.monotonic(), self._order.conditions.disk_limit_bytes
        if not self._as_job:
            self._disk.start(processes)
            return
        if now - self._disk_at < _REST_SECONDS:
            return
        written = None if limit is None else self._writes.take([root, *processes])
        may_be_over = limit is not None and (
            written is None or written - self._written_bytes > limit - self._held_bytes
        )
        rest = seconds_between_walks(self._order, self._disk.entries, self._idle_seconds)
        whole = may_be_over or now - self._whole_at >= rest
        if (whole or limit is not None) and self._disk.start(processes, whole=whole):
            self._disk_at = now
            if whole:
                self._whole_at, self._written_bytes = now, written or 0

    def _note_disk_use(self, disk: DiskUse) -> None:
        self._host.note_disk_use(disk.bytes, disk.files if self._sandbox.counts_files() else None)

    def _note_unmeasured(self, disk: DiskUse) -> None:
        """Report once what could not be measured several times in a row; a single failure does not matter."""
        self._incomplete = self._incomplete + 1 if disk.unseen else 0
        if self._incomplete >= _INCOMPLETE_IN_A_ROW:
            text = f"its disk limit can't be fully enforced: {'; '.join(disk.unseen)}"
            self._report_shortfall(protocol.UNMEASURED, text)

    def _start(self) -> None:
        if self._given_up is not None:
            self._give_up(self._given_up)
            return
        if (self.folder / protocol.STOP).exists():
            self._give_up(Ending.unseen(EndReason.STOPPED))
            return
        if (limit := protocol.read_if_there(self.folder / protocol.LIMIT, LimitExceeded)) is not None:
            self._give_up(Ending.unseen(limit.kind, limit.problem, limit.problem_code))
            return
        (self.folder / protocol.SNAPSHOTS).mkdir(exist_ok=True)
        why_not = self._gateway.start()
        if not self._gateway.is_ready and not why_not:
            return  # continued by the next step once it listens
        self._host.note_start()
        if not self._host.is_full():
            self._reserve_room()
        why_not = why_not or self._sandbox.start()
        if why_not:
            self._give_up(Ending.unseen(EndReason.UNSTARTED, why_not, ProblemCode.NOT_STARTED))

    def _give_up(self, ending: Ending) -> None:
        """End an attempt before its agent has run, claiming it so that nothing can start it."""
        self._given_up = ending
        if not self._gateway.end():
            return  # continued by the next step once it has ended
        if output.claim(self.folder / protocol.CLAIM):
            self._gather(ending)

    def _reserve_room(self) -> None:
        """Take the room that recording an ending needs, as on a disk that agents have filled to the last inode."""
        for name in (protocol.EVENTS, protocol.USAGE):  # what is appended to while the agent runs
            (self.folder / name).touch()
        reserve = self.folder / protocol.RESERVE
        reserve.mkdir(exist_ok=True)
        for number in range(_RESERVED_FILES):
            (reserve / str(number)).touch()
        with (reserve / "bytes").open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, _RESERVED_BYTES)

    def _is_out_of_room(self) -> bool:
        """Return whether the disk is full, where it was not asked a moment ago."""
        now = self._clock.monotonic()
        if self._room_at is not None and now - self._room_at < (
            _FULL_EVERY_SECONDS_IN_JOB if self._as_job else _FULL_EVERY_SECONDS
        ):
            return False
        self._room_at = now
        return self._host.is_full()

    def _watch(self) -> None:
        if self._is_out_of_room() and not self._sandbox.agent_lives():
            # Its main process waits for room to record the ending.
            trees.remove_tree(self.folder / protocol.RESERVE)
        if self._started is None:
            self._started = protocol.read_if_there(self.folder / protocol.STARTED, Started)
            if self._started is None:
                return
            self.stage = Stage.RUNNING
            self._root = self._sandbox.root_process()
            self._report_started(self._started)
        self.names = protocol.names_in(self.folder)
        if protocol.RESTARTS in self.names:
            self._report_restarts()
        if protocol.was_asked_to_end(self.names):
            self._asked_at = self._asked_at or time.monotonic()
            self._sandbox.stop()
        if self._is_overdue(self._started):
            self._end_overdue()
            return
        try:
            taken = self._submissions.check(self._clock.now(), self._elapsed(self._started))
        except DataProblem as problem:
            refused = self._refusals.note(self._clock.now(), problem)
            if refused is not None:
                self._report(refused)
        else:
            if taken is not None:
                self._report(taken)
        if self._submissions.last is not None:
            self._code.keep(self._submissions.last.sequence)
        self._note_code()
        if self._asked_at is None:
            self._gateway.keep()
            self._sandbox.keep_serving()

    def _is_overdue(self, started: Started) -> bool:
        """Return whether the agent should have ended long ago, by the monotonic clock, so within one boot only."""
        patience = self._order.conditions.grace_seconds + OVERDUE_SECONDS
        if not self._is_late(started, patience):
            return False
        is_tidying = (self.folder / protocol.ENDING).exists()
        return not is_tidying or self._is_late(started, patience + output.TIDY_SECONDS)

    def _is_late(self, started: Started, patience: float) -> bool:
        if self._asked_at is not None and time.monotonic() - self._asked_at > patience:
            return True
        limit = self._order.conditions.time_limit_seconds + patience
        return started.boot_id == output.boot_id() and self._elapsed(started) > limit

    def _end_overdue(self) -> None:
        """Kill an agent that its main process did not end, such as a fork bomb that leaves it no processor time."""
        if self._overdue is None:
            self._overdue = LimitExceeded(
                EndReason.DEADLINE, "it had to be killed after its deadline", self._clock.now()
            )
        try:
            self._write_overdue()
        except OSError:
            # On a full disk its main process may be waiting for room to write how the agent has ended.
            if self._sandbox.agent_lives():
                self._sandbox.kill()
            raise
        self._kill_at = self._kill_at or time.monotonic() + ROOM_SECONDS
        if time.monotonic() >= self._kill_at or self._sandbox.agent_lives():
            self._sandbox.kill()

    def _write_overdue(self) -> None:
        if self._overdue is not None and not protocol.was_asked_to_end(protocol.names_in(self.folder)):
            protocol.write(self.folder / protocol.LIMIT, self._overdue)

    def _elapsed(self, started: Started) -> float:
        """Return how long ago the agent started; setting the clock affects it only after a reboot."""
        if started.boot_id == output.boot_id():
            return time.monotonic() - started.monotonic
        return max(0.0, self._clock.now() - started.at)

    def _gather(self, seen: Ending | None) -> None:
        """Collect the results of an agent that has ended, report how it ended, and leave nothing of it running.

        How it ended is reported before anything is removed, because the agent decides how long removing takes and
        whether it succeeds.
        """
        if not self._sandbox.end_leftovers() or not self._gateway.end():
            return  # continued by the next step once it has ended
        trees.remove_tree(self.folder / protocol.RESERVE)
        if not self._is_measured():
            return
        ending = self._reported_ending() or self._conclude(seen)
        if not self._is_code_kept(ending):
            return
        secrets.discard(self.folder)
        if not self._is_removed():
            return
        protocol.write(self.folder / protocol.EXIT, ending)
        self._report_once(Collected(self._clock.now()))
        self.stage = Stage.DONE

    def _is_measured(self) -> bool:
        """Measure what an ended agent holds once more where there is no room: it may have filled that since."""
        self._measure_until = self._measure_until or time.monotonic() + _CODE_SECONDS
        is_over = self._reported_ending() is not None or time.monotonic() > self._measure_until
        if self._measured_last or is_over or not self._host.is_full():
            return True
        disk = self._disk.take()
        if disk is not None and self._measures_last:
            self._note_disk_use(disk)
            self._measured_last = True
            return True
        self._measures_last = self._disk.start() or self._measures_last
        return False

    def _is_code_kept(self, ending: Ending) -> bool:
        """Keep the code of the final submission, which nobody writes any more; stop waiting for a disk that hangs."""
        if ending.submission_sequence is not None:
            self._code.keep(ending.submission_sequence)
        self._code_until = self._code_until or time.monotonic() + _CODE_SECONDS
        self._note_code(_TURN_SECONDS)
        return self._code.is_idle or time.monotonic() > self._code_until

    def _note_code(self, seconds: float = 0.0) -> None:
        problem = self._code.advance(seconds)
        if problem:
            self._report_shortfall(protocol.CODE_NOT_KEPT, problem)

    def _reported_ending(self) -> Ending | None:
        return next((event for event in self._reported if isinstance(event, Ending)), None)

    def _conclude(self, seen: Ending | None) -> Ending:
        """Take the final submission and report how the attempt ended."""
        self._write_overdue()
        started = protocol.read_if_there(self.folder / protocol.STARTED, Started)
        if started is not None:
            self._report_started(started)
        self._report_restarts()
        for refused in self._refusals.unreported():
            self._report(refused)
        now = self._clock.now()
        sequence, problem, is_too_large = self._final_submission(started, now)
        if started is not None:
            self._report_unsearched()
        ending = replace(
            self._explained(seen),
            started_at=started.at if started is not None else None,
            submission_sequence=sequence,
            submission_problem=problem,
            submission_too_large=is_too_large,
            host_problem=self._host.problem(started) or self._killed_services(),
        )
        self._report(ending)
        return ending

    def _is_removed(self) -> bool:
        """Continue removing what only served the run, for a moment, since the other attempts wait meanwhile."""
        removal = self._removal or self._tidying()
        self._removal = None  # after a failure it starts again
        give_up = time.monotonic() + _TURN_SECONDS
        try:
            while time.monotonic() < give_up:
                next(removal)
        except StopIteration as end:
            if end.value:
                text = f"what only served the run can't be removed: {'; '.join(end.value)}"
                self._report_shortfall(protocol.UNREMOVED, text)
            return True
        self._removal = removal
        return False

    def _tidying(self) -> Generator[None, None, list[str]]:
        """Remove in steps what only served the run; programs among the agent's files run as nobody else from now on."""
        for name in (protocol.CODE, protocol.LOGS, protocol.SUBMISSION):
            # What can't be read was named by the search for secrets; no other user can enter the attempt.
            for entry in trees.walk(self.folder / name, lambda _place, _error: None):
                trees.drop_rights(entry)
                yield
        return (yield from self._sandbox.removing())

    def give_up(self, problem: str) -> bool:
        """End an attempt that can't be supervised as lost, unless its agent may live, and return whether it has ended.

        Raises:
            Unreachable: its runtime does not answer whether it lives.
        """
        if self._sandbox.status() in (AgentStatus.ALIVE, AgentStatus.STARTING):
            return False
        output.claim(self.folder / protocol.CLAIM)
        if not self._sandbox.end_leftovers() or not self._gateway.end():
            return False
        secrets.discard(self.folder)
        if not self._is_removed():
            return False
        ending = self._reported_ending() or Ending.unseen(EndReason.LOST, problem, ProblemCode.NOT_SUPERVISED)
        protocol.write(self.folder / protocol.EXIT, ending)
        self.stage = Stage.DONE
        return True

    def _explained(self, seen: Ending | None) -> Ending:
        """Return how the attempt ended, from the main process's record if there is one."""
        limit = protocol.read_if_there(self.folder / protocol.LIMIT, LimitExceeded)
        if limit is not None and (
            seen is None or seen.reason in (EndReason.STOPPED, EndReason.LOST) or limit.kind == EndReason.LOST
        ):
            return Ending.unseen(limit.kind, limit.problem, limit.problem_code)
        if seen is not None:
            reason = EndReason.LOST if seen.reason == EndReason.UNSTARTED else seen.reason
            return replace(seen, reason=reason, problem=seen.problem or seen.log_error)
        if (self.folder / protocol.STOP).exists():
            return Ending.unseen(EndReason.STOPPED)
        return Ending.unseen(EndReason.LOST, "its sandbox was killed from outside", ProblemCode.SANDBOX_LOST)

    def _final_submission(self, started: Started | None, now: float) -> tuple[int | None, str, bool]:
        """Take the final submission; return its number, or why there is none and whether only for its size."""
        known = self._submissions.last
        try:
            taken = self._submissions.take_final(now, self._elapsed(started) if started else 0.0)
        except DataProblem as problem:
            return None, str(problem), isinstance(problem, TooLarge)
        if taken is None:
            return None, "", False
        if taken is not known:
            self._report(taken)
        return taken.sequence, "", False

    def _report_started(self, started: Started) -> None:
        if any(isinstance(known, AgentStarted) for known in self._reported):
            return
        image = started.image or self._sandbox.image()
        event = AgentStarted(
            started.at,
            started.isolated,
            image,
            hardware_of(self._order.gpu_uuids, self._gpus),
            started.unenforced,
            recipe="+".join(value for _, value in self._order.image_labels) if image else "",
            runtime=started.runtime,
        )
        self._report(event)

    def _report_restarts(self) -> None:
        """Report the services for the agent that have died since the last call."""
        lines = jsonlines.read(self.folder / protocol.RESTARTS, self._restarts_offset)
        known = {event for event in self._reported if isinstance(event, ServiceRestarted)}
        for line in lines.values:
            event = protocol.event_from_line({**line, "kind": "restarted"})
            if event is not None and event not in known:
                self._report(event)
        self._restarts_offset = lines.offset

    def _killed_services(self) -> HostProblem | None:
        """Return that services were killed in a way that an agent cannot cause; None where none was."""
        killed = [
            event.service
            for event in self._reported
            if isinstance(event, ServiceRestarted) and event.from_outside
        ]
        if not killed:
            return None
        text = f"{' and '.join(dict.fromkeys(killed))} was killed from outside while it ran"
        return HostProblem(ProblemCode.SERVICE_KILLED, text)

    def _report_unsearched(self) -> None:
        """Report what its main process could not search after the end of its agent, and submissions with secrets."""
        tidied = protocol.read_if_there(self.folder / protocol.TIDIED, Tidied)
        if tidied is None and self._order.secret:
            tidied = Tidied(("its main process ended before the search",))
        # A submission is graded as it was handed in.
        found = [f"{name} holds a secret" for name in self._submissions.with_secrets]
        found += tidied.problems if tidied is not None else ()
        if not found:
            return
        more = len(found) - _MOST_PROBLEMS_NAMED
        problems = "; ".join(found[:_MOST_PROBLEMS_NAMED]) + (f"; and {more} more" if more > 0 else "")
        text = f"its files may contain secrets, or can't all be read: {problems}"
        self._report_shortfall(protocol.UNSEARCHED, text)

    def _report_shortfall(self, kind: str, text: str) -> None:
        self._report_once(Shortfall(self._clock.now(), kind, text))

    def _report_once(self, event: RunEvent) -> None:
        """Report an event unless one of its kind was reported before."""
        if protocol.kind_of(event) not in map(protocol.kind_of, self._reported):
            self._report(event)

    def _report(self, event: RunEvent) -> None:
        self._reported.append(event)
        self._unwritten.append(event)
        self._write_events()

    def _write_events(self) -> None:
        """Write the events that could not be written before, as on a full disk, before anything else is done."""
        while self._unwritten:
            line = protocol.event_to_line(self._unwritten[0])
            self.events_bytes = jsonlines.append(self.folder / protocol.EVENTS, [line], durable=True)
            del self._unwritten[0]
