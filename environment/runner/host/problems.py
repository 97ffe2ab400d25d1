"""Problems of the host when an attempt ends, measured and never read from anything that an agent can write."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import HostProblem, Started
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.readings import GpuReader, is_part_of_gpu
from mlebench_console.environment.runner.host.store import NoRoom
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.problem_codes import ProblemCode

# With less than this, even writing a log line or a temporary file may fail.
LEAST_FREE_BYTES = 64 << 20
LEAST_FREE_FILES = 256


class HostMonitor:
    """Checks the host at the beginning and at the end of one attempt."""

    def __init__(self, attempt: Path, order: Order, gpus: GpuReader) -> None:
        scratch = (attempt / protocol.SCRATCH).resolve()  # on a node it is on another disk
        self._folders = (attempt, scratch) if scratch.is_dir() else (attempt,)
        self._order = order
        self._gpus = gpus
        self._full_at_start = False
        self._free_at_start: int | None = None
        self._held: int | None = None
        self._files: int | None = None

    def note_start(self) -> None:
        """Check the disk before the agent is started."""
        self._full_at_start = self.is_full()
        self._free_at_start = min(_free_bytes(os.statvfs(folder)) for folder in self._folders)

    def note_disk_use(self, held: int, files: int | None) -> None:
        """Record the attempt's own disk usage as measured; `files` is None where they can't all be counted."""
        self._held, self._files = held, files

    def is_full(self) -> bool:
        """Return whether there is no room on the disk, whoever has filled it."""
        return self._full_disk(0, 0) is not None

    def problem(self, started: Started | None) -> HostProblem | None:
        """Return the problem of the host that may have ended the agent; None where none is found."""
        if started is not None and started.boot_id != output.boot_id():
            return HostProblem(ProblemCode.HOST_RESTARTED, "the host was restarted")
        return self._lost_gpus() or self._disk()

    def _disk(self) -> HostProblem | None:
        """Return whether the disk would be full even without what the attempt itself has written.

        Otherwise an agent could fill it and be launched again for free. One that kept to its limit can't have filled a
        disk on which there was room for all of that.
        """
        if self._full_at_start:
            return self._full_disk(0, 0)
        if self._held is None:
            return None
        allowed, free = self._order.conditions.disk_limit_bytes, self._free_at_start
        had_room = allowed is not None and free is not None and free - allowed >= LEAST_FREE_BYTES
        kept_to_it = had_room and allowed is not None and self._held <= allowed
        return self._full_disk(0 if kept_to_it else self._held, self._files)

    def _full_disk(self, own_bytes: int, own_files: int | None) -> HostProblem | None:
        found = (_full_disk(folder, own_bytes, own_files) for folder in self._folders)
        return next(filter(None, found), None)

    def _lost_gpus(self) -> HostProblem | None:
        # The driver lists whole devices only.
        own = {uuid for uuid in self._order.gpu_uuids if not is_part_of_gpu(uuid)}
        lost = tuple(sorted(own - {gpu.uuid for gpu in self._gpus()})) if own else ()
        if not lost:
            return None
        text = f"the driver does not find {', '.join(lost)} any more"
        return HostProblem(ProblemCode.GPU_LOST, text, devices=lost)


def _free_bytes(found: os.statvfs_result) -> int:
    return found.f_bavail * found.f_frsize


def _full_disk(folder: Path, own_bytes: int, own_files: int | None) -> HostProblem | None:
    """Return that the disk below `folder` would be full even without what is one's own; None where it is not."""
    found = os.statvfs(folder)
    free = _free_bytes(found)
    if free + own_bytes < LEAST_FREE_BYTES:
        text = f"the host's disk is full: {free >> 20} MiB are free below {folder}"
    elif own_files is not None and found.f_files and found.f_favail + own_files < LEAST_FREE_FILES:
        text = f"the host's disk has no room for more files below {folder}"
    else:
        return None
    return HostProblem(ProblemCode.DISK_FULL, text, path=str(folder), free_bytes=free)


def code_of(error: Exception, usual: ProblemCode) -> ProblemCode:
    """Return the code of what kept an agent from starting: that of a full disk, or else the usual one."""
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ProblemCode.DISK_FULL if is_full or isinstance(error, NoRoom) else usual
