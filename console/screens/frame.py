"""The lines around every screen's body, made from the situation: first line, notices, footer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console import wording
from console.sanitize import plain
from console.tui.key_table import Context, Key
from console.tui.keys import KeyTable, shown
from console.tui.painting import (
    Pieces,
    cut,
    foreign,
    spread,
    spread_fitting,
    width_of,
)
from console.tui.signs import Signs
from console.tui.theme import Role
from console.views.condition import Condition, Health
from engine.notifications.news import LOW_DISK_SHARE

if TYPE_CHECKING:
    from engine.control import EngineStatus

# A file system that has not answered for so long is worth a line.
STALLED_SECONDS = 3.0
# The engine writes its status every other second; with this age it hangs.
SILENT_SECONDS = 20.0
_FIRST_TITLES = 6

SCREENS: tuple[tuple[str, str, str], ...] = (
    ("overview", "1", "Overview"),
    ("sweep", "2", "Sweep"),
    ("data", "3", "Data"),
    ("grade", "4", "Grade"),
    ("board", "5", "Board"),
    ("host", "6", "Host"),
    ("launch", "7", "Launch"),
    ("events", "8", "Events"),
    ("settings", "9", "Settings"),
)


@dataclass(frozen=True)
class Situation:
    """How things are around every screen."""

    now: float
    condition: Condition
    stalled_seconds: float
    engine: EngineStatus | None
    demo: bool
    readonly: bool
    signs: Signs
    ascii_only: bool


def top_line(found: Situation, mode: str, width: int) -> Pieces:
    """Where you are, and whether all is well."""
    clock: Pieces = (("   ", "text"), (wording.clock(found.now), "text"), (" ", "text"))
    return spread_fitting(
        [_places(mode, titles) for titles in (len(SCREENS), _FIRST_TITLES, 0)],
        [(*_health(found, words), *clock) for words in (3, 2, 1, 0)],
        width,
    )


def _places(mode: str, titles: int) -> Pieces:
    """The digits of the screens, the first ones with their titles."""
    pieces: list[tuple[str, Role]] = [(" ", "text")]
    for place, (name, key, title) in enumerate(SCREENS):
        if name == mode:
            pieces += [(key, "accent"), (f" {title}", "strong"), ("  ", "text")]
        elif place < titles:
            pieces += [(key, "dim"), (f" {title}", "dim"), ("  ", "text")]
        else:
            pieces += [(key, "dim"), (" ", "text")]
    return tuple(pieces)


def _health(found: Situation, words: int) -> Pieces:
    """How all is, in `words` of detail: 0 only what is wrong, 3 everything."""
    engine, dot = found.engine, f" {found.signs.dot} "
    pieces: list[tuple[str, Role]] = []
    if found.readonly:
        pieces += [("read-only", "warn"), (dot, "faint")]
    if found.demo:
        pieces += [("demo", "warn"), (dot, "faint")]
    if found.condition.health in (Health.ABSENT, Health.UNKNOWN) and (engine is None or not engine.running):
        return (*pieces, ("no engine yet", "dim"))
    if engine is None or not engine.running:
        pieces += [(f"{found.signs.failed} engine down", "bad")]
        return tuple(pieces)
    silent = engine.heartbeat_at is not None and found.now - engine.heartbeat_at > SILENT_SECONDS
    pieces += [("engine silent", "warn") if silent else ("engine ok", "good"), (dot, "faint")]
    pieces += [(f"{engine.live} running", "running" if engine.live else "dim")]
    if words >= 3 and engine.queued:
        pieces += [(dot, "faint"), (f"{engine.queued:,} queued", "dim")]
    free, total = engine.state_disk_free, engine.state_disk_total
    if free is not None and total:
        low = free < LOW_DISK_SHARE * total
        if low or words >= 1:
            text = f"disk {wording.size(free)} free" if words >= 2 else f"disk {wording.size(free)}"
            pieces += [(dot, "faint"), (text, "bad" if low else "dim")]
    return tuple(pieces)


def notices(found: Situation, width: int) -> tuple[Pieces, ...]:
    """Sticky lines: what is wrong, and what kind of data this is."""
    lines: list[Pieces] = []
    problem = found.condition.problem
    if found.stalled_seconds > STALLED_SECONDS:
        since = wording.span(found.stalled_seconds // 5 * 5)
        lines.append(
            _notice(f"the state has not answered for {since}; what you see is from before", "warn", width)
        )
    elif found.condition.health is Health.BAD and problem is not None:
        lines.append(_notice(f"{problem.what}: {problem.why}" if problem.why else problem.what, "bad", width))
        if problem.next_step:
            lines.append(_notice(problem.next_step, "dim", width))
    elif found.engine is not None and found.engine.problem:
        lines.append(_notice(f"engine: {found.engine.problem}", "warn", width))
    elif found.condition.health is Health.GOOD and (found.engine is None or not found.engine.running):
        text = (
            "the engine is not running, start it with :engine (nothing new starts or is graded; agents go on)"
        )
        lines.append(_notice(text, "warn", width))
    if found.demo:
        lines.append(_notice("demo: synthetic data, real thresholds, not a result", "warn", width))
    return tuple(lines)


def _notice(text: str, role: Role, width: int) -> Pieces:
    return ((" ", "text"), (foreign(text, width - 2).rstrip(), role))


def footer_line(keys: KeyTable, contexts: tuple[Context, ...], found: Situation, width: int) -> Pieces:
    """The keys that matter here; what changes something is left out of a read-only console."""
    own = [key for key in keys.footer(*contexts) if not (key.changes and found.readonly)]
    general = [key for key in keys.footer("app") if key not in own]
    left: list[tuple[str, Role]] = [(" ", "text")]
    right: list[tuple[str, Role]] = []
    for key in general:
        right += _key(key, found)
    for key in own:
        piece = _key(key, found)
        if width_of((*left, *piece, *right)) > width:
            break
        left += piece
    return spread(tuple(left), tuple(right), width)


def _key(key: Key, found: Situation) -> list[tuple[str, Role]]:
    return [(shown(key.keys[0], ascii_only=found.ascii_only), "accent"), (f" {key.label}  ", "dim")]


def tiny_lines(width: int, height: int, smallest: tuple[int, int]) -> tuple[Pieces, ...]:
    """What a terminal that is too small shows."""
    text = f"too small: {width}x{height}, needs {smallest[0]}x{smallest[1]}"
    words, lines = plain(text).split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return tuple(cut(((line, "dim"),), width) for line in lines[:height])
