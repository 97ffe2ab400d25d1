"""Causes: groups of runs that need a person for one reason, such as failures of one kind."""

from __future__ import annotations

from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.nouns.competition import ORDER, split_of
from mlebench_console.console.roles import Drawing
from mlebench_console.engine.needs.causes import IDLE_SECONDS, CauseGroup, CauseKind


def splits_of(group: CauseGroup) -> tuple[str, ...]:
    """Return the splits of a group's competitions, in their order."""
    found = {split_of(run.competition_id) for run in group.runs}
    return tuple(split for split in ORDER if split in found)


def group_text(group: CauseGroup, now: float) -> str:
    """Write what happened to a group of runs; for live runs with the time left or passed."""
    if group.due is not None:
        return f"{group.text}, {wording.span(max(0.0, group.due - now))} left"
    if group.kind is CauseKind.IDLE:
        return f"{group.text} for {wording.span(now - group.since + IDLE_SECONDS)}"
    if group.kind is CauseKind.UNGRADABLE and len(group.runs) == 1:
        return wording.grading_trouble(group.runs[0], now)
    if not group.retrying:
        return group.text
    which = "" if group.retrying == len(group.runs) else f"{group.retrying:,} of them "
    return f"{group.text}, {which}to be retried"


def cause_document(group: CauseGroup, now: float) -> dict[str, Any]:
    """Return a group of runs as a part of JSON documents."""
    known = group.acknowledgement
    return {
        "key": group.key,
        "class": group.kind.value,
        "text": group.text,
        "count": len(group.runs),
        "runs": [run.id for run in group.runs],
        "sweeps": list(group.sweep_ids),
        "splits": list(splits_of(group)),
        "since": group.since,
        "newest": group.newest,
        "free": group.is_free,
        "retrying": group.retrying,
        "acknowledged": group.is_acknowledged(now),
        "acknowledgement": None if known is None else known.document(),
    }


def _acknowledged(group: CauseGroup, drawing: Drawing) -> str:
    known = group.acknowledgement
    is_hidden = known is not None and group.is_acknowledged(drawing.now)
    return wording.acknowledged(known) if known is not None and is_hidden else ""


def _times(at: float) -> Cell:
    return Forms((wording.date_and_time(at), wording.day_and_time(at)))


CAUSE = Noun[CauseGroup](
    "cause",
    key=lambda row: row.key,
    document=cause_document,
    fields=(
        NounField("cause", lambda row, _: row.key, 12),
        NounField("runs", lambda row, _: f"{len(row.runs):,}", 4, right=True),
        NounField("sweeps", lambda row, _: ", ".join(row.sweep_ids), 12, grows=40, drop=2),
        NounField("splits", lambda row, _: "+".join(splits_of(row)), 6, drop=4),
        NounField("since", lambda row, _: _times(row.since), 11),
        NounField("newest", lambda row, _: _times(row.newest), 11, drop=3),
        NounField("relaunch", lambda row, _: "free" if row.is_free else "", 8),
        NounField("what", lambda row, drawing: group_text(row, drawing.now), 24, grows=REST),
        NounField("acknowledged", _acknowledged, 16, grows=REST),
    ),
)
