"""An attempt's public data on a node's own disk: copied once for all jobs of that node, verified, kept while in use.

Only what the manifest lists below `public/` is ever opened, so that no answer comes to a node's disk. All jobs of one
user on a node share a folder below their scratch folder:

    <scratch>/mlebench-<uid>/datasets/<digest>/         a whole copy, renamed when it was whole
    <scratch>/mlebench-<uid>/datasets/<digest>.partial  one that is being made, or whose maker has died
    <scratch>/mlebench-<uid>/datasets/<digest>.work     locked by who makes, mends or removes it
    <scratch>/mlebench-<uid>/datasets/<digest>.lease    locked, together with others, by all jobs that use it
    <scratch>/mlebench-<uid>/datasets/<digest>.progress how much of it is there while it is being made

The kernel of the node holds these locks and drops them with their holder, so that whatever is killed, the next job
goes on: a node's disk is no file system between hosts, where that could not be relied on.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

from environment.container.warden import die_with
from environment.runner import protocol
from environment.runner.protocol import Order, StagingOrder
from foundation import files, folders, locks, manifests
from foundation.locks import FileLock
from foundation.manifests import ListedFile, Seal
from foundation.problems import DataProblem, EnvironmentProblem, Problem, reading
from foundation.text import gigabytes

# Of a node's disk, what datasets leave to the agents.
KEPT_FREE_BYTES = 1 << 30
_THREADS = 8
_BLOCK = 1 << 20
_LOOK_SECONDS = 0.5
_MOUNT_SECONDS = 30.0
_WORK, _LEASE, _PARTIAL, _PROGRESS = ".work", ".lease", ".partial", ".progress"
_ROOM = "room.work"
_UNMOUNT_SECONDS = 5.0
_MOST_TOLD = 400


class Cancelled(Exception):
    """Nobody wants the data any more."""


class Staging(threading.Thread):
    """Puts an attempt's public data where its agent finds them on this node, and keeps them until it is ended.

    A thread, since whoever waits for it has to write heartbeats, and what reads from another host may hang for long.

    Attributes:
        problem: why it can't be done; empty while that may still be, and when it is.
        bytes_done, bytes_needed: how much is there, and how much has to be; 0 while nobody knows.
        is_reused: whether an earlier job had brought all of it.
    """

    def __init__(
        self,
        attempt: Path,
        order: Order,
        target: Path,
        scratch: Path,
        *,
        keep_free_bytes: int = KEPT_FREE_BYTES,
    ) -> None:
        """Prepare.

        Args:
            attempt: the directory whose `staging.json` says how; without one the data stay where they are.
            order: whose data they are.
            target: the path at which the public data are to be found: a link, or a mount.
            scratch: the folder on this node's own disk.
            keep_free_bytes: what is left free there.
        """
        super().__init__(name="staging", daemon=True)
        self._wanted = protocol.read_if_there(attempt / protocol.STAGING, StagingOrder)
        self._prepared = Path(order.prepared_dir)
        self._target = target
        self._scratch = scratch
        self._keep_free = keep_free_bytes
        self._cancelled = threading.Event()
        self._lease: int | None = None
        self._mount: subprocess.Popen[bytes] | None = None
        self._place = Path()
        self._began_at = time.monotonic()
        self.problem = ""
        self.bytes_done = 0
        self.bytes_needed = 0
        self.seconds = 0.0
        self.is_reused = False

    @property
    def is_done(self) -> bool:
        """Whether the data are there, or never will be."""
        return self.ident is not None and not self.is_alive()

    @property
    def copies(self) -> bool:
        """Whether data are brought to this node at all."""
        return self._wanted is not None

    def run(self) -> None:
        """Bring the data here."""
        try:
            if self._wanted is not None:
                self._stage(self._wanted)
        except Cancelled:
            pass
        except Problem as problem:
            self.problem = problem.in_one_line()
        except OSError as error:
            self.problem = _in_words(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, no agent may begin without its data
            self.problem = f"{type(error).__name__}: {error}"
        self.seconds = time.monotonic() - self._began_at

    def check_time(self) -> None:
        """Give up what takes longer than the job was given for it, so that it takes nothing of the agent's own time."""
        if self._wanted is None or not self.is_alive():
            return
        limit = self._wanted.limit_seconds
        if time.monotonic() - self._began_at > limit:
            self._cancelled.set()
            self.problem = (
                f"its dataset comes too slowly: {self.bytes_done:,} of {self.bytes_needed:,} bytes after"
                f" {limit:.0f} s; give the profile a lower staging_mb_per_second"
            )

    def put_in_place(self) -> None:
        """Let the agent find the data: by the thread that lives as long as the job, since a mount goes with that."""
        try:
            if self._wanted is None:
                self._target.symlink_to(self._prepared / "public")
            elif self._wanted.mode == protocol.SQUASHFS:
                self._mount = _mounted(self._place / Path(self._wanted.image).name, self._target)
            else:
                self._target.symlink_to(self._place / "public")
        except Problem as problem:
            self.problem = problem.in_one_line()
        except OSError as error:
            self.problem = _in_words(error)

    def end(self) -> None:
        """Let go of the data, or bring no more of them."""
        self._cancelled.set()
        if self._mount is not None:
            _unmount(self._mount, self._target)
            self._mount = None
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None

    def _stage(self, wanted: StagingOrder) -> None:
        store = make_store(self._scratch)
        self._place = store / wanted.sha256
        listed, source = self._files_of(wanted)
        self.bytes_needed = sum(entry.bytes for entry in listed)
        lease = Path(f"{self._place}{_LEASE}")
        self._lease = _lock_shared(lease, self._look)
        with _holding(Path(f"{self._place}{_WORK}"), self._see_progress):
            there = self._place.is_dir()
            # Also of a whole one: those who tidy up temporary folders take what nobody has read for days.
            missing = [entry for entry in listed if not (there and _is_there(self._place, entry))]
            self.is_reused = not missing
            self.bytes_done = self.bytes_needed - sum(entry.bytes for entry in missing)
            if missing or not there:
                made = Path(f"{self._place}{_PARTIAL}")
                _remove(made)  # of a job that was killed
                self._copy(source, made, missing)
                files.sync_file_system(made)
                _put_together(made, self._place, missing)
            self.bytes_done = self.bytes_needed
        os.utime(lease)

    def _files_of(self, wanted: StagingOrder) -> tuple[list[ListedFile], Path]:
        """Return what has to be on this node, by its paths below the folder that is returned too."""
        if wanted.mode == protocol.SQUASHFS:
            image = Path(wanted.image)
            return [ListedFile(image.name, image.stat().st_size, wanted.sha256)], image.parent
        path = self._prepared / manifests.NAME
        with reading(path):
            content = path.read_bytes()
        manifests.check_seal(content, Seal(wanted.sha256, 0, 0), str(path))
        listed = manifests.parse(content, str(path)).entries
        return [entry for entry in listed if entry.path.startswith(manifests.PUBLIC)], self._prepared

    def _copy(self, source: Path, target: Path, wanted: Sequence[ListedFile]) -> None:
        progress, needed = Path(f"{self._place}{_PROGRESS}"), sum(entry.bytes for entry in wanted)
        before = self.bytes_done
        with _holding(target.parent / _ROOM, self._look):
            _make_room(target.parent, self._place.name, needed + self._keep_free)
            # Under the same lock, so that no two jobs count on the same room.
            _note_progress(progress, 0, needed)

        def note() -> None:
            with suppress(OSError):  # a full disk is told of by the file that it does not take
                _note_progress(progress, self.bytes_done - before, needed)

        try:
            self._copy_all(source, target, wanted, note)
        finally:
            progress.unlink(missing_ok=True)

    def _copy_all(
        self, source: Path, target: Path, wanted: Sequence[ListedFile], note: Callable[[], None]
    ) -> None:
        """Copy in several threads, as a file system between hosts answers late, but many at once."""
        for folder in {target, *((target / entry.path).parent for entry in wanted)}:
            folder.mkdir(parents=True, exist_ok=True)
        left, lock = iter(wanted), threading.Lock()
        failures: list[Exception] = []

        def count(size: int) -> None:
            self._look()
            with lock:
                self.bytes_done += size

        def work() -> None:
            while not failures:
                with lock:
                    entry = next(left, None)
                if entry is None:
                    return
                try:
                    _copy_file(source / entry.path, target / entry.path, entry, count)
                except Exception as error:  # noqa: BLE001 - ends the others, and is raised below
                    failures.append(error)

        # Daemons, since one that hangs while it reads must not keep this process.
        workers = [threading.Thread(target=work, daemon=True) for _ in range(min(_THREADS, len(wanted)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(_LOOK_SECONDS)
                self._look()
                note()
        if failures:
            raise failures[0]

    def _see_progress(self) -> None:
        """See how far another job of this node is, which brings the same data."""
        self._look()
        found = _progress(Path(f"{self._place}{_PROGRESS}"))
        if found is not None:
            self.bytes_done = max(0, self.bytes_needed - found[1] + found[0])

    def _look(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled


def make_store(scratch: Path) -> Path:
    """Make the folder for datasets of this user on a node's own disk.

    Raises:
        EnvironmentProblem: what is there belongs to somebody else.
    """
    own = scratch / f"mlebench-{os.getuid()}"
    folders.make_own(own)
    store = own / "datasets"
    store.mkdir(exist_ok=True)
    return store


def _copy_file(source: Path, target: Path, entry: ListedFile, count: Callable[[int], None]) -> None:
    """Copy one file, and compare what was read with what is listed.

    Raises:
        DataProblem: it is something else.
    """
    if entry.is_folder:
        target.mkdir(exist_ok=True)
        return
    digest, size = hashlib.sha256(), 0
    with ExitStack() as opened:
        stream = opened.enter_context(source.open("rb", buffering=0))
        count(0)  # opening may have taken so long that nobody wants it any more, and others make the same
        sink = opened.enter_context(target.open("xb", buffering=0))
        while True:
            with _naming(source):
                block = stream.read(_BLOCK)
            if not block:
                break
            digest.update(block)
            with _naming(target):
                _write_all(sink, block)
            size += len(block)
            count(len(block))
        os.fchmod(sink.fileno(), 0o444)
    if (size, digest.hexdigest()) != (entry.bytes, entry.sha256):
        raise DataProblem(
            f"{source} is not what its manifest lists",
            f"expected {entry.bytes:,} bytes with SHA-256 {entry.sha256}, found {size:,} with {digest.hexdigest()}",
        )


def _write_all(sink: FileIO, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[sink.write(view) :]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let what goes wrong with an open file bear its name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _is_there(place: Path, entry: ListedFile) -> bool:
    try:
        found = (place / entry.path).lstat()
    except OSError:
        return False
    if entry.is_folder:
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISREG(found.st_mode) and found.st_size == entry.bytes


def _put_together(made: Path, place: Path, entries: Sequence[ListedFile]) -> None:
    """Give a whole copy its name, or put what was missing into one."""
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
    _remove(made)


def _make_room(store: Path, digest: str, needed: int) -> None:
    """Remove what was not used for longest until there is room.

    Raises:
        EnvironmentProblem: there is not enough.
    """
    leases = [path for path in store.iterdir() if path.suffix == _LEASE and path.stem != digest]
    others = [path.stem for path in sorted(leases, key=lambda path: path.stat().st_mtime)]
    candidates = list(others)
    in_use = 0
    while (free := _free_bytes(store, others)) < needed:
        if not candidates:
            missing = f"{gigabytes(needed)} are needed, {gigabytes(needed - free)} are missing"
            used = f"; of {len(others)} other datasets there {in_use} are in use" if others else ""
            raise EnvironmentProblem(f"there is no room for the dataset below {store}", missing + used)
        in_use += not _discard(store, candidates.pop(0))


def _free_bytes(store: Path, others: Sequence[str]) -> int:
    """Return what is free on the disk and not about to be filled by other jobs."""
    found = os.statvfs(store)
    coming = (_progress(store / (name + _PROGRESS)) for name in others)
    return found.f_bavail * found.f_frsize - sum(total - done for done, total in filter(None, coming))


def _discard(store: Path, digest: str) -> bool:
    """Remove a dataset; False where a job uses it, brings it or waits for it."""
    with FileLock(store / (digest + _WORK)) as work:
        if not work.acquire():
            return False
        lease = os.open(store / (digest + _LEASE), os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for place in (store / (digest + _PARTIAL), store / digest):
                if place.is_dir():
                    _remove(place.replace(store / (digest + _PARTIAL)))
            (store / (digest + _PROGRESS)).unlink(missing_ok=True)
        except BlockingIOError:
            return False
        finally:
            os.close(lease)
    return True


def _remove(path: Path) -> None:
    """Remove a folder.

    Raises:
        EnvironmentProblem: something of it is left.
    """
    if left := files.remove_tree(path):
        raise EnvironmentProblem(f"{path} can't be removed", "; ".join(left))


@contextmanager
def _holding(path: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock of this node, after whoever has it now."""
    with FileLock(path) as lock:
        while not lock.acquire(note=str(os.getpid())):
            wait()
            time.sleep(_LOOK_SECONDS)
        yield


def _lock_shared(path: Path, wait: Callable[[], None]) -> int:
    """Open a file and lock it together with others, against nobody but who would remove what it stands for."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                time.sleep(_LOOK_SECONDS)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _note_progress(path: Path, done: int, total: int) -> None:
    files.write_json(path, [done, total], durable=False)


def _progress(path: Path) -> tuple[int, int] | None:
    """Read how much is there of how much; None where nobody brings anything."""
    try:
        done, total = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return (done, total) if locks.is_held(path.with_suffix(_WORK)) else None


def _mounted(image: Path, target: Path) -> subprocess.Popen[bytes]:
    """Mount an image read-only; it is unmounted with this process, whatever ends that.

    Raises:
        EnvironmentProblem: that can't be done on this node.
    """
    program = shutil.which("squashfuse")
    if program is None:
        raise EnvironmentProblem(
            "this node can't mount datasets", "squashfuse is not installed", 'Use staging = "copy".'
        )
    target.mkdir()
    job = os.getpid()
    with tempfile.TemporaryFile() as told:
        mount = subprocess.Popen(
            [program, "-f", "-o", "ro,nosuid,nodev", str(image), str(target)],
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            start_new_session=True,
            preexec_fn=lambda: die_with(job, signal.SIGTERM),
        )
        give_up = time.monotonic() + _MOUNT_SECONDS
        while not target.is_mount():
            if mount.poll() is not None or time.monotonic() > give_up:
                _unmount(mount, target)
                told.seek(0)
                text = " ".join(told.read(_MOST_TOLD).decode("utf-8", "replace").split())
                raise EnvironmentProblem(
                    "this node can't mount datasets", text or "squashfuse does not start"
                )
            time.sleep(0.01)
    return mount


def _unmount(mount: subprocess.Popen[bytes], target: Path) -> None:
    mount.terminate()  # which unmounts it
    with suppress(subprocess.TimeoutExpired):
        mount.wait(_UNMOUNT_SECONDS)
        return
    unmount_leftover(target)  # something still uses it
    mount.kill()
    mount.wait()


def unmount_leftover(target: Path) -> None:
    """Unmount an image whose job was killed, or in which something is still open; what is no mount is left alone."""
    if target.is_symlink() or str(target) not in Path("/proc/self/mountinfo").read_text().split():
        return
    for command in (("fusermount3", "-u", "-z"), ("fusermount", "-u", "-z"), ("umount", "-l")):
        if shutil.which(command[0]) and subprocess.run([*command, str(target)], check=False).returncode == 0:
            return


def _in_words(error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}"
