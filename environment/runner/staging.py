"""Copies an attempt's public data to a node's own disk, once for all jobs of that node, and verifies them.

Only files that the manifest lists below `public/` are opened, so that no answers reach a node's disk. All jobs of one
user on a node share a store below their scratch folder (`environment.runner.host.store`).
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from mlebench_console.environment.container.warden import die_with
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host import store
from mlebench_console.environment.runner.host.problems import code_of
from mlebench_console.environment.runner.host.store import Copy
from mlebench_console.environment.runner.protocol import Order, StagingOrder
from mlebench_console.foundation import files, manifests
from mlebench_console.foundation.manifests import ListedFile, Seal
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem, reading

_THREADS = 8
_MOUNT_SECONDS = 30.0
_UNMOUNT_SECONDS = 5.0
_MAX_ERROR_BYTES = 400


class Cancelled(Exception):
    """The job ended before its data were there."""


class Staging(threading.Thread):
    """Copies or mounts an attempt's public data on this node, and keeps them there until it is ended.

    A thread, because its job has to write heartbeats meanwhile, and reading from another host may hang for long.

    Attributes:
        problem: why it failed; empty while it runs, and when it succeeded.
        problem_code: the code of that.
        bytes_done, bytes_needed: how many bytes are there, of how many; 0 while unknown.
        is_reused: whether an earlier job had copied all of it.
    """

    def __init__(
        self,
        attempt: Path,
        order: Order,
        target: Path,
        scratch: Path,
        *,
        keep_free_bytes: int = store.KEPT_FREE_BYTES,
    ) -> None:
        """Prepare.

        Args:
            attempt: the directory whose `staging.json` says how; without that file the data are used where they are.
            order: the attempt's order, which names the dataset.
            target: the path of the public data for the agent: a link or a mount.
            scratch: the folder on this node's own disk.
            keep_free_bytes: how much is left free there.
        """
        super().__init__(name="staging", daemon=True)
        self._wanted = protocol.read_if_there(attempt / protocol.STAGING, StagingOrder)
        self._prepared = Path(order.prepared_dir)
        self._target = target
        self._scratch = scratch
        self._keep_free = keep_free_bytes
        self._cancelled = threading.Event()
        self._copy: Copy | None = None
        self._mount: subprocess.Popen[bytes] | None = None
        self._place = Path()
        self._began_at = time.monotonic()
        self.problem = ""
        self.problem_code = ProblemCode.STAGING_FAILED
        self.bytes_done = 0
        self.bytes_needed = 0
        self.seconds = 0.0
        self.is_reused = False

    @property
    def is_done(self) -> bool:
        """Whether it has succeeded or failed."""
        return self.ident is not None and not self.is_alive()

    @property
    def copies(self) -> bool:
        """Whether data are copied to this node at all."""
        return self._wanted is not None

    def run(self) -> None:
        """Copy the data to this node."""
        try:
            if self._wanted is not None:
                self._stage(self._wanted)
        except Cancelled:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, no agent may start without its data
            self._fail(error)
        self.seconds = time.monotonic() - self._began_at

    def check_time(self) -> None:
        """Cancel copying that takes longer than the job was given for it, so that it uses none of the agent's time."""
        if self._wanted is None or not self.is_alive():
            return
        limit = self._wanted.limit_seconds
        if time.monotonic() - self._began_at > limit:
            self._cancelled.set()
            self.problem = (
                f"its dataset is copied too slowly: {self.bytes_done:,} of {self.bytes_needed:,} bytes after"
                f" {limit:.0f} s; give the profile a lower staging_mb_per_second"
            )

    def put_in_place(self) -> None:
        """Link or mount the data for the agent; called by the job's main thread, since a mount ends with its thread."""
        try:
            if self._wanted is None:
                self._target.symlink_to(self._prepared / "public")
            elif self._wanted.mode == protocol.SQUASHFS:
                self._mount = _mount_image(self._place / Path(self._wanted.image).name, self._target)
            else:
                self._target.symlink_to(self._place / "public")
        except (Problem, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.problem_code = code_of(error, ProblemCode.STAGING_FAILED)
        self.problem = _in_words(error)

    def end(self) -> None:
        """Unmount the data and release them, or stop copying."""
        self._cancelled.set()
        if self._mount is not None:
            _unmount(self._mount, self._target)
            self._mount = None
        if self._copy is not None:
            self._copy.release_lease()

    def _stage(self, wanted: StagingOrder) -> None:
        self._copy = copy = Copy(store.store_of_node(self._scratch), wanted.sha256)
        self._place = copy.place
        listed, source = self._files_of(wanted)
        self.bytes_needed = sum(entry.bytes for entry in listed)
        copy.acquire_lease(self._check_cancelled)
        with copy.locked(lambda: self._follow_progress(copy)):
            there = copy.place.is_dir()
            # Checked in complete copies too: programs that clean temporary folders remove files not read for days.
            missing = [entry for entry in listed if not (there and _is_there(copy.place, entry))]
            self.is_reused = not missing
            self.bytes_done = self.bytes_needed - sum(entry.bytes for entry in missing)
            if missing or not there:
                self._copy_missing(source, copy, missing)
                files.sync_file_system(copy.partial)
                _complete(copy.partial, copy.place, missing)
            self.bytes_done = self.bytes_needed

    def _files_of(self, wanted: StagingOrder) -> tuple[list[ListedFile], Path]:
        """Return the files to copy, and the folder below which their paths are."""
        if wanted.mode == protocol.SQUASHFS:
            image = Path(wanted.image)
            return [ListedFile(image.name, image.stat().st_size, wanted.sha256)], image.parent
        path = self._prepared / manifests.NAME
        with reading(path):
            content = path.read_bytes()
        manifests.check_seal(content, Seal(wanted.sha256, 0, 0), str(path))
        listed = manifests.parse(content, str(path)).entries
        return [entry for entry in listed if entry.path.startswith(manifests.PUBLIC)], self._prepared

    def _copy_missing(self, source: Path, copy: Copy, wanted: Sequence[ListedFile]) -> None:
        before, needed = self.bytes_done, sum(entry.bytes for entry in wanted)

        def write_progress() -> None:
            with suppress(OSError):  # on a full disk the copying itself fails and says so
                copy.write_progress(self.bytes_done - before, needed)

        with copy.reserving(needed, self._keep_free, self._check_cancelled):
            self._copy_all(source, copy.partial, wanted, write_progress)

    def _copy_all(
        self, source: Path, target: Path, wanted: Sequence[ListedFile], write_progress: Callable[[], None]
    ) -> None:
        """Copy in several threads, as a shared file system is slow for each request, but serves many at once."""
        for folder in {target, *((target / entry.path).parent for entry in wanted)}:
            folder.mkdir(parents=True, exist_ok=True)
        left, lock = iter(wanted), threading.Lock()
        failures: list[Exception] = []

        def add(size: int) -> None:
            self._check_cancelled()
            with lock:
                self.bytes_done += size

        def work() -> None:
            while not failures:
                with lock:
                    entry = next(left, None)
                if entry is None:
                    return
                try:
                    _copy_file(source / entry.path, target / entry.path, entry, add)
                except Exception as error:  # noqa: BLE001 - ends the others, and is raised below
                    failures.append(error)

        # Daemons, so that a thread that hangs in a read does not keep this process alive.
        workers = [threading.Thread(target=work, daemon=True) for _ in range(min(_THREADS, len(wanted)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(store.POLL_SECONDS)
                self._check_cancelled()
                write_progress()
        if failures:
            raise failures[0]

    def _follow_progress(self, copy: Copy) -> None:
        """Take over the progress of another job of this node, which copies the same data."""
        self._check_cancelled()
        found = copy.read_progress()
        if found is not None:
            self.bytes_done = max(0, self.bytes_needed - found[1] + found[0])

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled


def _copy_file(source: Path, target: Path, entry: ListedFile, on_bytes: Callable[[int], None]) -> None:
    """Copy one file, and compare its size and hash with those in the manifest.

    Raises:
        DataProblem: they differ.
    """
    if entry.is_folder:
        target.mkdir(exist_ok=True)
        return
    size, digest = store.copy_file(source, target, on_bytes)
    if (size, digest) != (entry.bytes, entry.sha256):
        raise DataProblem(
            f"{source} is not what its manifest lists",
            f"expected {entry.bytes:,} bytes with SHA-256 {entry.sha256}, found {size:,} with {digest}",
        )


def _is_there(place: Path, entry: ListedFile) -> bool:
    try:
        found = (place / entry.path).lstat()
    except OSError:
        return False
    if entry.is_folder:
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISREG(found.st_mode) and found.st_size == entry.bytes


def _complete(made: Path, place: Path, entries: Sequence[ListedFile]) -> None:
    """Rename a complete copy to its name, or move the missing files into the one that is there."""
    if not place.is_dir():
        made.rename(place)
        return
    for entry in entries:
        target = place / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_folder:
            target.mkdir(exist_ok=True)
        else:
            (made / entry.path).replace(target)
    store.remove(made)


def _mount_image(image: Path, target: Path) -> subprocess.Popen[bytes]:
    """Mount an image read-only; it is unmounted when this process ends, however it ends.

    Raises:
        EnvironmentProblem: it can't be mounted on this node.
    """
    program = shutil.which("squashfuse")
    if program is None:
        raise EnvironmentProblem(
            "this node can't mount datasets", "squashfuse is not installed", 'Use staging = "copy".'
        )
    target.mkdir()
    job = os.getpid()
    with tempfile.TemporaryFile() as output:
        mount = subprocess.Popen(
            [program, "-f", "-o", "ro,nosuid,nodev", str(image), str(target)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: die_with(job, signal.SIGTERM),
        )
        give_up = time.monotonic() + _MOUNT_SECONDS
        while not target.is_mount():
            if mount.poll() is not None or time.monotonic() > give_up:
                _unmount(mount, target)
                output.seek(0)
                text = " ".join(output.read(_MAX_ERROR_BYTES).decode("utf-8", "replace").split())
                raise EnvironmentProblem(
                    "this node can't mount datasets", text or "squashfuse does not start"
                )
            time.sleep(0.01)
    return mount


def _unmount(mount: subprocess.Popen[bytes], target: Path) -> None:
    mount.terminate()  # it unmounts the image
    with suppress(subprocess.TimeoutExpired):
        mount.wait(_UNMOUNT_SECONDS)
        return
    unmount_leftover(target)  # a file in it is still open
    mount.kill()
    mount.wait()


def unmount_leftover(target: Path) -> None:
    """Unmount an image whose job was killed, or that has open files; does nothing if nothing is mounted there."""
    if target.is_symlink() or str(target) not in Path("/proc/self/mountinfo").read_text().split():
        return
    for command in (("fusermount3", "-u", "-z"), ("fusermount", "-u", "-z"), ("umount", "-l")):
        if shutil.which(command[0]) and subprocess.run([*command, str(target)], check=False).returncode == 0:
            return


def _in_words(error: Exception) -> str:
    if isinstance(error, Problem):
        return error.in_one_line()
    if not isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}"
