"""Competitions whose result says less than it seems: saturated, out of reach, without gradation, known defects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from competitions import registry
from competitions.model import EDITIONS, Edition
from engine.scoreboard.evidence import Evidence
from engine.scoreboard.model import Measure

Kind = Literal["saturated", "out of reach", "no gradation", "defect"]

# Fewer seeds than this show nothing.
_ENOUGH_SEEDS = 3


@dataclass(frozen=True)
class Flag:
    """One reason to read a competition's result with care."""

    competition_id: str
    kind: Kind
    text: str


def flags_of(evidences: Iterable[Evidence]) -> tuple[Flag, ...]:
    """Flag the competitions of some experiments taken together, by competition."""
    together = tuple(evidences)
    golds: dict[str, list[bool]] = {}
    medals: dict[str, list[bool]] = {}
    for evidence in together:
        for trial in evidence.trials:
            if trial.earned is not None:
                golds.setdefault(trial.competition_id, []).append(trial.has(Measure.GOLD))
                medals.setdefault(trial.competition_id, []).append(trial.has(Measure.ANY_MEDAL))
    editions = tuple(
        one for one in EDITIONS if any(evidence.conditions.edition == one for evidence in together)
    )
    flags: list[Flag] = []
    for competition_id in sorted(golds, key=str.lower):
        seeds = len(golds[competition_id])
        if seeds >= _ENOUGH_SEEDS and all(golds[competition_id]):
            flags.append(Flag(competition_id, "saturated", f"gold in all {seeds} seeds"))
        if seeds >= _ENOUGH_SEEDS and not any(medals[competition_id]):
            flags.append(Flag(competition_id, "out of reach", f"no medal in any of {seeds} seeds"))
        flags += _of_competition(competition_id, editions)
    return tuple(flags)


def _of_competition(competition_id: str, editions: tuple[Edition, ...]) -> list[Flag]:
    competition = registry.get(competition_id)
    cut = competition.thresholds
    flags = []
    if cut.gold == cut.bronze:
        flags.append(
            Flag(competition_id, "no gradation", f"the cut-offs of all medals are the same, {cut.gold:g}")
        )
    elif cut.bronze == cut.median:
        flags.append(
            Flag(competition_id, "no gradation", f"the cut-off of bronze is the median, {cut.bronze:g}")
        )
    texts = dict.fromkeys(text for edition in editions for text in competition.defects_in(edition))
    return [*flags, *(Flag(competition_id, "defect", text) for text in texts)]
