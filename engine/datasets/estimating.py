"""What preparing datasets will take, told before anything is begun; Kaggle is asked where it can be."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from competitions import registry
from competitions.model import Competition, Edition
from engine.datasets import sources
from engine.datasets.access import AccessState, access_after
from engine.kaggle.credentials import find_credentials
from engine.layout import dataset_folder, is_prepared
from foundation.problems import Problem

_ASK_AT_ONCE = 4
# What a zip inflates to, where it is not there to be looked into: images and sounds hardly grow, tables do.
_USUAL_GROWTH = 1.6


class ToDo(StrEnum):
    """What there is to do for a dataset; `refused` is what Kaggle does not let us have."""

    NOTHING = "nothing"
    PREPARE = "prepare"
    DOWNLOAD = "download"
    REFUSED = "refused"


@dataclass(frozen=True)
class Estimate:
    """What one dataset takes.

    Attributes:
        bytes: of the data as Kaggle packs them; None: unknown.
        basis: where that is known from.
        peak: how much it takes on the disk while it is prepared.
    """

    competition_id: str
    to_do: ToDo
    bytes: int | None
    basis: str
    peak: int | None
    problem: str = ""


@dataclass(frozen=True)
class Access:
    """What Kaggle answered when it was asked for a competition's data."""

    competition_id: str
    state: AccessState
    bytes: int | None
    url: str
    problem: str = ""


def estimate(
    chosen: Sequence[str], data_dir: Path, edition: Edition, *, raw_given: bool, again: bool
) -> list[Estimate]:
    """Estimate what preparing the chosen competitions takes."""
    missing: list[Competition] = []
    found: dict[str, Estimate] = {}
    for competition in map(registry.get, chosen):
        folder = dataset_folder(competition, data_dir, edition)
        zips = folder.zips()
        if is_prepared(competition, folder) and not again:
            found[competition.id] = Estimate(competition.id, ToDo.NOTHING, None, "is prepared", 0)
        elif raw_given or (not zips and not sources.needs_download(folder)):
            found[competition.id] = Estimate(competition.id, ToDo.PREPARE, _facts(competition), "facts", None)
        elif zips:
            found[competition.id] = _of_zip(competition, zips[0])
        else:
            missing.append(competition)
    found |= {one.competition_id: one for one in _to_download(missing)}
    return [found[competition_id] for competition_id in chosen]


def ask_access(chosen: Sequence[Competition]) -> list[Access]:
    """Ask Kaggle about several competitions at once."""
    with ThreadPoolExecutor(_ASK_AT_ONCE) as pool:
        return list(pool.map(_ask_one, chosen))


def peak_bytes(estimates: Sequence[Estimate]) -> int:
    """How much the disk must hold: all that stays, and what is needed in between."""
    return sum(one.peak or 0 for one in estimates)


def usual_peak(zip_bytes: int) -> int:
    """How much a dataset takes on the disk while it is prepared, told from its zip's size alone."""
    return int(zip_bytes * (1 + _USUAL_GROWTH))


def _ask_one(competition: Competition) -> Access:
    try:
        return Access(competition.id, AccessState.OPEN, sources.check(competition), competition.rules_url)
    except Problem as problem:
        return Access(competition.id, access_after(problem), None, competition.rules_url, problem.cause)


def _of_zip(competition: Competition, path: Path) -> Estimate:
    from engine.datasets import unpacking  # loads numpy

    size = path.stat().st_size
    try:
        inflated = unpacking.read_contents(path).bytes
    except Problem as problem:  # one damaged zip is one competition's problem
        return Estimate(competition.id, ToDo.PREPARE, size, "its zip", None, problem.cause)
    return Estimate(competition.id, ToDo.PREPARE, size, "its zip", inflated)


def _to_download(missing: Sequence[Competition]) -> list[Estimate]:
    if find_credentials() is None:
        return [
            _download(competition, _facts(competition), "facts", "no Kaggle credentials")
            for competition in missing
        ]
    made = []
    for competition, access in zip(missing, ask_access(missing), strict=True):
        if access.state in (AccessState.RULES, AccessState.GONE):
            made.append(Estimate(competition.id, ToDo.REFUSED, None, "Kaggle", 0, access.problem))
        elif access.bytes is not None:
            made.append(_download(competition, access.bytes, "Kaggle", ""))
        else:
            made.append(_download(competition, _facts(competition), "facts", access.problem))
    return made


def _download(competition: Competition, size: int | None, basis: str, problem: str) -> Estimate:
    peak = None if size is None else usual_peak(size)
    return Estimate(competition.id, ToDo.DOWNLOAD, size, basis, peak, problem)


def _facts(competition: Competition) -> int | None:
    return None if competition.size_gb is None else int(competition.size_gb * 1e9)
