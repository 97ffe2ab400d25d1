"""Percentages over competitions, then mean and standard error over seeds: MLE-bench's rules, no input or output."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from engine.scoreboard.model import Cell, Measure, Result
from foundation.problems import DataProblem

ALL_SEEDS = -1


def aggregate(
    results: Iterable[Result],
    competitions: Sequence[str],
    *,
    pad_missing: bool = False,
    seeds: int = ALL_SEEDS,
) -> Mapping[Measure, Cell]:
    """Aggregate results over a split, as MLE-bench does.

    The k-th result of a competition belongs to seed k, whatever number its run had.

    Args:
        results: in the order in which they count as seeds; those of other competitions are left out.
        competitions: the split.
        pad_missing: count what is missing as no submission, instead of dropping incomplete seeds.
        seeds: how many seeds to take; all of them by default.

    Raises:
        DataProblem: a competition has no result, or there are fewer seeds than asked for.
    """
    table = _by_competition(results, competitions)
    taken = _number_of_seeds(table, pad_missing=pad_missing, seeds=seeds)
    return {
        measure: over_seeds([_percentage(table, measure, seed) for seed in range(taken)])
        for measure in Measure
    }


def complete_seeds(results: Iterable[Result], competitions: Sequence[str]) -> int:
    """Count the seeds that every competition has a result of."""
    return min((len(found) for found in _by_competition(results, competitions).values()), default=0)


def over_seeds(percentages: Sequence[float]) -> Cell:
    """Take mean and standard error (sample standard deviation over root n; 0 for one seed)."""
    n = len(percentages)
    mean = math.fsum(percentages) / n
    if n == 1:
        return Cell(mean, 0.0, 1)
    variance = math.fsum((value - mean) ** 2 for value in percentages) / (n - 1)
    return Cell(mean, math.sqrt(variance / n), n)


def _by_competition(results: Iterable[Result], competitions: Sequence[str]) -> dict[str, list[Result]]:
    found: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        found[result.competition_id].append(result)
    return {competition: found[competition] for competition in competitions}


def _number_of_seeds(table: Mapping[str, Sequence[Result]], *, pad_missing: bool, seeds: int) -> int:
    counts = {competition: len(found) for competition, found in table.items()}
    if not any(counts.values()):
        raise DataProblem("there is nothing to aggregate", "no competition of the split has a result")
    if pad_missing:
        return max(counts.values()) if seeds == ALL_SEEDS else seeds
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


def _percentage(table: Mapping[str, Sequence[Result]], measure: Measure, seed: int) -> float:
    earned = sum(len(found) > seed and measure in found[seed].earned for found in table.values())
    return 100.0 * earned / len(table)
