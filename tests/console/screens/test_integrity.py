"""The integrity screen shows findings by suspicion with their evidence, leads to the code, and takes reviews."""

from __future__ import annotations

from typing import Any

from mlebench_console.console.screens.integrity import hit_pieces
from mlebench_console.engine.requests import ReviewFinding
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole


async def on_integrity(console: ShownConsole) -> None:
    await console.sees("aide-o3")
    await console.press("enter")
    await console.sees("seeds complete")
    await console.press("i")
    await console.sees("flagged")


async def test_findings_are_listed_the_gravest_first_with_both_passages(opened: OpenConsole) -> None:
    async with opened(worlds.suspected, screen="board", size=(160, 48)) as console:
        await on_integrity(console)
        text = console.text()
        lines = [
            line
            for line in text.splitlines()
            if line.lstrip("▎ ").startswith(("high", "suspicious", "cleared"))
        ]
        assert [line.lstrip("▎ ").split()[0] for line in lines] == ["high", "high", "suspicious", "cleared"]
        assert "kaggle.com/code/ann/titanic-top-3:41-45" in text
        assert "similarity 0.91, containment 0.97, matched tokens 1,412" in text
        side_by_side = next(line for line in text.splitlines() if line.count("def make_features") == 2)
        assert "41" in side_by_side
        await console.press("j")
        await console.sees("ids of the test set 60", "the file is no longer there")
        assert "\x1b" not in console.text()


async def test_notes_are_shown_on_demand_and_words_filter(opened: OpenConsole) -> None:
    async with opened(worlds.suspected, screen="board") as console:
        await on_integrity(console)
        assert "1 note not shown: v" in console.text()
        await console.press("v")
        await console.sees("pretrained weights")
        await console.press("slash", *"kernel", "enter")
        await console.misses("pretrained weights")
        await console.press("escape")
        await console.sees("pretrained weights")
        await console.press("escape")
        await console.sees("seeds complete")


async def test_enter_opens_the_code_at_the_passage(opened: OpenConsole) -> None:
    async with opened(worlds.suspected, screen="board") as console:
        await on_integrity(console)
        await console.press("enter")
        await console.sees("out = df[cols]", "/state/runs/aide-o3-lite")
        first = next(line for line in console.text().splitlines() if "def make_features" in line)
        assert first.split()[0] == "3"
        await console.press("escape", "j", "enter")  # the file of this one is gone
        await console.sees("Timeline")
        await console.press("escape")
        await console.sees("flagged")


async def test_a_finding_is_cleared_with_a_reason_from_the_keyboard(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(worlds.suspected, screen="board") as console:
        await on_integrity(console)
        await console.press("c", "enter")
        await console.sees("a review needs a reason")
        assert asked == []
        await console.press("c", *"mine", "enter")
        await console.until(lambda: asked)
        first = asked[0]
        assert isinstance(first, ReviewFinding) and (first.cleared, first.reason) == (True, "mine")
        await console.press("j", "C", *"typed", "enter")
        await console.until(lambda: len(asked) == 2)
        assert (asked[1].cleared, asked[1].reason) == (False, "typed")
        assert asked[1].finding != first.finding
        await console.press("c", "escape")
        assert len(asked) == 2


async def test_a_read_only_console_takes_no_review(opened: OpenConsole) -> None:
    async with opened(worlds.suspected, screen="board", readonly=True) as console:
        await on_integrity(console)
        await console.press("c")
        await console.sees("read-only")


async def test_it_says_that_nobody_has_looked(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="sweep:openhands-lite") as console:
        await console.sees("openhands-lite")
        await console.press("i")
        await console.sees("nobody has looked at these runs yet")
        await console.sees("mlebench-console integrity run openhands-lite")
        await console.press("escape", "colon", *"integrity show", "enter")
        await console.sees("all runs")


async def test_a_passage_is_shown_with_the_lines_of_its_file_around_it(opened: OpenConsole) -> None:
    async with opened(worlds.suspected, screen="board", size=(160, 48)) as console:
        await on_integrity(console)
        # The passage is lines 3 to 7.
        await console.sees(
            "1 import openai", "3 def make_features(df, cols):", "8 x = 1", "written 2026-03-14 00:44"
        )
        await console.sees(
            ">    7     return out", "c clears it and C confirms it with a reason that is disclosed"
        )
        world = console.world
        assert world is not None
        (code,) = (path for path in world.places.state_dir.rglob("code/train.py") if "aerial" in str(path))
        code.write_text("it was changed since\n" * 20)
        await console.press("j", "k")
        await console.misses("8 x = 1")
        # What is there now is not what was looked at.
        await console.sees(">    7     return out", "the file has changed since")
        assert "it was changed since" not in console.text()


def test_a_passage_that_is_a_part_of_its_line_is_highlighted_in_it() -> None:
    assert hit_pieces("canary", "  x = 'canary'\x1b[2J") == (
        ("  x = '", "text"),
        ("canary", "hit"),
        ("'^[[2J", "text"),
    )
    assert hit_pieces("x = 1", "    x = 1") == (("    x = 1", "text"),)
    assert hit_pieces("cut", "") == (("cut", "text"),)


async def test_nothing_is_called_unflagged_that_nobody_has_looked_at(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board") as console:
        await console.sees("ours: aide-o3")
        await console.press("enter", "i")
        await console.sees("0 of 66 runs looked at")
        assert "0 flagged" not in console.text()
