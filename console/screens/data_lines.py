"""Datasets as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.model import filters, wording
from console.model.dataset_board import DatasetRow
from console.model.rates import Pace
from console.model.splits import competition
from console.painting import Line, Piece, Pieces, bar, cut, fit, foreign
from console.screens.data_detail import pace_text
from console.signs import Signs
from console.theme import Role
from state.records import DatasetState

_BAR = 10
_ROLES: dict[DatasetState, Role] = {
    DatasetState.ABSENT: "dim",
    DatasetState.WAITING: "dim",
    DatasetState.WORKING: "running",
    DatasetState.PREPARED: "good",
    DatasetState.FAILED: "bad",
    DatasetState.UNAVAILABLE: "warn",
}
_STATE = 14


@dataclass(frozen=True)
class Totals:
    """What all datasets take together; None is unknown."""

    to_download: int
    on_disk: int
    free: int | None
    eta: float | None


def header(rows: Sequence[DatasetRow], totals: Totals, signs: Signs, width: int) -> Pieces:
    """How many datasets are how far, and what is to come."""
    pieces: list[Piece] = [(" ", "text")]
    for state in DatasetState:
        count = sum(row.state is state for row in rows)
        if count:
            pieces += [(f"{_sign(state, signs)} {count} {state}", _ROLES[state]), ("   ", "text")]
    told = [f"{wording.size(totals.on_disk)} on disk"]
    if totals.to_download:
        eta = "" if totals.eta is None else f", {wording.span(totals.eta)} left"
        told.insert(0, f"{wording.size(totals.to_download)} to download{eta}")
    if totals.free is not None:
        told.append(f"{wording.size(totals.free)} free")
    return cut((*pieces, ("   ".join(told), "dim")), width)


def lines(
    rows: Sequence[DatasetRow],
    chosen: str,
    paces: Mapping[tuple[str, str, str], Pace],
    width: int,
    signs: Signs,
) -> list[Line]:
    """The competitions by split, those that a filter lets through."""
    name = min(56, max(20, width - 58))
    made: list[Line] = []
    split = ""
    for row in rows:
        if not filters.words_accept(chosen, row.competition_id, row.split, row.state):
            continue
        if row.split != split:
            split = row.split
            made += [Line()] if made else []
            made.append(
                Line(
                    (
                        (f" {fit(split.upper(), name + 1)}", "strong"),
                        (f"{'state':<{_STATE}}{'size':>9}  step", "dim"),
                    )
                )
            )
        made.append(_line(row, name, paces, width, signs))
    return made


def _line(
    row: DatasetRow, name: int, paces: Mapping[tuple[str, str, str], Pace], width: int, signs: Signs
) -> Line:
    edition = "" if row.edition == "v1" else f" ({row.edition})"
    found = competition(row.competition_id)
    size = row.dataset.bytes_on_disk if row.dataset is not None else None
    told = wording.size(size) if size else f"~{found.size_gb:.3g} GB" if found and found.size_gb else ""
    head: Pieces = (
        ("  ", "text"),
        (foreign(row.competition_id + edition, name - 1, ellipsis=signs.ellipsis) + " ", "text"),
        (fit(f"{_sign(row.state, signs)} {row.state}", _STATE), _ROLES[row.state]),
        (f"{told:>9}  ", "dim"),
    )
    pieces = cut((*head, *_progress(row, paces, width, signs)), width)
    return Line(pieces, key=(row.competition_id, row.edition), selectable=True)


def _progress(
    row: DatasetRow, paces: Mapping[tuple[str, str, str], Pace], width: int, signs: Signs
) -> Pieces:
    if row.dataset is not None and row.dataset.problem:
        calm = row.state in (DatasetState.WAITING, DatasetState.PREPARED)
        return ((foreign(row.dataset.problem, width), "warn" if calm else "bad"),)
    step = row.step
    if row.state is not DatasetState.WORKING or step is None:
        return ()
    pieces: list[Piece] = []
    if step.total:
        full, empty = bar(step.done / step.total, _BAR, signs)
        pieces += [(full, "running"), (empty, "faint"), (f" {step.done / step.total:.0%} ", "text")]
    name = f"{row.steps_done + 1}/{len(row.steps)} {step.name}"
    note = f" {step.note}" if step.note else ""
    pace = paces.get((row.competition_id, row.edition, step.name), Pace())
    told = f"  {pace_text(step, pace)}" if pace.rate else ""
    return (*pieces, (foreign(name + note + told, width).rstrip(), "text"))


def _sign(state: DatasetState, signs: Signs) -> str:
    return {
        DatasetState.ABSENT: signs.dot,
        DatasetState.WAITING: signs.queued,
        DatasetState.WORKING: signs.running,
        DatasetState.PREPARED: signs.done,
        DatasetState.FAILED: signs.failed,
        DatasetState.UNAVAILABLE: signs.invalid,
    }[state]
