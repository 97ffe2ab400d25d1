"""Relaunching, stopping and classifying runs from any screen: what can be, what is asked first, what is told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from console import wording
from console.actions.questions import classify_question, relaunch_question, stop_question
from console.screens.classify import ClassifyScreen, Verdict
from console.screens.confirm import ConfirmScreen
from state.lifecycle import FailureClass, RunState
from state.records import Run
from state.transitions import is_reroll

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

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
    ask = partial(app.errands.ask, "run.relaunch", {"run_ids": [run.id for run in ended]})
    app.confirm(ConfirmScreen(title, lines, "yes, relaunch"), ask)


def stop(app: ConsoleApp, found: Sequence[Run]) -> None:
    """Ask whether the live and queued ones among these runs are to be stopped."""
    going = [run for run in found if run.is_live or run.state is RunState.QUEUED]
    if not going:
        app.say("only runs that are queued or running can be stopped")
        return
    lines = stop_question(going, min(app.size.width - 12, _QUESTION_WIDTH))
    ask = partial(app.errands.ask, "run.stop", {"run_ids": [run.id for run in going]})
    app.confirm(ConfirmScreen(f"Stop {wording.plural(len(going), 'run')}?", lines, "yes, stop"), ask)


def classify(app: ConsoleApp, found: Sequence[Run]) -> None:
    """Let the class of the failed ones among these runs be corrected."""
    failed = [run for run in found if run.state is RunState.FAILED]
    if not failed:
        app.say("only runs that have failed have a class")
        return
    lines = classify_question(failed, min(app.size.width - 12, _QUESTION_WIDTH))

    def ask(verdict: Verdict | None) -> None:
        if verdict is not None:
            wanted = {"class": verdict.kind.value, "note": verdict.note}
            app.errands.ask("run.classify", {"run_ids": [run.id for run in failed]} | wanted)

    title = f"What did {wording.plural(len(failed), 'run')} fail of?"
    current = failed[0].failure_class or FailureClass.UNKNOWN
    app.push_screen(ClassifyScreen(title, lines, current), ask)
