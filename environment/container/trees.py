"""Walk or remove a tree that an agent has made: of any depth, with paths of any length, with folders closed to all.

Standard library only, because it is copied into container images.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RUNS_AS_OWNER = stat.S_ISUID | stat.S_ISGID
_READABLE = stat.S_IRUSR | stat.S_IXUSR
# So many folders above the current one stay open. Others are opened again as `..`, which leads elsewhere if a folder
# was moved meanwhile: then the walk continues from the deepest one that is open.
_MOST_OPEN = 64
_MOST_SHOWN = 200
_MOST_LEFT = 20


@dataclass(frozen=True)
class TreeEntry:
    """An entry of a folder.

    Attributes:
        folder: the descriptor of that folder, open until the walk continues.
        name: its name there.
        place: its path below the walk's root; only the end of a very long one.
    """

    folder: int
    name: str
    place: str
    status: os.stat_result
    above: Sequence[_Folder] = field(default=(), repr=False, compare=False)

    def path(self, longest: int) -> Path | None:
        """Return its whole path below the walk's root, until the walk continues; None where it is too long."""
        parts = [folder.name for folder in self.above[1 : longest + 2]] + [self.name]
        found = "/".join(parts)
        return Path(found) if len(os.fsencode(found)) <= longest else None


@dataclass
class _Folder:
    name: str
    identity: tuple[int, int]
    descriptor: int | None
    todo: list[str]


def walk(
    root: Path,
    refused: Callable[[str, OSError], None],
    enter: Callable[[TreeEntry], bool] = lambda _folder: True,
    *,
    removes: bool = False,
) -> Iterator[TreeEntry]:
    """Yield everything below a folder, each folder before its content; links are not followed.

    A folder is opened by its name in the folder above, so the length of its path does not matter. Folders of this
    user that it may not read are made readable first.

    Args:
        root: the folder; if it does not exist, nothing is yielded.
        refused: called with each entry that can't be read, and the error; vanished entries are ignored.
        enter: returns whether to walk a folder.
        removes: whether the caller removes what is yielded: then each folder comes after its content, and those of
            this user are made writable, too.
    """
    mode = stat.S_IRWXU if removes else _READABLE
    try:
        here = _open(root, None, mode)
    except FileNotFoundError:
        return
    except OSError as error:
        refused(root.name, error)
        return
    above: list[_Folder] = []
    try:
        above.append(_Folder(root.name, _identity(here), here, []))
        yield from _entries(here, above, refused, enter, removes=removes)
        while above:
            folder = above[-1]
            assert folder.descriptor is not None
            if folder.todo:
                name = folder.todo.pop()
                try:
                    below = _open(name, folder.descriptor, mode)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    refused(_place(above, name), error)
                    continue
                above.append(_Folder(name, _identity(below), below, []))
                if len(above) > _MOST_OPEN + 1:
                    os.close(folder.descriptor)
                    folder.descriptor = None
                yield from _entries(below, above, refused, enter, removes=removes)
            else:
                left = _leave_folder(above, refused)
                if removes and left is not None:
                    yield left
    finally:
        for folder in above:
            if folder.descriptor is not None:
                os.close(folder.descriptor)


def remove_tree(path: Path) -> list[str]:
    """Remove a file or a folder with everything below, however an agent has arranged it, as far as possible.

    Returns:
        What is left and why, one line each and twenty at most; nothing when everything was removed.
    """
    steps = removing_tree(path)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            left: list[str] = end.value
            return left


def removing_tree(path: Path) -> Generator[None, None, list[str]]:
    """Do as `remove_tree` in steps that remove at most one entry each, and return the same."""
    left: list[str] = []

    def refused(place: str, error: OSError) -> None:
        # A folder that is not empty needs no line of its own, where one says what is left in it.
        if len(left) < _MOST_LEFT and not (left and error.errno == errno.ENOTEMPTY):
            left.append(f"{place}: {error.strerror}")

    def remove(name: Path | str, folder: int | None, place: str, mode: int) -> None:
        try:
            if stat.S_ISDIR(mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass  # somebody else has removed it
        except OSError as error:
            refused(place, error)

    try:
        root = path.lstat()
    except FileNotFoundError:
        return left
    if stat.S_ISDIR(root.st_mode):
        for entry in walk(path, refused, removes=True):
            remove(entry.name, entry.folder, entry.place, entry.status.st_mode)
            yield
    remove(path, None, path.name, root.st_mode)
    return left


def drop_rights(entry: TreeEntry, wanted: int = 0) -> None:
    """Remove the bits by which a program runs as its file's owner or group, and set others, where that is possible.

    Nobody may be changing the tree any more.
    """
    mode = stat.S_IMODE(entry.status.st_mode)
    new_mode = (mode & ~_RUNS_AS_OWNER) | wanted
    if new_mode != mode and (stat.S_ISDIR(entry.status.st_mode) or stat.S_ISREG(entry.status.st_mode)):
        # Files of other users can't be changed.
        with suppress(PermissionError, FileNotFoundError):
            os.chmod(entry.name, new_mode, dir_fd=entry.folder)


def open_file(entry: TreeEntry) -> int:
    """Open a regular file for reading, never a link or a pipe; one of this user's is made readable first.

    Raises:
        OSError: it can't be opened, or is not a regular file any more.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(entry.name, flags, dir_fd=entry.folder)
    except PermissionError:
        closed = os.open(entry.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.folder)
        try:
            found = os.fstat(closed)
            if found.st_uid != os.geteuid() or not stat.S_ISREG(found.st_mode):
                raise
            os.chmod(f"/proc/self/fd/{closed}", stat.S_IMODE(found.st_mode) | stat.S_IRUSR)  # noqa: PTH101
        finally:
            os.close(closed)
        return os.open(entry.name, flags, dir_fd=entry.folder)


def _entries(
    here: int,
    above: list[_Folder],
    refused: Callable[[str, OSError], None],
    enter: Callable[[TreeEntry], bool],
    *,
    removes: bool,
) -> Iterator[TreeEntry]:
    """Yield the entries of the innermost folder, and queue the folders among them."""
    prefix = _place(above, "")
    try:
        with os.scandir(here) as found:
            # Some file systems skip names in a folder that is changed while it is read.
            for one in list(found) if removes else found:
                place = f"{prefix}{one.name}"[-_MOST_SHOWN:]
                try:
                    status = one.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    refused(place, error)
                    continue
                entry = TreeEntry(here, one.name, place, status, above)
                is_folder = stat.S_ISDIR(status.st_mode)
                if is_folder and enter(entry):
                    above[-1].todo.append(one.name)
                if not (is_folder and removes):
                    yield entry
    except OSError as error:
        refused(prefix.rstrip("/"), error)


def _leave_folder(above: list[_Folder], refused: Callable[[str, OSError], None]) -> TreeEntry | None:
    """Leave the innermost folder, opening the one above if it is not open, and return it; None for the root."""
    left = above.pop()
    assert left.descriptor is not None
    try:
        if not above:
            return None
        if above[-1].descriptor is None:
            above[-1].descriptor = _open_above(left.descriptor, above[-1].identity)
        status = os.fstat(left.descriptor)
        return TreeEntry(above[-1].descriptor, left.name, _place(above, left.name), status, above)
    except OSError as error:
        refused(_place(above, left.name), error)
        while above[-1].descriptor is None:
            above.pop()
        return None
    finally:
        os.close(left.descriptor)


def _open(path: Path | str, parent: int | None, mode: int) -> int:
    """Open a folder, giving its owner these permissions first if it is this user's."""
    try:
        opened = os.open(path, _FOLDER, dir_fd=parent)
    except PermissionError:
        # O_PATH needs no permission on the folder itself, so that its mode can be changed.
        closed = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if not _permit(closed, mode):
                raise
            return os.open(".", _FOLDER, dir_fd=closed)
        finally:
            os.close(closed)
    try:
        _permit(opened, mode)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _permit(folder: int, wanted: int) -> bool:
    """Give this user permissions on a folder of its own, and return whether it is this user's."""
    found = os.fstat(folder)
    if found.st_uid != os.geteuid():
        return False
    mode = stat.S_IMODE(found.st_mode)
    if mode & wanted != wanted:
        os.chmod(f"/proc/self/fd/{folder}", mode | wanted)  # noqa: PTH101 - of what is open
    return True


def _open_above(folder: int, expected: tuple[int, int]) -> int:
    above = os.open("..", _FOLDER, dir_fd=folder)
    if _identity(above) == expected:
        return above
    os.close(above)
    raise FileNotFoundError(0, "it was moved while it was read")


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _place(above: list[_Folder], name: str) -> str:
    return "/".join([*(folder.name for folder in above[-20:]), name])[-_MOST_SHOWN:]
