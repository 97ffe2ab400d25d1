"""Sweeps in a list: their runs by state, medals so far, and when they end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.nouns.costs import SweepCosts, short_costs
from mlebench_console.console.nouns.run import draw_kind
from mlebench_console.console.pieces import joined, shared_out
from mlebench_console.console.roles import Drawing, Piece, Pieces
from mlebench_console.console.sanitize import plain
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.standing import SweepStanding
from mlebench_console.state.lifecycle import RunState, SweepState

# The widths of a bar where there is room, and elsewhere.
BARS = (32, 16)
_LONGEST_WAIT, _LONGEST_NOTE = 80, 60
_MANY = 1000
BETWEEN_DETAILS: Piece = ("   ", "text")


@dataclass(frozen=True)
class SweepRow:
    """How a sweep stands.

    Attributes:
        engine: runs it; None if that is unknown.
        costs: those of its model calls; None where no gateway counts them.
    """

    standing: SweepStanding
    engine: EngineStatus | None
    costs: SweepCosts | None = None


def _count(name: str) -> NounField[SweepRow]:
    """Return the field of the number of runs in a state."""
    return NounField(
        name, lambda row, _: str(getattr(row.standing.counts, name)), len(name), right=True, drop=3
    )


def _medals(row: SweepRow, drawing: Drawing) -> str:
    standing = row.standing
    return wording.medal_rate(standing.interim, standing.any_medal, drawing.signs.plus_minus)


def _ends(row: SweepRow, drawing: Drawing) -> str:
    end = row.standing.end(row.engine)
    return wording.NO_END[end] if isinstance(end, str) else wording.expected(end, drawing.now)


def _created(row: SweepRow, _drawing: Drawing) -> Cell:
    at = row.standing.sweep.created_at
    return Forms((wording.date_and_time(at), wording.day(at)))


def _bar(row: SweepRow, drawing: Drawing) -> Cell:
    """Return the bar of its runs by outcome or state: for each the sign and its share of the bar."""
    signs, forms = drawing.signs, []
    for cells in BARS:
        pieces: list[Piece] = []
        for kind, share in shared_out(row.standing.tally, cells).items():
            sign, role = draw_kind(kind, signs)
            filled = signs.bar_empty if kind is RunState.QUEUED else signs.bar_segment
            pieces.append((sign + filled * (share - 1), role))
        forms.append(tuple(pieces))
    return Forms(forms)


def sweep_medals(row: SweepRow, drawing: Drawing) -> list[Pieces]:
    """Return its medals or their bounds so far, in several forms, longest first."""
    standing = row.standing
    demo: Pieces = (("demo ", "warn"),) if standing.counts.demo else ()
    forms = wording.medals(standing.interim, standing.any_medal, drawing.signs.plus_minus)
    return [(*demo, (text, "text")) for text in forms]


def _stands(row: SweepRow, drawing: Drawing) -> Cell:
    """Return whether it is done, paused or stopped, else when it ends."""
    standing, signs = row.standing, drawing.signs
    if standing.sweep.state is SweepState.PAUSED:
        return ((f"{signs.paused} paused", "warn"),)
    if standing.ended == standing.counts.total:
        return ((f"{signs.done} done", "good"),)
    if standing.sweep.state is SweepState.STOPPED:
        return ((f"{signs.stopped} stopped", "dim"),)
    if row.engine is not None and not row.engine.running:
        return (("engine is down", "warn"),)
    return ((wording.sweep_end(standing.end(row.engine), drawing.now), "dim"),)


def sweep_details(row: SweepRow, drawing: Drawing) -> list[Pieces]:
    """Return the number of its runs by outcome or state, why none starts, its costs, and its tags and note."""
    standing, counts = row.standing, []
    for kind, count in standing.tally.items():
        sign, role = draw_kind(kind, drawing.signs)
        counts.append(((f"{sign}{count}", role),))
    details = [joined(counts, (" ", "text"), _MANY)]
    is_down = row.engine is not None and not row.engine.running
    if not is_down and (wait := standing.wait(row.engine)) is not None:
        # It may quote the problem of a dataset.
        text = plain(f"wait: {wait.text}".replace("\n", " "), limit=_LONGEST_WAIT)
        details[0] = (*details[0], (f" {text}", "text"))
    if row.costs is not None:
        details.append(((short_costs(row.costs), "dim"),))
    if noted := wording.annotation(standing.sweep):
        text = plain(noted.replace("\n", " "), limit=_LONGEST_NOTE)
        details.append(((f"{drawing.signs.noted} {text}", "accent"),))
    return details


def _details(row: SweepRow, drawing: Drawing) -> Cell:
    """Return the details of a sweep that is over; of one that goes on they have a line of their own."""
    if not row.standing.is_over:
        return ""
    details = sweep_details(row, drawing)
    return Forms([joined(details[:most], BETWEEN_DETAILS, _MANY) for most in (3, 2, 1)])


def standing_document(standing: SweepStanding, engine: EngineStatus | None) -> dict[str, Any]:
    """Return a sweep's counts, its medals, its end or why that is not known, and why none of its runs starts."""
    end, wait = standing.planned_end, standing.wait(engine)
    return {
        "counts": asdict(standing.counts),
        "any_medal": None if standing.any_medal is None else asdict(standing.any_medal),
        "interim": None if standing.interim is None else asdict(standing.interim),
        "ends": None if isinstance(end, str) else asdict(end),
        "no_end": end if isinstance(end, str) else None,
        "waits_for": None if wait is None else asdict(wait),
    }


SWEEP = Noun[SweepRow](
    "sweep",
    key=lambda row: row.standing.sweep.id,
    document=lambda row, _now: (
        row.standing.sweep.document()
        | {"demo": bool(row.standing.counts.demo)}
        | standing_document(row.standing, row.engine)
    ),
    fields=(
        NounField("sweep", lambda row, _: row.standing.sweep.id, 12, grows=40, words=True),
        NounField("agent", lambda row, _: row.standing.sweep.spec.agent_id, 12, grows=40),
        NounField("state", lambda row, _: row.standing.sweep.state.value, 8),
        *map(_count, ("total", "queued", "live", "finished", "failed", "retrying", "stopped")),
        NounField("medals", _medals, 12, grows=REST),
        NounField("bar", _bar, BARS[0]),
        NounField("done", lambda row, _: f"{row.standing.ended:>4}/{row.standing.counts.total:<4}", 9, gap=1),
        NounField(
            "earned",
            lambda row, drawing: Forms(sweep_medals(row, drawing)) if row.standing.is_over else "",
            12,
            grows=34,
            gap=1,
        ),
        NounField("details", _details, 12, grows=REST, drop=1),
        NounField("stands", _stands, 19),
        NounField("ends", _ends, 6),
        NounField("created", _created, 10, drop=4),
        NounField(
            "result", lambda row, _: "demo data, not a result" if row.standing.counts.demo else "", 23, drop=1
        ),
        NounField("notes", lambda row, _: wording.annotation(row.standing.sweep), 8, grows=REST, drop=2),
    ),
)
