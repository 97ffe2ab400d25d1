"""The words of `/` choose runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.screens.grade import best_fits
from console.views.lists import words_accept
from console.views.sweep import parse_filter
from state.lifecycle import FailureClass, Outcome, RunState
from state.records import Run

QUEUED = Run(
    id=1, sweep_id="s", competition_id="leaf-classification", seed=2, state=RunState.QUEUED, outcome=None,
    failure_class=None, failure_text="", standing=None, score=None, valid=None, attempts=0, rerolls=0,
    queued_at=0.0, started_at=None, ended_at=None, last_activity_at=None, submissions=0, position=0,
)  # fmt: skip
FAILED = replace(
    QUEUED, state=RunState.FAILED, failure_class=FailureClass.INFRASTRUCTURE, failure_text="GPU lost", seed=1
)
GOLD = replace(QUEUED, state=RunState.FINISHED, outcome=Outcome.GOLD, standing=Outcome.GOLD)
RUNNING = replace(QUEUED, state=RunState.RUNNING, standing=Outcome.ABOVE_MEDIAN)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("", [QUEUED, FAILED, GOLD, RUNNING]),
        ("state:failed", [FAILED]),
        ("state:fail", [FAILED]),
        ("!state:failed", [QUEUED, GOLD, RUNNING]),
        ("class:infra", [FAILED]),
        ("state:live", [RUNNING]),
        ("seed:1", [FAILED]),
        ("split:low seed:2", [QUEUED, GOLD, RUNNING]),
        ("split:high", []),
        ("outcome:medal", [GOLD]),
        ("outcome:gold", [GOLD]),
        ("standing:above", [RUNNING]),
        ("leaf !gpu", [QUEUED, GOLD, RUNNING]),
        ("LEAF", [QUEUED, FAILED, GOLD, RUNNING]),
        ("class:", []),
        ("!", [QUEUED, FAILED, GOLD, RUNNING]),
    ],
)
def test_a_filter_chooses(text: str, accepted: list[Run]) -> None:
    assert [
        run for run in (QUEUED, FAILED, GOLD, RUNNING) if parse_filter(text).accepts(run, "low")
    ] == accepted


def test_a_field_that_does_not_exist_is_told() -> None:
    assert parse_filter("sate:failed leaf").unknown == ("sate",)


def test_words_choose_and_negate() -> None:
    assert words_accept("leaf prep", "leaf-classification", "prepared")
    assert not words_accept("leaf !prep", "leaf-classification", "prepared")


def test_names_are_found_by_a_part_and_else_by_letters() -> None:
    names = ("spooky-author-identification", "spaceship-titanic", "leaf-classification")
    assert best_fits("titan", names) == ("spaceship-titanic",)
    assert best_fits("spid", names) == ("spooky-author-identification",)
    assert best_fits("zzz", names) == ()
