"""The signs of the screens and their ASCII twins, each one cell wide; colours never speak alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Signs:
    """One set of signs; letters are the same in both."""

    running: str = "▶"
    queued: str = "…"
    paused: str = "‖"
    done: str = "✓"
    stopped: str = "■"
    failed: str = "!"
    above_median: str = "^"
    below_median: str = "v"
    invalid: str = "x"
    no_submission: str = "0"
    reroll: str = "*"
    marked: str = "●"
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
    enter: str = "⏎"
    bar_full: str = "█"
    bar_parts: str = " ▏▎▍▌▋▊▉"
    bar_empty: str = "·"
    times: str = "×"


UNICODE = Signs()
ASCII = Signs(
    running=">",
    queued=".",
    paused="p",
    done="+",
    stopped="#",
    marked="@",
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
    enter="Enter",
    bar_full="#",
    bar_parts=" ",
    bar_empty=".",
    times="x",
)
