"""Needs: what needs a person, and causes, which are groups of runs that need one for the same reason."""

from __future__ import annotations

from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.nouns.competition import ORDER, split_of
from mlebench_console.console.roles import Drawing
from mlebench_console.engine.needs.causes import IDLE_SECONDS, CauseGroup, CauseKind
from mlebench_console.engine.needs.need import Need


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


# Of more things that need a person nobody reads all in a summary, and a reader aloud would never end.
MOST_IN_SUMMARIES = 10


def need_text(need: Need, now: float) -> str:
    """Write what needs a person in one line: for a single run with its competition and seed, else with their number."""
    group = need.group
    if group is None:
        return need.text
    text = group_text(group, now)
    when = f"{wording.duration(max(0.0, now - group.newest))} ago"
    run = group.runs[0]
    if len(group.runs) == 1:
        return f"{run.sweep_id} {run.competition_id}, seed {run.seed}, run {run.id}: {text} ({when})"
    where = f"{', '.join(group.sweep_ids)}, {'+'.join(splits_of(group))}"
    return f"{len(group.runs):,} runs of {where}: {text} (the newest {when})"


def need_document(need: Need, now: float) -> dict[str, Any]:
    """Return a need as a part of JSON documents, with the fields of a cause's document whether it has runs or not."""
    known = need.acknowledgement
    document: dict[str, Any] = {
        "kind": need.kind,
        "key": need.key,
        "class": need.kind,
        "text": need.text,
        "count": 0,
        "runs": [],
        "sweeps": [need.sweep_id] if need.sweep_id else [],
        "splits": [],
        "since": need.since,
        "newest": need.newest,
        "free": False,
        "retrying": 0,
        "is_bad": need.is_bad,
        "is_own": need.is_own,
        "acknowledged": need.is_acknowledged(now),
        "acknowledgement": None if known is None else known.document(),
    }
    return document if need.group is None else document | cause_document(need.group, now)
