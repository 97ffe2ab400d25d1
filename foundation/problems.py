"""The hierarchy of errors that people see: what failed, why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

# The beginning of a pointer file, which Git LFS stores in place of a large file.
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class Problem(Exception):
    """An error that a person can do something about.

    Only the outermost layer (command line, console, engine log) turns a problem into text;
    everything below raises it and lets it pass.

    Attributes:
        what: what failed, with its name ("competition 'spoky' is not known").
        why: the cause, where it is known.
        next_step: what to do now, as an instruction.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, why: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next_step = next_step

    def __str__(self) -> str:
        """Return the problem in at most two lines."""
        return f"{self.cause}\n{self.next_step}" if self.next_step else self.cause

    @property
    def cause(self) -> str:
        """What failed and why, without the next step."""
        return f"{self.what}: {self.why}" if self.why else self.what

    def in_one_line(self) -> str:
        """Return the whole problem in one line, such as for a column of the state."""
        text = f"{self.cause.rstrip('.')}. {self.next_step}" if self.next_step else self.cause
        return text.replace("\n", " ")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep all three parts when the problem is pickled."""
        return (type(self), (self.what, self.why, self.next_step))


class UsageProblem(Problem):
    """A usage error: an unknown name, a wrong flag, a contradiction."""

    exit_code: ClassVar[int] = 2


class DataProblem(Problem):
    """A file is missing, unreadable, damaged or not what its name promises."""

    exit_code: ClassVar[int] = 3


class StateProblem(Problem):
    """The project's own state cannot be used: it is locked, damaged, newer, or on an unsuitable file system."""

    exit_code: ClassVar[int] = 4


class EnvironmentProblem(Problem):
    """This machine lacks something that is needed: a program, a device, disk space, a permission."""

    exit_code: ClassVar[int] = 5


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of reading and parsing a text file into a DataProblem that names it."""
    try:
        yield
    except OSError as error:
        raise DataProblem(f"{path} can't be read", error.strerror or str(error)) from error
    except ValueError as error:
        refuse_pointer(path)
        raise DataProblem(f"{path} can't be read", str(error)) from error


def refuse_pointer(path: Path, *, original: Path | None = None) -> None:
    """Refuse a Git LFS pointer, in place of which the file was not fetched; MLE-bench stores large files in Git LFS.

    Raises:
        DataProblem: it is a pointer; the message names `original` if the file is a copy of it.
    """
    with path.open("rb") as stream:
        is_pointer = stream.read(len(LFS_POINTER)) == LFS_POINTER
    if is_pointer:
        named = original or path
        step = f"Fetch the file: git -C {named.absolute().parent} lfs pull"
        raise DataProblem(f"{named} is a Git LFS pointer", "the file itself has not been fetched", step)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of writing a file or folder into a DataProblem that names it."""
    try:
        yield
    except OSError as error:
        raise DataProblem(f"{path} can't be written", error.strerror or str(error)) from error
