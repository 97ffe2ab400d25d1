"""The hierarchy of errors that people see: what failed, why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

# The beginning of a pointer file, which Git LFS stores in place of a large file.
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class ProblemRecord:
    """A problem as it is kept, or passed on to another process.

    Attributes:
        code: of the class that was raised, for programs; the texts are for people.
        what: what failed.
        why: the cause, where it is known.
        next_step: what to do now, as an instruction.
        subject: the competition that it is about, where `what` does not name it.
        retry_after: after how many seconds to try again, where another program said so.
    """

    code: str
    what: str
    why: str = ""
    next_step: str = ""
    subject: str = ""
    retry_after: float | None = None

    @property
    def cause(self) -> str:
        """What failed and why, without the next step."""
        return ": ".join(filter(None, (self.subject, self.what, self.why)))

    def without_subject(self) -> ProblemRecord:
        """Return the problem for places that name its subject themselves."""
        return replace(self, subject="")

    def in_one_line(self) -> str:
        """Return the whole problem in one line, such as for a column of a table."""
        text = f"{self.cause.rstrip('.')}. {self.next_step}" if self.next_step else self.cause
        return text.replace("\n", " ")


class Problem(Exception):
    """An error that a person can do something about.

    Only the outermost layer (command line, console, engine log) turns a problem into text;
    everything below raises it and lets it pass.

    Attributes:
        code: names the class where it can't be seen, in the state and for other processes; a subclass without a code
            has that of its parent.
        record: what was raised; `what` has the name of what failed ("competition 'spoky' is not known").
    """

    code: ClassVar[str] = "problem"
    exit_code: ClassVar[int] = 1
    _by_code: ClassVar[dict[str, type[Problem]]] = {}

    def __init_subclass__(cls) -> None:
        """Make the class known by its code, if it has one of its own."""
        if "code" in cls.__dict__:
            Problem._by_code[cls.code] = cls

    def __init__(
        self,
        what: str,
        why: str = "",
        next_step: str = "",
        *,
        subject: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what)
        self.record = ProblemRecord(self.code, what, why, next_step, subject, retry_after)

    @staticmethod
    def of(record: ProblemRecord) -> Problem:
        """Return the problem that a record is of; a DataProblem if this process does not know its class."""
        kind = Problem._by_code.get(record.code, DataProblem)
        return kind(
            record.what,
            record.why,
            record.next_step,
            subject=record.subject,
            retry_after=record.retry_after,
        )

    @property
    def what(self) -> str:
        """What failed."""
        return self.record.what

    @property
    def why(self) -> str:
        """The cause, where it is known."""
        return self.record.why

    @property
    def next_step(self) -> str:
        """What to do now, as an instruction."""
        return self.record.next_step

    def __str__(self) -> str:
        """Return the problem in at most two lines."""
        return f"{self.cause}\n{self.next_step}" if self.next_step else self.cause

    @property
    def cause(self) -> str:
        """What failed and why, without the next step."""
        return self.record.cause

    def in_one_line(self) -> str:
        """Return the whole problem in one line."""
        return self.record.in_one_line()

    def __reduce__(self) -> tuple[object, ...]:
        """Keep all parts when the problem is pickled."""
        return (type(self), (self.what, self.why, self.next_step), {"record": self.record})


class UsageProblem(Problem):
    """A usage error: an unknown name, a wrong flag, a contradiction."""

    code: ClassVar[str] = "usage"
    exit_code: ClassVar[int] = 2


class DataProblem(Problem):
    """A file is missing, unreadable, damaged or not what its name promises."""

    code: ClassVar[str] = "data"
    exit_code: ClassVar[int] = 3


class StateProblem(Problem):
    """The project's own state cannot be used: it is locked, damaged, newer, or on an unsuitable file system."""

    code: ClassVar[str] = "state"
    exit_code: ClassVar[int] = 4


class EnvironmentProblem(Problem):
    """This machine lacks something that is needed: a program, a device, disk space, a permission."""

    code: ClassVar[str] = "environment"
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
