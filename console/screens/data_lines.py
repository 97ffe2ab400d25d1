"""Datasets as lines: columns that stay where they are while the numbers in them change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from console import wording
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    bar,
    cut,
    fit,
    fitting,
    foreign,
    joined,
)
from console.tui.theme import Role, Signs
from console.views import filters
from console.views.dataset_board import DatasetRow
from console.views.dataset_totals import Needs, Totals
from console.views.rates import Pace
from engine.datasets.access import AccessState
from state.records import DatasetState, DatasetStep, StepState

STATE_ROLES: dict[DatasetState, Role] = {
    DatasetState.ABSENT: "dim",
    DatasetState.WAITING: "dim",
    DatasetState.WORKING: "running",
    DatasetState.PREPARED: "good",
    DatasetState.FAILED: "bad",
    DatasetState.REFUSED: "warn",
    DatasetState.UNAVAILABLE: "warn",
}
_URGENT_FIRST = (
    DatasetState.REFUSED,
    DatasetState.UNAVAILABLE,
    DatasetState.FAILED,
    DatasetState.WORKING,
    DatasetState.WAITING,
    DatasetState.PREPARED,
    DatasetState.ABSENT,
)
ACCESS_ROLES: dict[AccessState, Role] = {
    AccessState.OPEN: "good",
    AccessState.RULES: "warn",
    AccessState.GONE: "warn",
    AccessState.UNKNOWN: "faint",
}
_MARGIN = 3
_STATE, _SIZE, _PERCENT = 14, 9, 6
_LEAST_NAME, _MOST_NAME = 16, 56
_GAP: Piece = ("  ", "text")


@dataclass(frozen=True)
class Columns:
    """How wide each column is; 0 is left out."""

    name: int
    edition: int
    access: int
    bar: int
    step: int
    rate: int
    eta: int

    @classmethod
    def for_width(cls, width: int) -> Columns:
        """Narrow terminals lose what the state or the detail tells as well."""
        if width >= 112:
            others = cls(0, 11 if width >= 136 else 0, 8, 10, 15, 11, 6)
        else:
            others = cls(0, 0, 8 if width >= 92 else 0, 8, 10, 0, 6)
        taken = _MARGIN + _STATE + _SIZE + 2 + _PERCENT
        taken += others.edition + others.access + others.bar + others.step + others.rate + others.eta
        name = min(_MOST_NAME, max(_LEAST_NAME, width - taken))
        return cls(name, others.edition, others.access, others.bar, others.step, others.rate, others.eta)


@dataclass(frozen=True)
class View:
    """How the datasets are looked at."""

    width: int
    signs: Signs
    chosen: str
    marked: frozenset[tuple[str, str]]
    paces: Mapping[tuple[str, str, str], Pace]


def header(rows: Sequence[DatasetRow], totals: Totals, signs: Signs, width: int) -> tuple[Pieces, Pieces]:
    """How many datasets are how far; and what is to come, what is there, and what there is room for."""
    counts: list[Pieces] = []
    for state in _URGENT_FIRST:
        count = sum(row.state is state for row in rows)
        if count:
            counts.append(((f"{state_sign(state, signs)} {count} {state}", STATE_ROLES[state]),))
    told: list[Pieces] = []
    if totals.to_download:
        told.append(((f"{wording.size(totals.to_download)} to download", "running"),))
    if totals.eta is not None:
        least = "at least " if totals.of_unknown_size else ""
        told.append(((f"{least}{wording.span(totals.eta)} left at this rate", "running"),))
    told.append(((f"{wording.size(totals.on_disk)} on disk", "dim"),))
    if totals.free is not None:
        told.append(((f"{wording.size(totals.free)} free", "dim"),))
    if totals.fitting is not None and totals.missing:
        told.append(((f"{totals.fitting} of {totals.missing} missing would fit", "dim"),))
    gap: Piece = ("   ", "text")
    first, second = (((" ", "text"), *joined(groups, gap, width - 2)) for groups in (counts, told))
    return first, second


def filter_line(view: View, shown: int, total: int, needs: Needs | None) -> tuple[Pieces, ...]:
    """What the filter says, how many are marked, and what the marked ones would take; nothing if neither."""
    pieces: list[Piece] = []
    if view.chosen:
        pieces += [
            (" / ", "accent"),
            (foreign(view.chosen, 40).rstrip(), "text"),
            (f"   {shown} of {total}", "dim"),
        ]
    if view.marked and needs is not None:
        pieces += [(f" {view.signs.marked} {len(view.marked)} marked", "accent"), (needs_text(needs), "dim")]
    return (cut(tuple(pieces), view.width),) if pieces else ()


def needs_text(needs: Needs) -> str:
    """What preparing would take, in words."""
    if not needs.count:
        return "  all prepared"
    verdict = {True: ": fits", False: ": does not fit", None: ""}[needs.fits]
    unknown = f", {needs.unknown} of unknown size" if needs.unknown else ""
    return (
        f"  ~{wording.size(needs.to_download)} of zips, ~{wording.size(needs.peak)} on disk{verdict}{unknown}"
    )


def accepted(rows: Sequence[DatasetRow], chosen: str) -> list[DatasetRow]:
    """The rows that a filter lets through."""
    return [
        row
        for row in rows
        if filters.words_accept(chosen, row.competition_id, row.split, row.state, row.edition, row.access)
    ]


def lines(rows: Sequence[DatasetRow], view: View) -> list[Line]:
    """The competitions by split, each split under a heading with the names of the columns."""
    columns = Columns.for_width(view.width)
    made: list[Line] = []
    split = ""
    for row in rows:
        if row.split != split:
            split = row.split
            made += [Line()] if made else []
            made.append(Line(cut(_heading(split, columns), view.width)))
        made.append(_line(row, columns, view))
    return made


def _heading(split: str, columns: Columns) -> Pieces:
    cells = (
        fit("state", _STATE),
        fit("edition", columns.edition),
        f"{'size':>{_SIZE}}  ",
        fit("access", columns.access),
        fit("step", columns.step),
        fit("", columns.bar + _PERCENT),
        fit("rate", columns.rate, right=True),
        fit("left", columns.eta, right=True),
    )
    return ((f" {fit(split.upper(), columns.name + _MARGIN - 1)}", "strong"), ("".join(cells), "dim"))


def _line(row: DatasetRow, columns: Columns, view: View) -> Line:
    signs = view.signs
    marked = signs.marked if row.key in view.marked else " "
    suffix = "" if columns.edition or row.edition == "v1" else f" ({foreign(row.edition, 12).rstrip()})"
    name = foreign(row.competition_id, columns.name - 1 - len(suffix), ellipsis=signs.ellipsis).rstrip()
    access = "-" if row.access is AccessState.UNKNOWN else row.access.value
    pieces: Pieces = (
        (f" {marked}", "accent"),
        (f" {fit(name + suffix, columns.name - 1)} ", "text"),
        (fit(f"{state_sign(row.state, signs)} {row.state}", _STATE), STATE_ROLES[row.state]),
        (foreign(row.edition, columns.edition), "dim"),
        (f"{size_text(row):>{_SIZE}}  ", "dim"),
        (fit(access, columns.access), ACCESS_ROLES[row.access]),
        *_progress(row, columns, view),
    )
    return Line(cut(pieces, view.width), key=row.key, selectable=True)


def size_text(row: DatasetRow) -> str:
    """What the prepared data take, or else what Kaggle's zip does."""
    known = row.bytes_on_disk or row.told_bytes
    if known:
        return wording.size(known)
    return f"~{wording.size(row.zip_bytes)}" if row.zip_bytes else wording.UNKNOWN


def _progress(row: DatasetRow, columns: Columns, view: View) -> Pieces:
    if row.problem and not row.is_verifying:
        calm = row.state in (DatasetState.WAITING, DatasetState.PREPARED)
        told = row.problem.removeprefix(f"{row.competition_id}: ")  # its name stands in the line already
        return ((foreign(told, view.width), "warn" if calm else STATE_ROLES[row.state]),)
    step = row.step
    if step is None or step.state is not StepState.WORKING:
        return (("to be verified", "dim"),) if row.is_verifying else ()
    pace = view.paces.get((*row.key, step.name), Pace())
    count = f"{row.steps_done + 1}/{len(row.steps)} " if columns.rate else ""
    rate, eta = pace_words(step, pace)
    return (
        (foreign(count + step.name, columns.step - 1) + " ", "text"),
        *_bar(step, columns.bar, view.signs),
        (fit(rate, columns.rate, right=True), "dim"),
        (fit(eta, columns.eta, right=True), "text"),
        _GAP,
        (foreign(step.note, view.width).rstrip(), "dim"),
    )


def _bar(step: DatasetStep, width: int, signs: Signs) -> Pieces:
    if not step.total:
        return ((fit("", width + _PERCENT), "text"),)
    share = min(1.0, step.done / step.total)
    full, empty = bar(share, width, signs)
    return ((full, "running"), (empty, "faint"), (fit(f"{share:.0%}", _PERCENT, right=True), "text"))


def pace_words(step: DatasetStep, pace: Pace) -> tuple[str, str]:
    """How fast a step goes and how long it needs yet; empty as long as that is not known."""
    if not pace.rate:
        return "", ""
    rate = f"{wording.size(pace.rate)}/s" if step.unit == "bytes" else f"{pace.rate:,.0f}/s"
    return rate, "" if pace.eta is None else wording.span(pace.eta)


def about(row: DatasetRow | None, keys: Callable[[str], str], width: int) -> Pieces:
    """One line on the row under the cursor: what a person has to do, or what is wrong."""
    if row is None:
        return ()
    copy, check = keys("data.copy_url"), keys("data.check")
    if row.access is AccessState.RULES:
        long = f" accept the rules in a browser: {copy} copies the address, then {check} checks again"
        short = f" accept the rules: {copy} copies the URL, {check} checks again"
        return fitting([((long, "warn"),), ((short, "warn"),)], width)
    if row.access is AccessState.GONE:
        text = "Kaggle offers it no longer; it counts in every denominator"
        return cut(((f" {text}   {check} checks again", "warn"),), width)
    return ((" " + foreign(row.problem, width - 1).rstrip(), "dim"),) if row.problem else ()


def state_sign(state: DatasetState, signs: Signs) -> str:
    """The sign of a state."""
    return {
        DatasetState.ABSENT: signs.dot,
        DatasetState.WAITING: signs.queued,
        DatasetState.WORKING: signs.running,
        DatasetState.PREPARED: signs.done,
        DatasetState.FAILED: signs.failed,
        DatasetState.REFUSED: "?",
        DatasetState.UNAVAILABLE: signs.invalid,
    }[state]
