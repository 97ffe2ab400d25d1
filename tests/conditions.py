"""Records whose conditions a test names without the records that they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from mlebench_console.foundation.fields import flat, from_flat
from mlebench_console.state.records import SweepSpec

Record = TypeVar("Record")


def spec_of(
    agent_id: str,
    agents_dir: str,
    competitions: Sequence[str],
    seeds: int,
    time_limit_seconds: float,
    **more: Any,
) -> SweepSpec:
    """Return a sweep's specification with these values and conditions."""
    given = {
        "agent_id": agent_id,
        "agents_dir": agents_dir,
        "competitions": tuple(competitions),
        "seeds": seeds,
        "time_limit_seconds": time_limit_seconds,
    }
    return from_flat(SweepSpec, given | more)


def changed(record: Record, **values: Any) -> Record:
    """Return a record in which these values are others, its own and those of the records in it."""
    return from_flat(type(record), flat(record) | values)  # type: ignore[arg-type]  # it is a record
