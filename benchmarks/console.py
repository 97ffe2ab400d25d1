"""The console in a real terminal: start-up time, cost of watching, response times, and large logs.

Everything is measured on a terminal of 120x40, beside a smallest app of the same library and grep in the same run. The
large log is sparse in its middle; what is searched is real.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import console_world
from benchmarks.console_world import PLAYED, places_in
from benchmarks.measuring import Comparison, Reading, compare, until_drawn
from benchmarks.terminal import Terminal
from mlebench_console.competitions import registry
from mlebench_console.console.tui.keys import SCREENS
from mlebench_console.environment.runner import protocol

_SMALLEST = """
from textual.app import App
from textual.widgets import Static
class Smallest(App):
    BINDINGS = [("j", "turn", ""), ("k", "turn", "")]
    def compose(self):
        yield Static("smallest app", id="text")
    def action_turn(self):
        self.turned = not getattr(self, "turned", False)
        self.query_one("#text").update("turned" if self.turned else "smallest app")
Smallest().run()
"""
_MANY_RUNS = 10_000
_LINES_PER_SECOND = 2000.0
_SETTLED_SECONDS = 2.0  # opening is measured for itself
_TYPED_SECONDS = 0.2  # within which a field is drawn
_WATCHED_SECONDS = 20.0
_QUIET_SECONDS = 1.0
_SWITCH_BYTES = 12_000.0
_KEYS = 100
_STOPPED_SECONDS = 60.0
_HUGE = 5 << 30
_SEARCHED = 256 << 20
_NEEDLE = b"a line that holds Needle-4711\n"


def measure(rounds: int) -> Iterator[Comparison | Reading]:
    """Measure everything that an operator notices."""
    with tempfile.TemporaryDirectory() as folder:
        empty, many, busy = (Path(folder, name) for name in ("empty", "many", "busy"))
        console_world.build(places_in(many), ended=_MANY_RUNS - 225)
        yield from _first_frames(empty, many, rounds)
        yield _key_among_many(many)
        console_world.build(places_in(busy))
        yield from _switching(busy)
        with _played(busy):
            yield from _watching(busy)
            yield from _keys(busy)
            yield from _stopped(busy)
        yield from _large_logs(busy, rounds)


def _console(folder: Path, screen: str) -> tuple[str, ...]:
    return (
        "-m",
        "mlebench_console.console",
        f"--state-dir={folder / 'state'}",
        f"--data-dir={folder / 'data'}",
        *_at(screen),
    )


def _at(screen: str) -> tuple[str, ...]:
    return (f"--screen={screen}",) if screen else ()


def _first_frames(empty: Path, many: Path, rounds: int) -> Iterator[Comparison]:
    # 50 ms of what is compared with it are the library with which Typer validates flags.
    smallest = until_drawn("first frame of a smallest app", b"smallest", "-c", _SMALLEST)
    for name, folder, marker, promise in (
        ("first frame without a state", empty, b"Overview", 2.0),
        (f"first frame with {_MANY_RUNS:,} runs", many, b"Overview", 2.0),
        ("what to do without a state", empty, b"open the demo", None),
        (f"what {_MANY_RUNS:,} runs come to", many, PLAYED.encode(), None),
    ):
        shown = until_drawn(name, marker, *_console(folder, ""))
        yield compare("console", shown, smallest, promise=promise, rounds=rounds)


def _switching(busy: Path) -> Iterator[Reading]:
    """Yield how much a terminal is sent for another screen, while nothing happens, and what it is sent after that."""
    with _opened(busy, "overview", b"played") as terminal:
        until_quiet(terminal)
        # The second time is what an operator goes through all night.
        for time_of, limit in (("first", _SWITCH_BYTES), ("second", _SWITCH_BYTES)):
            for name, key, *_ in SCREENS[1:] + SCREENS[:1]:
                sent = terminal.sent
                terminal.type(f"\x1b{key}")  # out of a field first
                until_quiet(terminal)
                yield Reading(
                    "console",
                    f"sent by switching to {name}, {time_of} time",
                    terminal.sent - sent,
                    "B",
                    limit,
                )
        sent, began = terminal.sent, time.perf_counter()
        time.sleep(_WATCHED_SECONDS)
        idle = (terminal.sent - sent) / (time.perf_counter() - began)
        yield Reading("console", "sent by an idle overview", idle, "B/s", 150.0)


def until_quiet(terminal: Terminal) -> None:
    """Wait until nothing has been sent to the terminal for a while."""
    sent = -1
    while terminal.sent != sent:
        sent = terminal.sent
        time.sleep(_QUIET_SECONDS)


def _key_among_many(many: Path) -> Reading:
    with _opened(many, f"sweep:{PLAYED}", b"seed 1") as terminal:
        time.sleep(_SETTLED_SECONDS)
        return Reading(
            "console", f"key answered by a sweep among {_MANY_RUNS:,} runs, p95", _p95(terminal), "ms", 30.0
        )


def _watching(busy: Path) -> Iterator[Reading]:
    for screen, name, bytes_promise in (
        ("overview", "overview", 150.0),
        (f"sweep:{PLAYED}", "sweep", 150.0),
        ("run:1", "a log that grows by 31 lines/s", None),
    ):
        with _opened(busy, screen, b"played") as terminal:
            time.sleep(_SETTLED_SECONDS)
            sent, cpu, began = terminal.sent, terminal.cpu_seconds, time.perf_counter()
            time.sleep(_WATCHED_SECONDS)
            seconds = time.perf_counter() - began
            of = f"{name}, 64 live runs of 225"
            yield Reading("console", f"sent by {of}", (terminal.sent - sent) / seconds, "B/s", bytes_promise)
            share = 100 * (terminal.cpu_seconds - cpu) / seconds
            yield Reading("console", f"CPU of {of}", share, "%", 3.0)
            yield Reading("console", f"memory of {of}", terminal.peak_memory / 1e6, "MB", 120.0)


def _keys(busy: Path) -> Iterator[Reading]:
    with _started(Terminal([sys.executable, "-c", _SMALLEST]), b"smallest") as terminal:
        yield Reading("console", "key answered by a smallest app, p95", _p95(terminal), "ms", None)
    with _opened(busy, f"sweep:{PLAYED}", b"played") as terminal:
        yield Reading("console", "key answered by the sweep, p95", _p95(terminal), "ms", 30.0)
    with _opened(busy, "run:1", b"following") as terminal:
        terminal.type("k" * 60)  # so that it stands still
        terminal.until(b"paused")
        time.sleep(1.0)
        yield Reading("console", "key answered by a growing log, p95", _p95(terminal), "ms", 30.0)


def _p95(terminal: Terminal) -> float:
    taken = []
    for number in range(_KEYS):
        time.sleep(0.05)
        taken.append(terminal.answer_to("jk"[number % 2]))
    return 1000 * statistics.quantiles(taken, n=20)[-1]


def _stopped(busy: Path) -> Iterator[Reading]:
    with _opened(busy, "run:1", b"following") as terminal:
        with terminal.stopped():
            time.sleep(_STOPPED_SECONDS)
        memory = terminal.peak_memory / 1e6
        terminal.forget()
        terminal.type("1")
        began = time.perf_counter()
        shown = terminal.until(b"played")
        name = f"a terminal that read nothing for {_STOPPED_SECONDS:.0f} s"
        yield Reading("console", f"memory after {name}", memory, "MB", 120.0)
        yield Reading("console", f"overview after {name}", 1000 * (shown - began), "ms", 2000.0)


def _large_logs(busy: Path, rounds: int) -> Iterator[Comparison | Reading]:
    # Only cells that change are sent, so that the lines that are waited for share no letter with others.
    run = console_world.first_live(places_in(busy), registry.splits()["low"][0])
    log = busy / "state" / "runs" / PLAYED / f"run-{run}" / protocol.LOG
    _make_sparse(log, _HUGE)
    opened = []
    for _round in range(rounds):
        with _opened(busy, f"sweep:{PLAYED}", b"played") as terminal:
            time.sleep(_SETTLED_SECONDS)
            # by its number: the sweep's cursor stands where it was left by what was measured before
            _fill_in(terminal, f":runs logs {run}")
            began = time.perf_counter()
            terminal.type("\r")
            opened.append(terminal.until(b"THE-VERY-LAST-LINE") - began)
            terminal.type("g")
            terminal.until(b"THE-VERY-FIRST-LINE")
            terminal.type("G")
            terminal.until(b"THE-VERY-LAST-LINE")
            memory = terminal.peak_memory
    yield Reading("console", "5 GB log opened at its end", 1000 * statistics.median(opened), "ms", 150.0)
    yield Reading("console", "memory with a 5 GB log", memory / 1e6, "MB", 120.0)
    _make_searchable(log, _SEARCHED)
    for typed, flags, promise in (
        ("Needle-4711", (), 2.0),
        ("needle-4711", ("-i",), 2.0),
        ("needle-[0-9]+", ("-i", "-E"), 2.0),
        # No text that has to occur in a hit, for which both would look first; still 256 MB in half a second.
        ("(needle|haystack)-4", ("-i", "-E"), 3.0),
    ):
        yield _search(busy, log, run, typed, flags, promise, rounds)


def _fill_in(terminal: Terminal, text: str) -> None:
    """Type into a field and let it be drawn, so that only what Enter does is measured."""
    terminal.type(text)
    time.sleep(_TYPED_SECONDS)
    terminal.forget()


def _search(
    busy: Path, log: Path, run: int, typed: str, flags: tuple[str, ...], promise: float, rounds: int
) -> Comparison:
    found, grepped = [], []
    with _opened(busy, f"run:{run}", b"following") as terminal:
        for _round in range(rounds):
            terminal.type("g")
            terminal.until(b"THE-VERY-FIRST-LINE")
            _fill_in(terminal, f"/{typed}")
            began = time.perf_counter()
            terminal.type("\r")
            found.append(terminal.until(b"holds ") - began)
            began = time.perf_counter()
            subprocess.run(["grep", "-a", *flags, typed, log], check=True, stdout=subprocess.DEVNULL)
            grepped.append(time.perf_counter() - began)
    return Comparison(
        "console",
        f"{_SEARCHED >> 20} MB searched for {typed}",
        statistics.median(found),
        f"grep {' '.join(flags)}",
        statistics.median(grepped),
        promise,
    )


def _make_sparse(log: Path, size: int) -> None:
    with log.open("wb") as stream:
        stream.write(b"THE-VERY-FIRST-LINE\n" + b"then many more\n" * 1000)
        stream.seek(size)
        stream.write(b"\n" + b"and many before\n" * 1000 + b"THE-VERY-LAST-LINE\n")


def _make_searchable(log: Path, size: int) -> None:
    block = b"".join(
        b"2026-03-14 03:14:07 step %d loss %.5f, and a plan for what to try next\n" % (n, 1 / (n + 1))
        for n in range(20_000)
    )
    with log.open("wb") as stream:
        stream.write(b"THE-VERY-FIRST-LINE\n")
        while stream.tell() < size:
            stream.write(block)
        stream.write(_NEEDLE)


@contextmanager
def _played(folder: Path) -> Iterator[None]:
    """An engine that is played beside, with logs that grow."""
    command = [sys.executable, "-m", "benchmarks.console_world", str(folder), str(_LINES_PER_SECOND)]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def _opened(folder: Path, screen: str, marker: bytes) -> Iterator[Terminal]:
    with _started(Terminal([sys.executable, *_console(folder, screen)]), marker) as terminal:
        yield terminal


@contextmanager
def _started(terminal: Terminal, marker: bytes) -> Iterator[Terminal]:
    try:
        terminal.until(marker)
        yield terminal
    finally:
        terminal.close()
