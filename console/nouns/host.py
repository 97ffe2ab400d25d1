"""Hosts: GPUs of the engine's own one, nodes of a batch system, and what live runs use by their latest samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.pieces import bar
from mlebench_console.console.roles import Drawing, Pieces
from mlebench_console.engine.control import GpuUse
from mlebench_console.engine.needs.waits import WaitKind, job_wait
from mlebench_console.engine.placements.commands import Node
from mlebench_console.engine.placements.nodes import Nodes
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.state.records import Attempt, Run

# The lengths of bars, for wide columns, usual ones and narrow ones.
BARS = (20, 10, 6)
# A GPU whose memory is used by more than this share may soon have too little for its run.
_FULL = 0.95


@dataclass(frozen=True)
class GpuRow:
    """A GPU with its place in the driver's list and the live runs that hold it."""

    place: int
    use: GpuUse
    held: tuple[Run, ...]


def gpu_rows(uses: Sequence[GpuUse], live: Mapping[int, Run]) -> list[GpuRow]:
    """Join GPUs with the live runs of their attempts, lost ones first; those lost and held by none are left out."""
    rows = [
        GpuRow(place, use, tuple(live[attempt] for attempt in use.attempts if attempt in live))
        for place, use in enumerate(uses)
    ]
    return sorted(
        (row for row in rows if row.held or not row.use.is_lost), key=lambda row: not row.use.is_lost
    )


def _gauge(share: float, texts: Sequence[str], drawing: Drawing, *, high: bool) -> Cell:
    """Return a bar in all of its lengths, each with its text."""
    forms: list[Pieces] = []
    for cells, text in zip(BARS, texts, strict=True):
        full, empty = bar(share, cells, drawing.signs)
        forms.append(((full, "warn" if high else "running"), (empty, "faint"), (f" {text}", "text")))
    return Forms(forms)


def _busy(row: GpuRow, drawing: Drawing) -> Cell:
    percent = row.use.busy_percent
    if row.use.is_lost:
        return (("lost", "bad"),)
    return "" if percent is None else _gauge(percent / 100, [f"{percent:>3} %"] * 3, drawing, high=False)


def _memory(row: GpuRow, drawing: Drawing) -> Cell:
    use = row.use
    if use.memory_used is None or not use.memory_total:
        return ""
    share, text = use.memory_used / use.memory_total, f"{wording.size(use.memory_used):>7}"
    whole = f"{text} of {wording.size(use.memory_total)}"
    return _gauge(share, (whole, whole, text), drawing, high=share > _FULL)


def _run(row: GpuRow, _drawing: Drawing) -> Cell:
    text = ", ".join(f"{run.competition_id} seed {run.seed}" for run in row.held)
    if row.use.is_lost:
        return Forms([((text, "text"), (", not listed by the driver any more", "bad")), ((text, "text"),)])
    idle: Pieces = (("idle: ", "warn"),) if row.use.busy_percent == 0 and row.held else ()
    return (*idle, (text or "no run", "text" if row.held else "dim"))


def _number(row: GpuRow, _drawing: Drawing) -> str:
    return str(row.place if row.use.number is None else row.use.number)


GPU = Noun[GpuRow](
    "GPU",
    key=lambda row: row.place,
    fields=(
        NounField("GPU", _number, 3, right=True),
        NounField("busy", _busy, 12),
        NounField("memory", _memory, 14, gap=1),
        NounField("run", _run, 16, grows=REST),
    ),
)


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


@dataclass(frozen=True)
class LiveRun:
    """A live run and the latest sample of its resource usage; None if there is none."""

    run: Run
    attempt: Attempt
    latest: UsageSample | None

    @property
    def has_begun(self) -> bool:
        """Whether it holds resources; a suspended job waits, too, but still holds its node's memory."""
        return self.run.started_at is not None or not self.attempt.waits_for


def cpus_text(percent: float) -> str:
    """Write a percentage of one processor as a number of processors."""
    return f"{percent / 100:.1f}"


def _time(row: LiveRun, drawing: Drawing) -> str:
    run, wait = row.run, job_wait(row.attempt)
    if wait is not None and wait.kind is WaitKind.JOB:
        # If its job had begun, the reason is the news: it is suspended.
        return wording.waits_short(wait, drawing.now)[-1] if run.started_at else "waits"
    return wording.span(drawing.now - run.started_at) if run.started_at else "starts"


def _used(
    name: str,
    width: int,
    of: Callable[[UsageSample], float | None],
    number: wording.Number,
    *,
    title: str | None = None,
    drop: int = 0,
) -> NounField[LiveRun]:
    """Return the field of a resource."""

    def cell(row: LiveRun, _drawing: Drawing) -> Cell:
        value = None if row.latest is None else of(row.latest)
        return wording.UNKNOWN if value is None else number(value)

    return NounField(name, cell, width, title=title, drop=drop, right=True, gap=1)


USAGE = Noun[LiveRun](
    "usage",
    key=lambda row: row.run.id,
    fields=(
        NounField("competition", lambda row, _: row.run.competition_id, 14, grows=48),
        NounField("seed", lambda row, _: str(row.run.seed), 4, right=True, gap=1, role="dim"),
        _used("cpus", 6, lambda sample: sample.cpu_percent, cpus_text, title="CPUs"),
        _used("memory", 9, lambda sample: sample.memory_bytes, wording.size),
        _used("disk", 9, lambda sample: sample.disk_bytes, wording.size),
        _used("gpu", 6, lambda sample: sample.gpu_percent, "{:.0f} %".format, title="GPU"),
        _used(
            "gpu_memory", 10, lambda sample: sample.gpu_memory_bytes, wording.size, title="GPU memory", drop=3
        ),
        _used("procs", 6, lambda sample: sample.processes, str, drop=4),
        NounField("time", _time, 6, grows=10, right=True, gap=1, role="dim"),
        NounField("where", lambda row, _: row.attempt.node, 8, grows=20, drop=2, role="dim"),
        NounField("sweep", lambda row, _: row.run.sweep_id, 20, drop=1, role="dim"),
    ),
)
