"""The objects that a competition's `task.py` works with; `judging` and `engine.datasets` run it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mlebench_console.competitions.model import Competition, Edition, Parameter
from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.foundation.problems import UsageProblem

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]
"""Called with the step's name, how many items are done, and how many there are."""

OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators in files that are not comma-separated, and their names in messages."""


class InvalidSubmission(Exception):
    """A submission cannot be scored; the message says what its author has to change.

    The message speaks of the submission's form only (which column, which row, what was expected):
    it reaches the agent, so it must not say anything about the answers' values. One about a row begins
    with "Row" and its number, counted from 1 without the header.
    """

    def message_quoting(self, source: SubmissionSource) -> str:
        """Return the message with cells quoted as they stand in the submission's file."""
        del source
        return str(self)


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress; the default hook."""
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
        """Return a numeric parameter of the competition; whole ones are int (`test_size = 20000` counts rows)."""
        value = self.parameters[name]
        if not isinstance(value, int | float):
            raise UsageProblem(f"Parameter {name!r} of {self.competition.id} must be a number, not {value!r}")
        return value

    def integer(self, name: str) -> int:
        """Return an integer parameter of the competition, such as a seed."""
        return int(self.number(name))


@dataclass(frozen=True)
class Preparation(_Job):
    """One preparation: raw data in, public and private folder out.

    Attributes:
        raw: the folder, or the zip, that Kaggle delivers; never written to.
        beside: folders with raw files that others publish.
        public: the empty folder for what the agent sees.
        private: the empty folder for the answers.
        scratch: a folder for intermediate files, on the same file system, removed afterwards.
        progress: hook that reports progress; it may be called for every item, as it passes few reports on, and may
            raise to cancel.
    """

    raw: RawPath
    public: Path
    private: Path
    scratch: Path
    beside: tuple[Path, ...] = ()
    progress: Progress = field(default=silent)

    def source(self, *names: str) -> RawPath:
        """Return the first of the named raw files that exists, in Kaggle's data or beside them.

        Raises:
            DataProblem: none of them exists.
        """
        for name in names:
            for folder in (self.raw, *self.beside):
                path = folder / name
                if path.exists():
                    return path
        raise self.missing(" or ".join(names), self.raw)

    def unexpected(self, file: RawPath | str, why: str) -> RawDataProblem:
        """Return the problem of a raw file whose content is not as expected."""
        return RawDataProblem(f"{file} is not in the expected form", why, subject=self.competition.id)

    def missing(self, name: str, folder: RawPath) -> RawDataProblem:
        """Return the problem of a raw file that is missing from its folder."""
        return RawDataProblem(
            f"{name} is missing from the raw data",
            f"looked in {folder}",
            "Download the competition's data again; the copy is incomplete.",
            subject=self.competition.id,
        )


@dataclass(frozen=True)
class PublicData(_Job):
    """The public part of a dataset, for tasks whose answers have another form than the sample submission.

    Attributes:
        public: the folder that agents are given.
    """

    public: Path

    def table(
        self, name: str, *, text: tuple[str, ...] | None = None, columns: tuple[str, ...] | None = None
    ) -> pd.DataFrame:
        """Read a public table or some of its columns, those in `text` verbatim (all with an empty tuple)."""
        from mlebench_console.competitions.kit import tables

        return tables.read_csv(self.public / name, text=text, columns=columns)

    def sample(self) -> pd.DataFrame:
        """Read the sample submission, where it is a public file and in no archive."""
        return self.table(Path(self.competition.sample_submission).name)


class SubmissionSource(Protocol):
    """A submission's file, for tasks that must read some columns in their own way."""

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
        form_only: whether `answers` are made from public data. Their values then mean nothing, and rows or
            objects that may not be scored are checked like all others.
        stand_in: the table that the task made to replace the answers, if it made one.
        warnings: what the author of a valid submission should know of it, filled by `grade`; nothing of the answers.
    """

    submission: pd.DataFrame
    answers_path: Path
    private: Path
    source: SubmissionSource
    form_only: bool = False
    stand_in: pd.DataFrame | None = None
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answers as a table, read as MLE-bench reads it."""
        return self.read_answers()

    def read_answers(
        self, *, text: tuple[str, ...] | None = None, columns: tuple[str, ...] | None = None
    ) -> pd.DataFrame:
        """Read the answers or some of their columns, those in `text` verbatim (all with an empty tuple)."""
        from mlebench_console.competitions.kit import tables

        if self.stand_in is not None:  # the task has made its columns as `grade` reads them
            return self.stand_in if columns is None else self.stand_in[list(columns)]
        return tables.read_csv(self.answers_path, text=text, columns=columns)

    def verbatim(
        self, *text: str, columns: tuple[str, ...] | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the submission and the answers, or some columns of the answers.

        In edition corrected the columns in `text` are verbatim text; in edition v1 a cell such as "NA" is
        missing, and a column of numbers holds numbers.
        """
        if self.corrected:
            return self.source.read(text=text), self.read_answers(text=text, columns=columns)
        return self.submission, self.read_answers(columns=columns)


def merge_parameters(
    competition: Competition, overrides: Mapping[str, Parameter] | None
) -> Mapping[str, Parameter]:
    """Return the competition's parameters with some replaced.

    Raises:
        UsageProblem: an override is not a parameter of the competition.
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
    """Return the last line of the competition's own code in a traceback, as `task.py, line 12`; empty if none."""
    places = re.findall(r'^ *File "(.+)", line (\d+)', trace, re.MULTILINE)
    own = [(Path(name), line) for name, line in places if Path(name).is_relative_to(competition.folder)]
    return f"{own[-1][0].relative_to(competition.folder)}, line {own[-1][1]}" if own else ""


def refuse_excluded(competition: Competition, edition: Edition) -> None:
    """Raise if an edition excludes the competition.

    Raises:
        UsageProblem: it does; the message gives the reason.
    """
    if edition == "corrected" and competition.excluded:
        raise UsageProblem(
            f"{competition.id} is not part of edition corrected",
            competition.excluded,
            "Use edition v1, or leave it out.",
        )
