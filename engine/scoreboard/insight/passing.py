"""pass@k: how likely at least one of k seeds earns a measure, by the unbiased estimator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.scoreboard.evidence import Evidence
from engine.scoreboard.model import Measure


@dataclass(frozen=True)
class PassAtK:
    """The chance for one k, in percent, over the competitions that have at least k seeds."""

    k: int
    percent: float
    competitions: int


def pass_at_k(
    evidence: Evidence, *, measure: Measure = Measure.ANY_MEDAL, members: Sequence[str] | None = None
) -> tuple[PassAtK, ...]:
    """Estimate pass@k for every k up to the most seeds that a competition has.

    Each competition gives 1 - C(n - c, k) / C(n, k) for n seeds of which c earned the measure. A k that
    only some competitions have seeds for is over fewer of them, which `competitions` tells.

    Args:
        evidence: whose trials.
        measure: what is to be earned.
        members: only these competitions; all that have trials, if not given.
    """
    wanted = None if members is None else set(members)
    counts: dict[str, tuple[int, int]] = {}
    for trial in evidence.trials:
        if trial.earned is not None and (wanted is None or trial.competition_id in wanted):
            seeds, earned = counts.get(trial.competition_id, (0, 0))
            counts[trial.competition_id] = seeds + 1, earned + trial.has(measure)
    most = max((seeds for seeds, _ in counts.values()), default=0)
    return tuple(_at(k, tuple(counts.values())) for k in range(1, most + 1))


def _at(k: int, counts: Sequence[tuple[int, int]]) -> PassAtK:
    chances = [
        1.0 - math.comb(seeds - earned, k) / math.comb(seeds, k) for seeds, earned in counts if seeds >= k
    ]
    return PassAtK(k, 100.0 * math.fsum(chances) / len(chances), len(chances))
