"""The pane beside a list in a wide terminal: what it says of what is under the cursor, and what that costs."""

from __future__ import annotations

from typing import Any

import pytest

from mlebench_console.console.tui.session import read_session
from mlebench_console.console.tui.widgets.line_list import LineList
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole

SWEEP = "sweep:aide-o3-lite"
WIDE = (160, 48)


def pane(console: ShownConsole) -> str:
    """What is right of the rule between list and pane."""
    lines = console.text().splitlines()
    return "\n".join(line.partition("│ ")[2] for line in lines if "│ " in line)


async def test_a_run_is_shown_with_its_scores_resources_attempts_and_last_lines(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=WIDE) as console:
        await console.press("f", "left", "left", "down", "down", "down", "down", "down", "right", "right")
        await console.sees("dogs-vs-cats-redux-kernels-edition seed 3")
        await console.until(lambda: "score over time" in pane(console) and "── log" in pane(console))
        shown = pane(console)
        for part in ("dogs-vs-cats", "now silver", "gold ", "median ", "memory", "GPU busy", "attempts"):
            assert part in shown
        assert "fixed the label encoder, going on" in shown and "\x1b" not in shown


async def test_a_failure_is_shown_with_all_of_its_cause(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=WIDE) as console:
        await console.press("f")
        await console.until(lambda: "GPU lost: Failed to initialize NVML" in pane(console))
        assert "infrastructure" in pane(console)


async def test_without_room_beside_a_low_matrix_the_run_is_shown_below_it(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=(120, 44)) as console:
        await console.sees("▶ 4 running (1 no valid)", "── under the cursor", "── log", "HIGH")
        await console.press("f")
        await console.until(lambda: "GPU lost" in below(console) and "── log" in below(console))
        assert below(console).splitlines()[1].startswith(" !i failed 20:14/24h")
        await console.press("v")
        await console.misses("under the cursor")


def below(console: ShownConsole) -> str:
    """What is below the matrix, without the line about the run and the footer."""
    return "\n".join(console.text().partition("── under the cursor")[2].splitlines()[:-2])


async def test_the_pane_follows_the_cursor_and_asks_nothing_on_its_way(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlebench_console.console.views import run

    asked: list[int] = []
    real = run.run_facts

    def run_facts(database: Any, run_id: int, config_file: Any, now: float) -> run.RunFacts:
        asked.append(run_id)
        return real(database, run_id, config_file, now)

    monkeypatch.setattr(run, "run_facts", run_facts)
    async with opened(screen=SWEEP, size=WIDE) as console:
        await console.until(lambda: "── log" in pane(console))
        asked.clear()
        for _key in range(4):
            console.app.screen.query_one(LineList).action_cursor(1)
        await console.until(lambda: "dog-breed-identification" in pane(console))
        assert len(set(asked)) == 1


async def test_a_key_hides_the_pane_and_that_is_remembered(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=WIDE) as console:
        await console.until(lambda: "── log" in pane(console))
        await console.press("w")
        await console.misses("── log")
        console.app._keep_session()
        assert read_session(console.app.places.state_dir).screens["sweep"]["detail"] == "hidden"
        await console.press("w")
        await console.until(lambda: "── log" in pane(console))
        await console.pilot.resize_terminal(120, 30)
        await console.misses("── log")
        await console.press("w")
        await console.sees("from 150 columns on")


async def test_what_a_file_holds_is_not_asked_of_a_hidden_pane(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_files(facts: Any) -> None:
        pytest.fail(f"the files of run {facts.run.id} were read")

    monkeypatch.setattr("mlebench_console.console.screens.run.summary.read_files", read_files)
    async with opened(screen=SWEEP, size=(140, 30)) as console:
        await console.sees("LOW")
        await console.press("down", "down")
        await console.pilot.pause(0.3)


async def test_a_row_of_the_board_is_shown_with_its_measures_its_places_and_the_seeds_of_competitions(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.demo, screen="board", size=WIDE) as console:
        await console.press("g")
        await console.until(lambda: "6 with missing seeds" in pane(console))
        assert "synthetic data" in pane(console) and "leaf-classification" in pane(console)
        await console.press("down", "down")
        await console.until(lambda: "Famou-Agent 2.0" in pane(console))
        assert "64.4 ±1.2" in pane(console) and "missing" not in pane(console)
    async with opened(worlds.scored, screen="board", size=WIDE) as console:
        await console.press("g")
        await console.until(lambda: "no seed is missing" in pane(console))
        assert "place 20 of 29" in pane(console) and "behind   R&D-Agent, o3 + GPT-4.1" in pane(console)
        assert "aptos2019-blindness-detection" in pane(console) and "v x G" in pane(console)


async def test_a_dataset_is_shown_beside_the_list_and_not_below_it(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data", size=WIDE) as console:
        await console.press("down", "down", "down")
        await console.until(lambda: "7.4 GB" in pane(console) and "expected" in pane(console))
        below = console.text().splitlines()[-8:]
        assert not any("checksum" in line and "│" not in line for line in below)


async def test_beside_the_pane_the_dense_view_shows_every_name_of_the_benchmark_whole(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.large, screen="sweep", size=(200, 60)) as console:
        await console.sees("google-research-identify-contrails-reduce-global-warming", "attempts")
        await console.press("v")
        await console.sees("state ▾")
        await console.press("v")
        await console.sees("google-research-identify-contrails-reduce-global-warming", "MEDIUM")


async def test_beside_its_log_a_run_with_a_single_score_shows_where_it_stands_and_what_it_ran_with(
    opened: OpenConsole,
) -> None:
    async with opened(screen="run:48", size=(200, 60)) as console:
        await console.sees(
            "submissions", "better", "exactly what silver needs", "configuration", "bubblewrap"
        )
