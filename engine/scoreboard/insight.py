"""Measures beyond the row: pass@k, shorter limits, endings, noise between seeds, flags, effort and cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any, Literal

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import EDITIONS
from mlebench_console.engine.scoreboard.aggregation import aggregate, costs_of
from mlebench_console.engine.scoreboard.model import (
    Cell,
    Costs,
    Evidence,
    Measure,
    Trial,
    outcome_of,
    results_of,
)
from mlebench_console.engine.settings import Prices
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import FailureClass, Outcome

# Best first, then the agent's own failures, then failures that are not the agent's.
ENDINGS: tuple[str, ...] = (
    *(outcome.replace("_", " ") for outcome in Outcome),
    *(kind for kind in FailureClass if kind is not FailureClass.INFRASTRUCTURE),
    *(FailureClass.INFRASTRUCTURE, "stopped", "not ended"),
)
# The shorter limits to estimate, as far as they are below the real one.
_HOURS = (1.0, 2.0, 4.0, 8.0, 12.0)
# Used instead where the real limit is below all of these, as in a demo: fractions of the real limit.
_FRACTIONS = (0.125, 0.25, 0.5, 0.75)

_SIGNIFICANCE = 0.05
_POWER = 0.8
_SEEDS = (1, 2, 3, 5, 10, 20)
# The fewest seeds from which a competition is flagged.
_ENOUGH_SEEDS = 3


# The chance of at least one success in k seeds


@dataclass(frozen=True)
class PassAtK:
    """The chance for one k, in percent, over the competitions that have at least k seeds."""

    k: int
    percent: float
    competitions: int


def pass_at_k(evidence: Evidence, *, measure: Measure = Measure.ANY_MEDAL) -> tuple[PassAtK, ...]:
    """Estimate pass@k, without bias, for every k up to the most seeds that a competition has.

    Each competition gives 1 - C(n - c, k) / C(n, k) for n seeds of which c earned the measure. Competitions with
    fewer than k seeds are left out; `competitions` says how many remain.
    """
    counts = [
        (len(seeds), sum(measure in earned for earned in seeds)) for seeds in evidence.results().values()
    ]
    found = []
    for k in range(1, 1 + max((n for n, _ in counts), default=0)):
        chances = [1.0 - math.comb(n - c, k) / math.comb(n, k) for n, c in counts if n >= k]
        found.append(PassAtK(k, 100.0 * math.fsum(chances) / len(chances), len(chances)))
    return tuple(found)


# Shorter time limits


@dataclass(frozen=True)
class TimePoint:
    """The any-medal percentage at one time limit; `full` marks the limit that the runs really had."""

    hours: float
    cell: Cell
    full: bool = False


def shorter_limits(evidence: Evidence) -> tuple[TimePoint, ...]:
    """Aggregate what our own trials had earned at shorter limits, then at the real one.

    This underestimates: a submission that was replaced before the next snapshot was never graded, and an agent that
    knows of a shorter limit would work differently. Empty where no seed is complete.
    """
    trials = [trial for trial in evidence.trials if trial.earned is not None and trial.run_id is not None]
    final = results_of((trial.competition_id, trial.earned) for trial in trials)
    competitions = list(final)
    limit = evidence.conditions.hours
    if evidence.conflict or limit is None or not competitions:
        return ()
    limits = [hours for hours in _HOURS if hours < limit]
    points = []
    for hours in limits or [fraction * limit for fraction in _FRACTIONS]:
        results = results_of((trial.competition_id, trial.earned_at(hours * 3600)) for trial in trials)
        points.append(TimePoint(hours, aggregate(results, competitions)[Measure.ANY_MEDAL]))
    full = aggregate(final, competitions)[Measure.ANY_MEDAL]
    return (*points, TimePoint(limit, full, full=True))


# How runs ended, medals and failures alike


@dataclass(frozen=True)
class EndingsOfSplit:
    """How many runs of a split had each ending; endings without runs are left out."""

    split: str
    runs: int
    counts: Mapping[str, int]


def ending_of(trial: Trial) -> str:
    """Return how a trial ended, one of `ENDINGS`."""
    if not trial.ended:
        return "not ended"
    if trial.failure:
        return trial.failure
    if trial.earned is None:
        return "stopped"
    return outcome_of(trial.earned).replace("_", " ")


def endings_by_split(evidence: Evidence) -> tuple[EndingsOfSplit, ...]:
    """Count endings by complexity, then over all; splits without runs are left out."""
    found = []
    for split in ("low", "medium", "high", "dev", "all"):
        counts = Counter(
            ending_of(trial)
            for trial in evidence.trials
            if split in (registry.get(trial.competition_id).complexity, "all")
        )
        if counts:
            of_split = {ending: counts[ending] for ending in ENDINGS if ending in counts}
            found.append(EndingsOfSplit(split, counts.total(), of_split))
    return tuple(found)


# Noise between seeds


@dataclass(frozen=True)
class Detectable:
    """The smallest difference between two agents, each with this many seeds, that would be detected."""

    seeds: int
    points: float


@dataclass(frozen=True)
class Stability:
    """How alike the seeds of one row are.

    Attributes:
        competitions: how many have at least two seeds; only these are used.
        flipping: those of them that earned the measure in some seeds and not in others.
        seed_rates: the percentage of each complete seed.
        seed_deviation: the standard deviation of one seed's percentage, estimated from the flips of single
            competitions, which is more stable than that of a few seed_rates.
        detectable: at 5 % significance and 80 % power, on these competitions.
    """

    competitions: int
    flipping: tuple[str, ...]
    seed_rates: tuple[float, ...]
    seed_deviation: float
    detectable: tuple[Detectable, ...]


def stability_of(evidence: Evidence) -> Stability | None:
    """Measure the noise between seeds, by any medal; None where no competition has two seeds."""
    found = {
        name: [Measure.ANY_MEDAL in earned for earned in seeds] for name, seeds in evidence.results().items()
    }
    repeated = {name: seeds for name, seeds in found.items() if len(seeds) > 1}
    if not repeated:
        return None
    # Each competition is a Bernoulli variable; n / (n - 1) makes the variance of its seeds unbiased.
    variances = [
        (rate := sum(seeds) / len(seeds)) * (1 - rate) * len(seeds) / (len(seeds) - 1)
        for seeds in repeated.values()
    ]
    deviation = 100.0 * math.sqrt(math.fsum(variances)) / len(repeated)
    normal = NormalDist()
    factor = normal.inv_cdf(1 - _SIGNIFICANCE / 2) + normal.inv_cdf(_POWER)
    complete = range(min(len(seeds) for seeds in found.values()))
    return Stability(
        competitions=len(repeated),
        flipping=tuple(
            sorted((name for name, seeds in repeated.items() if len(set(seeds)) > 1), key=str.lower)
        ),
        seed_rates=tuple(
            100.0 * sum(seeds[seed] for seeds in found.values()) / len(found) for seed in complete
        ),
        seed_deviation=deviation,
        detectable=tuple(Detectable(n, factor * deviation * math.sqrt(2 / n)) for n in _SEEDS),
    )


# Results to read with care


@dataclass(frozen=True)
class Flag:
    """One reason to read a competition's result with care."""

    competition_id: str
    kind: Literal["saturated", "out of reach", "no gradation", "defect"]
    text: str


def flags_of(evidence: Evidence) -> tuple[Flag, ...]:
    """Return the flags of an experiment's competitions, in the order of their names."""
    flags: list[Flag] = []
    for competition_id, seeds in sorted(evidence.results().items(), key=lambda found: found[0].lower()):
        competition = registry.get(competition_id)
        cut = competition.thresholds
        if len(seeds) >= _ENOUGH_SEEDS and all(Measure.GOLD in earned for earned in seeds):
            flags.append(Flag(competition_id, "saturated", f"gold in all {len(seeds)} seeds"))
        if len(seeds) >= _ENOUGH_SEEDS and not any(Measure.ANY_MEDAL in earned for earned in seeds):
            flags.append(Flag(competition_id, "out of reach", f"no medal in any of {len(seeds)} seeds"))
        if cut.gold == cut.bronze:
            text = f"the cut-offs of all medals are the same, {cut.gold:g}"
            flags.append(Flag(competition_id, "no gradation", text))
        elif cut.bronze == cut.median:
            text = f"the cut-off of bronze is the median, {cut.bronze:g}"
            flags.append(Flag(competition_id, "no gradation", text))
        flags += [
            Flag(competition_id, "defect", text)
            for edition in EDITIONS
            if edition == evidence.conditions.edition
            for text in competition.defects_in(edition)
        ]
    return tuple(flags)


# Effort and cost


@dataclass(frozen=True)
class Effort:
    """Hours and medals of an experiment.

    Attributes:
        runs: how many runs have a known duration; hours and medals are counted over these.
        gpu_hours: None where it is unknown how many GPUs a run had.
    """

    runs: int
    run_hours: float
    gpu_hours: float | None
    medals: int

    @property
    def run_hours_per_medal(self) -> float | None:
        """Run hours per medal; None without a medal."""
        return self.run_hours / self.medals if self.medals else None

    @property
    def gpu_hours_per_medal(self) -> float | None:
        """GPU hours per medal; None without a medal, or where GPUs are unknown."""
        return self.gpu_hours / self.medals if self.medals and self.gpu_hours is not None else None


def effort_of(evidence: Evidence) -> Effort:
    """Add up the latest attempts of all ended runs; earlier attempts are not included."""
    timed = [(trial, trial.seconds) for trial in evidence.trials if trial.ended and trial.seconds]
    hours = math.fsum(seconds for _, seconds in timed) / 3600
    return Effort(
        runs=len(timed),
        run_hours=hours,
        gpu_hours=None if evidence.gpus is None else hours * evidence.gpus,
        medals=sum(trial.has(Measure.ANY_MEDAL) for trial, _ in timed),
    )


@dataclass(frozen=True)
class Cost:
    """The cost of an experiment's hours, without the charges of model providers."""

    total: float
    per_medal: float | None
    currency: str

    def __str__(self) -> str:
        """Write it for people."""
        each = "" if self.per_medal is None else f", {self.per_medal:,.2f} for a medal"
        return f"{self.total:,.2f} {self.currency}{each}"


def cost_of(effort: Effort, prices: Prices) -> Cost | None:
    """Price the hours; None without a price, or where a price is for GPUs and their hours are unknown."""
    priced = ((effort.run_hours, prices.run_hour), (effort.gpu_hours, prices.gpu_hour))
    hours_and_prices = [(hours, price) for hours, price in priced if price is not None]
    if not hours_and_prices or not effort.runs or any(hours is None for hours, _ in hours_and_prices):
        return None
    total = sum((hours or 0.0) * price for hours, price in hours_and_prices)
    return Cost(total, total / effort.medals if effort.medals else None, prices.currency)


# What models cost


def costs_by_competition(evidence: Evidence) -> dict[str, Costs]:
    """Return the costs of model calls by competition, most tokens per run first, without those that made no calls."""
    costs = {name: costs_of(trials, evidence.prices) for name, trials in evidence.by_competition.items()}
    with_calls = {name: one for name, one in costs.items() if one is not None and one.spending.calls}
    return dict(sorted(with_calls.items(), key=lambda item: -(item[1].tokens_per_run or 0.0)))


# All of it together


@dataclass(frozen=True)
class Insight:
    """All measures of one experiment beyond its row.

    Attributes:
        shorter_limits: empty where submissions over time are unknown.
        stability: None where no competition has two seeds.
        cost: None where no price is known.
        model_costs: None where nothing is known of model calls.
    """

    pass_at_k: tuple[PassAtK, ...]
    shorter_limits: tuple[TimePoint, ...]
    endings: tuple[EndingsOfSplit, ...]
    stability: Stability | None
    effort: Effort
    cost: Cost | None
    flags: tuple[Flag, ...]
    model_costs: Costs | None = None
    model_costs_by_competition: Mapping[str, Costs] = field(default_factory=dict)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """List the measures that have numbers as pairs of a name and a text, without endings and flags."""
        facts = []
        if self.pass_at_k:
            chances = (f"{one.k}: {one.percent:.1f} % of {one.competitions}" for one in self.pass_at_k)
            facts.append(("pass@k, any medal", ", ".join(chances)))
        if self.shorter_limits:
            limits = (
                f"{one.hours:.3g} h{' (real)' if one.full else ''}: {one.cell.figures()}"
                for one in self.shorter_limits
            )
            facts.append(("any medal % at shorter limits", ", ".join(limits)))
        if self.stability is not None:
            few = f"{len(self.stability.flipping)} of {self.stability.competitions}"
            flips = f"{few} competitions with a medal in some seeds, not all"
            within = f"{self.stability.seed_deviation:.2f} points, within competitions"
            deviation = f"standard deviation of one seed {within}"
            facts.append(("noise between seeds", f"{flips}; {deviation}"))
            facts.append(("medal in some seeds, not all", ", ".join(self.stability.flipping) or "none"))
            rates = ", ".join(f"{rate:.2f}" for rate in self.stability.seed_rates)
            facts.append(("any medal % of complete seeds", rates or "none"))
            first, *others = self.stability.detectable
            points = [f"{first.points:.1f} points with {first.seeds} seed each"]
            points += [f"{one.points:.1f} with {one.seeds}" for one in others]
            certainty = f"{_SIGNIFICANCE:.0%} significance, {_POWER:.0%} power"
            facts.append(("detectable difference", f"{', '.join(points)} ({certainty})"))
        if self.effort.runs:
            parts = [f"{self.effort.run_hours:.2f} hours in {plural(self.effort.runs, 'run')}"]
            for name, hours in (
                ("run-hours", self.effort.run_hours_per_medal),
                ("GPU-hours", self.effort.gpu_hours_per_medal),
            ):
                if hours:
                    parts.append(f"{hours:.2f} {name} for a medal")
            facts.append(("effort", ", ".join(parts)))
        return (*facts, *self.cost_facts())

    def cost_facts(self) -> list[tuple[str, str]]:
        """List what machines and models cost, as pairs of a name and a text."""
        facts = []
        if self.cost is not None:
            facts.append(("cost", f"{self.cost}; what models cost is not included"))
        costs = self.model_costs
        if costs is not None and costs.measured:
            facts.append(("model calls", costs.counted_in_words()))
            facts.append(("tokens", costs.tokens_in_words()))
            facts.append(("cost of models", costs.cost_in_words()))
            if costs.medals_per_100_dollars is not None:
                runs = f"of {costs.priced} runs whose cost is known"
                facts.append(("medals for 100 dollars", f"{costs.medals_per_100_dollars:,.1f}, {runs}"))
        return facts

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        document = asdict(self)
        for name in ("run_hours_per_medal", "gpu_hours_per_medal"):
            document["effort"][name] = getattr(self.effort, name)
        document["model_costs"] = None if self.model_costs is None else self.model_costs.document()
        document["model_costs_by_competition"] = {
            name: costs.document() for name, costs in self.model_costs_by_competition.items()
        }
        return document


def insight_of(evidence: Evidence, prices: Prices | None = None) -> Insight:
    """Compute all measures beyond the row."""
    effort = effort_of(evidence)
    return Insight(
        pass_at_k=pass_at_k(evidence),
        shorter_limits=shorter_limits(evidence),
        endings=endings_by_split(evidence),
        stability=stability_of(evidence),
        effort=effort,
        cost=cost_of(effort, prices or Prices()),
        flags=flags_of(evidence),
        model_costs=costs_of(evidence.trials, evidence.prices),
        model_costs_by_competition=costs_by_competition(evidence),
    )
