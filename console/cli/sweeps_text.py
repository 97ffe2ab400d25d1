"""How sweeps are told on the command line, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from console.cli.output import moment_text, say_table

if TYPE_CHECKING:
    from state.records import Sweep, SweepCounts


def sweep_facts(sweep: Sweep, counts: SweepCounts | None) -> dict[str, Any]:
    """A sweep's facts: the fields of its record, and its counts."""
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
                moment_text(sweep.created_at),
                "demo" if sweep.spec.demo else "",
            )
            for sweep in sweeps
        ],
        right=columns,
    )
