"""A sweep as it is asked for, complete: what the request `sweep.launch` carries and what dry runs look at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from foundation.problems import UsageProblem
from state.records import Sweep, SweepSpec

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Launch:
    """A sweep to be.

    Attributes:
        name: the sweep's; empty for one made of the agent's.
        concurrency: how many of its runs may be live at once.
        priority: higher goes first.
        experiment: the leaderboard row it belongs to; empty for none.
    """

    spec: SweepSpec
    name: str = ""
    concurrency: int = 1
    priority: int = 0
    experiment: str = ""
    note: str = ""

    def to_arguments(self) -> dict[str, Any]:
        """Write it as the arguments of a request."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "spec"}
        values = asdict(self.spec) | own
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @property
    def run_count(self) -> int:
        """How many runs it comes to."""
        return len(self.spec.competitions) * self.spec.seeds


def check_name(name: str) -> str:
    """The name, if it can be a sweep's and its folder's.

    Raises:
        UsageProblem: it can't.
    """
    if not _NAME.fullmatch(name):
        raise UsageProblem(
            f"'{name}' can't name a sweep", "", "Use letters, digits, '.', '_' and '-', at most 100."
        )
    return name


def launch_of(sweep: Sweep, experiments: Sequence[str]) -> Launch:
    """What would have to be asked for to have this sweep again, as it is scheduled now."""
    return Launch(
        sweep.spec,
        name=sweep.id,
        concurrency=sweep.concurrency,
        priority=sweep.priority,
        experiment=experiments[0] if experiments else "",
        note=sweep.note,
    )


def refuse_another(launch: Launch, agent_version: str, there: Sweep) -> None:
    """Let pass a launch that asks for exactly the sweep that is there: it is that one, not a second.

    Raises:
        UsageProblem: the sweep of that name is another.
    """
    asked = launch.spec
    # Whether data had to be prepared for it says nothing of what runs.
    kept = replace(there.spec, prepare_missing=asked.prepare_missing, raw_dir=asked.raw_dir)
    differing = [
        field.name for field in fields(SweepSpec) if getattr(asked, field.name) != getattr(kept, field.name)
    ]
    if agent_version != there.agent_version:
        differing.append("the agent's files")
    if differing:
        raise UsageProblem(
            f"there is already a sweep '{there.id}'",
            f"it differs in {', '.join(differing[:3])}",
            "Choose another name.",
        )
