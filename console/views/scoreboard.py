"""The scoreboard's data for screens and commands: rows, one experiment, a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.console.nouns.scoreboard import are_measured, costs_text
from mlebench_console.console.nouns.trial import CompetitionTrials
from mlebench_console.engine.providers import model_prices
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.comparison import Comparison, Difference, compare
from mlebench_console.engine.scoreboard.export import USUAL_SEEDS
from mlebench_console.engine.scoreboard.insight import Insight, insight_of
from mlebench_console.engine.scoreboard.model import COLUMNS, Evidence, Measure, Row
from mlebench_console.engine.scoreboard.own_runs import find_evidence, own_evidence
from mlebench_console.engine.scoreboard.plots import Plot, plots_of
from mlebench_console.engine.scoreboard.published import published_rows
from mlebench_console.engine.scoreboard.reports import imported_evidence, read_import
from mlebench_console.engine.settings import Prices, read_table
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import plural
from mlebench_console.state import experiments
from mlebench_console.state.database import Database

ADDITIONAL = "additional table: rows that used feedback from the test set, or are otherwise not comparable"


@dataclass(frozen=True)
class Subject:
    """A reference to an experiment, our own or an imported one, by its name."""

    table: str
    name: str


# The rows


@dataclass(frozen=True)
class Scoreboard:
    """All rows, and the problems of those that could not be read."""

    rows: tuple[Row, ...] = ()
    problems: tuple[str, ...] = ()


def scoreboard(database: Database, config_file: Path, *, pad_missing: bool) -> Scoreboard:
    """Read all rows; a damaged import or table is reported as a problem beside the other rows."""
    state_dir = database.path.parent
    rows: list[Row] = []
    problems: list[str] = []

    def made(evidences: Iterable[Evidence]) -> tuple[Row, ...]:
        return tuple(row_of(evidence, pad_missing=pad_missing) for evidence in evidences)

    parts: tuple[Callable[[], tuple[Row, ...]], ...] = (
        lambda: made(own_evidence(database, model_prices(config_file))),
        lambda: made(imported_evidence(state_dir)),
        lambda: published_rows(state_dir),
    )
    for part in parts:
        try:
            rows += part()
        except Problem as problem:
            problems.append(" ".join(str(problem).splitlines()))
    return Scoreboard(tuple(rows), tuple(problems))


def subject_of(row: Row) -> Subject:
    """Return a reference to a row's experiment."""
    return Subject(row.table, row.name)


@dataclass(frozen=True)
class Place:
    """The place of an experiment among the published rows, and the rows next to it."""

    number: int
    of: int
    ahead: Row | None
    behind: Row | None


@dataclass(frozen=True)
class Comparability:
    """The places of an experiment among the published rows, by the columns that it has a figure for.

    Attributes:
        obstacle: why published rows compare with none of its figures; empty if they do.
        caution: what a reader of the places must know; empty if nothing.
    """

    places: Mapping[str, Place]
    obstacle: str
    caution: str = ""


def comparability(row: Row, rows: Iterable[Row]) -> Comparability:
    """Return where an experiment stands among the published rows of the main table."""
    if row.demo or row.conflict:
        return Comparability({}, "demo data, not a result" if row.demo else "its runs make no row")
    places = {}
    for column in COLUMNS:
        cell = row.columns[column].cell
        known = [
            (other_cell.mean, other)
            for other in rows
            if other.table == "main" and (other_cell := other.columns[column].cell) is not None
        ]
        if cell is not None and known:
            known.sort(key=lambda one: -one[0])
            # Figures that look equal in the table share a place.
            shown = round(cell.mean, 1)
            ahead = [other for mean, other in known if round(mean, 1) > shown]
            behind = [other for mean, other in known if round(mean, 1) <= shown]
            places[column] = Place(
                len(ahead) + 1, len(known) + 1, ahead[-1] if ahead else None, behind[0] if behind else None
            )
    if not places:
        return Comparability({}, "still running" if row.running else "no split is complete")
    seeds = [cell.n for column in places if (cell := row.columns[column].cell) is not None and cell.n]
    fewest = min(seeds, default=USUAL_SEEDS)
    cautions = (
        "padded" if row.padded else "",
        plural(fewest, "seed") if fewest < USUAL_SEEDS else "",
    )
    return Comparability(places, "", ", ".join(filter(None, cautions)))


def comparability_texts(found: Comparability) -> tuple[str, ...]:
    """Write on which splits published rows compare with an experiment, in several forms, longest first."""
    if found.obstacle:
        short = found.obstacle.partition(",")[0]
        return f"not comparable: {found.obstacle}", f"not comparable: {short}", f"no: {short}"
    chosen = ["all"] if "all" in found.places else list(found.places)
    on = "all 75" if chosen == ["all"] else ", ".join(name.capitalize() for name in chosen)
    caution = f", {found.caution}" if found.caution else ""
    last = found.places[chosen[-1]]
    place = f", place {last.number} of {last.of}" if len(chosen) == 1 else ""
    shorter = f"{on}: {place.removeprefix(', ')}{caution}" if place else f"on {on}{caution}"
    return f"comparable on {on}{place}{caution}", shorter


# One experiment


@dataclass(frozen=True)
class ExperimentFacts:
    """The evidence of a row, with insights and plots derived from it."""

    evidence: Evidence
    row: Row
    insight: Insight
    plots: tuple[Plot, ...]


def subject_named(database: Database, name: str) -> Subject:
    """Find one of our rows by its name, or by a sweep that belongs to it.

    Raises:
        UsageProblem: there is no such row.
    """
    of_sweep = experiments.of_sweep(database, name)
    wanted = of_sweep[0] if of_sweep else name
    find_evidence(database, wanted)
    return Subject("own", wanted)


def experiment(database: Database, subject: Subject, config_file: Path) -> ExperimentFacts:
    """Read the experiment of a row.

    Raises:
        Problem: it is gone, or damaged.
    """
    evidence = evidence_of(database, subject, config_file)
    row = row_of(evidence)
    plots = () if evidence.conflict else plots_of(evidence, row)
    return ExperimentFacts(evidence, row, insight_of(evidence, read_table(config_file, Prices)), plots)


def seeds_by_competition(database: Database, subject: Subject) -> tuple[CompetitionTrials, ...]:
    """Return the trials of each competition of an experiment.

    Raises:
        Problem: it is gone, or damaged.
    """
    evidence = evidence_of(database, subject)
    planned = row_of(evidence).seeds_planned or 0
    trials = evidence.by_competition.items()
    return tuple(CompetitionTrials(name, of_one, planned=planned) for name, of_one in trials)


def evidence_of(database: Database, subject: Subject, config_file: Path | None = None) -> Evidence:
    """Read the evidence of an experiment; its model calls are priced by config.toml.

    Raises:
        Problem: it is gone, or damaged.
    """
    if subject.table == "imported":
        return read_import(database.path.parent, subject.name)
    return find_evidence(database, subject.name, None if config_file is None else model_prices(config_file))


# Two experiments# Two experiments


def comparison(
    database: Database, first: Subject, second: Subject, measure: Measure, config_file: Path
) -> Comparison:
    """Compare two experiments by competition.

    Raises:
        Problem: one of them is gone, or damaged.
    """
    one, other = (evidence_of(database, subject, config_file) for subject in (first, second))
    return compare(one, other, measure=measure)


def differences_of(found: Comparison) -> list[tuple[str, Difference]]:
    """Return the rows of a comparison's table of splits."""
    splits = [(name.capitalize(), part) for name, part in found.by_column.items() if name != "all"]
    whole = found.overall.competitions == len(registry.splits()[COLUMNS["all"]])
    overall = ("all 75" if whole else f"common {found.overall.competitions}", found.overall)
    # If all common competitions are in one split, its row shows the same as the last one.
    return [overall] if len(splits) == 1 and splits[0][1] == found.overall else [*splits, overall]


def compared_costs(found: Comparison) -> list[str]:
    """Write the costs of both sides, a line each; no lines if none were measured."""
    return [
        f"models of {letter}: {costs_text(costs) or 'not counted'}"
        for letter, costs in zip("AB", found.costs, strict=True)
        if are_measured(found.costs)
    ]
