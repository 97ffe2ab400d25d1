"""One dataset's detail as lines: what a person has to do, steps, sums, files, log."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from console import wording
from console.sanitize import plain
from console.screens.data_lines import pace_words
from console.tui.painting import (
    Piece,
    Pieces,
    bar,
    cut,
    fit,
    foreign,
)
from console.tui.theme import Role, Signs
from console.views.dataset_board import DatasetRow
from console.views.dataset_detail import DatasetDetail, KnownSum
from console.views.rates import Pace
from engine.datasets.access import AccessState
from state.records import DatasetStep, Event, StepState

_BAR = 16
_NAME = 14
_LABEL = 9
_SUM_NAME = 32
_ROLES: dict[StepState, Role] = {
    StepState.WAITING: "dim",
    StepState.WORKING: "running",
    StepState.DONE: "good",
    StepState.SKIPPED: "faint",
    StepState.FAILED: "bad",
}


@dataclass(frozen=True)
class Room:
    """How much of a detail is shown; what goes beyond is counted, texts are cut after so many lines."""

    width: int
    signs: Signs
    keys: Callable[[str], str]
    sums: int
    files: int
    events: int
    text_lines: int


def detail_lines(
    row: DatasetRow, detail: DatasetDetail | None, paces: Mapping[str, Pace], room: Room
) -> tuple[Pieces, ...]:
    """What there is to tell of a dataset, the most urgent first."""
    lines = [*_problem(row, detail, room), *(_step(step, paces, room) for step in row.steps)]
    if detail is not None:
        lines += [*_log(row, detail.log, room), *_sums(detail, room), *_files(detail, room)]
        # The last two parts tell which; the whole, which may be longer than a line, is copied by key.
        place = f"{detail.folder.parent.name}/{detail.folder.name}"
        how = f"{room.keys('data.copy_folder')} copies its path"
        lines.append(_labelled("folder", place, room.width, "text", how))
    return tuple(cut(line, room.width) for line in lines)


def _problem(row: DatasetRow, detail: DatasetDetail | None, room: Room) -> Iterator[Pieces]:
    if row.problem:
        yield from _wrapped("problem", row.problem, room, "bad")
    if detail is not None and row.access is AccessState.RULES:
        keys = f"{room.keys('data.copy_url')} copies it, {room.keys('data.check')} checks again"
        yield _labelled("accept at", detail.rules_url, room.width, "accent", keys)


def _step(step: DatasetStep, paces: Mapping[str, Pace], room: Room) -> Pieces:
    pieces: list[Piece] = [
        ("  ", "text"),
        (f"{_sign(step.state, room.signs)} {foreign(step.name, _NAME)} ", _ROLES[step.state]),
    ]
    if step.state is StepState.WORKING and step.total:
        full, empty = bar(min(1.0, step.done / step.total), _BAR, room.signs)
        pieces += [(full, "running"), (empty, "faint"), (f" {step.done / step.total:4.0%}  ", "text")]
    if step.unit == "bytes" and step.total:
        of = f"{wording.size(step.done)} of " if step.state is StepState.WORKING else ""
        pieces.append((f"{of}{wording.size(step.total)}  ", "text"))
    elif step.total:
        pieces.append((f"{step.done:,} of {step.total:,}  ", "text"))
    if step.state is StepState.WORKING:
        rate, eta = pace_words(step, paces.get(step.name, Pace()))
        pieces.append((f"{rate}{f', {eta} left' if eta else ''}  " if rate else "", "dim"))
    elif step.state is StepState.DONE and step.started_at is not None and step.ended_at is not None:
        pieces.append((f"took {wording.duration(step.ended_at - step.started_at)}  ", "dim"))
    pieces.append((foreign(step.note, room.width).rstrip(), "dim"))
    return tuple(pieces)


def _sums(detail: DatasetDetail, room: Room) -> Iterator[Pieces]:
    # What differs is what somebody looks for.
    ordered = sorted(detail.sums, key=lambda one: not one.differs)
    for number, one in enumerate(islice(ordered, room.sums)):
        label, role = fit("" if number else "MD5", _LABEL), _sum_role(one)
        texts = _sum_texts(one)
        if len(texts) > 1 and sum(map(len, texts)) + 2 <= room.width - _LABEL - _SUM_NAME - 4:
            texts = [", ".join(texts)]
        for place, text in enumerate(texts):
            before = (label, one.name) if place == 0 else ("", "")
            yield (
                (f"  {fit(before[0], _LABEL)} ", "dim"),
                (foreign(before[1], _SUM_NAME) + " ", "text"),
                (foreign(text, room.width).rstrip(), role),
            )
    yield from _rest(detail.sums, room.sums)


def _sum_texts(one: KnownSum) -> list[str]:
    if one.found is None:
        return [f"expected {one.known}"]
    if one.known is None:
        return [f"{one.found}, none known"]
    return [f"found {one.found}", f"expected {one.known}"] if one.differs else [f"{one.found}, as known"]


def _sum_role(one: KnownSum) -> Role:
    if one.differs:
        return "bad"
    return "good" if one.found is not None and one.known is not None else "dim"


def _files(detail: DatasetDetail, room: Room) -> Iterator[Pieces]:
    for number, one in enumerate(islice(detail.files, room.files)):
        label = fit("" if number else "files", _LABEL)
        size = "" if one.bytes is None else wording.size(one.bytes)
        yield ((f"  {label} ", "dim"), (foreign(one.name, 46) + " ", "text"), (f"{size:>8}", "dim"))
    yield from _rest(detail.files, room.files)


def _log(row: DatasetRow, found: Sequence[Event], room: Room) -> Iterator[Pieces]:
    shown = found[: room.events]
    for number, event in enumerate(reversed(shown)):  # the newest is at the end, as in every log
        label = fit("" if number else "log", _LABEL)
        moment = f"{wording.day_and_clock(event.at)}  "
        # The edition is named in the heading; what happened to another one is told with its name.
        text = event.text.removeprefix(f"edition {row.edition} ").removeprefix("is ")
        for place, part in enumerate(_parts(text, room.width - _LABEL - 3 - len(moment), room.text_lines)):
            before = (label, moment) if place == 0 else (fit("", _LABEL), " " * len(moment))
            yield ((f"  {before[0]} ", "dim"), (before[1], "dim"), (part, "text"))


def _wrapped(label: str, text: str, room: Room, role: Role) -> Iterator[Pieces]:
    for place, part in enumerate(_parts(text, room.width - _LABEL - 3, room.text_lines)):
        yield ((f"  {fit(label if place == 0 else '', _LABEL)} ", "dim"), (part, role))


def _parts(text: str, width: int, most: int) -> list[str]:
    """A foreign text on at most so many lines."""
    harmless = plain(text.replace("\n", " "), limit=most * max(1, width))
    return textwrap.wrap(harmless, max(1, width), max_lines=most, placeholder=" ...")


def _rest(found: Sequence[object], shown: int) -> Iterator[Pieces]:
    if len(found) > shown:
        yield ((f"  {fit('', _LABEL)} and {len(found) - shown} more", "dim"),)


def _labelled(label: str, text: str, width: int, role: Role, note: str = "") -> Pieces:
    shown = foreign(text, max(1, width - _LABEL - 3)).rstrip()
    return ((f"  {fit(label, _LABEL)} ", "dim"), (shown, role), (f"   {note}" if note else "", "dim"))


def _sign(state: StepState, signs: Signs) -> str:
    return {
        StepState.WAITING: signs.queued,
        StepState.WORKING: signs.running,
        StepState.DONE: signs.done,
        StepState.SKIPPED: signs.dot,
        StepState.FAILED: signs.failed,
    }[state]
