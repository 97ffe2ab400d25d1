"""The host as lines: its facts, the runs by what they use, the disks by kind, the last hours as curves."""

from __future__ import annotations

from collections.abc import Callable

from console import wording
from console.screens.chart import Curve, chart
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    bar,
    cut,
    foreign,
    heading,
    joined,
)
from console.tui.theme import Role, Signs
from console.tui.widgets.table import Column, Table
from console.views.host import HISTORY_SECONDS, HostUse, User
from engine.control import EngineStatus
from engine.notifications.news import LOW_DISK_SHARE
from state.records import UsageSample

_BAR = 16


def facts(engine: EngineStatus | None, now: float, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Which machine this is, its engine, and how much of it is taken."""
    if engine is None or engine.pid is None:
        return (((" nothing is known of the host: no engine has run here yet", "dim"),),)
    dot: Piece = (f" {signs.dot} ", "faint")
    state: Pieces = (("engine running", "good"),) if engine.running else (("engine down", "bad"),)
    up = f", up {wording.span(now - engine.started_at)}" if engine.running and engine.started_at else ""
    first = joined(
        [
            ((f" {foreign(engine.host, 40).rstrip()}", "strong"),),
            (*state, (f", process {engine.pid}{up}", "dim")),
            ((f"isolation {foreign(engine.isolation or wording.UNKNOWN, 60).rstrip()}", "dim"),),
            (
                (
                    f"GPUs {engine.gpus}" if engine.gpus is not None else "GPUs unknown",
                    "dim",
                ),
            ),
            ((f"version {foreign(engine.version or wording.UNKNOWN, 20).rstrip()}", "dim"),),
        ],
        dot,
        width,
    )
    used_memory = None
    if engine.memory_total is not None and engine.memory_available is not None:
        used_memory = engine.memory_total - engine.memory_available
    return (
        first,
        (),
        _gauge("slots", engine.slots_used, engine.slots, _count, width, signs),
        _gauge("load", engine.load1, engine.cpus, _count, width, signs),
        _gauge("memory", used_memory, engine.memory_total, wording.size, width, signs),
        _disk("disk: state", engine.state_disk_free, engine.state_disk_total, width, signs),
        _disk("disk: data", engine.data_disk_free, engine.data_disk_total, width, signs),
    )


def lines(use: HostUse, width: int, height: int, now: float, signs: Signs) -> list[Line]:
    """Who uses what, the disks by kind, and the last hours."""
    made = [Line(heading("who uses what", width, signs, note=str(len(use.users)) if use.users else ""))]
    table = Table(_columns(now), use.users, width, signs)
    made += [table.heading()] if use.users else [Line((("  nothing is running", "dim"),))]
    made += [table.line(user, key=user.run.id) for user in use.users]
    made += [Line(), Line(heading("what fills the disks", width, signs)), *_kinds(use, signs)]
    room = max(4, min(8, (height - len(made) - 8) // 2))
    for name, points, number in (
        ("processors of all runs together", use.cpu_percent, _cpus),
        ("memory of all runs together", use.memory_bytes, wording.size),
    ):
        if len(points) < 2:
            continue
        curve = Curve(
            points=[(at - now + HISTORY_SECONDS, value) for at, value in points],
            span=(0.0, HISTORY_SECONDS),
            role="running",
            number=number,
            floor=0.0,
        )
        drawn = chart(curve, width - 2, room, signs, ascii_only=signs.bar_parts == " ")
        title = f"{name}, the last {wording.span(HISTORY_SECONDS)}"
        made += [Line(), Line(heading(title, width, signs)), *(Line(pieces) for pieces in drawn)]
    return made


def _gauge(
    name: str, used: float | None, of: float | None, number: wording.Number, width: int, signs: Signs
) -> Pieces:
    if used is None or not of:
        return cut(((f" {name:<13}", "dim"), (wording.UNKNOWN, "dim")), width)
    full, empty = bar(used / of, _BAR, signs)
    role: Role = "warn" if used > of else "running"
    told = f"  {number(used)} of {number(of)}"
    return cut(((f" {name:<13}", "dim"), (full, role), (empty, "faint"), (told, "text")), width)


def _disk(name: str, free: int | None, total: int | None, width: int, signs: Signs) -> Pieces:
    if free is None or not total:
        return cut(((f" {name:<13}", "dim"), (wording.UNKNOWN, "dim")), width)
    full, empty = bar(1 - free / total, _BAR, signs)
    low = free < LOW_DISK_SHARE * total
    told = f"  {wording.size(free)} free of {wording.size(total)}"
    return cut(
        (
            (f" {name:<13}", "dim"),
            (full, "bad" if low else "dim"),
            (empty, "faint"),
            (told, "bad" if low else "text"),
        ),
        width,
    )


def _measured(value: float | None, number: wording.Number) -> str:
    return wording.UNKNOWN if value is None else number(value)


def _columns(now: float) -> list[Column[User]]:
    def used(of: Callable[[UsageSample], float | None], number: wording.Number) -> Callable[[User], str]:
        return lambda user: _measured(of(user.latest) if user.latest else None, number)

    def since(user: User) -> str:
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


def _kinds(use: HostUse, signs: Signs) -> list[Line]:
    measured = [user.latest.disk_bytes for user in use.users if user.latest and user.latest.disk_bytes]
    prepared = wording.plural(use.datasets_count, "dataset")
    return [
        Line(((f"  {'datasets':<14}", "dim"), (f"{wording.size(use.datasets_bytes):>9}", "text"),
              (f"  {signs.dot} {prepared}", "dim"))),
        Line(((f"  {'live runs':<14}", "dim"), (f"{wording.size(sum(measured)):>9}", "text"),
              (f"  {signs.dot} {len(measured)} measured", "dim"))),
    ]  # fmt: skip


def _cpus(percent: float) -> str:
    return f"{percent / 100:.1f}"


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
