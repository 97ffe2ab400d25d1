"""A row taken apart: by split, by category and by competition, every measure with its error; no output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from competitions import registry
from engine.scoreboard.aggregation import ALL_SEEDS, aggregate, complete_seeds, over_seeds
from engine.scoreboard.evidence import Evidence, Trial
from engine.scoreboard.model import COLUMNS, Cell, Measure
from foundation.problems import UsageProblem


@dataclass(frozen=True)
class Group:
    """Some competitions together, and how often each measure was earned on them.

    Attributes:
        of: how many competitions the group has in the benchmark; `competitions` are those with runs.
        measures: empty where no seed is complete.
    """

    name: str
    competitions: tuple[str, ...]
    of: int
    measures: Mapping[Measure, Cell]


@dataclass(frozen=True)
class CompetitionLine:
    """One competition of a row: its trials in the order of their seeds, and how often each measure was earned.

    Attributes:
        measures: over the trials that count; empty where none does.
    """

    competition_id: str
    complexity: str
    category: str
    trials: tuple[Trial, ...]
    measures: Mapping[Measure, Cell]


def measures_on(
    evidence: Evidence, members: Sequence[str], *, pad_missing: bool = False, seeds: int = ALL_SEEDS
) -> Mapping[Measure, Cell]:
    """Aggregate evidence over a split exactly as MLE-bench does; see `aggregate`.

    Raises:
        UsageProblem: its parts were made under conditions that must not be mixed.
        DataProblem: a competition has no result, or there are fewer seeds than asked for.
    """
    if evidence.conflict:
        raise UsageProblem(
            f"{evidence.name} makes no row", evidence.conflict, "Aggregate its parts each by itself."
        )
    results = evidence.results(pad_missing=pad_missing)
    return aggregate(results, members, pad_missing=pad_missing, seeds=seeds)


def by_split(
    evidence: Evidence,
    *,
    pad_missing: bool = False,
    user_splits: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Group, ...]:
    """Take a row apart by the columns' splits, then by user-made ones."""
    columns = {column: registry.splits()[split] for column, split in COLUMNS.items()}
    return tuple(
        _group(evidence, name, members, pad_missing=pad_missing, whole=True)
        for name, members in (columns | dict(user_splits or {})).items()
    )


def by_category(evidence: Evidence, *, pad_missing: bool = False) -> tuple[Group, ...]:
    """Take a row apart by the categories of its competitions, over those that it has runs of."""
    members: dict[str, list[str]] = {}
    for competition_id in registry.splits()["split75"]:
        members.setdefault(registry.get(competition_id).category, []).append(competition_id)
    groups = (
        _group(evidence, category, ids, pad_missing=pad_missing, whole=False)
        for category, ids in sorted(members.items())
    )
    return tuple(group for group in groups if group.competitions)


def by_competition(evidence: Evidence) -> tuple[CompetitionLine, ...]:
    """Take a row apart by competition: low, medium, high, then the others, each by name."""
    trials: dict[str, list[Trial]] = {}
    for trial in evidence.trials:
        trials.setdefault(trial.competition_id, []).append(trial)
    order = ("low", "medium", "high", "dev")
    lines = [_competition_line(competition_id, tuple(found)) for competition_id, found in trials.items()]
    return tuple(sorted(lines, key=lambda line: (order.index(line.complexity), line.competition_id.lower())))


def _group(evidence: Evidence, name: str, members: Sequence[str], *, pad_missing: bool, whole: bool) -> Group:
    """A group; with `whole`, a part of it gets no numbers unless it is padded."""
    have = set(evidence.competitions)
    covered = tuple(member for member in members if member in have)
    counted = tuple(members) if whole else covered
    results = evidence.results(pad_missing=pad_missing)
    measures: Mapping[Measure, Cell] = {}
    usable = covered if pad_missing else (complete_seeds(results, counted) if counted else 0)
    if usable and not evidence.conflict and any(result.competition_id in have for result in results):
        relevant = [result for result in results if result.competition_id in set(counted)]
        if relevant:
            measures = aggregate(relevant, counted, pad_missing=pad_missing)
    return Group(name, covered, len(members), measures)


def _competition_line(competition_id: str, trials: tuple[Trial, ...]) -> CompetitionLine:
    competition = registry.get(competition_id)
    counted = [trial for trial in trials if trial.earned is not None]
    measures = (
        {measure: over_seeds([100.0 * trial.has(measure) for trial in counted]) for measure in Measure}
        if counted
        else {}
    )
    return CompetitionLine(competition_id, competition.complexity, competition.category, trials, measures)
