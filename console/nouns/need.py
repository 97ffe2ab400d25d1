"""Needs: what needs a person, with its runs where it is about runs."""

from __future__ import annotations

from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.nouns.cause import cause_document, group_text, splits_of
from mlebench_console.engine.needs.need import Need

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
