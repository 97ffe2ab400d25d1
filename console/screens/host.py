"""The host screen: the machine, the resources that runs use, and the use of its disks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms
from mlebench_console.console.pieces import Line, bar, cut, foreign, heading, joined, width_of
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.chart import Series, chart
from mlebench_console.console.tui.widgets.table import Column, Table
from mlebench_console.console.views.host import HISTORY_SECONDS, HostUse, LiveRun, host_use
from mlebench_console.engine.control import EngineStatus, GpuUse
from mlebench_console.engine.control.status import LOW_DISK_SHARE
from mlebench_console.engine.needs.waits import WaitKind, job_wait
from mlebench_console.engine.placements.commands import Node
from mlebench_console.foundation.text import plural
from mlebench_console.foundation.usage import UsageSample
from mlebench_console.state.records import Run

# Older measurements are marked; this is several times the interval of measurements.
_OLD_SECONDS = 600.0
# From these widths on bars are longer; from the greater one, charts are beside each other.
_MIDDLE, _WIDE = 110, 150
# A GPU whose memory is used by more than this share may soon have too little for its run.
_FULL_GPU = 0.95
# A GPU with its place in the driver's list and the live runs that hold it.
_HeldGpu = tuple[int, GpuUse, list[Run]]


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
        users = self.line_list
        self.header.show(*_machine(self.app.engine, self.size.width, self.app.drawing))
        gpus = () if self.app.engine is None else self.app.engine.gpu_uses
        users.show(_lines(self._use, gpus, self._node, users.line_width, users.size.height, self.app.drawing))

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


def _machine(engine: EngineStatus | None, width: int, drawing: Drawing) -> tuple[Pieces, ...]:
    """Return the lines about the machine, its engine and its load."""
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
    up = (
        f", up {wording.span(drawing.now - engine.started_at)}"
        if engine.running and engine.started_at
        else ""
    )
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
        "slots": _gauge("slots", engine.slots_used, engine.slots, _count, cells, "", drawing),
        "load": _gauge("load", engine.load1, engine.cpus, _count, cells, " CPUs", drawing),
        "memory": _gauge("memory", used_memory, engine.memory_total, wording.size, cells, "", drawing),
        "disk: state": _disk("disk: state", engine.state_disk_free, engine.state_disk_total, cells, drawing),
        "disk: data": _disk("disk: data", engine.data_disk_free, engine.data_disk_total, cells, drawing),
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
                    f" as it was {wording.span(drawing.now - engine.heartbeat_at)} ago, when the engine last ran",
                    "warn",
                ),
            )
        )
    return (joined(facts, (f" {drawing.signs.dot} ", "faint"), width - 1), (), *lines)


def _gauge(
    name: str,
    used: float | None,
    of: float | None,
    number: wording.Number,
    cells: int,
    unit: str,
    drawing: Drawing,
) -> Pieces:
    """Draw how much of a resource is used; empty if unknown."""
    if used is None or not of:
        return ()
    full, empty = bar(used / of, cells, drawing.signs)
    role: Role = "warn" if used > of else "running"
    return (
        (f" {name:<13}", "dim"), (full, role), (empty, "faint"), (f"  {number(used)} of {number(of)}{unit}", "text")
    )  # fmt: skip


def _disk(name: str, free: int | None, total: int | None, cells: int, drawing: Drawing) -> Pieces:
    if free is None or not total:
        return ()
    full, empty = bar(1 - free / total, cells, drawing.signs)
    low = free < LOW_DISK_SHARE * total
    text = f"  {wording.size(free)} free of {wording.size(total)}"
    return (
        (f" {name:<13}", "dim"),
        (full, "bad" if low else "dim"),
        (empty, "faint"),
        (text, "bad" if low else "text"),
    )


def _lines(
    use: HostUse, gpus: Sequence[GpuUse], node: str | None, width: int, height: int, drawing: Drawing
) -> list[Line]:
    """Return nodes and GPUs, the runs by usage (of one node or of all), their use of disks, and charts."""
    live = [each for each in use.live if node is None or _where(each) == node]
    # A suspended job waits, too, but it still holds its node's memory.
    begun = [each for each in live if each.run.started_at is not None or not each.attempt.waits_for]
    waiting = sum(each.attempt.is_in_queue for each in live)
    running = len(live) - waiting
    told = [
        *([f"on {foreign(node, 40).rstrip()} alone"] if node is not None else []),
        *([f"{running} running"] if running else []),
        *([f"{waiting} waiting in Slurm"] if waiting else []),
    ]
    made = [*_nodes(use, width, drawing), *_gpus(gpus, use, width, drawing)]
    made.append(Line(heading("runs by what they use", width, drawing.signs, note=", ".join(told))))
    with_gpus = any(one.latest is not None and one.latest.gpu_percent is not None for one in begun)
    columns = _columns(drawing, with_nodes=any(map(_where, begun)), with_gpus=with_gpus)
    table = Table(columns, begun, width, drawing)
    made += (
        [table.heading()]
        if begun
        else [Line(((f"  nothing is running{'' if node is None else ' there'}", "dim"),))]
    )
    made += [table.line(each, key=each.run.id) for each in begun]
    made += [Line(), Line(heading("disk space used by", width, drawing.signs)), *_disk_users(use, drawing)]
    charts = {
        "processors": (use.cpu_percent, _cpus),
        "memory": (use.memory_bytes, wording.size),
    }
    known = {name: known for name, known in charts.items() if len(known[0]) > 1}
    beside = len(known) > 1 and width >= _WIDE
    lines_left = height - len(made) - (3 if beside else 8)
    room = max(4, min(24, lines_left) if beside else min(14, lines_left // 2))
    drawn = []
    for name, (points, number) in known.items():
        room_across = width // 2 - 1 if beside else width
        series = Series(
            points=[(at - drawing.now + HISTORY_SECONDS, value) for at, value in points],
            span=(0.0, HISTORY_SECONDS),
            role="running",
            number=number,
            floor=0.0,
            ends=(f"{wording.span(HISTORY_SECONDS)} ago", "now"),
        )
        title = heading(
            f"{name} of all runs together, the last {wording.span(HISTORY_SECONDS)}",
            room_across,
            drawing.signs,
        )
        drawn.append(
            [
                title,
                *chart(
                    series, room_across - 2, room, drawing.signs, ascii_only=drawing.signs.bar_parts == " "
                ),
            ]
        )
    if beside:
        half = width - width // 2 + 1
        return [
            *made,
            Line(),
            *(
                Line((*left, (" " * (half - width_of(left)), "text"), *right))
                for left, right in zip(*drawn, strict=True)
            ),
        ]
    return [*made, *(line for one in drawn for line in (Line(), *map(Line, one)))]


def _gpus(gpus: Sequence[GpuUse], use: HostUse, width: int, drawing: Drawing) -> list[Line]:
    """Return a line for each GPU: how busy it is, its memory, and the runs that hold it; lost ones first."""
    live = {each.attempt.id: each.run for each in use.live}
    runs_of = [[live[attempt] for attempt in gpu.attempts if attempt in live] for gpu in gpus]
    shown = [
        (place, gpu, held)
        for place, (gpu, held) in enumerate(zip(gpus, runs_of, strict=True))
        if held or not gpu.is_lost
    ]
    if not shown:
        return []
    shown.sort(key=lambda one: not one[1].is_lost)
    lost = sum(gpu.is_lost for _place, gpu, _held in shown)
    free = sum(not held for _place, _gpu, held in shown)
    names = {gpu.name for _place, gpu, _held in shown if gpu.name}
    note = [
        *([next(iter(names))] if len(names) == 1 else []),
        *([f"{lost} lost"] if lost else []),
        f"{free} without a run" if free else "all in use",
    ]
    cells = 20 if width >= _WIDE else 10 if width >= _MIDDLE else 6

    def gauge(share: float | None, text: str, *, high: bool) -> Pieces:
        if share is None:
            return ((f"{' ' * cells} {text}", "dim"),)
        full, empty = bar(share, cells, drawing.signs)
        return ((full, "warn" if high else "running"), (empty, "faint"), (f" {text}", "text"))

    def busy(one: _HeldGpu) -> Pieces:
        _place, gpu, _held = one
        if gpu.is_lost:
            return (("lost", "bad"),)
        percent = gpu.busy_percent
        if percent is None:
            return gauge(None, "", high=False)
        return gauge(percent / 100, f"{percent:>3} %", high=False)

    def memory(one: _HeldGpu) -> Pieces:
        _place, gpu, _held = one
        if gpu.memory_used is None or not gpu.memory_total:
            return ()
        share = gpu.memory_used / gpu.memory_total
        text = f"{wording.size(gpu.memory_used):>7}"
        if width >= _MIDDLE:
            text += f" of {wording.size(gpu.memory_total)}"
        return gauge(share, text, high=share > _FULL_GPU)

    def holders(one: _HeldGpu) -> Cell:
        _place, gpu, held = one
        text = ", ".join(f"{run.competition_id} seed {run.seed}" for run in held)
        if gpu.is_lost:
            lost: Piece = (", not listed by the driver any more", "bad")
            return Forms([((text, "text"), lost), ((text, "text"),)])
        is_idle = gpu.busy_percent == 0 and bool(held)
        return (*((("idle: ", "warn"),) if is_idle else ()), (text or "no run", "text" if held else "dim"))

    columns: list[Column[_HeldGpu]] = [
        Column("GPU", lambda one: str(one[0] if one[1].number is None else one[1].number), 3, right=True),
        Column("busy", busy, cells + 6),
        Column("memory", memory, cells + (19 if width >= _MIDDLE else 8), gap=1),
        Column("run", holders, 16, grows=REST),
    ]
    table = Table(columns, shown, width, drawing)
    made = [Line(heading("GPUs", width, drawing.signs, note=", ".join(note))), table.heading()]
    for one in shown:
        place, _gpu, held = one
        made.append(table.line(one, key=_GpuKey(place, held[0].id) if held else None))
    return [*made, Line()]


def _columns(drawing: Drawing, *, with_nodes: bool, with_gpus: bool) -> list[Column[LiveRun]]:
    def used(of: Callable[[UsageSample], float | None], number: wording.Number) -> Callable[[LiveRun], str]:
        def cell(user: LiveRun) -> str:
            value = None if user.latest is None else of(user.latest)
            return wording.UNKNOWN if value is None else number(value)

        return cell

    def since(user: LiveRun) -> str:
        run = user.run
        wait = job_wait(user.attempt)
        if wait is not None and wait.kind is WaitKind.JOB:
            # If its job had begun, the reason is the news: it is suspended.
            return wording.waits_short(wait, drawing.now)[-1] if run.started_at else "waits"
        return wording.span(drawing.now - run.started_at) if run.started_at else "starts"

    gpu_columns = [
        Column("GPU", used(lambda sample: sample.gpu_percent, "{:.0f} %".format), 6, right=True, gap=1),
        Column(
            "GPU memory",
            used(lambda sample: sample.gpu_memory_bytes, wording.size),
            10,
            right=True,
            gap=1,
            drop=3,
        ),
    ]
    return [
        Column("competition", lambda user: user.run.competition_id, 14, grows=48),
        Column("seed", lambda user: str(user.run.seed), 4, right=True, gap=1, role="dim"),
        Column("CPUs", used(lambda sample: sample.cpu_percent, _cpus), 6, right=True, gap=1),
        Column("memory", used(lambda sample: sample.memory_bytes, wording.size), 9, right=True, gap=1),
        Column("disk", used(lambda sample: sample.disk_bytes, wording.size), 9, right=True, gap=1),
        *(gpu_columns if with_gpus else []),
        Column("procs", used(lambda sample: sample.processes, str), 6, right=True, gap=1, drop=4),
        Column("time", since, 6, grows=10, right=True, gap=1, role="dim"),
        *([Column("where", _where, 8, grows=20, drop=2, role="dim")] if with_nodes else []),
        Column("sweep", lambda user: user.run.sweep_id, 20, drop=1, role="dim"),
    ]


def _nodes(use: HostUse, width: int, drawing: Drawing) -> list[Line]:
    """Return the batch system's nodes: those that take no jobs first, then those with our runs."""
    if use.nodes_problem:
        return [Line(((f"  nodes: {foreign(use.nodes_problem, width - 12).rstrip()}", "warn"),)), Line()]
    if use.nodes is None:
        return []
    ours = use.runs_of_nodes
    shown = sorted(use.nodes.nodes, key=lambda node: (not node.is_away, -ours.get(node.name, 0), node.name))
    away = sum(node.is_away for node in shown)
    told = [
        plural(len(shown), "node"),
        *([f"{away} not available"] if away else []),
        f"as of {wording.clock(use.nodes.asked_at)}",
    ]
    is_old = drawing.now - use.nodes.asked_at > _OLD_SECONDS
    made = [Line(heading("Slurm", width, drawing.signs, note=", ".join(told)))]
    if is_old:
        made.append(Line((("  as they were then: Slurm has not listed its nodes since", "warn"),)))
    table = Table(_node_columns(ours), shown, width, drawing)
    made.append(table.heading())
    return [*made, *(table.line(node, key=("node", node.name)) for node in shown), Line()]


def _node_columns(ours: Mapping[str, int]) -> list[Column[Node]]:
    def state(node: Node) -> Pieces:
        text = node.state if node.answers else f"{node.state}, no answer"
        return ((text, "warn" if node.is_away else "good" if node.state == "idle" else "text"),)

    def runs(node: Node) -> Pieces:
        count = ours.get(node.name, 0)
        return ((str(count) if count else "", "running"),)

    def cpus(node: Node) -> str:
        unknown = node.cpus is None or node.cpus_used is None
        return wording.UNKNOWN if unknown else f"{node.cpus_used}/{node.cpus}"

    return [
        Column("node", lambda node: node.name, 14, grows=30),
        Column("state", state, 12, grows=24, gap=1),
        Column("ours", runs, 5, right=True, gap=1),
        Column("CPUs", cpus, 9, right=True, gap=1),
        Column(
            "load",
            lambda node: wording.UNKNOWN if node.load is None else f"{node.load:.1f}",
            6,
            right=True,
            gap=1,
        ),
        Column(
            "GPUs", lambda node: f"{node.gpus_used}/{node.gpus}" if node.gpus else "", 6, right=True, gap=1
        ),
        Column(
            "memory", lambda node: wording.size(node.memory_bytes), 9, right=True, gap=1, drop=1, role="dim"
        ),
        Column("partitions", lambda node: ", ".join(node.partitions), 12, grows=30, drop=3, role="dim"),
        Column("why", lambda node: node.reason, 20, grows=REST, drop=2, role="dim"),
    ]


def _disk_users(use: HostUse, drawing: Drawing) -> list[Line]:
    measured = [each.latest.disk_bytes for each in use.live if each.latest and each.latest.disk_bytes]
    of_runs = f"{len(measured)} of {plural(len(use.live), 'live run')} measured"
    return [
        Line(
            (
                (f"  {name:<14}", "dim"),
                (f"{wording.size(size) if known else wording.UNKNOWN:>9}", "text"),
                (f"  {drawing.signs.dot} {what}", "dim"),
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


def _where(user: LiveRun) -> str:
    """Return the batch system's node that runs it; empty for this host."""
    return user.attempt.node


def _cpus(percent: float) -> str:
    return f"{percent / 100:.1f}"


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
