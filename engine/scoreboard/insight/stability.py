"""Noise between seeds: competitions that flip, the spread of whole seeds, and what difference could be seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from engine.scoreboard.evidence import Evidence
from engine.scoreboard.model import Measure

SIGNIFICANCE = 0.05
POWER = 0.8
_SEEDS = (1, 2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Detectable:
    """The smallest difference between two agents, each with this many seeds, that would be noticed."""

    seeds: int
    points: float


@dataclass(frozen=True)
class Stability:
    """How alike the seeds of one row are.

    Attributes:
        competitions: those with at least two seeds, on which everything here rests.
        flipping: of them, those that earned the measure in some seeds and not in others.
        seed_rates: the percentage of each complete seed.
        seed_deviation: the standard deviation of one seed's percentage that the flips of single competitions
            lead to; steadier than that of a few seed_rates.
        detectable: at 5 % significance and 80 % power, on these competitions.
    """

    competitions: int
    flipping: tuple[str, ...]
    seed_rates: tuple[float, ...]
    seed_deviation: float
    detectable: tuple[Detectable, ...]


def stability_of(evidence: Evidence, *, measure: Measure = Measure.ANY_MEDAL) -> Stability | None:
    """Measure it; None where no competition has two seeds."""
    found: dict[str, list[bool]] = {}
    for trial in evidence.trials:
        if trial.earned is not None:
            found.setdefault(trial.competition_id, []).append(trial.has(measure))
    repeated = {name: seeds for name, seeds in found.items() if len(seeds) > 1}
    if not repeated:
        return None
    # Each competition is a coin of its own; n / (n - 1) makes the variance of its throws unbiased.
    variances = [
        (rate := sum(seeds) / len(seeds)) * (1 - rate) * len(seeds) / (len(seeds) - 1)
        for seeds in repeated.values()
    ]
    deviation = 100.0 * math.sqrt(math.fsum(variances)) / len(repeated)
    normal = NormalDist()
    factor = normal.inv_cdf(1 - SIGNIFICANCE / 2) + normal.inv_cdf(POWER)
    return Stability(
        competitions=len(repeated),
        flipping=tuple(
            sorted((name for name, seeds in repeated.items() if len(set(seeds)) > 1), key=str.lower)
        ),
        seed_rates=_seed_rates(found),
        seed_deviation=deviation,
        detectable=tuple(Detectable(n, factor * deviation * math.sqrt(2 / n)) for n in _SEEDS),
    )


def _seed_rates(found: Mapping[str, Sequence[bool]]) -> tuple[float, ...]:
    complete = min(len(seeds) for seeds in found.values())
    return tuple(
        100.0 * sum(seeds[seed] for seeds in found.values()) / len(found) for seed in range(complete)
    )
