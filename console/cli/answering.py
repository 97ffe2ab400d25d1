"""Telling what the engine answered to a request, and asking a person before one that loses something."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from console.cli.output import say, say_json
from foundation.problems import UsageProblem

if TYPE_CHECKING:
    from engine.control import Answer


def say_answer(answer: Answer, *, json: bool, **more: Any) -> None:
    """Tell an answer; `more` stands in the JSON beside it."""
    if json:
        say_json(asdict(answer) | more)
    else:
        say(answer.text)


def confirm(question: str, told: str, unasked: UsageProblem) -> None:
    """Tell what is at stake and ask; where nobody can be asked, refuse instead.

    Raises:
        UsageProblem: `unasked`, because there is no terminal.
        Abort: the answer was no.
    """
    if not sys.stdin.isatty():
        raise unasked
    say(told)
    typer.confirm(question, abort=True)
