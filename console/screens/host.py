"""The host screen: the machine, the resources that runs use, and the use of its disks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.nouns.host import BARS, GPU, NODE, USAGE, cpus_text, gpu_rows, node_rows
from mlebench_console.console.pieces import Line, bar, beside, cut, foreign, heading, joined
from mlebench_console.console.roles import Pieces, Role, Signs
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.chart import Series, chart
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.host import HISTORY_SECONDS, HostUse, host_use
from mlebench_console.engine.control.status import LOW_DISK_SHARE
from mlebench_console.foundation.text import plural

# Older measurements are marked; this is several times the interval of measurements.
_OLD_SECONDS = 600.0
# From these widths on bars are longer; from the greater one, charts are beside each other.
_MIDDLE, _WIDE = 110, 150


@dataclass(frozen=True)
class _GpuKey:
    """The key of a GPU's line, which opens the run that holds it."""

    place: int
    run_id: int


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
        lines = list(self._lines())
        self.line_list.show([*lines, *self._charts(len(lines))])

    def action_open(self) -> None:
        """Open the run under the cursor on its resources; on a node, show only its runs, or again those of all."""
        key = self.line_list.key
        if isinstance(key, int):
            self.app.show_run(key, pane="resources")
        elif isinstance(key, _GpuKey):
            self.app.show_run(key.run_id, pane="resources")
        elif isinstance(key, tuple):
            _, node = key
            self._node = None if node == self._node else node
            self.redraw()

    def label_of(self, key: Key) -> str:
        """Name what Enter opens; empty where it opens nothing."""
        under = self.line_list.key
        if key.id != "host.open" or under is None:
            return super().label_of(key) if key.id != "host.open" else ""
        if isinstance(under, tuple):
            return "runs of all nodes" if under[1] == self._node else f"runs of {under[1]}"
        return f"run {under.run_id if isinstance(under, _GpuKey) else under}"

    def on_line_list_cursor_moved(self) -> None:
        """Show what Enter opens on the new line."""
        self.refresh_frame()

    def _take(self, use: HostUse) -> None:
        self._use = use
        if use.nodes is None or all(node.name != self._node for node in use.nodes.nodes):
            self._node = None

    def _machine(self) -> tuple[Pieces, ...]:
        """Return the lines about the machine, its engine and its load."""
        engine, drawing, width = self.app.engine, self.app.drawing, self.size.width
        now, signs = drawing.now, drawing.signs
        if engine is None or engine.pid is None:
            return (
                (
                    (
                        " nothing is known of this host: no engine has run here yet, :engine start starts one",
                        "dim",
                    ),
                ),
            )
        state: Pieces = (("engine running", "good"),) if engine.running else (("engine down", "bad"),)
        up = f", up {wording.span(now - engine.started_at)}" if engine.running and engine.started_at else ""
        facts: list[Pieces] = [
            ((f" {foreign(engine.host, 40).rstrip()}", "strong"),),
            (*state, (f", process {engine.pid}{up}" if engine.running else "", "dim")),
        ]
        if engine.gpus is not None:
            facts.append(((plural(engine.gpus, "GPU"), "text"),))
        for name, text in (("isolation", engine.isolation), ("version", engine.version)):
            if text:
                facts.append(((f"{name} {foreign(text, 60).rstrip()}", "dim"),))
        used_memory = None
        if engine.memory_total is not None and engine.memory_available is not None:
            used_memory = engine.memory_total - engine.memory_available
        cells = 48 if width >= _WIDE else 32 if width >= _MIDDLE else 16
        gauges = {
            "slots": _gauge("slots", engine.slots_used, engine.slots, _count, cells, signs),
            "load": _gauge("load", engine.load1, engine.cpus, _count, cells, signs, " CPUs"),
            "memory": _gauge("memory", used_memory, engine.memory_total, wording.size, cells, signs),
            "disk: state": _disk(
                "disk: state", engine.state_disk_free, engine.state_disk_total, cells, signs
            ),
            "disk: data": _disk("disk: data", engine.data_disk_free, engine.data_disk_total, cells, signs),
        }
        unknown = [
            *(["GPUs"] if engine.gpus is None else []),
            *(name for name, gauge in gauges.items() if not gauge),
        ]
        lines = [cut(gauge, width) for gauge in gauges.values() if gauge]
        if unknown:
            lines.append(((f" not measured yet: {', '.join(unknown)}", "dim"),))
        if not engine.running and engine.heartbeat_at is not None:
            lines.append(
                (
                    (
                        f" as it was {wording.span(now - engine.heartbeat_at)} ago, when the engine last ran",
                        "warn",
                    ),
                )
            )
        return (joined(facts, (f" {signs.dot} ", "faint"), width - 1), (), *lines)

    def _lines(self) -> Iterator[Line]:
        """Yield nodes and GPUs, the runs by usage (of one node or of all), their use of disks, and charts."""
        use, drawing, width = self._use, self.app.drawing, self.line_list.line_width
        live = [each for each in use.live if self._node is None or each.attempt.node == self._node]
        begun = [each for each in live if each.has_begun]
        waiting = sum(each.attempt.is_in_queue for each in live)
        note = [
            *([f"on {foreign(self._node, 40).rstrip()} alone"] if self._node is not None else []),
            *([f"{len(live) - waiting} running"] if len(live) > waiting else []),
            *([f"{waiting} waiting in Slurm"] if waiting else []),
        ]
        yield from self._slurm()
        yield from self._gpu_lines()
        yield Line(heading("runs by what they use", width, drawing.signs, note=", ".join(note)))
        with_gpus = any(one.latest is not None and one.latest.gpu_percent is not None for one in begun)
        gpus = "gpu gpu_memory" if with_gpus else ""
        where = "where" if any(each.attempt.node for each in begun) else ""
        columns = USAGE.columns(f"competition seed cpus memory disk {gpus} procs time {where} sweep")
        table = Table(columns, begun, width, drawing)
        if begun:
            yield table.heading()
        else:
            yield Line(((f"  nothing is running{'' if self._node is None else ' there'}", "dim"),))
        yield from (table.line(each, key=each.run.id) for each in begun)
        yield Line()
        yield Line(heading("disk space used by", width, drawing.signs))
        yield from _disk_users(use, drawing.signs)

    def _slurm(self) -> Iterator[Line]:
        """Yield the batch system's nodes: those that take no jobs first, then those with our runs."""
        use, drawing, width = self._use, self.app.drawing, self.line_list.line_width
        if use.nodes_problem:
            yield Line(((f"  nodes: {foreign(use.nodes_problem, width - 12).rstrip()}", "warn"),))
            yield Line()
        if use.nodes_problem or use.nodes is None:
            return
        rows = node_rows(use.nodes, use.runs_of_nodes)
        away = sum(row.node.is_away for row in rows)
        note = [
            plural(len(rows), "node"),
            *([f"{away} not available"] if away else []),
            f"as of {wording.clock(use.nodes.asked_at)}",
        ]
        yield Line(heading("Slurm", width, drawing.signs, note=", ".join(note)))
        if drawing.now - use.nodes.asked_at > _OLD_SECONDS:
            yield Line((("  as they were then: Slurm has not listed its nodes since", "warn"),))
        table = Table(NODE.fields, rows, width, drawing)
        yield table.heading()
        yield from (table.line(row, key=("node", row.node.name)) for row in rows)
        yield Line()

    def _gpu_lines(self) -> Iterator[Line]:
        """Yield a line for each GPU: how busy it is, its memory, and the runs that hold it; lost ones first."""
        engine, drawing, width = self.app.engine, self.app.drawing, self.line_list.line_width
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
        bars = BARS[0 if width >= _WIDE else 1 if width >= _MIDDLE else 2]
        columns = GPU.columns(
            "GPU busy memory run",
            busy={"width": bars + 6},
            memory={"width": bars + (19 if width >= _MIDDLE else 8)},
        )
        table = Table(columns, rows, width, drawing)
        yield Line(heading("GPUs", width, drawing.signs, note=", ".join(note)))
        yield table.heading()
        for row in rows:
            yield table.line(row, key=_GpuKey(row.place, row.held[0].id) if row.held else None)
        yield Line()

    def _charts(self, above: int) -> Iterator[Line]:
        """Yield the use of all runs together over the last hours, beside each other where there is room."""
        use, drawing, width = self._use, self.app.drawing, self.line_list.line_width
        known = [
            (name, points, number)
            for name, points, number in (
                ("processors", use.cpu_percent, cpus_text),
                ("memory", use.memory_bytes, wording.size),
            )
            if len(points) > 1
        ]
        is_beside = len(known) > 1 and width >= _WIDE
        room = self.line_list.size.height - above - (3 if is_beside else 8)
        height = max(4, min(24, room) if is_beside else min(14, room // 2))
        across = width // 2 - 1 if is_beside else width
        drawn = []
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
            lines = chart(series, across - 2, height, drawing.signs)
            drawn.append([heading(title, across, drawing.signs), *lines])
        if is_beside:
            yield Line()
            yield from map(Line, beside(drawn, (across + 1, across)))
            return
        for lines in drawn:
            yield Line()
            yield from map(Line, lines)


def _gauge(
    name: str,
    used: float | None,
    of: float | None,
    number: wording.Number,
    cells: int,
    signs: Signs,
    unit: str = "",
) -> Pieces:
    """Draw how much of a resource is used; empty if unknown."""
    if used is None or not of:
        return ()
    full, empty = bar(used / of, cells, signs)
    role: Role = "warn" if used > of else "running"
    return (
        (f" {name:<13}", "dim"), (full, role), (empty, "faint"), (f"  {number(used)} of {number(of)}{unit}", "text")
    )  # fmt: skip


def _disk(name: str, free: int | None, total: int | None, cells: int, signs: Signs) -> Pieces:
    if free is None or not total:
        return ()
    full, empty = bar(1 - free / total, cells, signs)
    low = free < LOW_DISK_SHARE * total
    text = f"  {wording.size(free)} free of {wording.size(total)}"
    return (
        (f" {name:<13}", "dim"),
        (full, "bad" if low else "dim"),
        (empty, "faint"),
        (text, "bad" if low else "text"),
    )


def _disk_users(use: HostUse, signs: Signs) -> list[Line]:
    measured = [each.latest.disk_bytes for each in use.live if each.latest and each.latest.disk_bytes]
    of_runs = f"{len(measured)} of {plural(len(use.live), 'live run')} measured"
    return [
        Line(
            (
                (f"  {name:<14}", "dim"),
                (f"{wording.size(size) if known else wording.UNKNOWN:>9}", "text"),
                (f"  {signs.dot} {what}", "dim"),
            )
        )
        for name, size, what, known in (
            (
                "datasets",
                use.datasets_bytes,
                f"{plural(use.datasets_count, 'dataset')} prepared",
                True,
            ),
            ("live runs", sum(measured), of_runs if use.live else "none", measured or not use.live),
        )
    ]


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
