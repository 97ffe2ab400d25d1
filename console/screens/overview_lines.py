"""The overview as lines: sweeps, what needs a person, what happened lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console import wording
from console.screens.run_cell import draw_run, outcome_role
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    bar,
    cut,
    fit,
    foreign,
    heading,
    width_of,
)
from console.tui.theme import Role, Signs
from console.views.overview import Concern, Overview, SweepLine
from state.lifecycle import FailureClass, Outcome, SweepState
from state.records import Event, Run


@dataclass(frozen=True)
class Target:
    """What a line leads to: a sweep, a run of it, the datasets, or the host."""

    place: str
    sweep_id: str | None = None
    run_id: int | None = None


def lines(
    found: Overview,
    needed: Sequence[Concern],
    of_host: Sequence[str],
    width: int,
    height: int,
    now: float,
    signs: Signs,
) -> list[Line]:
    """Three parts; what needs a person may take most of the room."""
    made = [Line(heading("sweeps", width, signs))]
    made += [_sweep(sweep, width, now, signs) for sweep in found.sweeps] or [_note("no sweep yet")]
    count = len(needed) + len(of_host)
    made += [Line(), Line(heading("needs you", width, signs, note=str(count) if count else ""))]
    made += [_of_host(text, width, signs) for text in of_host]
    room = max(4, height - len(made) - 8)
    made += [_concern(each, width, now, signs) for each in needed[:room]]
    if len(needed) > room:
        made.append(_note(f"and {len(needed) - room} more: f on the sweep screen goes from one to the next"))
    made += [_dataset(each.competition_id, each.problem, width, signs) for each in found.datasets_failed[:4]]
    if not count and not found.datasets_failed:
        made.append(Line(((f"  {signs.done} nothing", "good"),)))
    made += [Line(), Line(heading("lately", width, signs))]
    # As many as fill the screen: with a list that never grows, news costs a few lines and no new layout.
    shown = found.events[: max(8, height - len(made))]
    made += [
        _event(event, found.competition_of.get(event.run_id or -1), width, now, signs) for event in shown
    ]
    return made


def _name_width(width: int) -> int:
    """How wide the names of competitions are where there is room; the longest has 56 letters."""
    return 40 if width < 140 else 49 if width < 180 else 57


def _note(text: str) -> Line:
    return Line(((f"  {text}", "dim"),))


def _sweep(each: SweepLine, width: int, now: float, signs: Signs) -> Line:
    counts, sweep = each.counts, each.sweep
    ended = counts.finished + counts.failed + counts.stopped
    wide = width >= 110
    name = foreign(sweep.id, 30 if width >= 130 else 22, ellipsis=signs.ellipsis)
    full, empty = bar(ended / counts.total if counts.total else 0.0, 20 if wide else 10, signs)
    medal = (
        "-"
        if each.any_medal is None
        else f"{each.any_medal.mean:.1f} {signs.plus_minus}{each.any_medal.sem:.1f} %"
    )
    role: Role = "running" if counts.live else "good" if ended == counts.total else "dim"
    pieces: list[Piece] = [
        ("  ", "text"),
        (name + "  ", "text"),
        (full, role),
        (empty, "faint"),
        (f" {ended:>4}/{counts.total:<4}", "text"),
        (f" {signs.running} {counts.live:<3}", "running" if counts.live else "dim"),
        (f" {signs.queued} {counts.queued:<4}", "dim"),
        (f" {signs.failed} {counts.failed:<3}", "bad" if counts.failed else "dim"),
    ]
    if wide:
        pieces += [("  any medal ", "dim"), (f"{medal:<14}", "text")]
    pieces.append(_when(each, ended, now, signs))
    target = Target("sweep", sweep.id)
    return Line(cut(tuple(pieces), width), key=target, selectable=True)


def _when(each: SweepLine, ended: int, now: float, signs: Signs) -> Piece:
    if each.sweep.state is SweepState.PAUSED:
        return (f"  {signs.paused} paused", "warn")
    if ended == each.counts.total:
        return (f"  {signs.done} done", "good")
    if each.sweep.state is SweepState.STOPPED:
        return (f"  {signs.stopped} stopped", "dim")
    if each.seconds_left is None:
        return ("", "dim")
    minutes = 60 * round(each.seconds_left / 60)
    return (
        f"  ends ~{wording.clock(now + minutes)}" if minutes < 86400 else f"  {wording.span(minutes)} left",
        "dim",
    )


def _concern(each: Concern, width: int, now: float, signs: Signs) -> Line:
    run, wide = each.run, width >= 110
    drawn = draw_run(run, signs, now, 0.0)
    letter = (
        wording.FAILURE_LETTERS[run.failure_class or FailureClass.UNKNOWN] if each.kind == "failed" else "?"
    )
    role: Role = "bad" if each.kind == "failed" else "warn"
    when = wording.age(abs(now - each.at))
    if each.kind == "late":
        text = f"{each.why}, {wording.span(max(0.0, each.at - now))} left"
    elif each.kind == "idle":
        text = f"{each.why} for {wording.span(now - each.at)}"
    else:
        text = each.why
    keys = "  r relaunch" if each.kind == "failed" else "  l log"
    tail: Pieces = ((f"{when if each.kind == 'failed' else '':>5}", "dim"), (keys if wide else "", "faint"))
    head: Pieces = (
        (f"  {drawn.sign if each.kind == 'failed' else signs.failed}{letter}  ", role),
        (foreign(run.sweep_id, 16 if wide else 10, ellipsis=signs.ellipsis) + "  ", "dim"),
        (foreign(run.competition_id, _name_width(width) if wide else 24, ellipsis=signs.ellipsis), "text"),
        (f"  s{run.seed:<3}", "text"),
    )
    used = width_of((*head, *tail))
    return Line(
        cut((*head, (foreign(text, max(4, width - used - 1)), role), *tail), width),
        key=Target("run", run.sweep_id, run.id),
        selectable=True,
    )


def _of_host(text: str, width: int, signs: Signs) -> Line:
    pieces: Pieces = ((f"  {signs.failed}   ", "bad"), (text, "bad"))
    return Line(cut(pieces, width), key=Target("host", text), selectable=True)


def _dataset(competition_id: str, problem: str, width: int, signs: Signs) -> Line:
    head = f"  {signs.failed}   data of {foreign(competition_id, 44).rstrip()}: "
    return Line(
        cut(((head, "bad"), (foreign(problem, width), "bad")), width),
        key=Target("data", None),
        selectable=True,
    )


_WORDS = {outcome.value.replace("_", " "): outcome for outcome in Outcome}


def _event(event: Event, run: Run | None, width: int, now: float, signs: Signs) -> Line:
    moment = wording.clock(event.at) if now - event.at < 86400 else wording.day_and_clock(event.at)
    what = event.kind.partition(".")[2]
    about = event.competition_id or event.sweep_id or ""
    seed = f"s{run.seed}" if run is not None else ""
    wide = width >= 110
    role: Role = "text"
    for words, outcome in _WORDS.items():
        if event.text.startswith(words):
            role = outcome_role(outcome)
    if event.kind.endswith("failed"):
        role = "bad"
    pieces: Pieces = (
        (f"  {moment}  ", "dim"),
        (foreign(event.sweep_id or "", 16, ellipsis=signs.ellipsis) + "  " if wide else "", "dim"),
        (foreign(about, _name_width(width) if wide else 26, ellipsis=signs.ellipsis), "text"),
        (f"  {seed:<4} ", "dim"),
        (fit(what, 10), "dim"),
        (" ", "text"),
        (foreign(event.text, width), role),
    )
    target = (
        Target("run", event.sweep_id, event.run_id)
        if run
        else Target("sweep" if event.sweep_id else "data", event.sweep_id)
    )
    return Line(cut(pieces, width), key=(target, event.id), selectable=True)
