"""Compare two experiments by competition, with an exact permutation test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mlebench_console.competitions import registry
from mlebench_console.engine.scoreboard.aggregation import costs_of
from mlebench_console.engine.scoreboard.model import (
    COLUMNS,
    OBFUSCATED,
    USUAL,
    Conditions,
    Costs,
    Evidence,
    Measure,
    differences,
)
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.foundation.text import plural

# The p-value below which a difference is usually called significant.
SIGNIFICANT = 0.05
# The exact test counts in whole units of 1/scale; a finer scale is rounded to this one.
_FINEST_SCALE = 10_000


@dataclass(frozen=True)
class Side:
    """One experiment on one competition: in how many of its seeds it earned the measure, and its scores.

    Attributes:
        costs: of its model calls; None where nothing is known of them.
    """

    earned: int
    seeds: int
    scores: tuple[float, ...]
    costs: Costs | None = None

    @property
    def rate(self) -> float:
        """The share of seeds that earned the measure."""
        return self.earned / self.seeds


@dataclass(frozen=True)
class Duel:
    """Both experiments on one competition.

    Attributes:
        complexity: the split that the competition belongs to.
        difference: first minus second, in percentage points.
    """

    competition_id: str
    complexity: str
    first: Side
    second: Side
    difference: float


@dataclass(frozen=True)
class Difference:
    """First minus second over some competitions.

    Attributes:
        first, second: mean percentage over these competitions.
        p_value: two-sided, exact: how often the sum is as large when the signs of the differences are random.
        competitions: how many there are.
        deciding: on how many of them the experiments differ.
    """

    first: float
    second: float
    p_value: float
    competitions: int
    deciding: int

    @property
    def points(self) -> float:
        """The difference in percentage points."""
        return self.first - self.second


@dataclass(frozen=True)
class Comparison:
    """Two experiments, on the competitions that both have results for.

    Attributes:
        caveats: in what respects their conditions differ.
        duels: every common competition, the largest difference first.
        overall: over all common competitions.
        by_column: over the common competitions of each column's split.
        left_out: competitions for which only one experiment has results.
        descriptions: which kind of descriptions each experiment used; empty: unknown.
        costs: what the model calls of each experiment cost, over all of its competitions; None: nothing is known.
    """

    first: str
    second: str
    measure: Measure
    caveats: tuple[str, ...]
    duels: tuple[Duel, ...]
    overall: Difference
    by_column: Mapping[str, Difference]
    left_out: tuple[str, ...]
    descriptions: tuple[str, str] = ("", "")
    costs: tuple[Costs | None, Costs | None] = (None, None)

    @property
    def worth_of_names(self) -> str:
        """How much knowing the competition's name was worth, where exactly one experiment hid it; otherwise empty."""
        if set(self.descriptions) != {USUAL, OBFUSCATED}:
            return ""
        sign = 1 if self.descriptions[0] == USUAL else -1
        return (
            f"to know the competition's name is worth {sign * self.overall.points + 0.0:+.1f} points of"
            f" {self.measure.words} over {plural(self.overall.competitions, 'competition')}"
            f" (p = {self.overall.p_value:.3f}), if all else is equal"
        )

    @property
    def verdict(self) -> str:
        """Which experiment is ahead, A (the first) or B (the second), and whether chance alone could explain it."""
        whole = self.overall
        if not whole.deciding:
            return "they are even on every competition"
        if not whole.points:
            return "they are even overall, though not on each competition"
        chance = "hardly chance" if whole.p_value < SIGNIFICANT else "may well be chance"
        ahead, sign = ("A", 1) if whole.points > 0 else ("B", -1)
        better = sum(sign * duel.difference > 0 for duel in self.duels)
        common = plural(whole.competitions, "common competition")
        counts = f"better on {better}, worse on {whole.deciding - better} of {common}"
        return f"{ahead} is ahead by {abs(whole.points):.1f} points, {counts}: {chance} (p = {whole.p_value:.3f})"

    @property
    def deciding(self) -> tuple[Duel, ...]:
        """The competitions on which the experiments differ, the largest difference first."""
        return tuple(duel for duel in self.duels if duel.difference)


def compare(first: Evidence, second: Evidence, *, measure: Measure = Measure.ANY_MEDAL) -> Comparison:
    """Compare two experiments, paired by competition, using every seed that counts.

    Raises:
        UsageProblem: their editions or kinds of data differ, or the conditions within one of them do.
        DataProblem: they have no competition in common.
    """
    for evidence in (first, second):
        if evidence.conflict:
            raise UsageProblem(f"{evidence.name} can't be compared", evidence.conflict)
    both, agents = (first.conditions, second.conditions), ("agent", "agent_version")
    forbidding = differences(both, ignored=(*agents, "hours", "hardware", "network", "descriptions"))
    if forbidding:
        raise UsageProblem(f"{first.name} and {second.name} can't be compared", "; ".join(forbidding))
    ours, theirs = _sides(first, measure), _sides(second, measure)
    common = sorted(ours.keys() & theirs.keys(), key=str.lower)
    if not common:
        raise DataProblem(f"{first.name} and {second.name} have no competition with results in common")
    duels = [
        Duel(
            competition_id=name,
            complexity=registry.get(name).complexity,
            first=ours[name],
            second=theirs[name],
            difference=100.0 * (ours[name].rate - theirs[name].rate),
        )
        for name in common
    ]
    members = {column: registry.splits()[split] for column, split in COLUMNS.items()}
    parts = {name: [duel for duel in duels if duel.competition_id in ids] for name, ids in members.items()}
    return Comparison(
        first=first.name,
        second=second.name,
        measure=measure,
        caveats=(*differences(both, ignored=agents), *_further_differences(*both)),
        duels=tuple(sorted(duels, key=lambda duel: -abs(duel.difference))),
        overall=_difference(duels),
        by_column={column: _difference(part) for column, part in parts.items() if part},
        left_out=tuple(sorted(ours.keys() ^ theirs.keys(), key=str.lower)),
        descriptions=(first.conditions.descriptions, second.conditions.descriptions),
        costs=(costs_of(first.trials, first.prices), costs_of(second.trials, second.prices)),
    )


def _further_differences(first: Conditions, second: Conditions) -> Iterator[str]:
    """Yield the conditions that may differ within a row and do between these two; unknown ones differ from none."""
    if first.further is None or second.further is None:
        return
    one, other = dict(first.further), dict(second.further)
    for name in dict.fromkeys([*one, *other]):
        if one.get(name) != other.get(name):
            yield f"mixed {name}: {', '.join(sorted((one.get(name, 'none'), other.get(name, 'none'))))}"


def permutation_p_value(differences_of_pairs: Sequence[Fraction]) -> float:
    """Return the share of all ways to swap the members of pairs whose sum is at least as far from zero.

    This is exact, not sampled: it counts for every reachable sum how many ways lead to it.
    """
    scale = min(math.lcm(*(value.denominator for value in differences_of_pairs)), _FINEST_SCALE)
    steps = [abs(round(value * scale)) for value in differences_of_pairs]
    observed = abs(sum(round(value * scale) for value in differences_of_pairs))
    ways = Counter({0: 1})
    for step in filter(None, steps):
        following: Counter[int] = Counter()
        for total, count in ways.items():
            following[total + step] += count
            following[total - step] += count
        ways = following
    extreme = sum(count for total, count in ways.items() if abs(total) >= observed)
    return float(Fraction(extreme, ways.total()))


def _sides(evidence: Evidence, measure: Measure) -> dict[str, Side]:
    sides = {}
    for name, trials in evidence.by_competition.items():
        counting = [trial for trial in trials if trial.earned is not None]
        if counting:
            sides[name] = Side(
                earned=sum(trial.has(measure) for trial in counting),
                seeds=len(counting),
                scores=tuple(trial.score for trial in counting if trial.score is not None),
                costs=costs_of(trials, evidence.prices),
            )
    return sides


def _difference(pairs: Sequence[Duel]) -> Difference:
    exact = [
        Fraction(duel.first.earned, duel.first.seeds) - Fraction(duel.second.earned, duel.second.seeds)
        for duel in pairs
    ]
    return Difference(
        first=100.0 * math.fsum(duel.first.rate for duel in pairs) / len(pairs),
        second=100.0 * math.fsum(duel.second.rate for duel in pairs) / len(pairs),
        p_value=permutation_p_value(exact),
        competitions=len(pairs),
        deciding=sum(1 for value in exact if value),
    )
