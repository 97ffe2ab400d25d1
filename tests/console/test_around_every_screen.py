"""What works around every screen: switching, help, commands, themes, sizes, the way out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from rich.cells import cell_len
from textual import events
from textual.widgets import Input

from mlebench_console.console import wording
from mlebench_console.console.actions import image
from mlebench_console.console.nouns.outcomes import outcome_sign
from mlebench_console.console.roles import ASCII, UNICODE, Signs
from mlebench_console.console.screens.dialogs import sign_meanings
from mlebench_console.console.screens.run.screen import RunScreen
from mlebench_console.console.tui.keys import SCREENS
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.engine import control
from mlebench_console.engine.control.status import EngineStatus
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import (
    AnnotateRuns,
    BuildImages,
    PauseSweep,
    PrepareDatasets,
    RelaunchRuns,
    Request,
    SetBudget,
    SetConcurrency,
    SetPriority,
)
from mlebench_console.engine.settings import FILTERS
from mlebench_console.foundation.conditions import Budget
from mlebench_console.state import runs
from mlebench_console.state.annotations import Annotation, annotate
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.usage.budgets import BudgetScope
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.world import NOW

SWEEP = "sweep:aide-o3-lite"


async def test_digits_switch_screens(opened: OpenConsole) -> None:
    async with opened() as console:
        for key, seen in (
            ("2", "seed 1"),
            ("3", "prepared"),
            ("5", "Disarray"),
            ("1", "needs you"),
            ("4", "submission"),
        ):
            await console.press(key)
            await console.sees(seen)


async def test_ctrl_c_tells_how_to_leave(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.press("ctrl+c")
        await console.sees("q closes the console; the engine keeps running")


async def test_a_tick_that_comes_when_the_screens_are_gone_is_harmless(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.sees("needs you")
    assert not console.app.screen_stack
    for _more_than_between_two_savings in range(11):
        console.app._tick()


async def test_help_shows_the_keys_of_the_screen_and_closes(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.press("question_mark")
        await console.sees("Mark every shown run that failed", "Mark or unmark the run")
        await console.press("escape")
        await console.misses("Mark or unmark the run")


async def test_help_is_searched_and_says_what_every_sign_means(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.press("question_mark")
        await console.sees("Mark or unmark the run")
        await console.press("slash", *"pause", "enter")
        await console.sees("Pause the sweep: no new run starts", "a paused sweep: no more runs start")
        await console.misses("Mark every shown run that failed")
        await console.press("escape")
        await console.sees("Mark or unmark the run")
        await console.press("G")
        await console.sees("where a score stands among the cut-offs")
        await console.press("g")
        await console.misses("where a score stands among the cut-offs")
        await console.press("slash", *"nonsense", "enter")
        await console.sees("no key and no sign has these words")
        await console.press("escape", "escape")
        await console.misses("Keys and signs")


@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_no_sign_that_stands_for_something_is_missing_in_the_help(signs: Signs) -> None:
    # What a sign's place says already, and what only draws something else.
    drawing = {"rule", "level", "ellipsis", "plus_minus", "left", "right", "enter", "times", "to"}
    drawing |= {"bar_full", "bar_parts", "bar_empty", "bar_segment", "bar_begin", "axis", "tick"}
    # The timeline says itself what these are.
    drawing |= {"now", "expected"}
    told = " ".join(sign for sign, _role, _meaning in sign_meanings(signs)).split()
    letters = set("".join(told))
    for field in fields(Signs):
        assert field.name in drawing or getattr(signs, field.name) in letters, field.name
    assert letters >= set(wording.FAILURE_LETTERS.values()) | {outcome_sign(each, signs) for each in Outcome}


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("scoreboard", "Disarray"),
        ("sweep show openhands-1", "44 queued"),
        ("runs show 5", "Timeline"),
        ("datasets list", "prepared"),
        ("go grade", "f5 watch"),
    ],
)
async def test_the_command_line_does_what_it_says(opened: OpenConsole, line: str, seen: str) -> None:
    async with opened() as console:
        await console.press("colon")
        await console.press(*[{" ": "space", "-": "minus"}.get(letter, letter) for letter in line], "enter")
        await console.sees(seen)


async def test_the_command_line_completes_and_recalls(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.press("colon", *"score")
        await console.sees("scoreboard", "Show own experiments")
        await console.press("tab", "enter")
        await console.sees("Disarray")
        await console.press("1", "colon", "up", "enter")
        await console.sees("Disarray")


async def test_the_command_line_lists_what_can_be_said_here_and_to_what_it_applies(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.press("m", "colon")
        await console.sees("runs retry [RUN...]", "Queue ended runs again", "3 runs", "more; type to narrow")
        # As over a slow link, where keys arrive together.
        await console.press("escape", "colon", *"sweep show open", "tab")
        await console.sees(": sweep show openhands-1")
        await console.press("escape", "colon", *"runs classify --cl")
        await console.sees("runs classify RUN...", "--class", "The correct class")
        await console.press("tab", *"inf", "tab")
        await console.sees(": runs classify --class infrastructure")
        await console.press("escape", "colon", *"theme", "space")
        await console.sees("contrast", "mono")
        await console.press("down", "down", "enter")
        await console.until(lambda: console.app.palette.name == "day")
        await console.press("colon", *"runs retry", "enter")
        await console.sees("Relaunch 3 runs?")
        await console.press("y")
        await console.until(lambda: asked)
        assert isinstance(asked[0], RelaunchRuns) and len(asked[0].runs) == 3


async def test_a_command_shows_the_key_that_does_the_same(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.press("colon", *"grade again")
        await console.sees("runs regrade RUN...")
        await console.press("escape", "colon", *"undo")
        await console.sees("Take back a stop or a relaunch")


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        (
            'runs note 5 it\'s the GPU: "lost"',
            AnnotateRuns(run_ids=(5,), change=Annotation('it\'s the GPU: "lost"')),
        ),
        ("runs tag 5,6 night", AnnotateRuns(run_ids=(5, 6), change=Annotation(None, ("night",)))),
        ("sweep pause openhands-1", PauseSweep(sweep_id="openhands-1")),
        ("sweep pause open", PauseSweep(sweep_id="openhands-1")),
        ("sweep priority 7", SetPriority(sweep_id="aide-o3-lite", value=7)),
        ("sweep concurrency openhands-1 2", SetConcurrency(sweep_id="openhands-1", value=2)),
        ("prepare -c leaf-classification", PrepareDatasets(competition_ids=("leaf-classification",))),
        (
            "sweep budget openhands-1 --usd 5",
            SetBudget(scope=BudgetScope.SWEEP, name="openhands-1", limits=Budget(usd=5.0)),
        ),
    ],
)
async def test_the_shells_commands_are_carried_out(
    opened: OpenConsole, asked: list[Any], line: str, request_: Request
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.says(line)
        await console.until(lambda: bool(asked))
        assert asked == [request_]


async def test_images_are_built_by_command(opened: OpenConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[BuildImages] = []
    monkeypatch.setattr(image, "start_build", lambda _places, order: orders.append(order))
    async with opened() as console:
        await console.says("images build dummy --fresh")
        await console.sees("the engine builds images")
        assert orders == [BuildImages(names=("dummy",), fresh=True)]


async def test_a_command_that_only_shows_something_says_it(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as console:
        await console.says("sweep budget openhands-1")
        await console.sees("sweep openhands-1 has no budget of model calls")
        assert not asked


async def test_each_command_is_one_of_the_shells(opened: OpenConsole) -> None:
    async with opened() as console:
        known = console.app.commands.all
        assert len({command.path for command in known}) == len(known) > 40
        for command in known:
            options = {option.name for option in command.options}
            assert not options & {"json", "yes"}, command.path
            if command.action is not None and command.action.does is not None:
                assert options == {*command.action.options}, command.path


async def test_what_is_said_wrongly_is_told_on_the_line_and_can_be_corrected(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:
        await console.press("colon", *"sweep priority x", "enter")
        await console.sees("'x' is not a whole number", ": sweep priority x")
        await console.press("escape")
        await console.misses("is not a whole number")


async def test_a_run_that_does_not_exist_harms_nothing_that_is_shown(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.says("runs show 99999")
        await console.sees("there is no run 99999", "engine ok")
        console.app.push_screen(RunScreen(99999))
        await console.sees("there is no run 99999. 'mlebench-console runs list'")
        await console.press("escape", "2")
        await console.sees("aerial-cactus-identification", "seed 1")
        assert console.app.condition.health is StateHealth.GOOD


async def test_notes_and_tags_are_written_by_key(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as console:
        assert console.world is not None
        await console.press("m", "n", *"look", "enter")
        await console.until(lambda: len(asked) == 1)
        await console.press("colon", *"runs note", "enter")
        await console.sees("no note and no tag")
        await console.press("number_sign", *"gpu", "enter")
        await console.until(lambda: len(asked) == 2)
        await console.press("number_sign", *"old --remove", "enter")
        await console.until(lambda: len(asked) == 3)
        note, tags, without = asked
        assert (note.change, len(note.run_ids)) == (Annotation("look"), 3)
        assert (tags.change, without.change) == (Annotation(None, ("gpu",)), Annotation(None, (), ("old",)))
        change = Annotation("node 3 again", ("gpu",))
        noted = runs.get(console.world.database, note.run_ids[0])
        annotate(console.world.database, noted, change, by="me@here", now=NOW)
        await console.sees("✎ #gpu  node 3 again")
        await console.press("escape", "colon")
        field = console.app.screen.query_one("#command Input", Input)
        field.value = "filter tag:gpu"
        await console.press("enter")
        await console.sees("1 of 45")


async def test_a_filter_is_found_by_its_name_in_config_where_filters_are_typed(
    opened: OpenConsole,
) -> None:
    async with opened(screen=SWEEP) as console:
        console.app.change_setting(FILTERS, "lost", "class:infra")
        await console.press("slash", *"lo")
        await console.sees("/ lost", "complete")
        await console.press("right", "enter")
        await console.sees("/ class:infra", "3 of 45")
        await console.press("slash", "ctrl+u", *"state:fa")
        await console.sees("/ state:failed")
        await console.press("right", "enter")
        await console.sees("/ state:failed", "8 of 45")
        await console.press("colon", *"filter lo")
        await console.sees("lost", "class:infra")
        await console.press("tab", "enter")
        await console.sees("/ class:infra")
        await console.press("colon", *"filter", "enter")
        await console.misses("/ class:infra")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("fly", "no command :fly"),
        ("sweep openhands-1", "':sweep' lists what can be said"),
        ("sweep mine", "':sweep' lists what can be said"),
        ("runs retr y", "Did you mean :runs retry?"),
        ("runs show x", "there is no run 'x'"),
        ("runs retry --cause x", "no run has the cause 'x' now"),
        ("runs acknowledge x --snooze 8h", "no run has the cause 'x' now"),
        ("datasets prune -c leaf-classification", "there is nothing to remove"),
        ("sweep rm nosweep", "there is no sweep 'nosweep'"),
        ("sweep priority", "argument SWEEP is missing"),
        ("runs list", "there is no command :runs list"),
        ("runs retry 5 --json", "takes no --json here"),
        ("theme x", "'x' is not one of"),
        ("runs", "could be runs retry"),
    ],
)
async def test_a_command_that_cannot_be_is_told_calmly(opened: OpenConsole, line: str, told: str) -> None:
    async with opened() as console:
        await console.says(line)
        await console.sees(told)


async def test_q_closes_the_console_and_nothing_else(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened() as console:
        await console.press("q")
        assert not console.app.is_running or console.app._exit
        assert asked == []


async def test_the_theme_changes_by_key(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.press("f2")
        assert console.app.palette.name == "day"
        await console.press("f2")
        assert console.app.palette.name == "night"


async def test_a_demo_says_so_on_every_screen(opened: OpenConsole) -> None:
    async with opened(worlds.demo, demo=True) as console:
        for key in "12345":
            await console.press(key)
            await console.sees("demo: synthetic data, real thresholds, not a result")
            await console.press("escape")


async def test_an_engine_that_is_down_is_told_and_can_be_started(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Places] = []

    def ensure_running(places: Places) -> EngineStatus:
        started.append(places)
        return EngineStatus(running=True, pid=77)

    monkeypatch.setattr(control, "ensure_running", ensure_running)
    async with opened(with_engine=False) as console:
        await console.sees("engine down", "the engine is not running")
        await console.says("engine")
        await console.sees("process 77")
        assert started == [console.app.places]


async def test_a_small_terminal_is_asked_to_grow(opened: OpenConsole) -> None:
    async with opened(size=(20, 5)) as console:
        await console.sees("too small: 20x5,")
        console.app.say("a message")
        await console.pilot.pause()
        assert "message" not in console.text(), "it would cover how large it has to be"
        await console.pilot.resize_terminal(100, 30)
        await console.sees("needs you")


@pytest.mark.parametrize("screen", [name for name, *_ in SCREENS])
async def test_no_screen_fails_in_a_terminal_of_any_size(opened: OpenConsole, screen: str) -> None:
    async with opened(worlds.preparing, screen=screen) as console:
        for size in ((24, 60), (1, 1), (10, 3), (41, 11), (300, 100), (40, 10)):
            await console.pilot.resize_terminal(*size)
            await console.pilot.pause()
        await console.misses("too small")


async def test_keys_do_nothing_that_a_terminal_is_too_small_to_show(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(screen=SWEEP, size=(30, 8)) as console:
        await console.sees("too small")
        await console.press("a", "s", "y", "5")
        assert asked == [] and console.app.current_mode == "sweep"
        await console.pilot.resize_terminal(100, 30)
        await console.press("a", "r")
        await console.sees("count as re-rolled")
        await console.pilot.resize_terminal(30, 8)
        await console.sees("too small")
        await console.press("y", "enter")
        assert asked == []
        await console.press("q")
        assert not console.app.is_running or console.app._exit


async def test_another_window_in_front_leaves_what_is_being_typed(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.press("colon", *"scorebo")
        console.app.post_message(events.AppBlur())
        await console.pilot.pause()
        console.app.post_message(events.AppFocus())
        await console.press("a", "r", "d", "enter")
        await console.sees("Disarray")


async def test_no_size_makes_any_screen_fail(opened: OpenConsole) -> None:
    async with opened(screen=SWEEP) as console:

        async def fits(size: tuple[int, int], text: str) -> None:
            # The size before may still be drawn for a moment.
            def fit() -> bool:
                shown = console.text()
                return text in shown and all(cell_len(line) <= size[0] for line in shown.splitlines())

            await console.until(fit, f"{text!r} within {size}")

        for size in ((1, 1), (41, 10), (60, 15), (80, 24), (300, 80)):
            await console.pilot.resize_terminal(*size)
            for mode, key, title, _about in SCREENS:
                console.app.show(mode)
                seen = {1: "", 41: "engine ok"}.get(size[0], f"{key} {title}")
                await fits(size, seen)
        console.app.show_run(5)
        for size, pane in (((41, 10), "Timeline"), ((80, 24), "Submissions"), ((200, 60), "Resources")):
            await console.pilot.resize_terminal(*size)
            await console.press("tab")
            await fits(size, pane if size[0] > 60 else "")


async def test_of_a_screen_behind_another_one_nothing_is_drawn_but_under_a_box_it_is(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        drawn: list[str] = []
        monkeypatch.setattr(
            ConsoleScreen, "refresh_frame", lambda screen: drawn.append(type(screen).__name__)
        )
        await console.press("t")
        await console.sees("medals over time")
        drawn.clear()
        console.app.refresh_frames()
        assert drawn == ["TimelineScreen"]
        await console.press("question_mark")
        await console.until(lambda: console.app.screen.is_modal)
        drawn.clear()
        console.app.refresh_frames()
        assert drawn == ["TimelineScreen"]
