"""Needs: what needs a person, and causes, which are groups of runs that need one for the same reason."""

from __future__ import annotations

from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField, Rest
from mlebench_console.console.nouns.competition import ORDER, split_of
from mlebench_console.console.roles import Drawing, Pieces, Role
from mlebench_console.engine.needs.causes import IDLE_SECONDS, CauseGroup, CauseKind
from mlebench_console.engine.needs.need import Need, NeedKind


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


def _moment(at: float) -> Cell:
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
        NounField("since", lambda row, _: _moment(row.since), 11),
        NounField("newest", lambda row, _: _moment(row.newest), 11, drop=3),
        NounField("relaunch", lambda row, _: "free" if row.is_free else "", 8),
        NounField("what", lambda row, drawing: group_text(row, drawing.now), 24, grows=REST),
        NounField("acknowledged", _acknowledged, 16, grows=REST),
    ),
)


# Of more things that need a person nobody reads all in a summary, and a reader aloud would never end.
MOST_IN_SUMMARIES = 10
# What is wrong with a live run, beside its sign or its standing.
IDLE_LETTER, LATE_LETTER, UNGRADABLE_LETTER = "z", "t", "g"
_LIVE_LETTERS = {
    CauseKind.IDLE: IDLE_LETTER,
    CauseKind.LATE: LATE_LETTER,
    CauseKind.UNGRADABLE: UNGRADABLE_LETTER,
}
_MOST_LINES = 12


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


def _role(need: Need, drawing: Drawing) -> Role:
    if need.is_acknowledged(drawing.now):
        return "dim"
    return "bad" if need.is_bad else "warn"


def _sign(need: Need, drawing: Drawing) -> Pieces:
    group, signs = need.group, drawing.signs
    if group is None:
        sign = signs.failed
    elif group.kind in _LIVE_LETTERS:
        sign = signs.running + _LIVE_LETTERS[group.kind]
    else:
        kind = group.runs[0].failure_class
        sign = signs.failed + ("?" if kind is None else wording.FAILURE_LETTERS[kind])
    return ((sign, _role(need, drawing)),)


def _subject(group: CauseGroup) -> str:
    """Write the competition and seed of a single run, else the splits of all."""
    if len(group.runs) == 1:
        return f"{group.runs[0].competition_id} s{group.runs[0].seed}"
    splits = splits_of(group)
    return "all splits" if set(splits) >= set(ORDER[:3]) else "+".join(splits)


def _what(need: Need, drawing: Drawing) -> Cell:
    """Return what needs a person, and which runs; where there is little room, without their sweep, or alone."""
    group, role = need.group, _role(need, drawing)
    if group is None:
        return Rest(((need.text, role),))
    text, others = group_text(group, drawing.now), len(group.sweep_ids) - 1
    sweep = f"{group.sweep_ids[0]} +{others}" if others else group.sweep_ids[0]
    subject = f"  {_subject(group)}"
    # The beginning of a single run's name says more than none, that of several splits does not.
    forms = (f"{subject}  {sweep}", subject, "")[: 2 if len(group.runs) == 1 else 3]
    return Forms([((text, role), (each, "dim")) for each in forms])


def _runs(need: Need, drawing: Drawing) -> str:
    number = 0 if need.group is None else len(need.group.runs)
    return f"{drawing.signs.times}{number:,}" if number > 1 else ""


def _times(need: Need, drawing: Drawing) -> Cell:
    """Return when its runs failed, or what is wrong with them began; of an outage the last time says if it goes on."""
    if need.group is None:
        return ""
    return Forms(wording.from_to(need.group.since, need.group.newest, drawing.now, drawing.signs.to))


def _next_step(need: Need, drawing: Drawing) -> Cell:
    """Return the key that resolves it, if there is one, with what it does if there is room."""
    group, keys = need.group, drawing.keys
    key = words = free = ""
    if need.kind is NeedKind.ENGINE:
        key, words = keys("overview.open"), " start it"
    elif group is None:
        return ""
    elif group.kind is CauseKind.UNGRADABLE:
        key, words = keys("overview.regrade"), " regrade"
    elif group.kind in (CauseKind.LATE, CauseKind.IDLE):
        key, words = keys("overview.log"), " log"
    else:
        several = len(group.runs) > 1
        key = keys("overview.relaunch_all" if several else "overview.relaunch")
        words, free = " relaunch all" if several else " relaunch", " (free)" if group.is_free else ""
    return Forms((f"{key}{words}{free}", f"{key}{free}"))


NEED = Noun[Need](
    "need",
    key=lambda need: need.key,
    document=need_document,
    fields=(
        NounField("sign", _sign, 2),
        NounField("what", _what, 20, grows=400, wraps=_MOST_LINES),
        NounField("runs", _runs, 6, gap=1, right=True),
        NounField("times", _times, 13, gap=1, right=True, role="dim"),
        NounField("next", _next_step, 24, role="dim"),
    ),
)
