"""The machine, composing a sweep, and everything that happened: three screens beside the sweeps."""

from __future__ import annotations

import os
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from mlebench_console.console.screens import launch as launch_screen
from mlebench_console.console.screens.host import host_use
from mlebench_console.console.screens.launch import (
    Composed,
    LaunchForm,
    LaunchScreen,
    compose,
    form_of_file,
    form_text,
)
from mlebench_console.console.screens.run.screen import RunScreen
from mlebench_console.console.tui.keys import SCREENS
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.theme import PALETTE_NAMES, THEME_NAMES
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.engine.control import Answer, EngineStatus
from mlebench_console.engine.control.status import publish
from mlebench_console.engine.images import BuildStatus, NeededImage
from mlebench_console.engine.options.sweep import read_duration, read_toml, resolve
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import BuildImages, LaunchSweep
from mlebench_console.environment.runner.protocol import BUBBLEWRAP
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from mlebench_console.state import events
from mlebench_console.state.event_records import EventKind
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole
from tests.console.world import HOUR, NOW, World

RUNNING = EngineStatus(running=True, slots=4.0, gpus=0)


def see_running_engine(console: ShownConsole) -> None:
    """Let the console find that an engine runs, and the screen look at it."""
    console.app.engine = RUNNING
    screen = console.app.screen
    assert isinstance(screen, ConsoleScreen)
    screen.tick()


async def test_the_host_shows_who_uses_what_and_leads_there(opened: OpenConsole) -> None:
    async with opened(screen="host") as console:
        await console.sees(
            "gpu-box-3", "disk: state", "runs by what they use", "dogs-vs-cats-redux-kernels-edition", "GB"
        )
        await console.press("enter")
        await console.until(lambda: isinstance(console.app.screen, RunScreen))
        await console.sees("processors", "of 1 planned")


async def test_every_gpu_says_how_busy_it_is_and_whose_and_a_lost_one_comes_first(
    opened: OpenConsole,
) -> None:
    async with opened(screen="host", size=(120, 40)) as console:
        await console.sees("NVIDIA A100-SXM4-80GB, 1 lost, 4 without a run", "35 %", "idle: ", "no run")
        lines = console.text().splitlines()
        heading = next(place for place, line in enumerate(lines) if "GPUs ──" in line)
        lost = lines[heading + 2]
        assert "lost" in lost and "leaf-classification seed 3, not listed by the driver" in lost
        await console.press("g", "enter")
        await console.sees("leaf-classification", "seed 3")


async def test_what_runs_use_of_a_gpu_agrees_with_it_and_an_idle_host_shows_its_gpus(
    opened: OpenConsole,
) -> None:
    async with opened(screen="host", size=(120, 40)) as console:
        await console.sees("runs by what they use")
        (run,) = (line for line in console.text().splitlines() if "dogs-vs-cats" in line and "16h02m" in line)
        assert "35 %" in run and "25.8 GB" in run
    async with opened(worlds.scored, screen="host", size=(120, 40)) as console:
        await console.sees("8 without a run", "nothing is running")


async def test_a_suspended_run_does_not_look_queued(opened: OpenConsole) -> None:
    async with opened(worlds.on_slurm, screen="host", size=(120, 48)) as console:
        await console.sees("as of 03:01", "as they were then", "suspended")


async def test_enter_on_a_node_shows_its_runs_alone_and_those_of_all_nodes_again(opened: OpenConsole) -> None:
    async with opened(worlds.on_slurm, screen="host", size=(120, 48)) as console:
        await console.sees("6 nodes, 2 not available", "7 running, 8 waiting in Slurm")
        lines = console.text().splitlines()
        assert "gpu04" in next(line for line in lines if " gpu0" in line), (
            "those that take no jobs come first"
        )
        await console.press("g", "j", "j")
        await console.sees("⏎ runs of gpu03")
        await console.press("enter")
        await console.sees("on gpu03 alone, 3 running", "⏎ runs of all nodes")
        assert not console.text().count("gpu01  ") > 1, "only its line among the nodes is left"
        await console.press("enter")
        await console.sees("7 running, 8 waiting in Slurm")


async def test_a_full_disk_stands_first_on_the_overview(opened: OpenConsole, places: Places) -> None:
    async with opened() as console:
        await console.sees("needs you")
        publish(places, EngineStatus(pid=1, state_disk_free=1, state_disk_total=100, heartbeat_at=NOW))
        console.app.reader.look_now()
        await console.sees("the disk with the state is 99 % full")


def test_what_runs_use_together_has_no_gaps_between_their_samples(places: Places) -> None:
    world = worlds.busy(places)
    curve = host_use(world.database, NOW).memory_bytes
    world.database.close()
    changes = [abs(after - before) / before for (_, before), (_, after) in pairwise(curve[6:])]
    assert len(curve) > 50 and max(changes) < 0.2


async def test_events_are_filtered_and_lead_to_their_run(opened: OpenConsole) -> None:
    async with opened(screen="events") as console:
        await console.sees("image pull", "events")
        await console.press("slash", *"pull", "enter")
        await console.sees("image pull: connection", "1 of ")
        await console.misses("requested")
        await console.press("enter")
        await console.sees("openhands-1")
        await console.press("escape", "escape")
        await console.sees("bms-molecular", "requested")
        await console.press("slash", *"sweep:aide sev:error !gpu sve:x", "enter")
        await console.sees(
            "unknown: sve", "out of memory: killed a", "detecting-insults-in-social-commentary seed 1"
        )
        listed = [line for line in console.text().splitlines() if " !m " in line or " !c " in line]
        assert listed[0].startswith("▎") and len(listed) > 1, "the cursor is on the newest that is found"
        await console.misses("image pull")
        await console.press("slash", "ctrl+u", *"kind:nothing", "enter")
        await console.sees("no event matches this filter: esc clears it")


async def test_events_are_in_the_order_in_which_they_happened_not_in_that_of_their_reports(
    opened: OpenConsole,
) -> None:
    def reported_late(places: Places) -> World:
        world = worlds.open_world(places)
        with world.database.transaction():
            for ago, text in ((60.0, "came second"), (30.0, "came third"), (3 * HOUR, "came first")):
                events.append(world.database, NOW - ago, EventKind.ENGINE_STARTED, text)
        return world

    async with opened(reported_late, screen="events") as console:
        await console.sees("3 events", "came first")
        listed = [line for line in console.text().splitlines() if "03:1" in line or "00:14" in line]
        assert [text.split()[0] for line in listed for text in line.split("came ")[1:]] == [
            "third",
            "second",
            "first",
        ]


async def test_equal_events_are_one_line_that_opens_to_all_of_them(opened: OpenConsole) -> None:
    async with opened(worlds.outage, screen="events", size=(120, 40)) as console:
        await console.sees("19 runs", "dummy-2 +1", "18 runs", "⏎ list 19", "21 errors")
        assert console.text().count("GPU lost: Failed to initialize NVML: Unknown Error") == 1
        await console.press("j")
        await console.sees("⏎ list 18", "18 runs · dummy-2 +1 · run.failed")
        await console.press("enter")
        await console.sees("⏎ hide them", "rsna-2022-cervical-spine-fr")
        assert console.text().count("GPU lost: Failed to initialize NVML: Unknown Error") == 20
        await console.press("j")
        await console.sees(
            "⏎ open", "3d-object-detection-for-autonomous-vehicles seed 1 · dummy-2 · run.failed"
        )
        await console.press("k", "enter")
        await console.sees("⏎ list 18")


async def test_before_anything_happened_events_say_so(opened: OpenConsole) -> None:
    async with opened(None, screen="events") as console:
        await console.sees("nothing has happened yet")


async def test_the_field_that_is_typed_into_says_what_it_is_for_and_which_texts_there_are(
    opened: OpenConsole,
) -> None:
    async with opened(screen="launch", size=(160, 48)) as console:
        await console.sees("agent: The agent's id")
        console.app.screen.query_one("#network").focus()
        await console.sees("network: What agents may reach", "Type none, models, open.")
        console.app.screen.query_one("#record_calls").focus()
        await console.sees("record calls: Keep the requests", "Type yes, no.")


def test_what_is_not_one_of_its_choices_is_told_of_the_field_itself(places: Places) -> None:
    composed = compose(drafted(agent="none-such", network="air", record_calls="maybe"), places, RUNNING)
    wrong = composed.wrong
    assert "network: 'air' is not none, models or open" in [check.text for check in composed.checks]
    assert wrong["agent"] == "agent 'none-such' is not known"
    assert wrong["network"] == "'air' is not none, models or open"
    assert wrong["record_calls"] == "'maybe' is not yes or no"


async def test_the_host_leaves_out_what_was_never_measured_and_says_what_that_is(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen="host") as console:
        await console.sees("memory", "of 553 GB", "not measured yet: disk: data")
        publish(places, EngineStatus(pid=1, host="gpu-box-3", heartbeat_at=NOW - 7200, gpus=8))
        console.app.engine = EngineStatus(
            running=False, pid=1, host="gpu-box-3", heartbeat_at=NOW - 7200, gpus=8
        )
        console.app.redraw_all()
        # At once: the engine's status is read again every other second.
        unknown = "not measured yet: slots, load, memory, disk: state, disk: data"
        await console.sees("8 GPUs", unknown, "as it was 2h ago, when the engine last ran")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_at_every_width_events_show_seconds_competition_and_seed_and_each_day_once(
    opened: OpenConsole, size: tuple[int, int]
) -> None:
    async with opened(screen="events", size=size) as console:
        await console.sees("02:42:20  !i openhands-1", "02:59:00  B")
        lines = console.text().splitlines()
        (failed,), (graded,) = ([one for one in lines if time in one] for time in ("02:42:20", "02:59:00  B"))
        assert failed.index("aerial-cactus") < failed.index(" 1 ") < failed.index("image pull: conn")
        assert "aide-o3-lite" in graded and "bronze 1.00000" in graded and "2026" not in graded
        assert not [one for one in lines if "being graded" in one], "the steps of an end are one line"
        await console.press("slash", *"sweep:openhands", "enter")
        await console.sees("5 of ", " 1 error", "/ sweep:openhands")
        assert console.text().count("2026-03-14") == console.text().count("2026-03-13") == 1
        await console.press("slash", "ctrl+u", *"kind:grading", "enter")
        await console.sees("25 of ", "attempt 1 is being graded")


async def test_a_sweep_is_composed_and_launched(
    opened: OpenConsole, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.is_ready", lambda *_: True)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    async with opened(screen="launch") as console:
        await console.sees("choose an agent")
        await console.press(*"dummy")
        await console.sees(
            "66 runs, at most 66d in all, 1 at once", "the data of all 22 competitions are prepared"
        )
        await console.press("ctrl+t")
        await console.sees("dry run: in this order", "after 2d", "seed 1", " more")
        await console.sees("66 runs, at most 66d in all", "1 at once, but ")
        await console.press("ctrl+t")
        see_running_engine(console)
        await console.sees("the engine is running with 4 slots")
        for field, text in (("gateway", "openai"), ("budget_usd", "2.5"), ("budget_calls", "x")):
            console.app.screen.query_one(f"#{field}").focus()
            await console.press(*text)
        await console.sees("model calls a run: 'x' is not a whole number, 1 or more")
        await console.press("backspace")
        await console.sees("66 runs")
        await console.press("ctrl+l")
        await console.sees("Launch 66 runs?", "1 at once, but ", " fit: at most 66d, or with ")
        await console.sees("cost: models at most 165.00 USD by its budget")
        await console.press("y")
        await console.until(lambda: asked)
        assert isinstance(asked[0], LaunchSweep)
        spec = asked[0].spec
        assert (spec.agent_id, spec.seeds, len(spec.competitions)) == ("dummy", 3, 22)
        assert (
            spec.conditions.models.gateway,
            spec.conditions.models.budget.usd,
            spec.conditions.time_limit_seconds,
        ) == (("openai",), 2.5, 24 * 3600)


async def test_a_launch_in_haste_is_of_what_was_typed_last(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.is_ready", lambda *_: True)
    checked, check = threading.Event(), compose
    checked.set()

    def slow_check(*given: Any) -> Composed:
        checked.wait(60)
        return check(*given)

    monkeypatch.setattr(launch_screen, "compose", slow_check)
    async with opened(screen="launch") as console:
        see_running_engine(console)
        await console.press(*"dummy")
        await console.sees("66 runs")
        console.app.screen.query_one("#seeds").focus()
        checked.clear()
        await console.press("backspace", "1", "ctrl+l")
        assert not console.app.screen.is_modal
        checked.set()
        await console.sees("Launch 22 runs?")


async def test_a_launch_form_that_is_left_says_how_to_go_on(
    opened: OpenConsole, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", "token")
    async with opened(screen="launch") as console:
        await console.sees("choose an agent")
        await console.press("escape")
        await console.misses("tab goes back")
        await console.press("tab", *"dummy")
        await console.sees("22 of 22 datasets are not prepared")
        await console.misses("tab goes back")
        await console.press("escape")
        await console.sees("not launched: something is missing, tab goes back to the fields")
        await console.press("ctrl+r")
        see_running_engine(console)
        await console.sees(
            "not launched yet: ^l launches it, tab goes back to the fields, digits switch screens"
        )
        await console.press("ctrl+l")
        await console.sees("Launch 66 runs?")
        dialog = console.app.screen.query_one("#lines", Painted).text
        assert "no model calls of earlier runs" in " ".join(dialog.split())
        box = console.app.screen.query_one("#lines").size.width
        assert max(map(len, dialog.splitlines())) <= box, "nothing of the question is cut"
        await console.press("y")
        await console.until(lambda: asked)
        await console.misses("tab goes back")


async def test_nothing_is_launched_while_something_is_missing(
    opened: OpenConsole, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(screen="launch") as console:
        await console.press(*"dummy")
        await console.sees("22 of 22 datasets are not prepared", "^r prepares them first")
        await console.press("ctrl+l")
        await console.sees("not launched: 22 of 22 datasets are not prepared")
        await console.press("ctrl+r")
        await console.sees("there are no raw data")
        await console.press("ctrl+r")
        monkeypatch.setenv("KAGGLE_API_TOKEN", "token")
        await console.press("ctrl+r")
        await console.sees("22 of 22 datasets will be prepared first")
        assert not asked


async def test_what_a_launch_lets_pass_is_a_warning_on_the_form(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.runtimes.resolve", lambda _: BUBBLEWRAP)
    async with opened(screen="launch") as console:
        await console.press(*"aide")
        await console.sees("! warning: agent aide has OPENAI_API_KEY, but can't reach")


def drafted(*, prepare: bool = False, **texts: str) -> LaunchForm:
    return LaunchForm({**LaunchForm().texts, **texts}, prepare)


def test_a_draft_tells_everything_that_is_wrong_with_it(places: Places) -> None:
    form = drafted(
        agent="none-such",
        competitions="low spoky",
        seeds="0",
        hours="soon",
        concurrency="x",
        gpus="2",
        network="air",
        edition="v9",
        obfuscated="short",
        cpus="many",
        memory_gb="-1",
    )
    composed = compose(form, places, RUNNING)
    told = " | ".join(f"{check.text} {check.next_step}" for check in composed.checks if not check.allows_work)
    for part in (
        "none-such",
        "Did you mean spooky-author-identification",
        "seeds: '0' is not a whole number from 1 to 1000",
        "time limit: 'soon' is not a duration",
        "'x'",
        "'air'",
        "'v9'",
        "obfuscated: 'short' is not yes or no",
        "'many'",
        "'-1'",
        "2 GPUs",
    ):
        assert part in told
    assert composed.launch is None and not composed.can_launch


def test_a_draft_says_what_flags_say(places: Places) -> None:
    form = drafted(
        agent="dummy",
        competitions="spaceship-titanic",
        hours="90m",
        priority="-2",
        start_ramp="30s",
        network="models",
        allow="api.example.org, b.org:8443",
        memory_gb="1.5",
        gpus="-1",
        idle_minutes="1h",
        disk_gb="20",
        obfuscated="yes",
        prepare=True,
    )
    composed = compose(form, places, RUNNING)
    assert composed.launch is not None
    spec = composed.launch.spec
    assert (spec.conditions.time_limit_seconds, composed.launch.priority, spec.start_ramp_seconds) == (
        5400,
        -2,
        30,
    )
    assert spec.conditions.allowed_hosts == ("api.example.org", "b.org:8443")
    assert (spec.conditions.resources.memory_bytes, spec.conditions.resources.gpus) == (1_500_000_000, -1)
    assert (spec.conditions.idle_limit_seconds, spec.conditions.disk_limit_bytes, spec.retries) == (
        3600,
        20 * 10**9,
        2,
    )
    assert spec.conditions.obfuscated
    assert not composed.can_launch, "the runtime has no GPUs"


async def test_missing_images_are_built_by_the_engine_and_a_failure_stays_until_it_is_tried_again(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    images: set[str] = {"mlebench-env"}
    builds: list[BuildStatus] = [BuildStatus()]
    names = ("dummy", "mlebench-grader")

    def start(_places: Places, order: BuildImages) -> None:
        assert order == BuildImages(names=names)
        builds.append(BuildStatus(True, 1.0, names, "Step 3/9 : RUN pip install"))

    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.connect", lambda _seconds: None)
    monkeypatch.setattr(
        NeededImage, "fault", lambda self, _client: "" if self.name in images else "not built"
    )
    monkeypatch.setattr("mlebench_console.console.screens.launch.start_build", start)
    monkeypatch.setattr("mlebench_console.console.screens.launch.build_status", lambda _folder: builds[-1])
    async with opened(screen="launch") as console:
        screen = console.app.screen
        assert isinstance(screen, LaunchScreen)
        await console.press(*"dummy")
        screen.query_one("#runtime", Input).value = "docker"
        await console.sees("not built: images dummy, mlebench-grader", "^b builds them")
        await console.press("ctrl+b")
        await console.sees("building dummy, mlebench-grader", "Step 3/9")
        builds.append(BuildStatus(False, 1.0, names, "", EnvironmentProblem("no space left", "/var is full")))
        screen._look_at_build()
        await console.sees("failed: no space left: /var is full; ^b builds again")
        await console.press("ctrl+b")
        await console.sees("building dummy, mlebench-grader", "Step 3/9")
        images.update(names)
        builds.append(BuildStatus(False, 2.0, names))
        screen._look_at_build()
        await console.sees("the images dummy and mlebench-grader are built")


async def test_a_field_that_cannot_be_read_says_why_beside_it_and_keeps_the_last_dry_run(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.is_ready", lambda *_: True)
    async with opened(screen="launch", size=(160, 48)) as console:
        await console.press(*"dummy")
        await console.sees("66 runs", "dry run: in this order")
        console.app.screen.query_one("#seeds", Input).value = "many"
        await console.sees("seeds !", "'many' is not a whole number from 1 to 1000", "before: dummy on 22")
        await console.sees("dry run before a field could not be read", "aerial-cactus-identification")
        await console.press("ctrl+l")
        await console.sees("not launched: seeds: 'many' is not")
        console.app.screen.query_one("#seeds", Input).value = "2"
        await console.sees("44 runs", "dry run: in this order")
        await console.misses("seeds !")


async def test_tab_always_goes_on_and_another_key_completes(opened: OpenConsole) -> None:
    async with opened(screen="launch") as console:
        field = console.app.screen.query_one("#agent", Input)
        await console.press("d", "u")
        await console.until(lambda: field._suggestion)
        await console.sees("→ complete")
        await console.press("tab")
        assert (field.value, field.has_focus) == ("du", False)
        await console.press("shift+tab", "end", "m")
        await console.until(lambda: field._suggestion)
        await console.press("right")
        assert field.value == "dummy" and field.has_focus


def test_a_sweep_becomes_a_form_and_a_file_and_comes_back_whole(places: Places, tmp_path: Path) -> None:
    file = tmp_path / "night.toml"
    file.write_text(
        'agent = "dummy"\nsplit = "low"\nseeds = 2\ntime_limit = "1h30m"\nshm_gb = 2\nrecord_calls = true\n'
        'gateway = ["openai"]\nidle_minutes = 20\ngrace_seconds = 5\nprepare = true\nsweep_budget_calls = 7\n'
    )
    form = form_of_file(file)
    assert (form.texts["competitions"], form.texts["hours"], form.texts["idle_minutes"]) == (
        "low",
        "1h30m",
        "20m",
    )
    (tmp_path / "again.toml").write_text(form_text(form))
    asked, again = (resolve(read_toml(tmp_path / name), places) for name in ("night.toml", "again.toml"))
    assert asked == again
    composed = compose(form, places, RUNNING)
    assert composed.launch == asked


async def test_what_a_file_says_beside_the_fields_is_shown_and_cleared(
    opened: OpenConsole, tmp_path: Path
) -> None:
    (tmp_path / "night.toml").write_text('agent = "dummy"\nsplit = "low"\nshm_gb = 2\ngrace_seconds = 30\n')
    async with opened(screen="launch") as console:
        await console.press("ctrl+o")
        console.app.screen.query_one("#load Input", Input).value = str(tmp_path / "night.toml")
        await console.press("enter")
        await console.sees("besides, from night.toml: shm_gb 2", "f8 clears", "dummy on 22 competitions")
        await console.press("ctrl+s")
        console.app.screen.query_one("#save Input", Input).value = str(tmp_path / "again.toml")
        await console.press("enter")
        await console.until(lambda: (tmp_path / "again.toml").exists())
        assert "shm_gb = 2" in (tmp_path / "again.toml").read_text()
        await console.press("f8")
        await console.misses("besides, from")
        await console.sees("choose an agent")


async def test_a_sweep_is_cloned_into_the_form_and_launching_it_goes_to_the_new_one(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[LaunchSweep] = []

    def ask(_places: Places, request: LaunchSweep) -> Answer:
        launched.append(request)
        return Answer("sweep openhands-1 is launched", "openhands-1")

    monkeypatch.setattr("mlebench_console.engine.control.ask", ask)
    monkeypatch.setattr(Composed, "can_launch", True)
    async with opened(screen="sweep:aide-o3-lite") as console:
        await console.sees("aide-o3-lite")
        await console.press("C", "enter")
        await console.sees("filled in from sweep aide-o3-lite")
        texts = {each.id: each.value for each in console.app.screen.query(Input) if each.id}
        assert (texts["agent"], texts["seeds"], texts["hours"], texts["concurrency"]) == (
            "aide-o3",
            "3",
            "24h",
            "8",
        )
        assert texts["name"] == ""
        await console.misses("besides, from")
        await console.sees("45 runs")
        await console.press("ctrl+l", "y")
        await console.sees("openhands-1", "44 queued")
        spec = launched[0].spec
        assert spec.agent_id == "aide-o3" and len(spec.competitions) == 15


@pytest.mark.parametrize(("text", "seconds"), [("24h", 86400), ("90m", 5400), ("1h30m", 5400), ("45s", 45)])
def test_durations_are_read(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "24", "h", "1x", "1..2h", "0h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        read_duration(text)


@pytest.mark.parametrize("name", THEME_NAMES)
async def test_every_theme_draws_every_screen(opened: OpenConsole, name: str) -> None:
    async with opened(screen="sweep:aide-o3-lite") as console:
        await console.says(f"theme {name}")
        palette = console.app.palette
        assert palette is PALETTE_NAMES[name]
        for mode, key, title, _about in SCREENS:
            console.app.show(mode)
            await console.sees(f"{key} {title}")
            top = console.app.screen.query_one("#top", Painted).render_line(0)
            named = next(segment for segment in top if title in segment.text)
            assert named.style == palette.base + palette.style("strong")


async def test_a_sweep_for_slurm_is_composed_with_its_room_its_time_and_its_start(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.is_ready", lambda *_: True)
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(NOW + 1.5 * HOUR))
    said = f"sbatch: Job 5 to start at {start} using 1 processors on nodes gpu02 in partition gpu"
    for name, answer in (("sinfo", 'echo "gpu*|2-00:00:00|mixed"'), ("sbatch", f'echo "{said}" >&2')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with opened(screen="launch") as console:
        await console.sees("choose an agent")
        await console.press(*"dummy")
        for field, text in (("placement", "slurm"), ("memory_gb", "8"), ("concurrency", "40")):
            typed = console.app.screen.query_one(f"#{field}", Input)
            typed.focus()
            typed.value = text
        await console.sees(
            "slurm: room for 100 of 100 jobs, 40 would be submitted now, 26 wait here",
            "a job takes at most 24h14m, partition gpu allows 2d",
            "the first would start ~04:44 on gpu02",
        )
        # What the partition cuts short is refused here already, with the sum.
        hours = console.app.screen.query_one("#hours", Input)
        hours.focus()
        hours.value = "48h"
        await console.sees("a job of 48.2 h does not fit: the default partition ends jobs after 48 h")


async def test_what_a_narrow_terminal_cuts_of_an_event_is_written_out_below_the_list(
    opened: OpenConsole,
) -> None:
    async with opened(screen="events", size=(110, 24)) as console:
        await console.press("slash", *"gpu", "enter")
        await console.sees("GPU lost: Failed to initialize NVML: Unknown Error", "run.failed")
        await console.press("slash", "ctrl+u", *"silver", "enter")
        await console.misses("run.failed")
