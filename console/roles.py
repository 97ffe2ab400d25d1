"""What all drawing shares, for screens and commands: the roles of text, the signs, and the context of a drawing.

A role says what a text means, such as an outcome; `console.tui.theme` has the style of each role. Nothing here or in
`console.pieces` depends on Textual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mlebench_console.competitions.medals import Thresholds

Role = Literal[
    "text",
    "strong",
    "dim",
    "faint",
    "accent",
    "gold",
    "silver",
    "bronze",
    "good",
    "running",
    "warn",
    "invalid",
    "bad",
    "mark",
    "hit",
]

Piece = tuple[str, Role]
Pieces = tuple[Piece, ...]


@dataclass(frozen=True)
class Signs:
    """A set of signs, Unicode or ASCII; letters are the same in both."""

    running: str = "▶"
    queued: str = "…"
    paused: str = "‖"
    done: str = "✓"
    stopped: str = "■"
    failed: str = "!"
    above_median: str = "^"
    below_median: str = "v"
    invalid: str = "x"
    no_submission: str = "∅"
    reroll: str = "*"
    marked: str = "●"
    noted: str = "✎"
    cursor: str = "▎"
    rule: str = "─"
    level: str = "┄"
    dot: str = "·"
    ellipsis: str = "…"
    plus_minus: str = "±"
    pointer: str = "▲"
    left: str = "◄"
    right: str = "►"
    up: str = "↑"
    down: str = "↓"
    ascending: str = "▴"
    descending: str = "▾"
    enter: str = "⏎"
    bar_full: str = "█"
    bar_chosen: str = "═"
    bar_parts: str = " ▏▎▍▌▋▊▉"
    bar_empty: str = "·"
    bar_segment: str = "━"
    bar_begin: str = "╺"
    now: str = "│"
    expected: str = "┊"
    axis: str = "│"
    tick: str = "┤"
    times: str = "×"
    to: str = "–"

    @property
    def has_braille(self) -> bool:
        """Whether curves can be drawn of dots."""
        return not self.axis.isascii()


UNICODE = Signs()
ASCII = Signs(
    running=">",
    queued=".",
    paused="p",
    done="+",
    stopped="#",
    no_submission="n",
    marked="@",
    noted='"',
    cursor="|",
    rule="-",
    level="-",
    dot="-",
    ellipsis="~",
    plus_minus="+/-",
    pointer="^",
    left="<",
    right=">",
    up="^",
    down="v",
    ascending="/",
    descending="\\",
    enter="Enter",
    bar_full="#",
    bar_chosen="#",
    bar_parts=" ",
    bar_empty=".",
    bar_segment="=",
    bar_begin="[",
    now="|",
    expected=":",
    axis="|",
    tick="|",
    times="x",
    to="-",
)


@dataclass(frozen=True)
class Drawing:
    """What any drawing depends on besides what it draws.

    Attributes:
        now: the moment for which it is drawn, in seconds since 1970.
        keys: returns the name of the first key of an action, given the action's id; a command has no keys.
        width: how many cells a line has; 0 where nothing is laid out.
    """

    now: float
    signs: Signs = UNICODE
    keys: Callable[[str], str] = str
    width: int = 0

    def within(self, width: int) -> Drawing:
        """Return the same for lines of another width."""
        return replace(self, width=width)


def better_arrow(thresholds: Thresholds, signs: Signs) -> str:
    """Return the arrow in the direction of better scores."""
    return signs.down if thresholds.is_lower_better else signs.up
