"""The screens of code: files at a submission, and what differs between two of them."""

from __future__ import annotations

from mlebench_console.console.roles import Drawing
from mlebench_console.console.screens.code import CodeLines
from mlebench_console.console.views.code import DiffLine
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.state import runs
from mlebench_console.state.lifecycle import Outcome
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.world import World


async def test_the_best_submission_leads_to_its_code_and_the_code_to_its_files(opened: OpenConsole) -> None:
    async with opened(worlds.coded, screen="run:1") as console:
        await console.press("tab", "tab")
        await console.sees("2 best", "3 now")
        await console.press("tab", "v")
        await console.sees("submission 2, run 1 (best)", "1@2", "weights.pt", "it is binary")
        # The script that runs first is shown first.
        await console.sees("boost(depth=2")
        await console.press("enter")
        await console.sees(" main.py", "boost(depth=2")
        await console.press("escape", "right_square_bracket")
        await console.sees("submission 3", "bronze", "boost(depth=3")
        await console.press("right_square_bracket")
        await console.sees("run 1 (as it is now)")
        assert "] after" not in console.text()
        await console.press("right_square_bracket")
        await console.sees("there is no later submission")


async def test_two_marked_submissions_are_compared_the_earlier_one_first(opened: OpenConsole) -> None:
    async with opened(worlds.coded, screen="run:1") as console:
        await console.press("tab", "tab")
        await console.sees("2 best")
        await console.press("space", "j", "j", "space", "d")
        await console.sees(
            "- submission 1", "+ submission 3", "boost(depth=1", "boost(depth=3", "1 differs, 2 the same"
        )
        await console.press("x")
        await console.sees("- submission 3", "+ submission 1")


async def test_a_submission_is_compared_with_the_one_before_it(opened: OpenConsole) -> None:
    async with opened(worlds.coded, screen="run:1") as console:
        await console.press("tab", "tab")
        await console.sees("2 best")
        await console.press("d")
        await console.sees("- submission 2", "+ submission 3")
        await console.press("escape", "G", "d")
        await console.sees("there are no two submissions to compare")


async def test_two_marked_runs_are_compared_and_files_are_reached_by_key(opened: OpenConsole) -> None:
    async with opened(worlds.coded, screen="sweep:aide-o3-lite", size=(80, 24)) as console:
        await console.sees("LOW")
        await console.press("d")
        await console.sees("mark two runs")
        await console.press("space", "right", "d")
        await console.sees(
            "- submission 2, run 1 (best)", "+ submission 1, run 2 (best)", "seed  ", "4 differ, 1 the same"
        )
        await console.press("n")
        await console.sees("main.py", "- x0 = features", "- x11 = features")
        await console.press("n", "n", "n", "n")
        await console.sees("there is no later file")
        await console.press("N")
        await console.sees("+ import torch")


async def test_code_that_is_gone_is_told_where_it_would_be(opened: OpenConsole, places: Places) -> None:
    async with opened(worlds.coded, screen="run:1") as console:
        (manifest,) = places.runs_dir.glob(f"*/*/seed-1/attempt-1/{protocol.CODE_SNAPSHOTS}/2.json")
        manifest.unlink()
        await console.press("v")
        await console.sees("the code at submission 2 of run 1 is not there")
        await console.press("d")
        await console.sees("configuration", "is not there")


async def test_what_is_compared_can_be_said(opened: OpenConsole) -> None:
    async with opened(worlds.coded, screen="overview") as console:
        await console.sees("needs you")
        await console.press("colon", *"runs diff 1", "at", *"1 2", "enter")
        await console.sees("- submission 1, run 1", "+ submission 1, run 2 (best)")
        await console.press("colon", *"runs code 2", "enter")
        await console.sees("submission 1, run 2 (best)", "src/train.py")
        await console.press("colon", *"runs diff 1 9", "enter")
        await console.sees("there is no run 9")


async def test_hostile_names_and_lines_are_made_visible(opened: OpenConsole) -> None:
    def hostile(places: Places) -> World:
        world = worlds.coded(places)
        attempt = runs.attempts(world.database, 1)[0].id
        world.snapshot(attempt, 4, 0.5, Outcome.BELOW_MEDIAN, ago=600)
        name = "\x1b]0;x\x07\u202egnp.py"
        world.code(attempt, 4, {name: "\x1b[2Jprint('\u202e')\t\x9b31m\n[bold]text\n" + "y" * 5000})
        return world

    async with opened(hostile, screen="run:1", size=(120, 80)) as console:
        await console.press("tab", "tab")
        await console.sees("4 now")
        await console.press("d")
        await console.sees("<OSC>", "<U+202E>gnp.py", "^[[2Jprint('<U+202E>')", "[bold]text")
        await console.press("w")
        await console.sees("yyyy")
        assert "\x1b" not in console.text() and "\u202e" not in console.text()
        await console.press("escape", "v")
        await console.sees("<U+202E>gnp.py")


async def test_the_file_under_the_cursor_is_shown_below_the_list(opened: OpenConsole) -> None:
    async with opened(worlds.coded, screen="run:1") as console:
        await console.sees("Submissions")
        await console.press("tab", "tab", "j", "v")
        await console.sees("1  import pandas as pd", "model = boost(depth=2")
        # At the submission before it was another one.
        await console.press("left_square_bracket")
        await console.sees("submission 1", "model = boost(depth=1")
        await console.press("k")
        await console.sees("1  id,fold", "3  2,1")


def test_the_difference_of_long_lines_is_not_cut_off() -> None:
    rows = [DiffLine("-", 1, None, "x = " + 90 * "a" + "1"), DiffLine("+", None, 1, "x = " + 90 * "a" + "2")]
    drawn = [
        "".join(text for text, _ in pieces).rstrip()
        for pieces in CodeLines().below(rows, Drawing(0.0, width=80))
    ]
    assert drawn[0].endswith("a1") and drawn[1].endswith("a2")
