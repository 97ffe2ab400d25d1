"""The run screen: its log follows, pauses and searches, and every pane shows its facts."""

from __future__ import annotations

from typing import Any

import pytest

from console.screens.run import RunScreen
from engine.places import Places
from environment.runner import protocol
from foundation import jsonlines
from tests.console.conftest import OpenConsole

SWEEP = "sweep:aide-o3-lite"


async def test_the_log_follows_pauses_and_searches(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="run:81") as console:
        await console.sees("following", "fixed the label encoder")
        await console.press("k", "k")
        await console.sees("paused")
        log = next(places.runs_dir.glob(f"aide-o3-lite/dogs*/seed-3/attempt-1/{protocol.LOG}"))
        with log.open("a") as stream:
            stream.write("one\ntwo\nthe end\n")
        await console.sees("paused, +3 lines")
        await console.press("G")
        await console.sees("the end", "following")
        await console.press("g", "slash", *"shapes", "enter")
        await console.sees("paused")
        await console.press("n", "N", "e", "E", "w")
        await console.sees("wrap")
        await console.press("w", "right")
        await console.sees("from column 21")


async def test_submissions_are_shown_with_how_often_the_agent_had_its_file_checked(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("f", "enter")
        await console.sees("infrastructure  GPU lost")
        screen = console.app.screen
        assert isinstance(screen, RunScreen) and screen._facts is not None
        directory = screen._facts.directory
        assert directory is not None
        directory.mkdir(parents=True, exist_ok=True)
        jsonlines.append(directory / protocol.VALIDATIONS, [{"time": 1.0e9, "valid": True}] * 3)
        await console.press("tab", "tab")
        await console.sees("3 validations by the agent, the last ")


async def test_a_wrong_expression_is_told(opened: OpenConsole) -> None:
    async with opened(screen="run:5") as console:
        await console.sees("Timeline")
        await console.press("tab", "shift+tab", "slash", "left_parenthesis", "enter")
        await console.sees("is not a regular expression")


async def test_every_pane_shows_its_facts(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("f", "enter")
        await console.sees("infrastructure  GPU lost")
        for seen in (
            "events",
            "no submission yet",
            "nothing has been measured yet",
            "not counted",
            "run.log",
            "aide-o3",
        ):
            await console.press("tab")
            await console.sees(seen)
        await console.press("Y")
        await console.sees("copied")
        await console.press("r")
        await console.sees("changes no statistics")
        await console.press("n", "s")
        await console.sees("can be stopped")
        await console.press("escape")
        await console.until(lambda: not isinstance(console.app.screen, RunScreen))


async def test_a_score_stands_with_its_better_direction_and_the_teams_that_it_beats(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("competitions.leaderboards.scores_of", lambda _: (0.01, 0.02, 0.06, 0.5))
    async with opened(screen="run:81") as console:
        await console.sees("0.05038 \N{DOWNWARDS ARROW}", "better than 50.0 % of the teams on Kaggle")


async def test_the_sweep_tells_the_rank_of_the_run_under_the_cursor(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("competitions.leaderboards.scores_of", lambda _: (0.99, 0.95, 0.5))
    async with opened(screen=SWEEP, ascii_only=True) as console:
        await console.sees("LOW")
        await console.press("j", "right")
        await console.sees("score 0.93051 ^", "beats 33.3 % of teams")


async def test_the_timeline_says_how_long_the_attempt_at_work_takes_already(opened: OpenConsole) -> None:
    async with opened(screen="run:81") as console:
        await console.press("tab")
        await console.sees("16h02m", "attempt  began")
        line = next(line for line in console.text().splitlines() if "2026-03-13 11:12  16h02m" in line)
        assert line.split()[-1] == "running"


async def test_a_failed_run_awaits_no_grading(opened: OpenConsole) -> None:
    async with opened(screen="run:49") as console:
        await console.sees("nothing graded", "agent crash")
        assert "nothing graded yet" not in console.text()


async def test_what_was_asked_for_is_written_out_however_narrow_the_terminal_is(opened: OpenConsole) -> None:
    async with opened(screen="run:81", size=(80, 40)) as console:
        await console.sees("Config")
        await console.press("shift+tab")
        await console.sees("known defect", "directory")
        assert (
            console.app.signs.ellipsis not in console.text().partition("directory")[2].partition("metric")[0]
        )
        assert "attempt-1" in console.text().replace("\n", "")
