"""Make rows from evidence by MLE-bench's rules: percentages over competitions, then mean and error over seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from mlebench_console.competitions import registry
from mlebench_console.engine.model_costs import Spending, sum_of
from mlebench_console.engine.scoreboard.model import (
    COLUMNS,
    Cell,
    Costs,
    Counted,
    Evidence,
    Interim,
    Measure,
    Results,
    Row,
    Standing,
    Trial,
)
from mlebench_console.environment.gateway.prices import PriceSource, PriceTable
from mlebench_console.foundation.problems import DataProblem, UsageProblem

ALL_SEEDS = -1


def aggregate(
    results: Results,
    competitions: Sequence[str],
    *,
    pad_missing: bool = False,
    seeds: int = ALL_SEEDS,
) -> Mapping[Measure, Cell]:
    """Aggregate results over a split, as MLE-bench does.

    Args:
        results: by competition; competitions outside the split are ignored.
        competitions: the split.
        pad_missing: count missing results as no submission, instead of dropping incomplete seeds.
        seeds: how many seeds to use; all of them by default.

    Raises:
        DataProblem: a competition has no result, or there are fewer seeds than asked for.
    """
    table = {competition: results.get(competition, ()) for competition in competitions}
    taken = _number_of_seeds(table, pad_missing=pad_missing, seeds=seeds)
    return {
        measure: replace(
            over_seeds([_percentage(table, measure, seed) for seed in range(taken)]), competitions=len(table)
        )
        for measure in Measure
    }


def complete_seeds(results: Results, competitions: Sequence[str]) -> int:
    """Count the seeds for which every competition has a result."""
    return min((len(results.get(competition, ())) for competition in competitions), default=0)


def interim_of(trials: Iterable[Trial], competitions: Collection[str]) -> Interim | None:
    """Return how far the runs of some competitions are, and the bounds of their final any-medal percentage.

    The number of seeds is the one that MLE-bench will use once every run has a result: that of the competition
    with the fewest. None where there are no runs.
    """
    table: dict[str, list[Trial]] = {competition: [] for competition in competitions}
    for trial in trials:
        if trial.competition_id in table:
            table[trial.competition_id].append(trial)
    every = [trial for found in table.values() for trial in found]
    if not every:
        return None
    seeds = min(map(len, table.values()))
    places = seeds * len(table)
    taken = [trial for found in table.values() for trial in found[:seeds]]
    won = sum(trial.counts and trial.has(Measure.ANY_MEDAL) for trial in taken)
    undecided = sum(not trial.counts for trial in taken)
    return Interim(
        medals=sum(trial.counts and trial.has(Measure.ANY_MEDAL) for trial in every),
        ended=sum(trial.ended for trial in every),
        counted=sum(trial.counts for trial in every),
        runs=len(every),
        seeds=seeds,
        low=100.0 * won / places if places else 0.0,
        high=100.0 * (won + undecided) / places if places else 100.0,
    )


def over_seeds(percentages: Sequence[float]) -> Cell:
    """Return mean and standard error (sample standard deviation over root n; 0 for one seed)."""
    n = len(percentages)
    mean = math.fsum(percentages) / n
    if n == 1:
        return Cell(mean, 0.0, 1)
    variance = math.fsum((value - mean) ** 2 for value in percentages) / (n - 1)
    return Cell(mean, math.sqrt(variance / n), n)


def _number_of_seeds(table: Results, *, pad_missing: bool, seeds: int) -> int:
    counts = {competition: len(found) for competition, found in table.items()}
    if not any(counts.values()):
        raise DataProblem("there is nothing to aggregate", "no competition of the split has a result")
    if seeds != ALL_SEEDS and seeds < 1:
        raise UsageProblem(f"{seeds} seeds can't be aggregated", "", "Take at least 1, or -1 for all.")
    most = max(counts.values())
    if pad_missing:
        if seeds > most:
            raise DataProblem(
                f"there are no {seeds} seeds",
                f"no competition has more than {most} results",
                "Take as many, or -1 for all.",
            )
        return most if seeds == ALL_SEEDS else seeds
    fewest = min(counts.values())
    if fewest == 0 or seeds > fewest:
        short = [competition for competition, count in counts.items() if count < max(seeds, 1)]
        named = ", ".join(short[:3]) + (f" and {len(short) - 3} more" if len(short) > 3 else "")
        raise DataProblem(
            f"{len(short)} of {len(counts)} competitions have fewer than {max(seeds, 1)} results",
            named,
            "Wait for them, take a smaller split, or count missing ones as no medal (padding).",
        )
    return fewest if seeds == ALL_SEEDS else seeds


def _percentage(table: Results, measure: Measure, seed: int) -> float:
    earned = sum(len(found) > seed and measure in found[seed] for found in table.values())
    return 100.0 * earned / len(table)


def measures_on(
    evidence: Evidence, members: Sequence[str], *, pad_missing: bool = False, seeds: int = ALL_SEEDS
) -> Mapping[Measure, Cell]:
    """Aggregate evidence over a split exactly as MLE-bench does; see `aggregate`.

    Raises:
        UsageProblem: its runs were made under conditions that must not be mixed.
        DataProblem: a competition has no result, or there are fewer seeds than asked for.
    """
    if evidence.conflict:
        raise UsageProblem(
            f"{evidence.name} does not make a row", evidence.conflict, "Aggregate each part separately."
        )
    results = evidence.results(pad_missing=pad_missing)
    return aggregate(results, members, pad_missing=pad_missing, seeds=seeds)


def row_of(
    evidence: Evidence,
    *,
    pad_missing: bool = False,
    user_splits: Mapping[str, Sequence[str]] | None = None,
) -> Row:
    """Make the row of evidence, with further columns for user-made splits; without numbers if its conditions conflict.

    With padding, stopped, lost and missing runs count as no medal; otherwise their seeds are dropped.
    """
    splits = {column: registry.splits()[split] for column, split in COLUMNS.items()} | dict(user_splits or {})
    results = {} if evidence.conflict else evidence.results(pad_missing=pad_missing)
    covered = evidence.competitions
    own = _standing(evidence, results, covered, pad_missing=pad_missing)
    created = datetime.fromtimestamp(evidence.created_at, UTC) if evidence.created_at else None
    return Row(
        table=evidence.table,
        name=evidence.name,
        agent=evidence.conditions.agent,
        llms=evidence.llms,
        columns={
            column: _standing(evidence, results, members, pad_missing=pad_missing)
            for column, members in splits.items()
        },
        own=own,
        hours=evidence.conditions.hours,
        date="" if created is None else created.date().isoformat(),
        edition=evidence.conditions.edition,
        seeds_done=own.cell.n if own.cell else complete_seeds(evidence.results(), covered),
        seeds_planned=evidence.planned_seeds,
        running=any(not trial.ended for trial in evidence.trials),
        demo=evidence.conditions.data == "demo",
        padded=pad_missing,
        rerolled=sum(trial.rerolls > 0 for trial in evidence.trials),
        note=evidence.note,
        conflict=evidence.conflict,
        costs=costs_of(evidence.trials, evidence.prices),
    )


def costs_of(trials: Iterable[Trial], prices: PriceTable | None) -> Costs | None:
    """Add up the costs of model calls; None where nothing is known of them."""
    known = [(trial, trial.costs) for trial in trials if trial.costs is not None]
    if prices is None or not known:
        return None
    counting = [(trial, costs) for trial, costs in known if trial.counts]
    measured = [(trial, costs.spending) for trial, costs in counting if costs.measured is not None]
    priced = [(trial, spending.cost) for trial, spending in measured if spending.cost is not None]
    by_bytes = [costs for _trial, costs in counting if costs.counted is Counted.BYTES]
    lost = [costs.spending for trial, costs in known if trial.ended and not trial.counts]
    spending = sum_of(spent for _trial, spent in measured)
    return Costs(
        runs=len(counting),
        measured=len(measured),
        estimated=sum(spent.estimated > 0 for _trial, spent in measured),
        by_bytes=len(by_bytes),
        sent_bytes=sum(costs.sent_bytes for costs in by_bytes),
        received_bytes=sum(costs.received_bytes for costs in by_bytes),
        spending=spending,
        priced=len(priced),
        total=math.fsum(cost for _trial, cost in priced),
        medals=sum(trial.has(Measure.ANY_MEDAL) for trial, _cost in priced),
        aside=sum_of([*lost, *(costs.earlier for _trial, costs in known)]),
        price_date=prices.checked.isoformat(),
        own_prices=_priced_by(PriceSource.OPERATOR, prices, spending),
        listed_prices=_priced_by(PriceSource.GENAI_PRICES, prices, spending),
        reported_costs=spending.reported,
    )


def _priced_by(source: PriceSource, prices: PriceTable, spending: Spending) -> tuple[str, ...]:
    return tuple(
        total.model
        for total in spending.models
        if not total.is_reported and prices.source_of(total.model) is source
    )


def by_category(evidence: Evidence, *, pad_missing: bool = False) -> Mapping[str, Standing]:
    """Return standings by category, each over those of its competitions that the evidence has runs for."""
    covered = evidence.competitions
    members: dict[str, list[str]] = {}
    for competition_id in registry.splits()["split75"]:
        members.setdefault(registry.get(competition_id).category, []).append(competition_id)
    results = {} if evidence.conflict else evidence.results(pad_missing=pad_missing)
    found = {}
    for category, ids in sorted(members.items()):
        run = [competition_id for competition_id in ids if competition_id in covered]
        if run:
            found[category] = replace(_standing(evidence, results, run, pad_missing=pad_missing), of=len(ids))
    return found


def _standing(evidence: Evidence, results: Results, members: Sequence[str], *, pad_missing: bool) -> Standing:
    """Return the standing on a split; without a figure where it is not fully covered, unless padded."""
    count = len({*members} & {*evidence.competitions})
    interim = None if evidence.conflict else interim_of(evidence.trials, members)
    if not (any(map(results.get, members)) if pad_missing else complete_seeds(results, members)):
        return Standing(None, count, len(members), interim=interim)
    measures = aggregate(results, members, pad_missing=pad_missing)
    return Standing(measures[Measure.ANY_MEDAL], count, len(members), measures, interim)


def by_complexity(competition_ids: Iterable[str]) -> dict[str, list[str]]:
    """Group competitions by complexity: low, medium, high, then the others."""
    found: dict[str, list[str]] = {complexity: [] for complexity in ("low", "medium", "high", "dev")}
    for name in competition_ids:
        found[registry.get(name).complexity].append(name)
    return found
