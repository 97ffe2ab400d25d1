"""What must be told with a row for it to be trusted, gathered from evidence; how it is written is in `row_text`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from competitions import registry
from competitions.model import Edition
from engine.scoreboard.evidence import Evidence, limit_text
from engine.scoreboard.model import Row

UNKNOWN = "not known"


@dataclass(frozen=True)
class Disclosure:
    """The conditions under which a row came about.

    Attributes:
        seeds: complete seeds, and how many were asked for (None: not told).
        rerolled: runs that were relaunched though the agent itself had failed, as `competition, seed n`.
        lost: runs that count for nothing: lost to infrastructure, or stopped by an operator.
        absent: competitions of the benchmark's 75 without a single run.
        unavailable: those of the absent that nobody can have any more, with the reason; they count all the same.
        excluded: competitions that the edition leaves out, with the reason.
        defects: known defects of the edition that touch a competition of the row.
        hardware: what a run was given of its machine.
        machines: what the runs' machines are made of, each kind once.
        images: digests of the images that the agent ran in.
        test_feedback: whether the agent could learn its score on the test set; None: not known.
        isolated: runs that were kept from answers and network, and how many there are; None: not known.
    """

    edition: str
    agent: str
    agent_version: str
    seeds_done: int | None
    seeds_planned: int | None
    padded: bool
    rerolled: tuple[str, ...]
    lost: tuple[str, ...]
    absent: tuple[str, ...]
    unavailable: tuple[tuple[str, str], ...]
    excluded: tuple[tuple[str, str], ...]
    defects: tuple[tuple[str, str], ...]
    hours: float | None
    hardware: str
    network: str
    images: tuple[str, ...]
    machines: tuple[str, ...]
    test_feedback: bool | None
    isolated: tuple[int, int] | None
    demo: bool

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Everything as pairs of a name and a text, in the order in which it is to be read."""
        return (
            *((("data", "synthetic: a demo, not a result"),) if self.demo else ()),
            ("edition", self.edition),
            ("agent", " ".join(part for part in (self.agent, self.agent_version) if part) or UNKNOWN),
            ("agent images", ", ".join(self.images) or "none known"),
            ("complete seeds", _of(self.seeds_done, self.seeds_planned)),
            ("padding", "missing results counted as no medal" if self.padded else "no"),
            ("re-rolled seeds", _listed(self.rerolled)),
            ("runs that count for nothing", _listed(self.lost)),
            ("competitions of the 75 without a run", _listed(self.absent)),
            ("of those no longer available", _with_reasons(self.unavailable)),
            ("excluded by the edition", _with_reasons(self.excluded)),
            (
                "known defects that touch it",
                _listed(tuple(dict.fromkeys(name for name, _ in self.defects))),
            ),
            ("time limit", UNKNOWN if self.hours is None else limit_text(self.hours)),
            ("hardware per run", self.hardware or UNKNOWN),
            ("machines", "; ".join(self.machines) or UNKNOWN),
            ("network policy", self.network or UNKNOWN),
            ("isolated runs", UNKNOWN if self.isolated is None else _of(*self.isolated)),
            ("test-set feedback", {True: "yes", False: "no", None: UNKNOWN}[self.test_feedback]),
        )


def disclose(
    evidence: Evidence,
    row: Row,
    *,
    images: Sequence[str] = (),
    machines: Sequence[str] = (),
    isolated: tuple[int, int] | None = None,
    unavailable: Mapping[str, str] | None = None,
) -> Disclosure:
    """Say what must be told with a row; our own agents never learn a score, of others we don't know."""
    edition: Edition = "corrected" if evidence.conditions.edition == "corrected" else "v1"
    covered = evidence.competitions
    absent = tuple(name for name in registry.splits()["split75"] if name not in set(covered))
    return Disclosure(
        edition=evidence.conditions.edition,
        agent=evidence.conditions.agent,
        agent_version=evidence.conditions.agent_version,
        seeds_done=row.seeds_done,
        seeds_planned=row.seeds_planned,
        padded=row.padded,
        rerolled=tuple(
            f"{trial.competition_id}, seed {trial.seed}" for trial in evidence.trials if trial.rerolls
        ),
        lost=tuple(
            f"{trial.competition_id}, seed {trial.seed}: {trial.text}"
            for trial in evidence.trials
            if trial.ended and trial.earned is None
        ),
        absent=absent,
        unavailable=tuple((name, reason) for name, reason in (unavailable or {}).items() if name in absent),
        excluded=tuple(
            (name, reason)
            for name in registry.splits()["split75"]
            if edition == "corrected" and (reason := registry.get(name).excluded)
        ),
        defects=tuple((name, text) for name in covered for text in registry.get(name).defects_in(edition)),
        hours=row.hours,
        hardware=evidence.conditions.hardware,
        network=evidence.conditions.network,
        images=tuple(images),
        machines=tuple(machines),
        test_feedback=False if evidence.table == "own" else None,
        isolated=isolated,
        demo=row.demo,
    )


def _of(part: int | None, whole: int | None) -> str:
    return " of ".join(str(value) for value in (part, whole) if value is not None) or UNKNOWN


def _with_reasons(found: Sequence[tuple[str, str]]) -> str:
    return _listed(tuple(f"{name} ({reason})" for name, reason in found))


def _listed(names: tuple[str, ...]) -> str:
    return f"{len(names)}: {'; '.join(names)}" if names else "none"
