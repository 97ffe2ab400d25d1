"""Without a state the welcome says what to do; with one the overview leads to what needs a person."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from textual.widgets import Input

from mlebench_console.competitions import registry
from mlebench_console.console.screens.dialogs import sign_meanings
from mlebench_console.console.tui.theme import CONTRAST, DARK, LIGHT, MONOCHROME, Palette
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.control.status import publish, status
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import AcknowledgeCause, RelaunchRuns
from mlebench_console.state import acknowledgements, runs, transitions
from mlebench_console.state.database import DATABASE_NAME
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.records import Acknowledgement
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.world import HOUR, NOW, World

SWEEP = "sweep:aide-o3-lite"


async def test_without_a_state_it_says_what_to_do_next(opened: OpenConsole) -> None:
    async with opened(None) as console:
        await console.sees("open the demo", "grade one submission", "start the engine", "no engine yet")
        await console.sees("3  prepare datasets", "7  launch a sweep")
        await console.press("d")
        assert console.app.return_value == "demo"


async def test_the_welcome_gives_way_to_a_state(opened: OpenConsole, places: Places) -> None:
    async with opened(None) as console:
        await console.sees("open the demo")
        worlds.paused(places).database.close()
        await console.sees("needs you")


async def test_the_overview_shows_what_needs_a_person_infrastructure_first_agents_own_failures_apart(
    opened: OpenConsole,
) -> None:
    async with opened() as console:
        await console.sees("image pull: connection reset", "no valid submission, 1h30m left")
        text = console.text()
        places = [text.index(part) for part in ("image pull", "no valid submission", "agents' own failures")]
        assert places == sorted(places)
        assert text.index("RuntimeError: stack expects") > places[-1]


async def test_a_high_screen_lists_what_runs_and_until_when(opened: OpenConsole) -> None:
    async with opened(size=(120, 40)) as console:
        await console.sees("── running, time limit at")
        shown = (
            console.text().partition("running, time limit at")[2].partition("── lately")[0].splitlines()[1:]
        )
        assert shown[0].split() == [
            "04:44",
            "aide-o3-lite",
            "leaf-classification",
            "s3",
            "no",
            "valid",
            "submission",
        ]
        assert "now silver 0.05038" in " ".join(shown[1].split())
        lately = [" ".join(line.split()) for line in console.text().partition("── lately")[2].splitlines()]
        assert "02:59 aide-o3-lite aerial-cactus-identification s1 B bronze 1.00000" in lately
        await console.press("g", *["down"] * 7)
        await console.sees("run 84")
        await console.press("enter")
        await console.sees("leaf-classification · seed 3")


async def test_the_first_line_names_the_disk_that_is_nearly_full(opened: OpenConsole) -> None:
    def nearly_full(places: Places) -> World:
        world = worlds.busy(places)
        before = status(places)
        publish(
            places, replace(before, running=False, data_disk_free=90 * 10**9, data_disk_total=7200 * 10**9)
        )
        return world

    async with opened(nearly_full, size=(120, 40)) as console:
        await console.sees("data disk 90.0 GB free")


async def test_the_first_line_does_not_call_an_engine_with_problems_ok(opened: OpenConsole) -> None:
    async with opened(worlds.on_slurm, size=(120, 40)) as console:
        await console.sees("Slurm has not answered since", "engine: 1 problem")
        assert "engine ok" not in console.text()


@pytest.mark.parametrize("palette", [DARK, LIGHT, CONTRAST, MONOCHROME], ids=lambda palette: palette.name)
async def test_the_cursor_of_a_field_can_be_seen_in_every_theme(
    opened: OpenConsole, palette: Palette
) -> None:
    async with opened(worlds.busy, screen="launch", palette=palette) as console:
        await console.sees("Launch")
        cursor = console.app.screen.query(Input).first().get_component_rich_style("input--cursor")
        field = console.app.screen.query(Input).first().rich_style
        ground = cursor.color if cursor.reverse else cursor.bgcolor
        assert cursor.reverse or ground != field.bgcolor
        assert not cursor.reverse or palette.monochrome


async def test_what_happened_lately_is_listed_by_when_it_happened_not_by_when_it_was_reported(
    opened: OpenConsole,
) -> None:
    async with opened(size=(160, 48)) as console:
        await console.sees("image pull: connection reset", "lately")
        lately = console.text().partition("lately")[2].splitlines()[1:]
        times = [line.split()[0] for line in lately if re.match(r"\s+\d\d:\d\d ", line)]
        # It is 03:14: what happened later in the day was yesterday.
        assert len(times) > 5 and times == sorted(
            times, key=lambda text: (text <= "03:14", text), reverse=True
        )


async def test_an_outage_is_one_line_that_opens_to_its_runs(opened: OpenConsole) -> None:
    async with opened(worlds.outage, size=(160, 48)) as console:
        await console.sees("×18", "aide-o3-all +1", "all splits", "00:26–01:14", "R relaunch all (free)")
        # The cursor begins there, and the footer says what the keys do to it.
        await console.sees("2 need you", "⏎ list runs", "R relaunch 18", "/ its runs")
        needs_you = console.text().partition("lately")[0]
        assert needs_you.count("GPU lost: Failed to initialize NVML: Unknown Error") == 1
        await console.press("enter")
        await console.sees("rsna-2022-cervical-spine-fracture-detection  s3", "GPU-000000c9-")
        await console.press("j", "l")
        await console.sees("Timeline", "3d-object-detection-for-autonomous-vehicles")
        await console.press("escape", "f", "enter")
        await console.misses("GPU-000000c9-")


async def test_an_opened_group_says_of_its_runs_only_what_it_does_not_say_itself(opened: OpenConsole) -> None:
    for width, rest in ((80, ""), (120, "… (GPU-")):
        async with opened(worlds.outage, size=(width, 24)) as console:
            await console.sees("×18")
            await console.press("enter")
            await console.sees("rsna-2022-cervical-spine-fracture-detection  s3", rest)
            text = console.text()
            assert text[text.index("needs you") :].count("GPU lost") == 1
            run = next(line for line in text.splitlines() if "rsna-2022-cervical" in line)
            assert "00:42" in run, "when it ended"
            # A narrow terminal has room for the beginning only, which all of them share.
            assert width > 80 or "(GPU-0" not in text


async def test_sweeps_that_are_over_leave_room_for_what_needs_a_person(opened: OpenConsole) -> None:
    def many(places: Places) -> World:
        world = worlds.busy(places)
        for number in range(20):
            name = f"trial-{number:02d}"
            world.sweep(name, worlds.DEMO[:1], seeds=1, began=(50 - number) * HOUR)
            attempt = world.launch(world.run(name, worlds.DEMO[0], 1), ago=30 * HOUR, with_files=False)
            world.finish(attempt, Outcome.GOLD, 1.0, ago=29 * HOUR)
        return world

    async with opened(many, size=(80, 24)) as console:
        await console.sees("trial-19", "17 more are over: ⏎ shows them", "needs you", "GPU lost")
        await console.press("g", "down", "down", "down", "down", "down", "enter")
        await console.sees("trial-07")
        await console.press("G", "g", "end")
        await console.misses("17 more are over")
        await console.press("home", *["down"] * 22, "enter")
        await console.sees("17 more are over: ⏎ shows them", "needs you")


async def test_names_of_sweeps_that_begin_alike_are_told_apart(opened: OpenConsole) -> None:
    def alike(places: Places) -> World:
        world = worlds.open_world(places)
        for end in ("first", "second"):
            world.sweep(f"aide-o3-with-search-and-planner-{end}", worlds.DEMO[:1], seeds=1)
        return world

    async with opened(alike, with_engine=False, size=(80, 24)) as console:
        await console.sees("r-first", "-second")


async def test_from_a_cause_to_its_runs_among_the_others(opened: OpenConsole) -> None:
    async with opened(worlds.outage) as console:
        await console.sees("×18")
        await console.press("slash")
        await console.sees("/ cause:infrastructure-", "17 of 225", "! i infra")
        await console.misses("G 0.50000")
        # Which runs are late depends on the time: the cursor is put on it.
        await console.press("1", "f", "slash")
        await console.sees("whale-categorization-playground seed 1 ·")


async def test_what_happens_to_many_runs_at_once_is_one_line_of_what_happened_lately(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.outage) as console:
        await console.sees("×18")
        assert console.world is not None
        lost = [run for run in runs.of_all_sweeps(console.world.database) if "GPU" in run.failure_text]
        with console.world.database.transaction():
            for run in lost:
                transitions.requeued(console.world.database, run.id, by="ann@box", now=NOW)
            for run in lost:
                console.world.lose_gpu(run.id, ago=1)
        await console.sees("18 runs", "!i GPU lost: Fail")
        text = console.text()
        lately = text[text.index("lately") :].splitlines()
        # The one of the other sweep had failed last before.
        assert sum("GPU lost" in line for line in lately) == 2
        assert any("17 runs" in line and "queued again by ann@box" in line for line in lately)


async def test_a_whole_outage_is_relaunched_by_one_key_and_one_answer(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(worlds.outage) as console:
        await console.sees("×18")
        await console.press("r")
        await console.sees("R relaunches all 18 runs")
        await console.press("R")
        await console.sees("Relaunch 18 runs?", "changes no statistics", "and 10 more")
        await console.press("y")
        await console.until(lambda: asked)
        (request,) = asked
        assert isinstance(request, RelaunchRuns) and len(request.runs) == 18


async def test_agents_own_failures_are_relaunched_only_with_the_warning(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(worlds.outage) as console:
        await console.sees("could not read dtype")
        await console.press("f", "f", "R")
        await console.sees("Relaunch 2 runs?", "count as re-rolled")
        await console.press("n")
        assert not asked


async def test_an_outage_is_acknowledged_with_a_typed_reason_and_others_see_whose(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(worlds.outage) as console:
        await console.sees("×18")
        await console.press("a", *"ticket 12", "enter")
        await console.until(lambda: asked)
        await console.press("z", *"later", "enter")
        await console.until(lambda: len(asked) == 2)
        await console.press("a", "enter")
        await console.sees("an acknowledgement needs a reason", "acknowledge 'GPU lost")
        await console.press("escape")
        await console.press("z", "ctrl+u", *"soon x", "enter")
        # What was typed is not lost.
        await console.sees("'soon' is not a duration", "for how long, and why: soon x")
        await console.press("escape")
        first, second = asked
        assert isinstance(first, AcknowledgeCause) and (first.reason, first.seconds) == ("ticket 12", None)
        assert (second.reason, second.seconds) == ("later", 8 * 3600)
        assert console.world is not None
        said = Acknowledgement(first.key, "GPU lost", "ann@box", NOW, "ticket 12")
        acknowledgements.acknowledge(console.world.database, said)
        await console.sees("1 acknowledged: v shows them")
        await console.misses("×18")
        await console.press("v")
        await console.sees("acknowledged by ann@box 03:14: 'ticket 12'", "×18")
        # A run that joins it brings it back, with what was said.
        run = console.world.run("dummy-2", registry.splits()["split75"][1], 1)
        console.world.lose_gpu(run, ago=-60)
        await console.sees("×19", "is back; was acknowledged by ann@box")


async def test_prepared_datasets_are_one_event_and_bounds_are_beside_medals_not_with_them(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.large, size=(80, 24)) as console:
        await console.sees("75 datasets", "prepared")
        assert console.text().count("75 datasets") == 1
    async with opened(size=(80, 24)) as console:
        await console.sees("…8   13 medals of 33 ended, final 28.9 to 62.2 %")
        assert console.text().count("13 medals of 33") == 1


async def test_lately_cuts_no_name_where_a_result_can_be_cut(opened: OpenConsole) -> None:
    async with opened(size=(120, 40)) as console:
        await console.sees("── lately")
        lately = console.text().partition("── lately")[2]
        assert "jigsaw-toxic-comment-classification-challenge" in lately
        assert "silver 0.97980 (was above median)" in lately, "scores have as many digits everywhere"


async def test_everything_that_is_wrong_stands_in_one_list(opened: OpenConsole, places: Places) -> None:
    async with opened() as console:
        await console.sees("needs you", "engine ok")
        publish(
            places,
            EngineStatus(
                pid=1,
                heartbeat_at=NOW - 60,
                state_disk_free=1,
                state_disk_total=100,
                runner_alive=False,
                problems=("Slurm has not answered since 03:00:00", "budgets: the gateway is away"),
            ),
        )
        console.app.reader.look_now()
        await console.sees(
            "the disk with the state is 99 % full",
            "no runner is alive",
            "Slurm has not answered since 03:00:00",
            "the engine gives no sign of life",
            "budgets: the gateway is away",
        )
        text = console.text()
        assert text.index("Slurm") < text.index("image pull"), "first what keeps everything from going on"
        assert text.count("Slurm") == 1, "not also in a line of its own above"
        await console.press("g", "f", "f", "a")
        await console.sees("can only be snoozed, by z")


async def test_an_engine_that_is_down_is_in_the_list_and_started_from_there(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Places] = []

    def start(places: Places) -> EngineStatus:
        started.append(places)
        return EngineStatus(running=True, pid=7)

    monkeypatch.setattr("mlebench_console.engine.control.ensure_running", start)
    async with opened(with_engine=False) as console:
        await console.sees("the engine is not running (last sign of life 03:13)")
        assert "acknowledge" not in console.text()
        await console.press("a")
        await console.sees("the engine keeps acknowledgements, and it is not running")
        await console.press("enter")
        await console.sees("Start the engine?", "52 queued runs may start then", "yes, start")
        await console.press("n")
        await console.misses("Start the engine?")
        assert not started
        await console.press("enter", "y")
        await console.until(lambda: started)


async def test_enter_on_the_overview_leads_to_the_cause(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.sees("image pull")
        await console.press("f", "enter")
        await console.sees("infrastructure  image pull: connection reset by peer", "Timeline")
        await console.press("escape", "g", "enter")
        await console.sees("any medal, 0 of 3 seeds complete")


async def test_relaunching_from_the_overview_asks_first(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened() as console:
        await console.sees("image pull")
        await console.press("f", "r")
        await console.sees("changes no statistics")
        await console.press("y")
        await console.sees("done as you asked")
        assert [type(request) for request in asked] == [RelaunchRuns]


async def test_a_state_that_cannot_be_read_any_more_is_told_in_the_list_and_what_was_seen_stays(
    opened: OpenConsole, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench_console.console.tui.reader.TROUBLE_PASSES_SECONDS", 0.0)
    async with opened() as console:
        await console.sees("needs you", "image pull")
        damaged = places.state_dir.with_name("damaged")
        damaged.write_text("no database at all " * 100)
        damaged.replace(places.state_dir / DATABASE_NAME)
        console.app.reader.look_now()
        await console.sees("is damaged", "image pull")
        text = console.text()
        assert text.index("needs you") < text.index("is damaged") < text.index("image pull")
        assert text.count("is damaged") == 1, "and not in a line of its own above"


async def test_what_is_wrong_with_a_live_run_does_not_look_like_a_failure(opened: OpenConsole) -> None:
    async with opened(size=(120, 40)) as console:
        await console.sees("▶t  no valid submission, 1h30m left")
        meanings = [meaning for _sign, _role, meaning in sign_meanings(console.app.signs)]
        assert [each for each in meanings if "little time is left; t or ▶t in short" in each]


async def test_a_prompt_names_what_it_is_about_and_its_line_stays_highlighted(opened: OpenConsole) -> None:
    async with opened(worlds.outage, size=(120, 40)) as console:
        await console.sees("×18")
        lines = console.app.screen.query_one(LineList)
        row = next(place for place, line in enumerate(console.text().splitlines()) if "×18" in line)
        chosen = lines.render_line(row - lines.region.y)
        await console.press("a")
        await console.sees("acknowledge 'GPU lost: Failed to ini", "', because  a reason")
        assert lines.render_line(row - lines.region.y) == chosen
        await console.press("escape", "z")
        await console.sees("snooze 'GPU lost: Failed to ini")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_running_runs_have_the_room_that_news_leave_and_the_reason_for_waiting_is_shown(
    opened: OpenConsole, size: tuple[int, int]
) -> None:
    async with opened(worlds.large, size=size) as console:
        await console.sees("03-15 02:11", "wait: all 64 slots of its sweep are taken", "more: t shows them")
        lines = console.text().splitlines()
        begin = next(place for place, line in enumerate(lines) if "running, time limit at" in line)
        assert not [line for line in lines[begin:-1] if not line.strip()][1:], "no rows are left blank"


async def test_runs_of_several_sweeps_are_not_listed_as_those_of_one(opened: OpenConsole) -> None:
    async with opened(worlds.outage, size=(120, 40)) as console:
        await console.sees("lately", "dummy-2 +1", "2 runs")
