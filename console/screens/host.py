"""The host screen: the machine, who uses what of it, and what fills its disks."""

from __future__ import annotations

from collections.abc import Callable

from console import wording
from console.tui.list_screen import ListScreen
from console.tui.painting import Line, Pieces, bar, cut, foreign, heading, joined
from console.tui.screen import Queries
from console.tui.theme import Role, Signs
from console.tui.widgets.chart import Series, chart
from console.tui.widgets.table import Column, Table
from console.views.host import HISTORY_SECONDS, HostUse, LiveRun, host_use
from engine.control import EngineStatus
from engine.notifications.news import LOW_DISK_SHARE
from state.records import UsageSample


class HostScreen(ListScreen):
    """Facts on top, then the runs by what they use."""

    CONTEXTS = ("host", "list")
    MODE = "host"

    def __init__(self) -> None:
        super().__init__()
        self._use = HostUse()

    def queries(self) -> Queries:
        """Who uses what."""
        return {"use": (lambda database: host_use(database, self.app.now()), self._take)}

    def tick(self) -> None:
        """Measure again: samples come without a change of the state."""
        super().tick()
        self.query_again()

    def redraw(self) -> None:
        """Draw the machine as it is now."""
        users, now, signs = self.line_list, self.app.now(), self.app.signs
        self.header.show(*_machine(self.app.engine, now, self.size.width, signs))
        users.show(_lines(self._use, users.line_width, users.size.height, now, signs))

    def action_open(self) -> None:
        """Open the run under the cursor, on what it uses."""
        key = self.line_list.key
        if isinstance(key, int):
            self.app.show_run(key, pane="resources")

    def _take(self, use: HostUse) -> None:
        self._use = use


def _machine(engine: EngineStatus | None, now: float, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Which machine this is, its engine, and how much of it is taken."""
    if engine is None or engine.pid is None:
        return (((" nothing is known about the host: no engine has run here yet", "dim"),),)
    state: Pieces = (("engine running", "good"),) if engine.running else (("engine down", "bad"),)
    up = f", up {wording.span(now - engine.started_at)}" if engine.running and engine.started_at else ""
    gpus = f"GPUs {engine.gpus}" if engine.gpus is not None else "GPUs unknown"
    facts: list[Pieces] = [
        ((f" {foreign(engine.host, 40).rstrip()}", "strong"),),
        (*state, (f", process {engine.pid}{up}", "dim")),
        ((f"isolation {foreign(engine.isolation or wording.UNKNOWN, 60).rstrip()}", "dim"),),
        ((gpus, "dim"),),
        ((f"version {foreign(engine.version or wording.UNKNOWN, 20).rstrip()}", "dim"),),
    ]
    used_memory = None
    if engine.memory_total is not None and engine.memory_available is not None:
        used_memory = engine.memory_total - engine.memory_available
    gauges = (
        _gauge("slots", engine.slots_used, engine.slots, _count, signs),
        _gauge("load", engine.load1, engine.cpus, _count, signs),
        _gauge("memory", used_memory, engine.memory_total, wording.size, signs),
        _disk("disk: state", engine.state_disk_free, engine.state_disk_total, signs),
        _disk("disk: data", engine.data_disk_free, engine.data_disk_total, signs),
    )
    return (joined(facts, (f" {signs.dot} ", "faint"), width), (), *(cut(gauge, width) for gauge in gauges))


def _gauge(name: str, used: float | None, of: float | None, number: wording.Number, signs: Signs) -> Pieces:
    if used is None or not of:
        return ((f" {name:<13}", "dim"), (wording.UNKNOWN, "dim"))
    full, empty = bar(used / of, 16, signs)
    role: Role = "warn" if used > of else "running"
    return (
        (f" {name:<13}", "dim"), (full, role), (empty, "faint"), (f"  {number(used)} of {number(of)}", "text")
    )  # fmt: skip


def _disk(name: str, free: int | None, total: int | None, signs: Signs) -> Pieces:
    if free is None or not total:
        return ((f" {name:<13}", "dim"), (wording.UNKNOWN, "dim"))
    full, empty = bar(1 - free / total, 16, signs)
    low = free < LOW_DISK_SHARE * total
    text = f"  {wording.size(free)} free of {wording.size(total)}"
    return (
        (f" {name:<13}", "dim"),
        (full, "bad" if low else "dim"),
        (empty, "faint"),
        (text, "bad" if low else "text"),
    )


def _lines(use: HostUse, width: int, height: int, now: float, signs: Signs) -> list[Line]:
    """Who uses what, the disks by kind, and the last hours."""
    made = [Line(heading("who uses what", width, signs, note=str(len(use.live)) if use.live else ""))]
    table = Table(_columns(now), use.live, width, signs)
    made += [table.heading()] if use.live else [Line((("  nothing is running", "dim"),))]
    made += [table.line(each, key=each.run.id) for each in use.live]
    made += [Line(), Line(heading("what fills the disks", width, signs)), *_disk_users(use, signs)]
    room = max(4, min(8, (height - len(made) - 8) // 2))
    for name, points, number in (
        ("processors of all runs together", use.cpu_percent, _cpus),
        ("memory of all runs together", use.memory_bytes, wording.size),
    ):
        if len(points) < 2:
            continue
        series = Series(
            points=[(at - now + HISTORY_SECONDS, value) for at, value in points],
            span=(0.0, HISTORY_SECONDS),
            role="running",
            number=number,
            floor=0.0,
        )
        drawn = chart(series, width - 2, room, signs, ascii_only=signs.bar_parts == " ")
        title = f"{name}, the last {wording.span(HISTORY_SECONDS)}"
        made += [Line(), Line(heading(title, width, signs)), *(Line(pieces) for pieces in drawn)]
    return made


def _columns(now: float) -> list[Column[LiveRun]]:
    def used(of: Callable[[UsageSample], float | None], number: wording.Number) -> Callable[[LiveRun], str]:
        def cell(user: LiveRun) -> str:
            value = None if user.latest is None else of(user.latest)
            return wording.UNKNOWN if value is None else number(value)

        return cell

    def since(user: LiveRun) -> str:
        run = user.run
        return wording.span(now - run.started_at) if run.started_at else run.state.value[:6]

    return [
        Column("competition", lambda user: user.run.competition_id, 14, grows=48),
        Column("seed", lambda user: str(user.run.seed), 4, right=True, gap=1, role="dim"),
        Column("cpus", used(lambda sample: sample.cpu_percent, _cpus), 6, right=True, gap=1),
        Column("memory", used(lambda sample: sample.memory_bytes, wording.size), 9, right=True, gap=1),
        Column("disk", used(lambda sample: sample.disk_bytes, wording.size), 9, right=True, gap=1),
        Column("GPU", used(lambda sample: sample.gpu_percent, "{:.0f} %".format), 6, right=True, gap=1),
        Column("procs", used(lambda sample: sample.processes, str), 6, right=True, gap=1),
        Column("since", since, 6, right=True, gap=1, role="dim"),
        Column("sweep", lambda user: user.run.sweep_id, 12, grows=20, drop=1, role="dim"),
    ]


def _disk_users(use: HostUse, signs: Signs) -> list[Line]:
    measured = [each.latest.disk_bytes for each in use.live if each.latest and each.latest.disk_bytes]
    return [
        Line(
            ((f"  {name:<14}", "dim"), (f"{wording.size(size):>9}", "text"), (f"  {signs.dot} {what}", "dim"))
        )
        for name, size, what in (
            ("datasets", use.datasets_bytes, wording.plural(use.datasets_count, "dataset")),
            ("live runs", sum(measured), f"{len(measured)} measured"),
        )
    ]


def _cpus(percent: float) -> str:
    return f"{percent / 100:.1f}"


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
