"""One attempt as a job of a batch system: claimed once among all nodes, with heartbeats, and ended where they fail.

What only this node needs (locks, sockets, the agent's own files) is on its own disk, behind links; the
attempt's directory is on a file system that the engine's host shares, with delays and without locks.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from mlebench_console.environment.container import output, trees
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.processes import process_tree, send
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.attempt import RunnerAttempt
from mlebench_console.environment.runner.host.problems import code_of
from mlebench_console.environment.runner.host.readings import given_gpus, read_nvidia
from mlebench_console.environment.runner.host.store import store_of_node
from mlebench_console.environment.runner.loop import Runner
from mlebench_console.environment.runner.protocol import Heartbeat, LimitExceeded, Order, Staged
from mlebench_console.environment.runner.staging import Staging, unmount_leftover
from mlebench_console.foundation import jsonlines, locks
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.daemons import EndSignal, Log
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.foundation.problems import EnvironmentProblem

EXIT_CLAIMED = 75
EXIT_FENCED = 76
HEARTBEAT_SECONDS = 10.0
# Each poll makes some calls to a file system that hundreds of nodes share, so that long runs are polled less often.
_POLL_SECONDS, _LONGEST_POLL_SECONDS = 1.0, 30.0
_SHARE_OF_SNAPSHOTS, _SHARE_OF_SILENCE = 1 / 2, 1 / 4
_SHARE_OF_AGE, _SHARE_OF_STAGING = 1 / 60, 1 / 30
_EARLY_SECONDS = 1.0  # by which a heartbeat may be early, so that it is not delayed until the next poll
# The first interval is enough for a dataset that is already on the node.
_STAGING_POLL_SECONDS, _LONGEST_STAGING_POLL_SECONDS = 0.25, 10.0
# An agent that ended so shortly before its runner's signal got the same signal.
_SAME_SIGNAL_SECONDS = 2.0
# Folders on a node's own disk, and the lock that a running job holds.
_FOLDERS, _LIVES = "mlebench-job-", "job.lock"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_LOCKS = (protocol.LOCK, protocol.GATEWAY_LOCK)


def run(folder: Path, scratch: Path | None, silent_seconds: float, log: Log) -> int:
    """Run the attempt of a directory to its end, unless another job has claimed it, and return the job's exit code.

    Args:
        folder: the attempt's directory.
        scratch: a folder on this node's own disk; by default that of TMPDIR.
        silent_seconds: how long heartbeats may fail before its agent is ended.
        log: receives errors.
    """
    if not output.claim(folder / protocol.JOB_CLAIM):
        return EXIT_CLAIMED
    began_at = time.monotonic()
    fence = Fence(silent_seconds)
    fence.start()
    # It ends this job before its time is up, or for other jobs.
    end_signal = EndSignal(signal.SIGTERM)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # it wakes, too
    kept = secrets.receive(folder)
    order = protocol.read(folder / protocol.ORDER, Order)
    heartbeats = HeartbeatWriter(folder, order, min(HEARTBEAT_SECONDS, silent_seconds * _SHARE_OF_SILENCE))
    try:
        local = Path(tempfile.mkdtemp(prefix=f"{_FOLDERS}{order.token}-", dir=scratch))
        lives = FileLock(local / _LIVES)
        lives.acquire_soon()
    except OSError as error:
        secrets.discard(folder)
        problem = f"the node {_node()} has no place for it in {scratch or tempfile.gettempdir()}: {error}"
        protocol.write(
            folder / protocol.EXIT,
            Ending.unseen(EndReason.LOST, problem, code_of(error, ProblemCode.NOT_STARTED)),
        )
        heartbeats.write(None, ended=True)
        return 0
    # In the background, since the agents of killed jobs may have left millions of files.
    threading.Thread(target=_remove_leftovers, args=(local.parent, log), daemon=True).start()
    staging = Staging(folder, order, local / protocol.DATASET / "public", local.parent)
    try:
        link_node_folders(folder, local)
        _stage(folder, staging, heartbeats, fence, end_signal)
        _write_gpus(folder, order)
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
                if end_signal.at is not None:
                    _ask_to_end(folder, end_signal.at)
                ended = runner.is_done
                if heartbeats.write(runner.single_attempt, ended=ended):
                    fence.note_heartbeat()
                if ended:
                    return 0
                end_signal.wait(seconds_between_polls(time.monotonic() - began_at, order, silent_seconds))
    finally:
        heartbeats.close()
        staging.end()
        (folder / protocol.DATASET).unlink(missing_ok=True)
        trees.remove_tree(local)
        lives.release()
        if kept is not None:
            secrets.discard(folder)
            kept.release()


def _remove_leftovers(scratch: Path, log: Log) -> None:
    """Remove the folders of this user's killed jobs from this node's disk."""
    for folder in scratch.glob(f"{_FOLDERS}*"):
        try:
            lives = folder / _LIVES
            if folder.lstat().st_uid == os.getuid() and lives.exists() and not locks.is_held(lives):
                unmount_leftover(folder / protocol.DATASET / "public")
                if left := trees.remove_tree(folder):
                    log(f"a killed job's folder can't be removed: {'; '.join(left)}", None)
        except OSError as error:
            log(f"{folder} can't be removed", error)


def _stage(
    folder: Path, staging: Staging, heartbeats: HeartbeatWriter, fence: Fence, end_signal: EndSignal
) -> None:
    """Copy or mount the dataset on this node, unless the attempt must end before that is done."""
    began_at = time.monotonic()
    staging.start()
    while not staging.is_done and not staging.problem:
        if end_signal.at is not None:
            _ask_to_end(folder, end_signal.at)
        if protocol.was_asked_to_end(protocol.names_in(folder)):
            return
        if heartbeats.write(None, staging=staging):
            fence.note_heartbeat()
        staging.check_time()
        passed = time.monotonic() - began_at
        end_signal.wait(
            min(_LONGEST_STAGING_POLL_SECONDS, max(_STAGING_POLL_SECONDS, passed * _SHARE_OF_STAGING))
        )
    if not staging.problem:
        staging.put_in_place()
    if staging.problem:
        problem = f"its dataset could not be brought to the node {_node()}: {staging.problem}"
        _give_up(folder, problem, staging.problem_code, time.time())
    elif staging.copies:
        staged = Staged(time.time(), _node(), staging.bytes_needed, staging.seconds, staging.is_reused)
        jsonlines.append(folder / protocol.EVENTS, [protocol.event_to_line(staged)], durable=True)


def _write_gpus(folder: Path, order: Order) -> None:
    """Write gpus.json with the devices that the batch system gave to this job."""
    if not order.conditions.resources.gpus:
        return
    try:
        given = given_gpus(os.environ.get(_VISIBLE, ""), read_nvidia())
    except EnvironmentProblem as problem:
        if not protocol.was_asked_to_end(protocol.names_in(folder)):
            text = f"on the node {_node()}: {problem.in_one_line()}"
            _give_up(folder, text, ProblemCode.GPU_NOT_GIVEN, time.time())
    else:
        protocol.write(folder / protocol.GPUS, given)


class HeartbeatWriter:
    """Writes heartbeats, which tell the engine that this job is alive and how much there is to read."""

    def __init__(self, folder: Path, order: Order, every_seconds: float) -> None:
        self._folder = folder
        self._file = jsonlines.Appender(folder / protocol.HEARTBEATS)
        self._has_gateway = bool(order.providers)
        self._has_proxy = bool(order.conditions.allowed_hosts)
        self._every_seconds = every_seconds
        self._number = 0
        self._written_at, self._events = -math.inf, 0
        self._usage, self._model_calls, self._has_traffic = 0, 0, False

    def write(
        self, attempt: RunnerAttempt | None, *, ended: bool = False, staging: Staging | None = None
    ) -> bool:
        """Write a heartbeat if one is due, and return whether it was written.

        Args:
            attempt: in the state of its runner's last step; None before there is one.
            ended: whether this is the last heartbeat.
            staging: the staging of its data, while that is under way.
        """
        now, events = time.monotonic(), 0 if attempt is None else attempt.events_bytes
        if (
            not ended
            and events == self._events
            and now - self._written_at < self._every_seconds - _EARLY_SECONDS
        ):
            return False
        usage = 0 if attempt is None else attempt.usage_bytes
        if ended or usage != self._usage:
            self._measure()
        self._usage = usage
        heartbeat = Heartbeat(
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
        )
        try:
            self._file.append([asdict(heartbeat)], durable=True)
        except OSError:
            return False  # the fence counts from the last successful one
        self._number += 1
        self._written_at, self._events = now, events
        return True

    def close(self) -> None:
        """Close the file of heartbeats."""
        self._file.close()

    def _measure(self) -> None:
        """Read the sizes of other processes' files; as often as usage is measured, which is less often in long jobs."""
        if self._has_gateway:
            self._model_calls = _size(self._folder / protocol.MODEL_CALLS)
        if self._has_proxy and not self._has_traffic:
            self._has_traffic = (self._folder / protocol.TRAFFIC).exists()


class Fence(threading.Thread):
    """Kills all processes of this job when no heartbeat was written for too long, since the engine then relaunches it.

    It is a thread, because a hanging file system blocks writers. A batch system may suspend a job for hours,
    for a job of higher priority, and resume it then: that time does not count.
    """

    def __init__(self, silent_seconds: float) -> None:
        super().__init__(name="fence", daemon=True)
        self._silent_seconds = silent_seconds
        self._counts_from = time.monotonic()

    def note_heartbeat(self) -> None:
        """Record that a heartbeat was written."""
        self._counts_from = time.monotonic()

    def run(self) -> None:
        """Check at intervals."""
        every = min(_POLL_SECONDS, self._silent_seconds * _SHARE_OF_SILENCE)
        now = time.monotonic()
        while now - self._counts_from < self._silent_seconds:
            time.sleep(every)
            slept_from, now = now, time.monotonic()
            if now - slept_from > every + self._silent_seconds * _SHARE_OF_SILENCE:
                self._counts_from = now
        send(signal.SIGKILL, process_tree().below(os.getpid()))
        os._exit(EXIT_FENCED)


def seconds_between_polls(age: float, order: Order, silent_seconds: float) -> float:
    """Return how long to wait until the next poll of an attempt of this age.

    A settled submission is seen twice between two snapshots, and heartbeats are never late enough to end the job.
    """
    longest = min(
        _LONGEST_POLL_SECONDS,
        order.conditions.grade_every_seconds * _SHARE_OF_SNAPSHOTS,
        silent_seconds * _SHARE_OF_SILENCE,
    )
    return min(max(_POLL_SECONDS, age * _SHARE_OF_AGE), max(_POLL_SECONDS, longest))


def link_node_folders(folder: Path, local: Path) -> None:
    """Create links in the attempt's directory to what is on this node."""
    for name in protocol.ON_THE_NODE:
        (local / name).mkdir()
    for name in (*protocol.ON_THE_NODE, *_LOCKS):
        (folder / name).symlink_to(local / name)


def _ask_to_end(folder: Path, signalled_at: float) -> None:
    """Have the attempt ended for the batch system, unless it is being ended anyway or its agent had ended before."""
    if protocol.was_asked_to_end(protocol.names_in(folder)):
        return
    ending = protocol.read_if_there(folder / protocol.ENDING, Ending)
    if ending is not None and ending.ended_at < signalled_at - _SAME_SIGNAL_SECONDS:
        return
    job = os.environ.get("SLURM_JOB_ID", "")
    problem = f"the batch system ended its job {job} on {_node()}".replace("  ", " ")
    _give_up(folder, problem, ProblemCode.JOB_ENDED, signalled_at)


def _give_up(folder: Path, problem: str, code: ProblemCode, at: float) -> None:
    """Have the attempt ended as lost to the infrastructure."""
    protocol.write(folder / protocol.LIMIT, LimitExceeded(EndReason.LOST, problem, at, code))


def _node() -> str:
    """Return the batch system's name of this node."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
