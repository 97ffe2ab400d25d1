"""Verifying a prepared dataset: its tables' sums against the known ones, and against those of its own marker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from competitions.model import Competition
from engine.datasets import sums
from engine.datasets.telling import Tell
from engine.layout import DatasetFolder, is_prepared, prepared_with
from foundation.problems import DataProblem


@dataclass(frozen=True)
class Sum:
    """One table's sums.

    Attributes:
        known: that of the real data, where it is known.
        sealed: what it was when the dataset was prepared, where this project prepared it.
        found: what it is; None: there is no such file.
    """

    name: str
    known: str | None
    sealed: str | None
    found: str | None

    @property
    def as_known(self) -> bool:
        """Whether it is what is known, as far as something is."""
        return self.known is None or self.found == self.known

    @property
    def as_sealed(self) -> bool:
        """Whether it has not changed since it was prepared, as far as that is known."""
        return self.sealed is None or self.found == self.sealed


@dataclass(frozen=True)
class Verification:
    """What was found."""

    sums: tuple[Sum, ...]

    @property
    def differs(self) -> str:
        """What is not as it should be, by name; empty when all is well."""
        changed = [one.name for one in self.sums if not one.as_sealed]
        unknown = [one.name for one in self.sums if one.as_sealed and not one.as_known]
        parts = []
        if changed:
            parts.append(f"changed since it was prepared: {', '.join(changed)}")
        if unknown:
            parts.append(f"not as known: {', '.join(unknown)}")
        return "; ".join(parts)


def verify(competition: Competition, folder: DatasetFolder, tell: Tell | None = None) -> Verification:
    """Read a prepared dataset's tables and compare; nothing is changed.

    Raises:
        DataProblem: it is not prepared.
    """
    if not is_prepared(competition, folder):
        raise DataProblem(
            f"{competition.id} is not prepared",
            f"looked in {folder.prepared}",
            f"Prepare it: mlebench-console prepare -c {competition.id}",
        )
    found = sums.checksums_of(folder.prepared, tell)
    known = competition.checksums
    marker = prepared_with(folder) or {}
    compared: list[Sum] = []
    for side, actual, expected in (
        ("public", found.public, known.public),
        ("private", found.private, known.private),
    ):
        # The known sums are those of edition v1, made of the real data.
        real = expected if folder.edition == "v1" else {}
        noted = marker.get(side)
        sealed: Mapping[str, str] = noted if isinstance(noted, dict) else {}
        compared += [
            Sum(f"{side}/{name}", real.get(name), sealed.get(name), actual.get(name))
            for name in sorted({*actual, *real, *sealed})
        ]
    return Verification(tuple(compared))
