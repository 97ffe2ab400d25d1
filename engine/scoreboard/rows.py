"""Rows of evidence: one standing for each column, and the facts that stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from competitions import registry
from engine.scoreboard.aggregation import aggregate, complete_seeds
from engine.scoreboard.evidence import Evidence
from engine.scoreboard.experiments import own_evidence
from engine.scoreboard.imports import imported_evidence
from engine.scoreboard.model import COLUMNS, Measure, Result, Row, Standing
from state.database import Database


def own_rows(
    database: Database,
    *,
    pad_missing: bool = False,
    user_splits: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Row, ...]:
    """Make a row of every experiment, and of every sweep that belongs to none, newest first.

    Args:
        database: the state.
        pad_missing: count stopped, lost and missing runs as no medal instead of dropping their seeds.
        user_splits: further columns, by name.
    """
    return tuple(
        row_of(evidence, pad_missing=pad_missing, user_splits=user_splits)
        for evidence in own_evidence(database)
    )


def imported_rows(
    state_dir: Path,
    *,
    pad_missing: bool = False,
    user_splits: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Row, ...]:
    """Make a row of every imported experiment, by name; see `own_rows`.

    Raises:
        DataProblem: an import has been damaged.
    """
    return tuple(
        row_of(evidence, pad_missing=pad_missing, user_splits=user_splits)
        for evidence in imported_evidence(state_dir)
    )


def row_of(
    evidence: Evidence,
    *,
    pad_missing: bool = False,
    user_splits: Mapping[str, Sequence[str]] | None = None,
) -> Row:
    """Make a row of evidence; what is in conflict with itself gets no numbers."""
    columns = {column: registry.splits()[split] for column, split in COLUMNS.items()} | dict(
        user_splits or {}
    )
    results = () if evidence.conflict else evidence.results(pad_missing=pad_missing)
    covered = evidence.competitions

    def standing(members: Sequence[str]) -> Standing:
        return standing_on(results, members, covered, pad_missing=pad_missing)

    own = standing(covered)
    return Row(
        table=evidence.table,
        name=evidence.name,
        agent=evidence.conditions.agent,
        llms=evidence.llms,
        columns={column: standing(members) for column, members in columns.items()},
        own=own,
        hours=evidence.limit_hours,
        date=datetime.fromtimestamp(evidence.created_at, UTC).date().isoformat()
        if evidence.created_at
        else "",
        edition=evidence.conditions.edition,
        seeds_done=own.cell.n if own.cell else complete_seeds(evidence.results(pad_missing=False), covered),
        seeds_planned=evidence.planned_seeds,
        running=evidence.running,
        demo=evidence.is_demo,
        padded=pad_missing,
        rerolled=sum(trial.rerolls > 0 for trial in evidence.trials),
        note=evidence.note,
        conflict=evidence.conflict,
    )


def standing_on(
    results: Iterable[Result], members: Sequence[str], covered: Sequence[str], *, pad_missing: bool
) -> Standing:
    """How results stand on a split; a part of it is never shown as if it were the whole, unless padded."""
    wanted = set(members)
    count = len(wanted & set(covered))
    relevant = [result for result in results if result.competition_id in wanted]
    if not relevant or (count < len(members) and not pad_missing):
        return Standing(None, count, len(members))
    if not pad_missing and complete_seeds(relevant, members) == 0:
        return Standing(None, count, len(members))
    measures = aggregate(relevant, members, pad_missing=pad_missing)
    return Standing(measures[Measure.ANY_MEDAL], count, len(members), measures)
