"""One dataset's detail as lines: steps, sums, files, and what a person has to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from console.model import wording
from console.model.dataset_board import DatasetRow
from console.model.dataset_detail import DatasetDetail, KnownSum
from console.model.rates import Pace
from console.painting import Piece, Pieces, bar, cut, fit, foreign
from console.signs import Signs
from console.theme import Role
from state.records import DatasetStep, StepState

_BAR = 16
_NAME = 14
_LABEL = 9
_MOST_SUMS = 4
_ROLES: dict[StepState, Role] = {
    StepState.WAITING: "dim",
    StepState.WORKING: "running",
    StepState.DONE: "good",
    StepState.SKIPPED: "faint",
    StepState.FAILED: "bad",
}


def detail_lines(
    row: DatasetRow, detail: DatasetDetail | None, paces: Mapping[str, Pace], width: int, signs: Signs
) -> tuple[Pieces, ...]:
    """Everything there is to tell of a dataset, the most urgent first."""
    lines = [*_problem(row, detail, width), *(_step(step, paces, width, signs) for step in row.steps)]
    if detail is not None:
        lines += [*_sums(detail, width), *_places(detail, width)]
    return tuple(cut(line, width) for line in lines)


def _problem(row: DatasetRow, detail: DatasetDetail | None, width: int) -> Iterator[Pieces]:
    if row.dataset is not None and row.dataset.problem:
        yield _labelled("problem", row.dataset.problem, width, "bad")
    if detail is not None and row.needs_rules:
        yield _labelled("accept at", detail.rules_url, width, "accent")


def _step(step: DatasetStep, paces: Mapping[str, Pace], width: int, signs: Signs) -> Pieces:
    pieces: list[Piece] = [
        ("  ", "text"),
        (f"{_sign(step.state, signs)} {foreign(step.name, _NAME)} ", _ROLES[step.state]),
    ]
    if step.state is StepState.WORKING and step.total:
        full, empty = bar(min(1.0, step.done / step.total), _BAR, signs)
        pieces += [(full, "running"), (empty, "faint"), (f" {step.done / step.total:4.0%}  ", "text")]
    if step.unit == "bytes" and step.total:
        of = f"{wording.size(step.done)} of " if step.state is StepState.WORKING else ""
        pieces.append((f"{of}{wording.size(step.total)}  ", "text"))
    elif step.total:
        pieces.append((f"{step.done:,} of {step.total:,}  ", "text"))
    pace = paces.get(step.name)
    if step.state is StepState.WORKING and pace is not None:
        pieces.append((pace_text(step, pace), "dim"))
    pieces.append((foreign(step.note, width).rstrip(), "dim"))
    return tuple(pieces)


def pace_text(step: DatasetStep, pace: Pace) -> str:
    """How fast a step goes and how long it needs yet; empty as long as that is not known."""
    if not pace.rate:
        return ""
    rate = f"{wording.size(pace.rate)}/s" if step.unit == "bytes" else f"{pace.rate:,.0f}/s"
    left = "" if pace.eta is None else f", {wording.span(pace.eta)} left"
    return f"{rate}{left}  "


def _sums(detail: DatasetDetail, width: int) -> Iterator[Pieces]:
    if not detail.sums:
        return
    # What differs is what somebody looks for.
    ordered = sorted(detail.sums, key=lambda one: _verdict(one)[1] != "bad")
    for number, one in enumerate(islice(ordered, _MOST_SUMS)):
        text, role = _verdict(one)
        label = fit("MD5" if number == 0 else "", _LABEL)
        yield ((f"  {label} ", "dim"), (foreign(one.name, 34) + " ", "text"), (foreign(text, width), role))
    if len(detail.sums) > _MOST_SUMS:
        yield ((f"  {fit('', _LABEL)} and {len(detail.sums) - _MOST_SUMS} more", "dim"),)


def _verdict(one: KnownSum) -> tuple[str, Role]:
    if one.found is None:
        return f"expected {one.known}", "dim"
    if one.known is None:
        return f"{one.found}, none known", "dim"
    if one.found == one.known:
        return f"{one.found}, as known", "good"
    return f"{one.found}, expected {one.known}", "bad"


def _places(detail: DatasetDetail, width: int) -> Iterator[Pieces]:
    if detail.files:
        yield _labelled("files", "  ".join(detail.files), width, "text")
    # The last two parts tell which; the whole, which may be longer than the screen is wide, is copied by key.
    yield _labelled("folder", f"{detail.folder.parent.name}/{detail.folder.name}", width, "text")


def _labelled(label: str, text: str, width: int, role: Role) -> Pieces:
    return ((f"  {fit(label, _LABEL)} ", "dim"), (foreign(text, max(1, width - _LABEL - 3)).rstrip(), role))


def _sign(state: StepState, signs: Signs) -> str:
    return {
        StepState.WAITING: signs.queued,
        StepState.WORKING: signs.running,
        StepState.DONE: signs.done,
        StepState.SKIPPED: signs.dot,
        StepState.FAILED: signs.failed,
    }[state]
