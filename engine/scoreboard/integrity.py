"""Integrity results and reviews of the runs behind a row: counts, summary texts, and the JSON document for bundles.

The detectors that produce these results are in `engine.integrity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mlebench_console.engine.scoreboard.model import Evidence
from mlebench_console.state.integrity import DetectorResult, Layer, RunIntegrity

PUBLIC_KERNEL = "kaggle.com/code/"
"""Prefix of the source of excerpts from public kernels, whose text belongs to others and is not exported."""


@dataclass(frozen=True)
class LayerCounts:
    """How many runs a layer of detectors has examined, and how many it flagged.

    Attributes:
        looked_at: runs that all detectors of the layer could examine.
        flagged: runs with a finding that is suspicious or worse, and that nobody has cleared.
        models: the models that judged runs.
        usd: the cost of these models; None where a price is not known.
    """

    layer: Layer
    looked_at: int
    flagged: int
    models: tuple[str, ...]
    usd: float | None

    def in_words(self, runs: int) -> str:
        """Return the counts as one phrase."""
        if self.models:
            cost = "a cost that is not known" if self.usd is None else f"{self.usd:.2f} $"
            phrase = f"{self.looked_at}/{runs} judged by {', '.join(self.models)} at {cost}"
        else:
            phrase = (
                f"{self.looked_at}/{runs} {'looked at' if self.flagged or not self.looked_at else 'clean'}"
            )
        return f"{self.layer} {phrase}" + (f", {self.flagged} flagged" if self.flagged or self.models else "")


@dataclass(frozen=True)
class IntegritySummary:
    """Integrity results of a row's runs; none of them excludes a run.

    Attributes:
        runs: how many of our own runs have ended.
        flagged: the gravest finding of each flagged run, as `competition, seed n: statement`.
        reviewed: reviews of findings, as `competition, seed n: cleared by whom: why (statement)`.
        cleared: findings that people have cleared.
        confirmed: findings that people have confirmed.
    """

    runs: int
    layers: tuple[LayerCounts, ...]
    flagged: tuple[str, ...]
    reviewed: tuple[str, ...]
    cleared: int
    confirmed: int

    def in_words(self) -> str:
        """Return the summary as one line."""
        if not self.layers:
            return "not looked at"
        parts = [one.in_words(self.runs) for one in self.layers]
        if self.cleared or self.confirmed:
            counts = ((self.cleared, "cleared"), (self.confirmed, "confirmed"))
            reviewed = ", ".join(f"{count} {what}" for count, what in counts if count)
            parts.append(f"reviewed by hand: {reviewed}")
        return "; ".join(parts)


def summary_of(evidence: Evidence) -> IntegritySummary | None:
    """Summarise the integrity results of own runs that have ended; None without such runs or loaded results."""
    known = [
        (trial, trial.integrity) for trial in evidence.trials if trial.integrity is not None and trial.ended
    ]
    if not known:
        return None
    newest = [
        (trial, review)
        for trial, one in known
        for review in {review.finding: review for review in one.reviews}.values()
    ]
    layers = {result.layer for _, one in known for result in one.results}
    return IntegritySummary(
        runs=len(known),
        layers=tuple(_counts(layer, [one for _, one in known]) for layer in Layer if layer in layers),
        flagged=tuple(
            f"{trial.name}: {flags[0].statement}" for trial, one in known if (flags := one.flags())
        ),
        reviewed=tuple(
            f"{trial.name}: {'cleared' if one.cleared else 'confirmed'} by {one.author}: {one.reason}"
            f" ({one.statement})"
            for trial, one in newest
        ),
        cleared=sum(one.cleared for _, one in newest),
        confirmed=sum(not one.cleared for _, one in newest),
    )


def integrity_document(evidence: Evidence) -> list[dict[str, Any]]:
    """Return all results and reviews for a bundle, without texts of public kernels, which belong to others."""
    return [
        {
            "competition_id": trial.competition_id,
            "seed": trial.seed,
            "results": [asdict(_without_kernels(one)) for one in trial.integrity.results],
            "reviews": [asdict(one) for one in trial.integrity.reviews],
        }
        for trial in evidence.trials
        if trial.integrity is not None and trial.integrity.results
    ]


def _without_kernels(result: DetectorResult) -> DetectorResult:
    findings = tuple(
        replace(
            one,
            excerpts=tuple(
                replace(each, text="") if each.source.startswith(PUBLIC_KERNEL) else each
                for each in one.excerpts
            ),
        )
        for one in result.findings
    )
    return replace(result, findings=findings)


def _counts(layer: Layer, known: Sequence[RunIntegrity]) -> LayerCounts:
    of_layer = [[one for one in run.results if one.layer is layer] for run in known]
    results = [one for found in of_layer for one in found]
    costs = [one.usd for one in results]
    return LayerCounts(
        layer,
        looked_at=sum(bool(found) and not any(one.problem for one in found) for found in of_layer),
        flagged=sum(
            any(
                finding.severity.is_flag and not run.is_cleared(finding)
                for one in found
                for finding in one.findings
            )
            for run, found in zip(known, of_layer, strict=True)
        ),
        models=tuple(sorted({one.model for one in results} - {""})),
        usd=None if None in costs else sum(one for one in costs if one is not None),
    )
