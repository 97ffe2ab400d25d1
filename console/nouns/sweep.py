"""Sweeps in a list: their runs by state, medals so far, and when they end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.roles import Drawing
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.standing import SweepStanding


@dataclass(frozen=True)
class SweepRow:
    """How a sweep stands, and the engine that runs it; None if that is unknown."""

    standing: SweepStanding
    engine: EngineStatus | None


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
        NounField("ends", _ends, 6),
        NounField("created", _created, 10, drop=4),
        NounField(
            "result", lambda row, _: "demo data, not a result" if row.standing.counts.demo else "", 23, drop=1
        ),
        NounField("notes", lambda row, _: wording.annotation(row.standing.sweep), 8, grows=REST, drop=2),
    ),
)
