"""The scoreboard as its screens ask for it: all rows, what lies behind one of them, two beside each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine.scoreboard import (
    Comparison,
    Evidence,
    Measure,
    Row,
    Trial,
    compare,
    imported_evidence,
    own_evidence,
    published_rows,
    row_of,
)
from engine.scoreboard.own_runs import curves_of, find_evidence
from engine.scoreboard.plots import Plot, plots_of
from engine.scoreboard.reports import read_import
from engine.settings import Prices, read_table
from foundation.problems import Problem
from state.database import Database

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Subject:
    """Which experiment is meant: our own or an imported one, by its name."""

    table: str
    name: str

    @property
    def has_runs(self) -> bool:
        """Whether single runs are known, and not only the numbers of a published row."""
        return self.table in ("own", "imported")


@dataclass(frozen=True)
class Scoreboard:
    """All rows, and what kept some from being read."""

    rows: tuple[Row, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Behind:
    """What lies behind a row: its evidence, and the row made of it."""

    evidence: Evidence
    row: Row
    prices: Prices
    plots: tuple[Plot, ...]

    def trials_of(self, competition_id: str) -> tuple[Trial, ...]:
        """The trials of one competition, in the order in which they count as seeds."""
        return tuple(trial for trial in self.evidence.trials if trial.competition_id == competition_id)


def subject_of(row: Row) -> Subject:
    """Which experiment a row is of."""
    return Subject(row.table, row.name)


def scoreboard(database: Database, *, pad_missing: bool) -> Scoreboard:
    """Read all rows; a damaged import or table is told and keeps no other row away."""
    state_dir = database.path.parent
    rows: list[Row] = []
    problems: list[str] = []
    parts: tuple[Callable[[], tuple[Row, ...]], ...] = (
        lambda: tuple(row_of(one, pad_missing=pad_missing) for one in own_evidence(database)),
        lambda: tuple(row_of(one, pad_missing=pad_missing) for one in imported_evidence(state_dir)),
        lambda: published_rows(state_dir),
    )
    for part in parts:
        found = or_problem(part)
        if isinstance(found, Problem):
            problems.append(" ".join(str(found).splitlines()))
        else:
            rows += found
    return Scoreboard(tuple(rows), tuple(problems))


def evidence_of(database: Database, subject: Subject) -> Evidence:
    """Read the evidence of an experiment.

    Raises:
        Problem: it is gone, or damaged.
    """
    if subject.table == "imported":
        return read_import(database.path.parent, subject.name)
    return find_evidence(database, subject.name)


def behind(database: Database, subject: Subject, config_file: Path, *, pad_missing: bool) -> Behind | Problem:
    """Read what lies behind a row."""

    def read() -> Behind:
        evidence = evidence_of(database, subject)
        row = row_of(evidence, pad_missing=pad_missing)
        curves = curves_of(database, evidence) if evidence.table == "own" else ()
        plots = () if evidence.conflict else plots_of(evidence, row, curves=curves)
        return Behind(evidence, row, read_table(config_file, Prices), plots)

    return or_problem(read)


def versus(database: Database, first: Subject, second: Subject, measure: Measure) -> Comparison | Problem:
    """Compare two experiments by competition."""
    return or_problem(
        lambda: compare(evidence_of(database, first), evidence_of(database, second), measure=measure)
    )


def or_problem(read: Callable[[], Answer]) -> Answer | Problem:
    """An answer, or why there is none: what concerns one screen must not look like a broken state."""
    try:
        return read()
    except Problem as problem:
        return problem
