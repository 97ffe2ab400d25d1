"""Sweeps as a table, as a line and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from console import wording
from console.cli.common import say_table
from state.records import IMPORTED

if TYPE_CHECKING:
    from state.records import Sweep, SweepCounts


def sweep_facts(sweep: Sweep, counts: SweepCounts | None) -> dict[str, Any]:
    """Return the fields of a sweep's record, and its counts."""
    return asdict(sweep) | {"counts": None if counts is None else asdict(counts)}


def say_sweeps(sweeps: Sequence[Sweep], counts: Mapping[str, SweepCounts]) -> None:
    """Print one line a sweep."""
    columns = ("total", "queued", "live", "finished", "failed", "stopped", "medals")
    say_table(
        ("sweep", "agent", "state", *columns, "created", ""),
        [
            (
                sweep.id,
                sweep.spec.agent_id,
                sweep.state,
                *(
                    str(getattr(counts[sweep.id], column)) if sweep.id in counts else "0"
                    for column in columns
                ),
                wording.date_and_time(sweep.created_at),
                "demo" if sweep.spec.demo else "",
            )
            for sweep in sweeps
        ],
        right=columns,
    )


def spec_text(sweep: Sweep) -> str:
    """Return what was asked for, in one line; of imported runs only what is known."""
    spec = sweep.spec
    what = f"{len(spec.competitions)} competitions x {spec.seeds} seeds"
    limit = f", {wording.duration(spec.time_limit_seconds)} each" if spec.time_limit_seconds else ""
    if spec.runtime == IMPORTED:
        return f"{what}{limit}, imported from run groups, graded by edition {spec.edition}"
    ramp = f", started {wording.duration(spec.start_ramp_seconds)} apart" if spec.start_ramp_seconds else ""
    return (
        f"{what}{limit}, edition {spec.edition}, {sweep.concurrency} at once{ramp},"
        f" priority {sweep.priority}, network {spec.network}, runtime {spec.runtime}"
    )
