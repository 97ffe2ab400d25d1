"""The host screen: the machine, the resources that runs use, and the use of its disks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.nouns.host import (
    BARS,
    GPU,
    NODE,
    USAGE,
    LiveRun,
    cpus_text,
    gpu_rows,
    node_rows,
)
from mlebench_console.console.pieces import bar, beside
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.blocks import Block, in_one_line, laid_out, listing, section
from mlebench_console.console.tui.widgets.chart import Series, plotted
from mlebench_console.console.views.run import Point, read_samples
from mlebench_console.engine.control.status import LOW_DISK_SHARE
from mlebench_console.engine.placements import nodes
from mlebench_console.engine.placements.nodes import Nodes
from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problems import StateProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import datasets, runs
from mlebench_console.state.database import Database

HISTORY_SECONDS = 6 * 3600.0
_BUCKETS = 120
# How long a measurement is assumed to hold after the last sample.
_HELD_SECONDS = 900.0
# Older measurements are marked; this is several times the interval of measurements.
_OLD_SECONDS = 600.0
# From these widths on bars are longer; from the greater one, charts are beside each other.
_MIDDLE, _WIDE = 110, 150


@dataclass(frozen=True)
class HostUse:
    """The live runs, and their total resource usage over the last hours.

    Attributes:
        nodes: the batch system's nodes with live runs, as last reported to the engine; None without a batch system.
        nodes_problem: why the nodes can't be read.
    """

    live: tuple[LiveRun, ...] = ()
    datasets_bytes: int = 0
    datasets_count: int = 0
    cpu_percent: tuple[Point, ...] = ()
    memory_bytes: tuple[Point, ...] = ()
    nodes: Nodes | None = None
    nodes_problem: str = ""

    @property
    def runs_of_nodes(self) -> dict[str, int]:
        """The number of live runs on each node."""
        found: defaultdict[str, int] = defaultdict(int)
        for one in self.live:
            if one.attempt.node:
                found[one.attempt.node] += 1
        return found


def host_use(database: Database, now: float) -> HostUse:
    """Read the live runs and their resource usage."""
    found = [run for run in runs.of_all_sweeps(database) if run.is_live]
    attempts = {run.id: runs.latest_attempt(database, run.id) for run in found}
    prepared = [each for each in datasets.all_datasets(database) if each.bytes_on_disk]
    known = [attempt.id for attempt in attempts.values() if attempt is not None]
    samples = read_samples(database.path.parent, known, since=now - HISTORY_SECONDS)
    live = tuple(
        LiveRun(run, attempt, samples[attempt.id][-1] if samples.get(attempt.id) else None)
        for run in found
        if (attempt := attempts[run.id]) is not None
    )
    known_nodes, problem = None, ""
    if any(each.attempt.placement != HERE for each in live):
        try:
            known_nodes = nodes.read(database.path.parent)
        except StateProblem as found_wrong:
            problem = found_wrong.cause
    return HostUse(
        live=tuple(sorted(live, key=lambda each: -_cpu_of(each))),
        datasets_bytes=sum(each.bytes_on_disk or 0 for each in prepared),
        datasets_count=len(prepared),
        cpu_percent=_together(samples, now, lambda sample: sample.cpu_percent),
        memory_bytes=_together(samples, now, lambda sample: sample.memory_bytes),
        nodes=known_nodes,
        nodes_problem=problem,
    )


def _cpu_of(live: LiveRun) -> float:
    return live.latest.cpu_percent or 0.0 if live.latest is not None else 0.0


def _together(
    samples: dict[int, list[UsageSample]], now: float, value: Callable[[UsageSample], float | None]
) -> tuple[Point, ...]:
    """Return the sum over all attempts in equal intervals of time, with each attempt's mean in an interval."""
    step = HISTORY_SECONDS / _BUCKETS
    totals: defaultdict[int, float] = defaultdict(float)
    newest = max((sample.at for found in samples.values() for sample in found), default=now)
    last_bucket = int((newest - now + HISTORY_SECONDS) / step)
    for found in samples.values():
        buckets: defaultdict[int, list[float]] = defaultdict(list)
        for sample in found:
            known = value(sample)
            if known is not None:
                buckets[int((sample.at - now + HISTORY_SECONDS) / step)].append(known)
        held = 0.0
        # Between two samples, and until the next one arrives, the last value is kept: otherwise the sum would drop at
        # every gap and at its end.
        end = max(buckets, default=-1)
        if buckets and found[-1].at >= newest - _HELD_SECONDS:
            end = last_bucket
        for bucket in range(min(buckets, default=0), end + 1):
            values = buckets.get(bucket)
            held = sum(values) / len(values) if values else held
            totals[bucket] += held
    begin = now - HISTORY_SECONDS
    return tuple((begin + bucket * step, totals[bucket]) for bucket in sorted(totals))


class HostScreen(ListScreen):
    """The machine's data at the top, then the runs by resource usage."""

    CONTEXTS = ("host", "list")
    MODE = "host"

    def __init__(self) -> None:
        super().__init__()
        self._use = HostUse()
        # The batch system's node whose runs alone are shown; None: the runs of all.
        self._node: str | None = None

    def queries(self) -> Queries:
        """Return the query for the resource usage."""
        return {"use": (lambda database: host_use(database, self.app.now()), self._take)}

    def tick(self) -> None:
        """Query again: new samples don't change the state."""
        super().tick()
        self.query_again()

    def redraw(self) -> None:
        """Draw the machine as it is now."""
        self.header.show(*self._machine())
        self.line_list.show([self._lines_and_charts])

    def action_open(self) -> None:
        """Open the run under the cursor on its resources; on a node, show only its runs, or again those of all."""
        key = self.line_list.key
        if isinstance(key, tuple):
            kind, what, *_ = key
            if kind == "run":
                self.app.show_run(what, pane="resources")
            else:
                self._node = None if what == self._node else what
                self.redraw()

    def label_of(self, key: Key) -> str:
        """Name what Enter opens; empty where it opens nothing."""
        under = self.line_list.key
        if key.id != "host.open" or not isinstance(under, tuple):
            return super().label_of(key) if key.id != "host.open" else ""
        kind, what, *_ = under
        if kind == "run":
            return f"run {what}"
        return "runs of all nodes" if what == self._node else f"runs of {what}"

    def on_line_list_cursor_moved(self) -> None:
        """Show what Enter opens on the new line."""
        self.refresh_frame()

    def _take(self, use: HostUse) -> None:
        self._use = use
        if use.nodes is None or all(node.name != self._node for node in use.nodes.nodes):
            self._node = None

    def _machine(self) -> Iterator[Block]:
        """Yield the lines about the machine, its engine and its load."""
        engine, drawing, width = self.app.engine, self.app.drawing, self.size.width
        if engine is None or engine.pid is None:
            text = " nothing is known of this host: no engine has run here yet, :engine start starts one"
            yield ((text, "dim"),)
            return
        now = drawing.now
        state: Piece = ("engine running", "good") if engine.running else ("engine down", "bad")
        up = f", up {wording.span(now - engine.started_at)}" if engine.running and engine.started_at else ""
        facts: list[Pieces] = [
            ((f" {engine.host}", "strong"),),
            (state, (f", process {engine.pid}{up}" if engine.running else "", "dim")),
        ]
        if engine.gpus is not None:
            facts.append(((plural(engine.gpus, "GPU"), "text"),))
        for name, text in (("isolation", engine.isolation), ("version", engine.version)):
            if text:
                facts.append(((f"{name} {text}", "dim"),))
        yield in_one_line(facts)
        yield ()
        used_memory = None
        if engine.memory_total is not None and engine.memory_available is not None:
            used_memory = engine.memory_total - engine.memory_available
        cells = 48 if width >= _WIDE else 32 if width >= _MIDDLE else 16
        signs = drawing.signs
        gauges = {
            "slots": _gauge(engine.slots_used, engine.slots, _count, cells, signs),
            "load": _gauge(engine.load1, engine.cpus, _count, cells, signs, " CPUs"),
            "memory": _gauge(used_memory, engine.memory_total, wording.size, cells, signs),
            "disk: state": _disk(engine.state_disk_free, engine.state_disk_total, cells, signs),
            "disk: data": _disk(engine.data_disk_free, engine.data_disk_total, cells, signs),
        }
        yield from (((f" {name:<13}", "dim"), *gauge) for name, gauge in gauges.items() if gauge)
        unknown = ["GPUs"] if engine.gpus is None else []
        unknown += [name for name, gauge in gauges.items() if not gauge]
        if unknown:
            yield ((f" not measured yet: {', '.join(unknown)}", "dim"),)
        if not engine.running and engine.heartbeat_at is not None:
            ago = wording.span(now - engine.heartbeat_at)
            yield ((f" as it was {ago} ago, when the engine last ran", "warn"),)

    def _lines_and_charts(self, drawing: Drawing) -> Iterable[Block]:
        """Draw nodes, GPUs, runs and disks, and charts in the room below them."""
        lines = laid_out(self._lines(drawing), drawing)
        return [*lines, *self._charts(len(lines), drawing)]

    def _lines(self, drawing: Drawing) -> Iterator[Block]:
        """Yield nodes and GPUs, the runs by usage (of one node or of all), and their use of disks."""
        use = self._use
        live = [each for each in use.live if self._node is None or each.attempt.node == self._node]
        begun = [each for each in live if each.has_begun]
        waiting = sum(each.attempt.is_in_queue for each in live)
        note = [
            *([f"on {self._node} alone"] if self._node is not None else []),
            *([f"{len(live) - waiting} running"] if len(live) > waiting else []),
            *([f"{waiting} waiting in Slurm"] if waiting else []),
        ]
        yield from self._slurm()
        yield from self._gpu_lines(drawing)
        yield section("runs by what they use", ", ".join(note))
        with_gpus = any(one.latest is not None and one.latest.gpu_percent is not None for one in begun)
        gpus = "gpu gpu_memory" if with_gpus else ""
        where = "where" if any(each.attempt.node for each in begun) else ""
        columns = USAGE.columns(f"competition seed cpus memory disk {gpus} procs time {where} sweep")
        if begun:
            yield listing(columns, begun, key=lambda each: ("run", each.run.id))
        else:
            yield ((f"  nothing is running{'' if self._node is None else ' there'}", "dim"),)
        yield ()
        yield section("disk space used by")
        yield from _disk_users(use, self.app.signs)

    def _slurm(self) -> Iterator[Block]:
        """Yield the batch system's nodes: those that take no jobs first, then those with our runs."""
        use = self._use
        if use.nodes_problem:
            yield ((f"  nodes: {use.nodes_problem}", "warn"),)
            yield ()
        if use.nodes_problem or use.nodes is None:
            return
        rows = node_rows(use.nodes, use.runs_of_nodes)
        away = sum(row.node.is_away for row in rows)
        note = [
            plural(len(rows), "node"),
            *([f"{away} not available"] if away else []),
            f"as of {wording.clock(use.nodes.asked_at)}",
        ]
        yield section("Slurm", ", ".join(note))
        if self.app.now() - use.nodes.asked_at > _OLD_SECONDS:
            yield (("  as they were then: Slurm has not listed its nodes since", "warn"),)
        yield listing(NODE.fields, rows, key=lambda row: ("node", row.node.name))
        yield ()

    def _gpu_lines(self, drawing: Drawing) -> Iterator[Block]:
        """Yield a line for each GPU: how busy it is, its memory, and the runs that hold it; lost ones first."""
        engine = self.app.engine
        live = {each.attempt.id: each.run for each in self._use.live}
        rows = gpu_rows(() if engine is None else engine.gpu_uses, live)
        if not rows:
            return
        lost, free = sum(row.use.is_lost for row in rows), sum(not row.held for row in rows)
        names = {row.use.name for row in rows if row.use.name}
        note = [
            *(names if len(names) == 1 else ()),
            *([f"{lost} lost"] if lost else []),
            f"{free} without a run" if free else "all in use",
        ]
        width = drawing.width
        bars = BARS[0 if width >= _WIDE else 1 if width >= _MIDDLE else 2]
        columns = GPU.columns(
            "GPU busy memory run",
            busy={"width": bars + 6},
            memory={"width": bars + (19 if width >= _MIDDLE else 8)},
        )
        yield section("GPUs", ", ".join(note))
        yield listing(columns, rows, key=lambda row: ("run", row.held[0].id, row.place) if row.held else None)
        yield ()

    def _charts(self, above: int, drawing: Drawing) -> Iterator[Block]:
        """Draw the use of all runs together over the last hours, beside each other where there is room."""
        use = self._use
        known = [
            (name, points, number)
            for name, points, number in (
                ("processors", use.cpu_percent, cpus_text),
                ("memory", use.memory_bytes, wording.size),
            )
            if len(points) > 1
        ]
        is_beside = len(known) > 1 and drawing.width >= _WIDE
        room = self.line_list.size.height - above - (3 if is_beside else 8)
        height = max(4, min(24, room) if is_beside else min(14, room // 2))
        charts: list[list[Block]] = []
        for name, points, number in known:
            series = Series(
                points=[(at - drawing.now + HISTORY_SECONDS, value) for at, value in points],
                span=(0.0, HISTORY_SECONDS),
                role="running",
                number=number,
                floor=0.0,
                ends=(f"{wording.span(HISTORY_SECONDS)} ago", "now"),
            )
            title = f"{name} of all runs together, the last {wording.span(HISTORY_SECONDS)}"
            charts.append([section(title), plotted(series, height)])
        if is_beside:
            across = drawing.width // 2 - 1
            yield ()
            drawn = [[line.pieces for line in laid_out(each, drawing.within(across))] for each in charts]
            yield from beside(drawn, (across + 1, across))
        else:
            for each in charts:
                yield ()
                yield from each


def _gauge(
    used: float | None, of: float | None, number: wording.Number, cells: int, signs: Signs, unit: str = ""
) -> Pieces:
    """Draw how much of a resource is used; empty if unknown."""
    if used is None or not of:
        return ()
    full, empty = bar(used / of, cells, signs)
    role: Role = "warn" if used > of else "running"
    return (full, role), (empty, "faint"), (f"  {number(used)} of {number(of)}{unit}", "text")


def _disk(free: int | None, total: int | None, cells: int, signs: Signs) -> Pieces:
    """Draw how full a disk is; empty if unknown."""
    if free is None or not total:
        return ()
    full, empty = bar(1 - free / total, cells, signs)
    low = free < LOW_DISK_SHARE * total
    text = f"  {wording.size(free)} free of {wording.size(total)}"
    return (full, "bad" if low else "dim"), (empty, "faint"), (text, "bad" if low else "text")


def _disk_users(use: HostUse, signs: Signs) -> Iterator[Pieces]:
    """Yield what takes the space: the datasets, and the live runs as far as they are measured."""
    measured = [each.latest.disk_bytes for each in use.live if each.latest and each.latest.disk_bytes]
    of_runs = f"{len(measured)} of {plural(len(use.live), 'live run')} measured" if use.live else "none"
    prepared = f"{plural(use.datasets_count, 'dataset')} prepared"
    by_runs = wording.size(sum(measured)) if measured or not use.live else wording.UNKNOWN
    rows = (("datasets", wording.size(use.datasets_bytes), prepared), ("live runs", by_runs, of_runs))
    for name, size, what in rows:
        yield (f"  {name:<14}", "dim"), (f"{size:>9}", "text"), (f"  {signs.dot} {what}", "dim")


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
