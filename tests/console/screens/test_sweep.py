"""The sweep screen on a night of two sweeps: what its keys do, what is marked, and what the operator sees."""

from __future__ import annotations

import json
import time
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.console.cli import program
from mlebench_console.console.lists import SortOrder
from mlebench_console.console.nouns.run import RunRow, draw_run
from mlebench_console.console.roles import Drawing
from mlebench_console.console.screens.dialogs import ConfirmScreen
from mlebench_console.console.screens.run.screen import RunScreen
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.views.sweep import sweep_board
from mlebench_console.engine import control
from mlebench_console.engine.control import Answer
from mlebench_console.engine.needs.causes import CauseKind, cause_now
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import ClassifyRuns, RelaunchRuns, Request, ResumeSweep, StopRuns
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.state import requests, runs, transitions
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import RequestState
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole
from tests.console.world import HOUR, NOW

SWEEP = "sweep:aide-o3-lite"


def cursor_run(console: ShownConsole) -> str:
    return console.text().splitlines()[-2]


def keys_of(console: ShownConsole) -> list[Hashable]:
    return [line.key for line in console.app.screen.query_one(LineList).lines if line.selectable]


async def click(console: ShownConsole, title: str) -> None:
    """Click on the name of a column, over the table or in the matrix."""
    top = console.app.screen.query_one(LineList).region.y
    line = console.text().splitlines()[top]
    await console.pilot.click(offset=(line.index(title), top))
    await console.pilot.pause()


async def test_a_running_cell_shows_what_it_would_get(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("▶ 16:02 [S]", "G 0.93051", "! i infra", "x invalid", "∅ none", "▶ no valid")


def test_a_run_that_overview_wants_looked_at_stands_out_with_a_word_and_a_letter(places: Places) -> None:
    world = worlds.busy(places)
    run = runs.get(world.database, world.run("aide-o3-lite", "dogs-vs-cats-redux-kernels-edition", 3))
    world.database.close()
    limit = 24 * HOUR
    assert draw_run(RunRow(run, limit), Drawing(NOW)).role == "running"
    idle = draw_run(RunRow(replace(run, last_activity_at=NOW - 3 * HOUR), limit), Drawing(NOW))
    assert (idle.role, idle.text, idle.letter, idle.standing) == ("warn", "idle 3h", "z", "[S]")
    late = draw_run(RunRow(replace(run, valid=None), limit), Drawing(NOW + 6 * HOUR))
    assert (late.role, late.text, late.shorter, late.letter) == ("warn", "no valid, 1h left", "no valid", "t")
    stuck = draw_run(RunRow(replace(run, grading_problem="the grader crashed"), limit), Drawing(NOW))
    assert (stuck.role, stuck.text, stuck.letter) == ("warn", "no grade", "g")


async def test_a_change_in_the_state_shows_by_itself(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("▶ 4 running")
        assert console.world is not None
        run = console.world.run("aide-o3-lite", "leaf-classification", 3)
        attempt = runs.latest_attempt(console.world.database, run)
        assert attempt is not None
        console.world.finish(attempt.id, Outcome.GOLD, 0.0, ago=1)
        await console.sees("▶ 3 running", "G 0.00000")


async def test_the_filter_narrows_while_typing_and_escape_clears_it(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("slash", *["colon" if letter == ":" else letter for letter in "class:infra"])
        await console.sees("3 of 45")
        await console.misses("G 0.93051")
        await console.press("enter", "escape")
        await console.sees("G 0.93051")


async def test_the_cursor_never_stands_on_a_run_that_the_filter_hides(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("slash", *["colon" if letter == ":" else letter for letter in "class:infra"])
        await console.press("enter")
        await console.sees("3 of 45")
        found = set()
        for key in ("home", "left", "left", "right", "down", "right", "down", "left", "left", "right"):
            await console.press(key)
            found.add(cursor_run(console))
        assert len(found) == 3 and all("infrastructure" in about for about in found)
        await console.press("s")
        await console.sees("only")
        assert asked == [] and not isinstance(console.app.screen, ConfirmScreen)


async def test_marks_that_the_filter_hides_are_left_out_and_that_is_said(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("a", "slash", *["colon" if letter == ":" else letter for letter in "class:infra"])
        await console.press("enter")
        await console.sees("8 marked (5 hidden, left out)")
        await console.press("r")
        await console.sees("3 runs lost to infrastructure")
        await console.press("y")
        await console.sees("done as you asked")
        assert len(asked[0].runs) == 3
        await console.press("slash", "ctrl+u", *"nothing", "enter", "r")
        await console.sees("the filter hides everything that is marked")
        assert len(asked) == 1


async def test_a_filter_that_is_left_is_as_before(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("slash", "z", "z")
        await console.misses("aptos")
        await console.press("escape")
        await console.sees("aptos")


async def test_marks_are_counted_and_relaunch_tells_infrastructure_from_the_agents_own(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("a")
        await console.sees("8 marked")
        await console.press("r")
        await console.sees(
            "3 runs lost to infrastructure",
            "5 runs that finished or failed by the agent's own doing",
            "count as re-rolled",
        )
        await console.press("enter")
        await console.misses("re-rolled")
        assert asked == [], "Enter must mean no"
        await console.press("r", "shift+tab", "enter")
        await console.sees("done as you asked")
        assert isinstance(asked[0], RelaunchRuns) and len(asked[0].runs) == 8
        # Those that cost nothing can be had alone.
        await console.press("r")
        await console.sees("f only the 3 lost (free)", "y yes, all 8: 5 count as re-rolled", "8d of running")
        await console.press("f")
        await console.until(lambda: len(asked) == 2)
        assert len(asked[1].runs) == 3


@pytest.mark.parametrize("key", ["escape", "n", "q"])
async def test_every_way_out_of_a_question_means_no(opened: OpenConsole, asked: list[Any], key: str) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("a", "s", "r", key)
        await console.until(lambda: not isinstance(console.app.screen, ConfirmScreen))
        assert asked == []


async def test_a_stop_can_be_undone_for_some_seconds_and_is_then_never_done(opened: OpenConsole) -> None:
    async with opened(screen="sweep:openhands-1") as console:
        await console.sees("44 queued")
        await console.press("j", "m", "s")
        await console.sees("Stop 3 runs?")
        await console.press("y")
        await console.sees("stopping 3 runs in 5 s", "u undo")
        assert console.world is not None
        (waiting,) = requests.waiting(console.world.database)
        assert (waiting.kind, len(waiting.arguments["runs"])) == ("run.stop", 3)
        await console.press("u")
        await console.sees("undone: stopping 3 runs")
        await console.misses("in 5 s")
        withdrawn = requests.get(console.world.database, waiting.id)
        assert withdrawn is not None and withdrawn.state is RequestState.WITHDRAWN
        await console.press("u")
        await console.sees("there is nothing to undo")


async def test_a_stop_is_held_by_the_state_not_by_the_console_that_asked_for_it(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen="sweep:openhands-1") as console:
        await console.sees("44 queued")
        await console.press("j", "m", "s")
        await console.sees("Stop 3 runs?")
        await console.press("y")
        await console.sees("stopping 3 runs in 5 s")
    async with opened(lambda _places: worlds.open_world(places), screen="sweep:openhands-1") as console:
        await console.sees("stopping 3 runs in 5 s", "u undo")
        await console.press("u")
        await console.sees("undone: stopping 3 runs")


async def test_a_stop_that_no_engine_does_can_still_be_undone_beside_the_keys(opened: OpenConsole) -> None:
    async with opened(screen="sweep:openhands-1") as console:
        await console.sees("44 queued")
        await console.press("j", "m", "s")
        await console.sees("Stop 3 runs?")
        await console.press("y")
        await console.sees("stopping 3 runs in 5 s")
        console.clock.at = time.time() + 60
        await console.sees("stopping 3 runs: it waits for the engine · u undo", "s stop")
        await console.press("u")
        await console.sees("undone: stopping 3 runs")


async def test_stopping_names_what_it_stops(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen="sweep:openhands-1") as console:
        await console.sees("44 queued")
        await console.press("j", "m", "s")
        await console.sees("Stop 3 runs?", "aptos2019-blindness-detection", "seed 3")
        await console.press("y")
        await console.sees("done as you asked")
        assert isinstance(asked[0], StopRuns) and len(asked[0].runs) == 3


async def test_the_table_keeps_the_cursor_on_its_run(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("j", "right")
        before = cursor_run(console)
        assert "aptos2019-blindness-detection seed 2" in before
        await console.press("v")
        await console.sees("why", "state ▾")
        # How each has ended is said once.
        assert "G gold" in console.text() and "finished" not in console.text().partition("state ▾")[2]
        assert cursor_run(console) == before
        await console.press("v", "f")
        await console.sees("aptos2019")
        assert "infrastructure" in cursor_run(console) or "crash" in cursor_run(console)


async def test_a_question_about_many_runs_keeps_its_warning_and_its_answers_in_view(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.outage, screen="sweep:aide-o3-all", size=(80, 24)) as console:
        await console.sees("LOW")
        await console.press("a", "r")
        await console.sees(
            "17 runs lost", "3 runs that finished", "They count as re-rolled", "n no, leave it"
        )
        await console.press("n", "c")
        await console.sees("Why did 20 runs fail?", "more", "unknown cause", "why (kept with the attempt)")


async def test_what_was_said_before_does_not_cover_the_command_line(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=(80, 24)) as console:
        await console.sees("LOW")
        await console.press("d")
        await console.sees("mark two runs to compare them")
        await console.press("colon")
        await console.sees("Queue ended runs again")
        await console.misses("mark two runs to compare them")


async def test_brackets_go_from_sweep_to_sweep(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("sweep 2 of 2")
        await console.press("right_square_bracket")
        await console.sees("sweep 1 of 2", "openhands-1")
        await console.press("left_square_bracket")
        await console.sees("sweep 2 of 2", "aide-o3-lite")


async def test_pausing_asks_the_engine(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(worlds.paused, with_engine=False, screen="sweep") as console:
        await console.sees("paused")
        await console.press("p")
        await console.sees("done as you asked")
        assert asked == [ResumeSweep(sweep_id="dummy-1")]


async def test_a_refusal_of_the_engine_is_told(opened: OpenConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(places: Places, request: Request) -> Answer:
        raise EnvironmentProblem("the engine is not running", "nothing was changed", "Start it: :engine")

    monkeypatch.setattr(control, "ask", refuse)
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("p")
        await console.sees("nothing was changed", "Start it")


async def test_a_read_only_console_changes_nothing(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen=SWEEP, readonly=True) as console:
        await console.sees("read-only", "LOW")
        assert "relaunch" not in console.text().splitlines()[-1]
        await console.press("a", "r", "y")
        await console.sees("this console is read-only")
        await console.press("c")
        await console.sees("this console is read-only (×2)")
        assert asked == [] and not console.app.screen.is_modal


async def test_a_read_only_console_names_no_command_that_it_refuses(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, readonly=True, with_engine=False) as console:
        await console.sees("the engine is not running")
        assert ":engine" not in console.text()


async def test_all_of_the_benchmark_three_times_scrolls_from_end_to_end(opened: OpenConsole) -> None:
    async with opened(worlds.large, screen="sweep", size=(80, 24)) as console:
        await console.sees("64 running")
        await console.press("G")
        await console.sees("HIGH")
        await console.press("g", "pagedown", "ctrl+u")
        await console.sees("LOW")


async def test_the_mouse_chooses_and_opens(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("aptos2019")
        y = next(y for y, line in enumerate(console.text().splitlines()) if "aptos2019" in line)
        await console.pilot.click(offset=(60, y))
        assert "aptos2019-blindness-detection" in cursor_run(console)
        await console.pilot.click(offset=(60, y))
        await console.until(lambda: isinstance(console.app.screen, RunScreen))


async def test_a_range_is_a_rectangle_of_the_matrix(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("M")
        await console.sees("mark one end of the range first")
        await console.press("space", "down", "down", "right", "M")
        await console.sees("6 marked")


async def test_a_range_of_the_table_is_every_line_between(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("v", "space", "down", "down", "down", "M")
        await console.sees("4 marked")


async def test_failures_of_several_classes_are_not_classified_by_enter_alone(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("a", "c")
        await console.sees(
            "Why did 8 runs fail?", "3×  infrastructure  GPU lost", "3×  agent crash", "2×  out of memory"
        )
        await console.press("enter")
        await console.sees("choose a class first", "Why did 8 runs fail?")
        assert not asked
        await console.press("up", "down", "down", "enter")
        await console.misses("Why did")
        assert asked[0].failure_class is FailureClass.TIMEOUT


async def test_failures_are_classified_with_a_note(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("f", "c")
        await console.sees("Why did 1 run fail?", "infrastructure")
        # The evidence is in the dialog, which would hide it otherwise.
        await console.sees("GPU lost: Failed", "seed 3  exit code 1 after 20h14m", "fixed the label encoder")
        await console.press("down", *"disk", "enter")
        await console.until(lambda: asked)
        assert isinstance(asked[0], ClassifyRuns)
        assert (asked[0].failure_class, asked[0].note) == (FailureClass.TIMEOUT, "disk")


async def test_leaving_the_classes_changes_nothing(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mlebench_console.engine.control.ask", lambda *_: pytest.fail("nothing was to be asked")
    )
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("f", "c")
        await console.sees("Why did 1 run fail?")
        await console.press("escape")
        await console.misses("Why did")


def test_what_needs_a_person_comes_first_in_that_order(places: Places) -> None:
    world = worlds.busy(places)
    board = sweep_board(world.database, "aide-o3-lite", world.places.config_file, NOW)
    assert board is not None
    ordered = board.ordered(SortOrder("state"), Drawing(NOW))
    found = [row.run for row in ordered.runs]
    kinds = [cause[0] for run in found if (cause := cause_now(run, 24 * HOUR, NOW)) is not None]
    assert kinds[0] is CauseKind.INFRASTRUCTURE and kinds == sorted(kinds, key=list(CauseKind).index)
    assert all(cause_now(run, 24 * HOUR, NOW) is None for run in found[len(kinds) :])
    states = [run.state for run in found[len(kinds) :]]
    assert states == sorted(states, key=[RunState.RUNNING, RunState.QUEUED, RunState.FINISHED].index)
    assert {run.id for run in found} == {row.run.id for row in board.runs}
    names = [
        row.competition_id.lower()
        for row in board.ordered(SortOrder("competition"), Drawing(NOW)).groups[0].rows
    ]
    assert names == sorted(names)
    world.database.close()


async def test_the_order_changes_by_key_and_the_cursor_stays_with_its_run(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("down", "down")
        await console.sees("denoising-dirty-documents seed 1")
        await console.press("o", "o")
        await console.sees("order: what needs you first", "denoising-dirty-documents seed 1")


async def test_marked_logs_are_read_as_one_each_line_behind_its_run(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("m", "L")
        # The last lines of each are seen, with how it has ended below them.
        await console.sees("3 logs, all have ended", "s1 [bronze]", "s2 [invalid submission]")
        await console.sees("s3 [infrastructure: GPU lost", "fixed the label encoder, going on")
        await console.press("slash", *"encoder", "enter")
        await console.sees("encoder: hit 1 of 36")
        await console.press("escape")
        await console.sees("LOW")


async def test_a_click_on_a_columns_name_sorts_the_matrix_and_a_second_one_turns_it_round(
    opened: OpenConsole,
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW", "aerial-cactus-identification seed 1")
        await click(console, "LOW")
        await console.sees("LOW ▾", "order: by name", "aerial-cactus-identification seed 1")
        await click(console, "LOW")
        await console.sees("LOW ▴", "order: by name, reversed", "aerial-cactus-identification seed 1")
        names = [key for key in keys_of(console) if key in registry.splits()["low"]]
        assert len(names) > 2 and names == sorted(names, reverse=True)
        await click(console, "medal")
        await console.sees("medal▾", "order: most medals first")
        await click(console, "seed 2")
        await console.sees("seed 1 ▾", "seed 2 ▾", "order: what needs you first")


async def test_a_click_on_a_columns_name_sorts_the_table_of_runs(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=(160, 40)) as console:
        await console.sees("LOW")
        await console.press("v")
        await console.sees("state ▾")
        ids = keys_of(console)
        await click(console, "state ▾")
        await console.sees("state ▴", "order: what needs you first, reversed")
        assert keys_of(console) == ids[::-1]
        for title, order in (
            ("competition", "by name"),
            ("run", "the benchmark's order"),
            ("score", "most medals first"),
            ("idle", "longest idle first"),
        ):
            await click(console, title)
            await console.sees(f"order: {order}")
        await console.sees("idle ▾")
        await click(console, "seed")
        await console.sees("order: longest idle first")


async def test_the_order_is_reversed_by_key(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("o", "O")
        await console.sees("LOW ▴", "order: by name, reversed")
        await console.press("O")
        await console.sees("LOW ▾")
        await console.press("o")
        await console.sees("order: what needs you first")


async def test_what_slurm_says_of_jobs_is_told_from_the_matrix_to_the_run(
    opened: OpenConsole, capsys: pytest.CaptureFixture[str], places: Places
) -> None:
    async with opened(worlds.on_slurm, screen="overview", size=(160, 48)) as console:
        # Who waits for somebody needs that, who waits for others does not.
        await console.sees(
            "Slurm has not answered since 03:02:11", "1 job of aide-slurm waits: JobHeldAdmin: an admin"
        )
        assert "other jobs go first" not in console.text()
        await console.sees("7 running · 8 wait", "▶7 …12")
        await console.press("2")
        await console.sees("7 running (8 wait in Slurm)", "… Priority ~04:44", "… held", "! i infra")
        # What waits for a person comes before what waits for others and what runs.
        await console.press("v")
        await console.sees("JobHeldAdmin: an administrator holds it", "Slurm: its node failed", "on gpu03")
        await console.press(*"jjjjjjjjj")
        await console.sees("dogs-vs-cats-redux-kernels-edition seed 1 · running 07:00/24h · on gpu03")
        await console.press(*"kkkkk")
        await console.sees("waiting · Priority: other jobs go first, may start ~04:44, priority 4,321")
        await console.press("enter")
        await console.sees(
            "waits in Slurm", "job 4265 in slurm:gpu: Priority: other jobs go first, may start ~04:44"
        )
        # A reason is no setting.
        assert next(line for line in console.text().splitlines() if "placement" in line).endswith("slurm:gpu")
        await console.press("escape", "g", "enter", "tab")
        await console.sees("Slurm: its node failed", "NODE_FAIL; heartbeat 812 of gpu04")
    # The command tells the same.
    assert program.run([f"--state-dir={places.state_dir}", "runs", "list", "--json"]) == 0
    jobs = {run["id"]: run["job"] for run in json.loads(capsys.readouterr().out)}
    assert jobs[14] == {
        "placement": "slurm:gpu",
        "number": "4265",
        "node": "",
        "waits_for": "Priority",
        "starts_at": NOW + 1.5 * HOUR,
        "priority": 4321,
        "staged_bytes": None,
        "to_stage_bytes": None,
    }
    assert (jobs[6]["node"], jobs[5], jobs[24]) == ("gpu03", None, None)


async def test_from_200x60_all_of_the_benchmark_three_times_is_seen_at_once(opened: OpenConsole) -> None:
    async with opened(worlds.large, screen="sweep", size=(200, 60)) as console:
        await console.sees("vinbigdata-chest-xray-abnormalities-detection", "aerial-cactus-identification")
        shown = console.text()
        for name in registry.splits()["split75"]:
            assert name[:38] in shown
        lines = console.app.screen.query_one(LineList)
        assert round(lines.max_scroll_y) == 0
        # Each block has its headings.
        assert "LOW" in shown and "MEDIUM  continued" in shown and shown.count(" 1  2  3 ") == 4
        # Three seeds further is the competition beside this one.
        await console.press("home", "left", "left", "left")
        assert "aerial-cactus-identification seed 1" in cursor_run(console)
        await console.press("right", "right", "right")
        about = cursor_run(console)
        assert "seed 1" in about and "aerial-cactus" not in about
        await console.press("space", "right", "space")
        await console.sees("2 marked")
        await console.press("W")
        await console.sees("any medal, 0 of 3 seeds complete")
        assert cursor_run(console).split(" seed")[0] == about.split(" seed")[0]
        await console.press("W")
        await console.misses("any medal, 0 of 3 seeds complete")


async def test_a_sweep_that_is_seen_whole_keeps_its_scores_in_a_large_terminal(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=(200, 60)) as console:
        await console.sees("G 0.93051", "seed 1")
        await console.press("W")
        await console.misses("G 0.93051")
        await console.press("f", "slash", *["colon" if letter == ":" else letter for letter in "class:infra"])
        await console.press("enter")
        await console.sees("3 of 45")
        found = set()
        for key in ("home", "left", "right", "right", "down", "left", "right", "down", "left"):
            await console.press(key)
            found.add(cursor_run(console))
        assert len(found) == 3 and all("infrastructure" in about for about in found)


async def test_the_table_says_why_runs_failed_in_a_narrow_terminal_too(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=(80, 24)) as console:
        await console.press("v")
        await console.sees("state ▾", "why")
        failed = [line for line in console.text().splitlines() if "  ! " in line and "✓" not in line]
        assert len(failed) == 8
        for line in failed:
            assert any(why in line for why in ("GPU lost:", "out of memory", "RuntimeError")), line


async def test_a_run_that_is_queued_again_is_not_told_as_failed(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP, size=(80, 24)) as console:
        await console.press("slash", *"class:infra", "enter")
        await console.sees("seed 3 · GPU lost")
        assert console.world is not None
        for run in runs.of_sweep(console.world.database, "aide-o3-lite"):
            if run.failure_class is FailureClass.INFRASTRUCTURE:
                transitions.requeued(console.world.database, run.id, by="op", now=NOW)
        await console.press("escape")
        await console.misses("· GPU lost")
        await console.press("v")
        await console.misses("! infra")


async def test_the_footer_has_the_keys_for_what_is_chosen(opened: OpenConsole) -> None:
    def footer() -> str:
        return console.text().splitlines()[-1]

    async with opened(screen=SWEEP, size=(120, 40)) as console:
        await console.sees("LOW")
        assert "relaunch" in footer() and "stop" not in footer() and "class" not in footer()
        await console.press("f")
        await console.until(lambda: "c class" in footer() and "relaunch" in footer())
        await console.press(*(5 * ("j",)), "right")
        await console.sees("dogs-vs-cats-redux-kernels-edition seed 3")
        await console.until(lambda: "s stop" in footer() and "relaunch" not in footer())
        await console.press("space", "down", "space")
        await console.until(lambda: "L logs" in footer() and "d diff" in footer())


def test_while_its_files_are_collected_a_run_is_not_called_anything_else(
    places: Places,
) -> None:
    world = worlds.busy(places)
    run = runs.get(world.database, world.run("aide-o3-lite", "dogs-vs-cats-redux-kernels-edition", 3))
    collecting = draw_run(RunRow(replace(run, state=RunState.COLLECTING), 24 * HOUR), Drawing(NOW))
    assert (collecting.text, collecting.shorter, collecting.standing) == ("collecting", "", "[S]")
    begins = replace(run, state=RunState.STARTING, started_at=None, standing=None)
    starting = draw_run(RunRow(begins, 24 * HOUR), Drawing(NOW))
    assert (starting.text, starting.standing) == ("starting", "")


async def test_a_failed_run_in_the_table_keeps_how_long_it_took_beside_the_cause_that_overview_names(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.outage, screen="sweep", size=(160, 40)) as console:
        await console.press("v")
        await console.sees("state ▾", "why")
        crash = next(line for line in console.text().splitlines() if "! crash" in line)
        assert "03:57" in crash and "ValueError: could not read" in crash and "exit code" not in crash


async def test_the_results_of_competitions_add_up_to_those_of_their_split(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("9 medals of 23")
        assert console.world is not None
        board = sweep_board(console.world.database, "aide-o3-lite", console.world.places.config_file, NOW)
        assert board is not None
        medals = [row.medals for row in board.groups[0].rows]
        assert (sum(won for won, _ended in medals), sum(ended for _won, ended in medals)) == (9, 23)


async def test_a_run_without_a_log_offers_none(opened: OpenConsole) -> None:
    async with opened(worlds.paused, screen="sweep") as console:
        await console.sees("⏎ run", ":sweep resume resumes it")
        await console.misses("l log")
