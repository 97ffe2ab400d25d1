"""Nodes of a batch system: their state, how much of them is used, and our runs there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Noun, NounField
from mlebench_console.console.roles import Drawing
from mlebench_console.engine.placements.commands import Node
from mlebench_console.engine.placements.nodes import Nodes


@dataclass(frozen=True)
class NodeRow:
    """A node, and how many of our runs it has."""

    node: Node
    ours: int


def node_rows(known: Nodes, ours: Mapping[str, int]) -> list[NodeRow]:
    """Join nodes with our runs there: those that take no jobs first, then those with most runs."""
    rows = [NodeRow(node, ours.get(node.name, 0)) for node in known.nodes]
    return sorted(rows, key=lambda row: (not row.node.is_away, -row.ours, row.node.name))


def _state(row: NodeRow, _drawing: Drawing) -> Cell:
    node = row.node
    text = node.state if node.answers else f"{node.state}, no answer"
    return ((text, "warn" if node.is_away else "good" if node.state == "idle" else "text"),)


def _cpus(row: NodeRow, _drawing: Drawing) -> str:
    node = row.node
    unknown = node.cpus is None or node.cpus_used is None
    return wording.UNKNOWN if unknown else f"{node.cpus_used}/{node.cpus}"


def _load(row: NodeRow, _drawing: Drawing) -> str:
    return wording.UNKNOWN if row.node.load is None else f"{row.node.load:.1f}"


def _gpus(row: NodeRow, _drawing: Drawing) -> str:
    return f"{row.node.gpus_used}/{row.node.gpus}" if row.node.gpus else ""


NODE = Noun[NodeRow](
    "node",
    key=lambda row: row.node.name,
    fields=(
        NounField("node", lambda row, _: row.node.name, 14, grows=30),
        NounField("state", _state, 12, grows=24, gap=1),
        NounField("ours", lambda row, _: str(row.ours or ""), 5, right=True, gap=1, role="running"),
        NounField("CPUs", _cpus, 9, right=True, gap=1),
        NounField("load", _load, 6, right=True, gap=1),
        NounField("GPUs", _gpus, 6, right=True, gap=1),
        NounField(
            "memory",
            lambda row, _: wording.size(row.node.memory_bytes),
            9,
            right=True,
            gap=1,
            drop=1,
            role="dim",
        ),
        NounField(
            "partitions", lambda row, _: ", ".join(row.node.partitions), 12, grows=30, drop=3, role="dim"
        ),
        NounField("why", lambda row, _: row.node.reason, 20, grows=REST, drop=2, role="dim"),
    ),
)
