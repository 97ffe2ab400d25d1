"""Every screen on a night of two sweeps: what its keys do, and what the operator sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console import commands
from console.app import ConsoleApp
from console.screens.confirm import ConfirmScreen
from console.screens.run import RunScreen
from engine import control
from engine.control import Answer
from engine.control.status import EngineStatus
from engine.grading.child import GradeRequest
from engine.grading.report import Report
from engine.places import Places
from engine.runs import protocol
from foundation.problems import EnvironmentProblem
from state import transitions
from state.lifecycle import Outcome
from tests.console import worlds
from tests.console.conftest import Desk, OpenDesk

SWEEP = "sweep:aide-o3-lite"


def cursor_run(desk: Desk) -> str:
    return desk.text().splitlines()[-2]


# ---- around every screen


async def test_digits_switch_screens(opened: OpenDesk) -> None:
    async with opened() as desk:
        for key, seen in (
            ("2", "seed 1"),
            ("3", "prepared"),
            ("5", "Disarray"),
            ("1", "needs you"),
            ("4", "submission"),
        ):
            await desk.press(key)
            await desk.sees(seen)


async def test_ctrl_c_tells_how_to_leave(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("ctrl+c")
        await desk.sees("q closes the console; the engine goes on")


async def test_a_tick_that_comes_when_the_screens_are_gone_is_harmless(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.sees("needs you")
    assert not desk.app.screen_stack
    desk.app._tick()


async def test_help_shows_the_keys_of_the_screen_and_closes(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.press("question_mark")
        await desk.sees("Mark every shown run that failed", "In the matrix")
        await desk.press("escape")
        await desk.misses("In the matrix")


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("board", "Disarray"),
        ("sweep openhands-1", "44 queued"),
        ("run 5", "Timeline"),
        ("d", "prepared"),
        ("grade leaf", "metric"),
    ],
)
async def test_the_command_line_does_what_it_says(opened: OpenDesk, line: str, seen: str) -> None:
    async with opened() as desk:
        line = line.replace("grade leaf", "grade leaf-classification")
        await desk.press("colon")
        await desk.press(*[{" ": "space", "-": "minus"}.get(letter, letter) for letter in line], "enter")
        await desk.sees(seen)


async def test_the_command_line_completes_and_recalls(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("colon", "b", "o")
        await desk.sees("board")
        await desk.press("tab", "enter")
        await desk.sees("Disarray")
        await desk.press("1", "colon", "up", "enter")
        await desk.sees("Disarray")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("fly", "no command :fly"),
        ("run x", "not the number"),
        ("pause", "needs SWEEP"),
        ("theme x", "no theme"),
    ],
)
async def test_a_command_that_cannot_be_is_told_calmly(opened: OpenDesk, line: str, told: str) -> None:
    async with opened() as desk:
        commands.execute(desk.app, line)
        await desk.sees(told)


async def test_the_palette_finds_commands(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("ctrl+p")
        await desk.sees("Scoreboard beside the published rows")
        await desk.press(*"scoreb", "enter")
        await desk.sees("Disarray")


async def test_q_closes_the_console_and_nothing_else(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened() as desk:
        await desk.press("q")
        assert not desk.app.is_running or desk.app._exit
        assert asked == []


async def test_the_theme_changes_by_key(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("f2")
        assert desk.app.palette.name == "day"
        await desk.press("f2")
        assert desk.app.palette.name == "night"


async def test_a_demo_says_so_on_every_screen(opened: OpenDesk) -> None:
    async with opened(worlds.demo, demo=True) as desk:
        for key in "12345":
            await desk.press(key)
            await desk.sees("demo: synthetic data, real thresholds, not a result")
            await desk.press("escape")


async def test_an_engine_that_is_down_is_told_and_can_be_started(
    opened: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Places] = []

    def ensure_running(places: Places) -> EngineStatus:
        started.append(places)
        return EngineStatus(running=True, pid=77)

    monkeypatch.setattr(control, "ensure_running", ensure_running)
    async with opened(with_engine=False) as desk:
        await desk.sees("engine down", "the engine is not running")
        commands.execute(desk.app, "engine")
        await desk.sees("process 77")
        assert started == [desk.app.places]


async def test_a_small_terminal_is_asked_to_grow(opened: OpenDesk) -> None:
    async with opened(size=(20, 5)) as desk:
        await desk.sees("too small: 20x5,")
        await desk.pilot.resize_terminal(100, 30)
        await desk.sees("needs you")


async def test_no_size_makes_any_screen_fail(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        for size in ((1, 1), (41, 10), (60, 15), (80, 24), (300, 80)):
            await desk.pilot.resize_terminal(*size)
            for key in ("2", "3", "5", "1"):
                await desk.press(key)
        desk.app.ways.to_run(5)
        for size in ((41, 10), (80, 24), (200, 60)):
            await desk.pilot.resize_terminal(*size)
            await desk.press("tab")
        await desk.sees("Timeline")


# ---- welcome


async def test_without_a_state_it_says_what_to_do_next(opened: OpenDesk) -> None:
    async with opened(None) as desk:
        await desk.sees("open the demo", "grade one submission", "start the engine", "no engine yet")
        await desk.press("d")
        assert desk.app.return_value == "demo"


async def test_the_welcome_gives_way_to_a_state(opened: OpenDesk, places: Places) -> None:
    async with opened(None) as desk:
        await desk.sees("open the demo")
        worlds.paused(places).database.close()
        await desk.sees("needs you")


# ---- overview


async def test_the_overview_shows_what_needs_a_person_first_failed_then_late(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.sees("image pull: connection reset", "no valid submission, 1h30 left")
        text = desk.text()
        assert text.index("image pull") < text.index("no valid submission")


async def test_enter_on_the_overview_leads_to_the_cause(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.sees("image pull")
        await desk.press("j", "j", "enter")
        await desk.sees("infrastructure  image pull: connection reset by peer", "Timeline")
        await desk.press("escape", "g", "enter")
        await desk.sees("any medal, 0 of 3 seeds whole")


async def test_relaunching_from_the_overview_asks_first(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened() as desk:
        await desk.sees("image pull")
        await desk.press("j", "j", "r")
        await desk.sees("changes no statistics")
        await desk.press("y")
        await desk.sees("done as you asked")
        assert [kind for kind, _ in asked] == ["run.relaunch"]


# ---- sweep


async def test_a_running_cell_shows_what_it_would_get(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("▶ 16:02 [S]", "G 0.93051", "! i infra", "x invalid", "0 none")


async def test_a_change_in_the_state_shows_by_itself(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("▶ 4 running")
        assert desk.world is not None
        run = desk.world.run("aide-o3-lite", "leaf-classification", 3)
        attempt = transitions.runs.latest_attempt(desk.world.database, run)
        assert attempt is not None
        desk.world.finish(attempt.id, Outcome.GOLD, 0.0, ago=1)
        await desk.sees("▶ 3 running", "G 0.00000")


async def test_the_filter_narrows_while_typing_and_escape_clears_it(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("slash", *["colon" if letter == ":" else letter for letter in "class:infra"])
        await desk.sees("3 of 45")
        await desk.misses("G 0.93051")
        await desk.press("enter", "escape")
        await desk.sees("G 0.93051")


async def test_a_filter_that_is_left_is_as_before(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("slash", "z", "z")
        await desk.misses("aptos")
        await desk.press("escape")
        await desk.sees("aptos")


async def test_marks_are_counted_and_relaunch_tells_infrastructure_from_the_agents_own(
    opened: OpenDesk, asked: list[Any]
) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("a")
        await desk.sees("8 marked")
        await desk.press("r")
        await desk.sees(
            "3 runs lost to infrastructure", "5 runs ended by the agent's own doing", "count as re-rolled"
        )
        await desk.press("enter")
        await desk.misses("re-rolled")
        assert asked == [], "Enter must mean no"
        await desk.press("r", "tab", "enter")
        await desk.sees("done as you asked")
        assert asked[0][0] == "run.relaunch" and len(asked[0][1]["run_ids"]) == 8


@pytest.mark.parametrize("key", ["escape", "n", "q"])
async def test_every_way_out_of_a_question_means_no(opened: OpenDesk, asked: list[Any], key: str) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("a", "s", "r", key)
        await desk.until(lambda: not isinstance(desk.app.screen, ConfirmScreen))
        assert asked == []


async def test_stopping_names_what_it_stops(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened(screen="sweep:openhands-1") as desk:
        await desk.sees("44 queued")
        await desk.press("j", "m", "s")
        await desk.sees("Stop 3 runs?", "aptos2019-blindness-detection", "seed 3")
        await desk.press("y")
        await desk.sees("done as you asked")
        assert asked[0][0] == "run.stop" and len(asked[0][1]["run_ids"]) == 3


async def test_the_table_keeps_the_cursor_on_its_run(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("j", "right")
        before = cursor_run(desk)
        assert "aptos2019-blindness-detection seed 2" in before
        await desk.press("v")
        await desk.sees("attempt  what")
        assert cursor_run(desk) == before
        await desk.press("v", "f")
        await desk.sees("aptos2019")
        assert "infrastructure" in cursor_run(desk) or "crash" in cursor_run(desk)


async def test_brackets_go_from_sweep_to_sweep(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("sweep 1 of 2")
        await desk.press("right_square_bracket")
        await desk.sees("sweep 2 of 2")
        await desk.press("left_square_bracket")
        await desk.sees("sweep 1 of 2")


async def test_pausing_asks_the_engine(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened(worlds.paused, with_engine=False, screen="sweep") as desk:
        await desk.sees("paused")
        await desk.press("p")
        await desk.sees("done as you asked")
        assert asked == [("sweep.resume", {"sweep_id": "dummy-1"})]


async def test_a_refusal_of_the_engine_is_told(opened: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(places: Places, kind: str, arguments: dict[str, Any]) -> Answer:
        raise EnvironmentProblem("the engine is not running", "nothing was changed", "Start it: :engine")

    monkeypatch.setattr(control, "ask", refuse)
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("p")
        await desk.sees("nothing was changed", "Start it")


async def test_a_read_only_console_changes_nothing(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened(screen=SWEEP, readonly=True) as desk:
        await desk.sees("read-only", "LOW")
        assert "relaunch" not in desk.text().splitlines()[-1]
        await desk.press("a", "r", "y")
        await desk.sees("this console is read-only")
        assert asked == []


async def test_all_of_the_benchmark_three_times_scrolls_from_end_to_end(opened: OpenDesk) -> None:
    async with opened(worlds.large, screen="sweep", size=(80, 24)) as desk:
        await desk.sees("64 running")
        await desk.press("G")
        await desk.sees("HIGH")
        await desk.press("g", "pagedown", "ctrl+u")
        await desk.sees("LOW")


async def test_the_mouse_chooses_and_opens(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("aptos2019")
        y = next(y for y, line in enumerate(desk.text().splitlines()) if "aptos2019" in line)
        await desk.pilot.click(offset=(60, y))
        assert "aptos2019-blindness-detection" in cursor_run(desk)
        await desk.pilot.click(offset=(60, y))
        await desk.until(lambda: isinstance(desk.app.screen, RunScreen))


# ---- run


async def test_the_log_follows_pauses_and_searches(opened: OpenDesk, places: Places) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("enter")
        await desk.sees("following", "fixed the label encoder")
        await desk.press("k", "k")
        await desk.sees("paused")
        log = next(places.runs_dir.glob(f"aide-o3-lite/aerial*/seed-1/attempt-1/{protocol.LOG}"))
        with log.open("a") as stream:
            stream.write("one\ntwo\nthe end\n")
        await desk.sees("paused, +3 lines")
        await desk.press("G")
        await desk.sees("the end", "following")
        await desk.press("g", "slash", *"shapes", "enter")
        await desk.sees("paused")
        await desk.press("n", "N", "e", "E", "w")
        await desk.sees("wrap")
        await desk.press("w", "right")
        await desk.sees("from column 21")


async def test_a_wrong_expression_is_told(opened: OpenDesk) -> None:
    async with opened(screen="run:5") as desk:
        await desk.sees("Timeline")
        await desk.press("tab", "shift+tab", "slash", "left_parenthesis", "enter")
        await desk.sees("no regular expression")


async def test_every_pane_shows_its_facts(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("f", "enter")
        await desk.sees("infrastructure  GPU lost")
        for seen in ("events", "no submission yet", "nothing has been measured yet", "run.log", "aide-o3"):
            await desk.press("tab")
            await desk.sees(seen)
        await desk.press("Y")
        await desk.sees("copied")
        await desk.press("r")
        await desk.sees("changes no statistics")
        await desk.press("n", "s")
        await desk.sees("can be stopped")
        await desk.press("escape")
        await desk.until(lambda: not isinstance(desk.app.screen, RunScreen))


# ---- data, grade, board


async def test_a_dataset_is_asked_for_by_key(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened(screen="data") as desk:
        await desk.sees("aerial-cactus")
        await desk.press("slash", *"pizza", "enter")
        await desk.misses("aerial-cactus")
        await desk.press("p")
        await desk.sees("done as you asked")
        assert asked == [("dataset.prepare", {"competition_ids": ["random-acts-of-pizza"], "edition": "v1"})]
        await desk.press("escape")
        await desk.sees("aerial-cactus")


async def test_a_dataset_on_its_way_shows_how_far_it_is(opened: OpenDesk) -> None:
    async with opened(screen="data") as desk:
        await desk.press("slash", *"working", "enter")
        await desk.sees("1/4 download", "43%")


def report(**values: Any) -> Report:
    facts: dict[str, Any] = {
        "competition_id": "spooky-author-identification", "score": 0.28411, "gold_threshold": 0.16506,
        "silver_threshold": 0.26996, "bronze_threshold": 0.29381, "median_threshold": 0.418785, "any_medal": True,
        "gold_medal": False, "silver_medal": False, "bronze_medal": True, "above_median": True,
        "submission_exists": True, "valid_submission": True, "is_lower_better": True, "created_at": "",
        "submission_path": "/s.csv",
    }  # fmt: skip
    return Report(**(facts | values))


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> Callable[[Report], list[GradeRequest]]:
    def answer(with_report: Report) -> list[GradeRequest]:
        requests: list[GradeRequest] = []

        def grade_in_child(request: GradeRequest) -> Report:
            requests.append(request)
            return with_report

        monkeypatch.setattr("console.model.grading.grade_in_child", grade_in_child)
        return requests

    return answer


async def test_grading_shows_where_the_score_falls(
    opened: OpenDesk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    graded: Callable[[Report], list[GradeRequest]],
) -> None:
    requests = graded(report())
    (tmp_path / "sub.csv").write_text("id\n")
    monkeypatch.chdir(tmp_path)
    async with opened(screen="grade") as desk:
        await desk.press(*"spook", "enter")
        await desk.sees("multi-class log loss, lower is better")
        await desk.press("s", "u")
        await desk.until(lambda: desk.app.screen.query_one("#path")._suggestion != "")
        await desk.press("tab", "enter")
        await desk.sees("0.28411", "B  bronze", "0.0097 better than bronze needs", "better ◄")
        assert requests[0].competition_id == "spooky-author-identification"
        await desk.press("escape", "1")
        await desk.sees("needs you")


async def test_an_invalid_file_says_why(
    opened: OpenDesk, tmp_path: Path, graded: Callable[[Report], list[GradeRequest]]
) -> None:
    graded(report(score=None, valid_submission=False, outcome="rejected", message="Column 'MWS' is missing."))
    (tmp_path / "sub.csv").write_text("id\n")
    async with opened(screen="grade") as desk:
        desk.app.ways.to_grade("spooky-author-identification", str(tmp_path / "sub.csv"))
        await desk.sees("refused by the competition's rules", "Column 'MWS' is missing.")


async def test_what_cannot_be_graded_is_told_on_the_spot(opened: OpenDesk, tmp_path: Path) -> None:
    async with opened(screen="grade") as desk:
        await desk.press("tab", "enter")
        await desk.sees("a competition and a file are needed")
        desk.app.ways.to_grade("spooky-author-identification", str(tmp_path / "none.csv"))
        await desk.sees("there is no file")


async def test_an_app_needs_no_terminal_to_refuse_politely(places: Places) -> None:
    from console.running import run_console

    with pytest.raises(EnvironmentProblem, match="needs a terminal"):
        run_console(places)
    assert ConsoleApp.TITLE == "mlebench-console"
