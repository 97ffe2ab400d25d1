"""Relaunching and stopping runs from any screen: which can be, what is asked first, what the engine is told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from console.model import wording
from console.screens.confirm import ConfirmScreen
from console.screens.sweep_lines import relaunch_question, stop_question
from state.lifecycle import RunState
from state.records import Run
from state.transitions import is_reroll

if TYPE_CHECKING:
    from console.app import ConsoleApp

_QUESTION_WIDTH = 86


def relaunch(app: ConsoleApp, found: Sequence[Run]) -> None:
    """Ask whether the ended ones among these runs are to be launched again."""
    ended = [run for run in found if run.has_ended]
    if not ended:
        app.say("only runs that have ended can be relaunched")
        return
    rerolls = [run for run in ended if is_reroll(run)]
    lines = relaunch_question(ended, rerolls, min(app.size.width - 12, _QUESTION_WIDTH))
    title = f"Relaunch {wording.plural(len(ended), 'run')}?"
    ask = partial(app.ask, "run.relaunch", {"run_ids": [run.id for run in ended]})
    app.confirm(ConfirmScreen(title, lines, "yes, relaunch"), ask)


def stop(app: ConsoleApp, found: Sequence[Run]) -> None:
    """Ask whether the live and queued ones among these runs are to be stopped."""
    going = [run for run in found if run.is_live or run.state is RunState.QUEUED]
    if not going:
        app.say("only runs that are queued or running can be stopped")
        return
    lines = stop_question(going, min(app.size.width - 12, _QUESTION_WIDTH))
    ask = partial(app.ask, "run.stop", {"run_ids": [run.id for run in going]})
    app.confirm(ConfirmScreen(f"Stop {wording.plural(len(going), 'run')}?", lines, "yes, stop"), ask)
