"""The nodes of a batch system at the engine's last query: a small file in the state, for consoles and commands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from mlebench_console.engine.placements.commands import Node
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import StateProblem

_NAME = "slurm.nodes.json"


@dataclass(frozen=True)
class Nodes:
    """The nodes of the used partitions, and when Slurm reported them."""

    asked_at: float
    nodes: tuple[Node, ...]


def write(state_dir: Path, found: Nodes) -> None:
    """Replace the file; only the engine does this."""
    files.write_json(state_dir / _NAME, asdict(found), durable=False)


def read(state_dir: Path) -> Nodes | None:
    """Read the nodes of the engine's last query; None without one.

    Raises:
        StateProblem: the file can't be read.
    """
    try:
        values: Any = (state_dir / _NAME).read_bytes()
        return msgspec.json.decode(values, type=Nodes)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise StateProblem(
            f"{state_dir / _NAME} can't be read", str(error), "Remove it; a running engine writes it again."
        ) from error
