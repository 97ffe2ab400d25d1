"""A walk through a tree that an agent has made: of any depth, with names of any length, and with closed folders.

Standard library only, because it is copied into container images. Removing such a tree is
`foundation.files.remove_tree`, which containers have not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE = stat.S_IRUSR | stat.S_IXUSR
# So many folders above the one that is looked at stay open. Deeper ones are found again by `..`, which leads
# elsewhere when the folder was moved meanwhile: then the walk goes on from the deepest that is open.
_MOST_OPEN = 64
_MOST_SHOWN = 200


@dataclass(frozen=True)
class Entry:
    """What is called `name` in a folder: `folder` is that folder's descriptor, open until the walk goes on.

    Attributes:
        place: its path below the walk's root, of one that is very deep the end.
    """

    folder: int
    name: str
    place: str
    status: os.stat_result
    above: Sequence[_Folder] = field(default=(), repr=False, compare=False)

    def path(self, longest: int) -> Path | None:
        """Its whole path below the walk's root, while the walk has not gone on; None where that is too long."""
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
    enter: Callable[[Entry], bool] = lambda _folder: True,
) -> Iterator[Entry]:
    """Yield everything below a folder, each folder before what is in it; links are not followed.

    A folder is opened by its name in the folder above, so the length of its path does not matter. One of our
    own that is closed to us is opened to its owner.

    Args:
        root: the folder; one that is not there has nothing below it.
        refused: is told what can't be looked at, and why. What has gone away meanwhile is no such thing.
        enter: returns whether what is in a folder is wanted too.
    """
    try:
        here = _open(root, None)
    except FileNotFoundError:
        return
    except OSError as error:
        refused(root.name, error)
        return
    above: list[_Folder] = []
    try:
        above.append(_Folder(root.name, _identity(here), here, []))
        yield from _entries(here, above, refused, enter)
        while above:
            folder = above[-1]
            assert folder.descriptor is not None
            if folder.todo:
                name = folder.todo.pop()
                try:
                    below = _open(name, folder.descriptor)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    refused(_place(above, name), error)
                    continue
                above.append(_Folder(name, _identity(below), below, []))
                if len(above) > _MOST_OPEN + 1:
                    os.close(folder.descriptor)
                    folder.descriptor = None
                yield from _entries(below, above, refused, enter)
            else:
                _go_up(above, refused)
    finally:
        for folder in above:
            if folder.descriptor is not None:
                os.close(folder.descriptor)


def open_file(entry: Entry) -> int:
    """Open a regular file for reading, one of our own that is closed to us too; never a link, never a pipe.

    Raises:
        OSError: it can't be opened, or is no such file any more.
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
    enter: Callable[[Entry], bool],
) -> Iterator[Entry]:
    """Yield what is in the innermost folder, and note the folders in it as still to be entered."""
    prefix = _place(above, "")
    try:
        with os.scandir(here) as found:
            for one in found:
                place = f"{prefix}{one.name}"[-_MOST_SHOWN:]
                try:
                    status = one.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    refused(place, error)
                    continue
                entry = Entry(here, one.name, place, status, above)
                if stat.S_ISDIR(status.st_mode) and enter(entry):
                    above[-1].todo.append(one.name)
                yield entry
    except OSError as error:
        refused(prefix.rstrip("/"), error)


def _go_up(above: list[_Folder], refused: Callable[[str, OSError], None]) -> None:
    """Leave the innermost folder, and open the one above where it does not stand open."""
    left = above.pop()
    assert left.descriptor is not None
    try:
        if above and above[-1].descriptor is None:
            above[-1].descriptor = _open_above(left.descriptor, above[-1].identity)
    except OSError as error:
        refused(_place(above, left.name), error)
        while above[-1].descriptor is None:
            above.pop()
    finally:
        os.close(left.descriptor)


def _open(path: Path | str, parent: int | None) -> int:
    """Open a folder, with the right to read and enter it where it is ours."""
    try:
        opened = os.open(path, _FOLDER, dir_fd=parent)
    except PermissionError:
        # Without any right to the folder itself, so that its rights can be changed.
        closed = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if not _is_opened(closed):
                raise
            return os.open(".", _FOLDER, dir_fd=closed)
        finally:
            os.close(closed)
    try:
        _is_opened(opened)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _is_opened(folder: int) -> bool:
    """Let the owner of a folder read and enter it if that is us; tell whether it was us."""
    found = os.fstat(folder)
    if found.st_uid != os.geteuid():
        return False
    mode = stat.S_IMODE(found.st_mode)
    if mode & _READABLE != _READABLE:
        os.chmod(f"/proc/self/fd/{folder}", mode | _READABLE)  # noqa: PTH101 - of what is open
    return True


def _open_above(folder: int, expected: tuple[int, int]) -> int:
    above = os.open("..", _FOLDER, dir_fd=folder)
    if _identity(above) == expected:
        return above
    os.close(above)
    raise FileNotFoundError(0, "it was moved while it was looked through")


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _place(above: list[_Folder], name: str) -> str:
    return "/".join([*(folder.name for folder in above[-20:]), name])[-_MOST_SHOWN:]
