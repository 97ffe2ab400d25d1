"""One attempt as a job of a batch system: claimed once for all nodes, with heartbeats, fenced where they fail.

What only this node needs (locks, sockets, the agent's own system) lies on its own disk, where links lead; the
attempt's directory is on a file system that the engine's host sees too, later and without locks.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path

from environment.container import output
from environment.container.output import Ending
from environment.container.processes import process_tree
from environment.runner import protocol, secrets
from environment.runner.attempt import RunnerAttempt
from environment.runner.host.readings import given_gpus, read_nvidia
from environment.runner.host.store import store_of_node
from environment.runner.loop import Runner
from environment.runner.protocol import Heartbeat, LimitExceeded, Order, Staged
from environment.runner.staging import Staging, unmount_leftover
from foundation import files, jsonlines, locks
from foundation.clock import SystemClock
from foundation.daemon_log import Log
from foundation.locks import FileLock
from foundation.problems import EnvironmentProblem

EXIT_CLAIMED = 75
EXIT_FENCED = 76
BEAT_SECONDS = 10.0
# Each look costs some calls to a file system that hundreds of nodes share, so that a run of hours gets fewer.
_POLL_SECONDS, _LONGEST_LOOK_SECONDS = 1.0, 30.0
_SHARE_OF_SNAPSHOTS, _SHARE_OF_SILENCE = 1 / 2, 1 / 4
_SHARE_OF_AGE, _SHARE_OF_STAGING = 1 / 60, 1 / 30
_MOST_SIGNALS = 1024
_EARLY_SECONDS = 1.0  # by which a heartbeat may be early, so that it is not put off until the next look
# A dataset that is there already takes no longer than the first of these.
_STAGING_LOOK_SECONDS, _LONGEST_STAGING_LOOK_SECONDS = 0.25, 10.0
# An agent that ended so shortly before its runner was told to end got the same signal.
_SAME_SIGNAL_SECONDS = 2.0
_FOLDERS, _LIVES = "mlebench-job-", "job.lock"  # on a node's own disk, and held while the job of one lives
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_LOCKS = (protocol.LOCK, protocol.GATEWAY_LOCK)


def run(folder: Path, scratch: Path | None, silent_seconds: float, log: Log) -> int:
    """Run the attempt of a directory to its end, unless it is another job's; return the job's exit code.

    Args:
        folder: the attempt's directory.
        scratch: a folder on this node's own disk; what TMPDIR names if not given.
        silent_seconds: for how long it may write nothing before its agent is ended.
        log: takes what goes wrong.
    """
    if not output.claim(folder / protocol.JOB_CLAIM):
        return EXIT_CLAIMED
    began_at = time.monotonic()
    fence = Fence(silent_seconds)
    fence.start()
    told = Told()
    kept = secrets.receive(folder)
    order = protocol.read(folder / protocol.ORDER, Order)
    heart = Heart(folder, order, min(BEAT_SECONDS, silent_seconds * _SHARE_OF_SILENCE))
    try:
        local = Path(tempfile.mkdtemp(prefix=f"{_FOLDERS}{order.name}-", dir=scratch))
        lives = FileLock(local / _LIVES)
        lives.acquire_soon()
    except OSError as error:
        secrets.discard(folder)
        problem = f"the node {_node()} has no place for it in {scratch or tempfile.gettempdir()}: {error}"
        protocol.write(folder / protocol.EXIT, Ending.unseen(protocol.LOST, problem))
        heart.beat(None, ended=True)
        return 0
    # Of jobs that were killed, in the background: an agent may have left millions of files.
    threading.Thread(target=_remove_leftovers, args=(local.parent, log), daemon=True).start()
    staging = Staging(folder, order, local / protocol.DATASET / "public", local.parent)
    try:
        lead_there(folder, local)
        _stage(folder, staging, heart, fence, told)
        _note_gpus(folder, order)
        runner = Runner(
            folder,
            SystemClock(),
            log,
            read_nvidia,
            single=folder,
            as_job=True,
            image_cache=store_of_node(local.parent) if order.image_file is not None else None,
        )
        with closing(runner):
            while True:
                runner.tick()
                if told.at is not None:
                    _ask_to_end(folder, told.at)
                ended = runner.is_done
                if heart.beat(runner.single_attempt, ended=ended):
                    fence.note_beat()
                if ended:
                    return 0
                told.wait(seconds_between_looks(time.monotonic() - began_at, order, silent_seconds))
    finally:
        heart.close()
        staging.end()
        (folder / protocol.DATASET).unlink(missing_ok=True)
        files.remove_tree(local)
        lives.release()
        if kept is not None:
            secrets.discard(folder)
            kept.release()


def _remove_leftovers(scratch: Path, log: Log) -> None:
    """Remove what jobs of ours that were killed have left on this node's disk."""
    for folder in scratch.glob(f"{_FOLDERS}*"):
        try:
            lives = folder / _LIVES
            if folder.lstat().st_uid == os.getuid() and lives.exists() and not locks.is_held(lives):
                unmount_leftover(folder / protocol.DATASET / "public")
                if left := files.remove_tree(folder):
                    log(f"a killed job's folder can't be removed: {'; '.join(left)}", None)
        except OSError as error:
            log(f"{folder} can't be looked at", error)


def _stage(folder: Path, staging: Staging, heart: Heart, fence: Fence, told: Told) -> None:
    """Bring the dataset to this node, unless somebody wants the attempt to end before that is done."""
    began_at = time.monotonic()
    staging.start()
    while not staging.is_done and not staging.problem:
        if told.at is not None:
            _ask_to_end(folder, told.at)
        if protocol.was_asked_to_end(protocol.names_in(folder)):
            return
        if heart.beat(None, staging=staging):
            fence.note_beat()
        staging.check_time()
        passed = time.monotonic() - began_at
        told.wait(min(_LONGEST_STAGING_LOOK_SECONDS, max(_STAGING_LOOK_SECONDS, passed * _SHARE_OF_STAGING)))
    if not staging.problem:
        staging.put_in_place()
    if staging.problem:
        problem = f"its dataset could not be brought to the node {_node()}: {staging.problem}"
        protocol.write(folder / protocol.LIMIT, LimitExceeded(protocol.LOST, problem, time.time()))
    elif staging.copies:
        staged = Staged(time.time(), _node(), staging.bytes_needed, staging.seconds, staging.is_reused)
        jsonlines.append(folder / protocol.EVENTS, [protocol.event_to_line(staged)], durable=True)


def _note_gpus(folder: Path, order: Order) -> None:
    """Write down which devices the batch system gave to this job."""
    if not order.gpus:
        return
    try:
        given = given_gpus(os.environ.get(_VISIBLE, ""), read_nvidia())
    except EnvironmentProblem as problem:
        if not protocol.was_asked_to_end(protocol.names_in(folder)):
            text = f"on the node {_node()}: {problem.in_one_line()}"
            protocol.write(folder / protocol.LIMIT, LimitExceeded(protocol.LOST, text, time.time()))
    else:
        protocol.write(folder / protocol.GPUS, given)


class Told:
    """Notes when the batch system has asked this job to end: before its time is up, or for others."""

    def __init__(self) -> None:
        self.at: float | None = None
        # By a pipe, as a handler may come at any moment, also while a lock is held that it would need.
        self._woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._note())
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # it wakes, too

    def _note(self) -> None:
        self.at = self.at or time.time()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until that signal comes, or the end of a process that this one has started."""
        select.select([self._woken], [], [], seconds)
        with suppress(BlockingIOError):
            while os.read(self._woken, _MOST_SIGNALS):
                pass


class Heart:
    """Appends to the heartbeats, from which the engine learns that this job lives and how much there is to read."""

    def __init__(self, folder: Path, order: Order, every_seconds: float) -> None:
        self._folder = folder
        self._file = jsonlines.Appender(folder / protocol.HEARTBEATS)
        self._has_gateway = bool(order.providers)
        self._has_proxy = bool(order.allowed_hosts)
        self._every_seconds = every_seconds
        self._number = 0
        self._beat_at, self._news = -math.inf, (0, 0)
        self._usage, self._model_calls, self._has_traffic = 0, 0, False

    def beat(
        self, attempt: RunnerAttempt | None, *, ended: bool = False, staging: Staging | None = None
    ) -> bool:
        """Write a heartbeat where one is due, and return whether that was so and worked.

        Args:
            attempt: as its runner has seen it last; None before there is one.
            ended: whether this is the last heartbeat.
            staging: what brings its data to this node, while that goes on.
        """
        now, news = time.monotonic(), self._look(attempt)
        if not ended and news == self._news and now - self._beat_at < self._every_seconds - _EARLY_SECONDS:
            return False
        events, asked = news
        usage = 0 if attempt is None else attempt.usage_bytes
        if ended or usage != self._usage or asked != self._news[1]:
            self._measure()
        self._usage = usage
        beat = Heartbeat(
            self._number,
            _node(),
            os.environ.get("SLURM_JOB_ID", ""),
            events,
            self._usage,
            self._model_calls,
            ended=ended,
            staged=None if staging is None else staging.bytes_done,
            to_stage=None if staging is None else staging.bytes_needed,
            has_traffic=self._has_traffic,
            asked=asked,
        )
        try:
            self._file.append([asdict(beat)], durable=True)
        except OSError:
            return False  # the fence counts from the last one that worked
        self._number += 1
        self._beat_at, self._news = now, news
        return True

    def close(self) -> None:
        """Close the file of heartbeats."""
        self._file.close()

    def _look(self, attempt: RunnerAttempt | None) -> tuple[int, int]:
        """Return what the engine is to hear of soon: the size of the events, and what the gateway has asked for."""
        if attempt is None:
            return 0, 0
        asked = 0
        if protocol.ALLOWANCE_REQUEST in attempt.names:
            with suppress(FileNotFoundError):
                asked = (self._folder / protocol.ALLOWANCE_REQUEST).stat().st_mtime_ns
        return attempt.events_bytes, asked

    def _measure(self) -> None:
        """Look how far others have written: when usage was measured too, which a job of hours does less often."""
        if self._has_gateway:
            self._model_calls = _size(self._folder / protocol.MODEL_CALLS)
        if self._has_proxy and not self._has_traffic:
            self._has_traffic = (self._folder / protocol.TRAFFIC).exists()


class Fence(threading.Thread):
    """Ends everything of this job when nothing could be written for too long: the engine launches it elsewhere then.

    A thread of its own, as a file system that hangs holds whoever writes. A batch system may suspend a job for hours,
    as for one of more priority, and lets it go on then: that time does not count.
    """

    def __init__(self, silent_seconds: float) -> None:
        super().__init__(name="fence", daemon=True)
        self._silent_seconds = silent_seconds
        self._counts_from = time.monotonic()

    def note_beat(self) -> None:
        """Note that something was written."""
        self._counts_from = time.monotonic()

    def run(self) -> None:
        """Look now and then."""
        every = min(_POLL_SECONDS, self._silent_seconds * _SHARE_OF_SILENCE)
        now = time.monotonic()
        while now - self._counts_from < self._silent_seconds:
            time.sleep(every)
            slept_from, now = now, time.monotonic()
            if now - slept_from > every + self._silent_seconds * _SHARE_OF_SILENCE:
                self._counts_from = now
        for process in process_tree().below(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        os._exit(EXIT_FENCED)


def seconds_between_looks(age: float, order: Order, silent_seconds: float) -> float:
    """Return how long to wait until the next look at an attempt of this age.

    A submission that has settled is seen twice between two snapshots, and no job is silent for as long as ends it.
    """
    longest = min(
        _LONGEST_LOOK_SECONDS,
        order.snapshot_every_seconds * _SHARE_OF_SNAPSHOTS,
        silent_seconds * _SHARE_OF_SILENCE,
    )
    return min(max(_POLL_SECONDS, age * _SHARE_OF_AGE), max(_POLL_SECONDS, longest))


def lead_there(folder: Path, local: Path) -> None:
    """Put links into the attempt's directory to what lies on this node."""
    for name in protocol.ON_THE_NODE:
        (local / name).mkdir()
    for name in (*protocol.ON_THE_NODE, *_LOCKS):
        (folder / name).symlink_to(local / name)


def _ask_to_end(folder: Path, told_at: float) -> None:
    """Have the attempt ended for the batch system, unless somebody wants that anyway or its agent was done before."""
    if protocol.was_asked_to_end(protocol.names_in(folder)):
        return
    ending = protocol.read_if_there(folder / protocol.ENDING, Ending)
    if ending is not None and ending.ended_at < told_at - _SAME_SIGNAL_SECONDS:
        return
    job = os.environ.get("SLURM_JOB_ID", "")
    problem = f"the batch system ended its job {job} on {_node()}".replace("  ", " ")
    protocol.write(folder / protocol.LIMIT, LimitExceeded(protocol.LOST, problem, told_at))


def _node() -> str:
    """Name this node as its batch system does."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
