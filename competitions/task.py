"""What a competition's `task.py` is given to work with; running it is in `preparing` and `judging`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from competitions.model import Competition, Edition, Parameter
from competitions.raw import RawDataProblem, RawPath
from foundation.problems import UsageProblem

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many items are done, and how many there are."""

OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""What stands between the cells of submissions that are no CSVs, and what it is called in messages."""


class InvalidSubmission(Exception):
    """A submission cannot be scored; the message says what its author has to change.

    The message speaks of the submission's form only (which column, which row, what was expected):
    it reaches the agent, so it must not say anything about the answers' values. One about a row begins
    with "Row" and its number, counted from 1 without the header.
    """

    def told(self, source: SubmissionSource) -> str:
        """The message with what it quotes of the submission as it stands in the file."""
        del source
        return str(self)


def silent(what: str, done: int, total: int) -> None:
    """The progress hook of those who don't want to know."""
    del what, done, total


@dataclass(frozen=True)
class _Job:
    competition: Competition
    edition: Edition
    parameters: Mapping[str, Parameter]

    @property
    def corrected(self) -> bool:
        """Whether the defects of edition v1 are to be mended."""
        return self.edition == "corrected"

    def number(self, name: str) -> float:
        """A number that the competition fixes; whole ones come as int (`test_size = 20000` counts rows)."""
        value = self.parameters[name]
        if not isinstance(value, int | float):
            raise UsageProblem(f"Parameter {name!r} of {self.competition.id} must be a number, not {value!r}")
        return value

    def integer(self, name: str) -> int:
        """A whole number that the competition fixes, such as a seed."""
        return int(self.number(name))


@dataclass(frozen=True)
class Preparation(_Job):
    """One preparation: raw data in, public and private folder out.

    Attributes:
        raw: what Kaggle delivers, as files and folders wherever they lie; never written to.
        beside: folders with raw files that others publish.
        public: the empty folder for what the agent sees.
        private: the empty folder for the answers.
        scratch: a folder for intermediate files, on the same file system, removed afterwards.
        may_link: whether outputs may share their blocks with raw files by hard links.
        progress: hook that reports progress; it may raise to cancel.
    """

    raw: RawPath
    public: Path
    private: Path
    scratch: Path
    beside: tuple[Path, ...] = ()
    may_link: bool = False
    progress: Progress = field(default=silent)

    def source(self, *names: str) -> RawPath:
        """The first of the named raw files that exists, Kaggle's or of others.

        Raises:
            DataProblem: none of them is there.
        """
        for name in names:
            for folder in (self.raw, *self.beside):
                path = folder / name
                if path.exists():
                    return path
        raise self.missing(" or ".join(names), self.raw)

    def missing(self, name: str, folder: RawPath) -> RawDataProblem:
        """The problem of a raw file that is not in its folder."""
        return RawDataProblem(
            f"{self.competition.id}: {name} is missing from the raw data",
            f"looked in {folder}",
            "Download the competition's data again; the copy is incomplete.",
        )


@dataclass(frozen=True)
class PublicData(_Job):
    """What agents see of a dataset, for the tasks whose answers look unlike the sample submission.

    Attributes:
        public: the folder that agents are given.
    """

    public: Path

    def table(
        self, name: str, *, text: tuple[str, ...] | None = None, columns: tuple[str, ...] | None = None
    ) -> pd.DataFrame:
        """Read a public table or some of its columns, those in `text` verbatim (all with an empty tuple)."""
        from competitions.kit import tables

        return tables.read_csv(self.public / name, text=text, columns=columns)

    def sample(self) -> pd.DataFrame:
        """Read the sample submission, where it is a public file and in no archive."""
        return self.table(Path(self.competition.sample_submission).name)


class SubmissionSource(Protocol):
    """A submission's file, for the few tasks that must read some columns in their own way."""

    def read(self, *, text: tuple[str, ...] | None = None) -> pd.DataFrame:
        """Read again, the named columns as verbatim text (all columns with an empty tuple)."""


@dataclass(frozen=True)
class Grading(_Job):
    """One submission to be scored against the answers, or to be checked without them.

    Attributes:
        submission: the submitted table, read as MLE-bench reads it (default types, NA words missing).
        answers_path: the answers file, or the sample submission where the form alone is checked.
        private: the folder of the answers, for competitions that need further files.
        source: the submission's file, to read columns verbatim.
        form_only: whether what is called answers here is made of public data. Its values mean nothing then, and
            rows or objects that may not be scored are checked like all others.
        stand_in: what a task has made to stand for the answers, if it has.
    """

    submission: pd.DataFrame
    answers_path: Path
    private: Path
    source: SubmissionSource
    form_only: bool = False
    stand_in: pd.DataFrame | None = None

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answers as a table, read as MLE-bench reads it."""
        return self.read_answers()

    def read_answers(
        self, *, text: tuple[str, ...] | None = None, columns: tuple[str, ...] | None = None
    ) -> pd.DataFrame:
        """Read the answers or some of their columns, those in `text` verbatim (all with an empty tuple)."""
        from competitions.kit import tables

        if self.stand_in is not None:  # its task has made the columns as `grade` asks for them
            return self.stand_in if columns is None else self.stand_in[list(columns)]
        return tables.read_csv(self.answers_path, text=text, columns=columns)

    def verbatim(
        self, *text: str, columns: tuple[str, ...] | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The submission and the answers, or some columns of the answers.

        Edition corrected has the columns in `text` as they stand in the files; in edition v1 a cell that
        reads like a missing one is missing, and a column of numbers holds numbers.
        """
        if self.corrected:
            return self.source.read(text=text), self.read_answers(text=text, columns=columns)
        return self.submission, self.read_answers(columns=columns)


def merge_parameters(
    competition: Competition, overrides: Mapping[str, Parameter] | None
) -> Mapping[str, Parameter]:
    """The competition's parameters with some replaced.

    Raises:
        UsageProblem: an override names no parameter of the competition.
    """
    given = dict(overrides or {})
    unknown = sorted(set(given) - set(competition.parameters))
    if unknown:
        raise UsageProblem(
            f"{competition.id} has no parameter {', '.join(unknown)}",
            next_step=f"It has: {', '.join(competition.parameters) or 'none'}.",
        )
    return {**competition.parameters, **given}


def line_at_fault(competition: Competition, trace: str) -> str:
    """The line of the competition's own code to which a traceback leads, as `task.py, line 12`; empty if none does."""
    places = re.findall(r'^ *File "(.+)", line (\d+)', trace, re.MULTILINE)
    own = [(Path(name), line) for name, line in places if Path(name).is_relative_to(competition.folder)]
    return f"{own[-1][0].relative_to(competition.folder)}, line {own[-1][1]}" if own else ""


def refuse_excluded(competition: Competition, edition: Edition) -> None:
    """Stop when an edition leaves the competition out.

    Raises:
        UsageProblem: it does, with the reason.
    """
    if edition == "corrected" and competition.excluded:
        raise UsageProblem(
            f"{competition.id} is not part of edition corrected",
            competition.excluded,
            "Use edition v1, or leave it out.",
        )
