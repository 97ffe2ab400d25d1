"""What is asked before runs are touched: which they are, and what it does to the statistics."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from console import wording
from console.tui.painting import Pieces, foreign
from state.records import Run

_REROLL_WARNING = (
    "Another chance for these seeds makes the result look better than one try would have been."
    " They count as re-rolled, and the exported row says so."
)


def relaunch_question(found: Sequence[Run], rerolls: Sequence[Run], width: int) -> tuple[Pieces, ...]:
    """What a relaunch touches, told apart by what it does to the statistics."""
    free = [run for run in found if run not in rerolls]
    lines: list[Pieces] = []
    if free:
        lines += [
            ((f"{wording.plural(len(free), 'run')} lost to infrastructure or never started", "strong"),)
        ]
        lines += _named(free, width)
        lines += [(("Launching them again changes no statistics.", "dim"),)]
    if rerolls:
        lines += [()] if lines else []
        lines += [((f"{wording.plural(len(rerolls), 'run')} ended by the agent's own doing", "warn"),)]
        lines += _named(rerolls, width)
        lines += [((text, "warn"),) for text in textwrap.wrap(_REROLL_WARNING, max(20, width - 4))]
    return tuple(lines)


def stop_question(found: Sequence[Run], width: int) -> tuple[Pieces, ...]:
    """What stopping touches."""
    live = sum(run.is_live for run in found)
    lines: list[Pieces] = [((f"{wording.plural(len(found), 'run')}, {live} of them running", "strong"),)]
    return (*lines, *_named(found, width), (("Their agents are ended; what they have left is kept.", "dim"),))


def classify_question(found: Sequence[Run], width: int) -> tuple[Pieces, ...]:
    """What a correction touches."""
    return tuple(_named(found, width))


def _named(found: Sequence[Run], width: int) -> list[Pieces]:
    lines: list[Pieces] = []
    for run in found[:8]:
        why = wording.FAILURE_WORDS[run.failure_class] if run.failure_class else run.outcome or run.state
        name = foreign(run.competition_id, min(46, width - 34))
        lines.append(((f"  {name} seed {run.seed}  ", "text"), (why.replace("_", " "), "dim")))
    if len(found) > 8:
        lines.append(((f"  and {len(found) - 8} more", "dim"),))
    return lines
