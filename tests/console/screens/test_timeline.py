"""The timeline in the console and as a command: bars that are read without colours, choosing, zooming."""

from __future__ import annotations

import pytest

from mlebench_console.console.roles import ASCII, UNICODE, Drawing
from mlebench_console.console.screens.run.screen import RunScreen
from mlebench_console.console.screens.timeline import TimelineScreen
from mlebench_console.console.tui.theme import MONOCHROME
from mlebench_console.console.tui.widgets.gantt import Gantt, bar_facts, legend
from mlebench_console.console.views import timeline as view
from mlebench_console.engine.places import Places
from mlebench_console.engine.scoreboard.timeline import Timeline
from mlebench_console.state.lifecycle import RunState
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.world import HOUR, NOW, World

SWEEP = "sweep:aide-night"


@pytest.fixture
def night(places: Places) -> Timeline:
    world = worlds.night(places)
    found = view.timeline(world.database, "aide-night", NOW)
    world.database.close()
    assert found is not None
    return found


def drawn(found: Timeline, width: int, height: int, *, ascii_only: bool = False) -> list[str]:
    lines = Gantt(
        found,
        view.whole_window(found, NOW),
        width,
        height,
        Drawing(NOW, ASCII if ascii_only else UNICODE),
    ).lines()
    return ["".join(text for text, _role in line) for line in lines]


def test_a_high_terminal_shows_how_many_attempts_there_were_at_once(night: Timeline) -> None:
    tall = drawn(night, 160, 50)
    assert len(tall) <= 50
    place = next(place for place, line in enumerate(tall) if "attempts at once" in line)
    assert any("medals over time" in line for line in tall[:place])
    assert tall[place + 1].lstrip().startswith("6 attempts")
    # The outage left most slots without an attempt for a moment: the curve comes down to half of them there.
    lower = "".join(tall[place + 6 : place + 10])
    assert any(0x2800 < ord(letter) <= 0x28FF for letter in lower)
    assert not any("attempts at once" in line for line in drawn(night, 80, 24))


async def test_from_overview_and_sweep_one_key_leads_to_the_attempts_over_time(opened: OpenConsole) -> None:
    async with opened(worlds.night) as console:
        await console.sees("needs you")
        await console.press("t")
        await console.sees(
            "aide-night", "11 medals of 23 ended", "6 slots", "GPU lost ×4", "medals over time"
        )
        await console.press("escape")
        await console.sees("needs you")
        await console.press("colon", *"sweep timeline", "enter")
        await console.sees("all sweeps", "6 slots")


async def test_arrows_choose_an_attempt_and_enter_opens_its_run(opened: OpenConsole) -> None:
    async with opened(worlds.night, screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("t", "home")
        await console.sees(
            "detecting-insults-in-social-commentary seed 1", "agent crash", "2026-03-12 11:14 to 16:13, 4h59m"
        )
        await console.press("right", "right")
        await console.sees(
            "denoising-dirty-documents seed 2, attempt 1 of 2", "GPU lost: Failed to initialize"
        )
        await console.press("right")
        await console.sees("dogs-vs-cats-redux-kernels-edition seed 2, attempt 2 of 2", "S silver")
        await console.press("down")
        await console.sees("jigsaw-toxic-comment-classification-challenge seed 2", "v below median")
        await console.press("enter")
        await console.until(lambda: isinstance(console.app.screen, RunScreen))
        await console.press("escape", "f")
        await console.sees("agent crash", "the agent ended with exit code 1")


async def test_a_click_chooses_an_attempt_and_a_second_one_opens_its_run(opened: OpenConsole) -> None:
    async with opened(worlds.night, screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("t")
        await console.sees("medals over time")
        lines = console.text().splitlines()
        y, x = next((place, line.index("!c") - 1) for place, line in enumerate(lines) if "!c" in line)
        await console.pilot.click(offset=(x, y))
        await console.sees("agent crash")
        await console.pilot.click(offset=(x, y))
        await console.until(lambda: isinstance(console.app.screen, RunScreen))


async def test_a_sweep_is_named_by_its_beginning_and_one_that_is_not_there_is_said(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.night) as console:
        await console.sees("needs you")
        await console.press("colon", *"sweep timeline aide", "enter")
        await console.sees("aide-night · 11 medals of 23 ended")
        await console.press("right_square_bracket")
        await console.sees("all sweeps · 11 medals of 23 ended")
        await console.press("escape", "colon", *"sweep timeline nothing", "enter")
        await console.sees("there is no sweep 'nothing'")
        await console.press("escape")
        await console.sees("needs you")


async def test_a_closer_look_keeps_the_chosen_attempt_in_view(opened: OpenConsole) -> None:
    async with opened(worlds.night, screen=SWEEP, size=(80, 24)) as console:
        await console.sees("LOW")
        await console.press("t", "home")
        await console.sees("detecting-insults-in-social-commentary seed 1", "Mar 13")
        await console.press("plus", "plus", "plus")
        await console.sees("12:00", "14:00")
        assert "Mar 13" not in console.text()
        await console.press("end")
        await console.sees("dog-breed-identification seed 3", "02:00")
        await console.press("0")
        await console.sees("Mar 13", "12:00")


def test_every_attempt_is_told_apart_without_colours(night: Timeline) -> None:
    lines = drawn(night, 180, 12, ascii_only=True)
    text = "\n".join(lines)
    assert text.isascii()
    label = Gantt(night, view.whole_window(night, NOW), 180, 40, Drawing(NOW)).label
    lanes = [line[label:] for line in lines[2 : 2 + len(night.lanes)]]
    ends = "".join(lanes)
    assert ends.count("!i") == 4 and ends.count("!c") == 3
    # Four were launched again, and six are live.
    assert ends.count("2=") == 4 and ends.count(">") == 6
    assert "g" in lines[1] and "e" in lines[1]
    now = lines[0].index("v")
    assert all(lane[now - label] in ">|" for lane in lanes)


def test_lanes_are_named_and_begin_with_what_matters_now(places: Places) -> None:
    world = worlds.outage(places)
    found = view.timeline(world.database, "aide-o3-all", NOW)
    world.database.close()
    assert found is not None
    last = [lane.bars[-1] for lane in found.lanes]
    stuck, lost, live, ended = last[:1], last[1:18], last[18:37], last[37:]
    assert [bar.cause for bar in stuck] == ["no valid submission"] and all(bar.is_live for bar in stuck)
    assert all(bar.lost_gpu for bar in lost) and all(bar.is_live and not bar.cause for bar in live)
    failed = [bar.state is RunState.FAILED for bar in ended]
    assert failed == sorted(failed, reverse=True)
    lines = drawn(found, 80, 17)
    first = view.first_choice(found)
    assert first is not None and first.is_live and lines[2].startswith(" whale-categorization… s1")
    # What has passed has the room; where that leaves none for the expected end, only the header names it.
    window = view.whole_window(found, NOW)
    assert window.share(NOW) > 0.85 and "►" not in lines[0]


@pytest.mark.parametrize(("width", "height"), [(80, 17), (200, 51), (40, 4), (120, 1)])
def test_it_fits_every_size(night: Timeline, width: int, height: int) -> None:
    lines = drawn(night, width, height)
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= max(height, 3)


def test_what_is_chosen_is_seen_where_lanes_are_scrolled(night: Timeline) -> None:
    gantt = Gantt(night, view.whole_window(night, NOW), 80, 5, Drawing(NOW), top=4)
    assert gantt.lanes < len(night.lanes)
    lines = gantt.lines()
    # A slot that several competitions share is not named after one of them.
    assert any(f"slot {night.lanes[4].number}" in line[1][0] for line in lines)
    assert "slots 5-6 of 6" in lines[0][0][0], "others are above and below"


def test_a_window_stays_within_the_whole_and_around_what_is_chosen(night: Timeline) -> None:
    whole = view.whole_window(night, NOW)
    assert whole.begin == night.begin and whole.end > NOW
    window = whole
    for _step in range(20):
        window = window.zoomed(0.5, night.begin + 5 * HOUR, whole)
        assert window.begin <= night.begin + 5 * HOUR <= window.end
    assert window.seconds == pytest.approx(60.0)
    assert window.zoomed(1e9, NOW, whole) == whole
    assert whole.zoomed(0.5, whole.begin, whole).shifted(100, whole).end == pytest.approx(whole.end)
    last = max(night.bars, key=lambda bar: bar.begin)
    seen = whole.zoomed(0.1, whole.begin, whole).with_bar(last, NOW, whole)
    assert seen.begin <= last.begin and last.until(NOW) <= seen.end


def test_failures_are_gone_through_from_the_last_on_and_begin_again(night: Timeline) -> None:
    failed = [bar for bar in night.bars if bar.state is RunState.FAILED]
    seen = []
    chosen = None
    for _step in range(len(failed)):
        chosen = view.next_failed(night, chosen)
        assert chosen is not None and chosen.end is not None
        seen.append(chosen.end)
    assert seen == sorted(seen, reverse=True) and len(seen) == 7
    assert view.next_failed(night, chosen) == view.next_failed(night, None)


async def test_the_seconds_of_a_young_sweep_are_charted(opened: OpenConsole) -> None:
    def young(places: Places) -> World:
        world = worlds.open_world(places)
        world.sweep("young", ("spooky-author-identification",), seeds=1, began=0)
        world.launch(world.run("young", "spooky-author-identification", 1), ago=-5)
        return world

    async with opened(young, screen="sweep:young") as console:
        await console.sees("spooky-author-identification")
        console.app.now = lambda: NOW + 40  # type: ignore[method-assign]
        await console.press("t")
        await console.sees("1 attempt ┤")


async def test_an_idle_timeline_writes_nothing(opened: OpenConsole) -> None:
    async with opened(worlds.night, screen=SWEEP, palette=MONOCHROME) as console:
        await console.sees("LOW")
        await console.press("t")
        await console.sees("medals over time")
        chart = console.app.screen.query_one("#chart")
        painted: list[object] = []
        refresh = chart.refresh
        chart.refresh = lambda *regions, **more: (painted.append(regions), refresh(*regions, **more))[1]  # type: ignore[method-assign,func-returns-value]
        assert isinstance(console.app.screen, TimelineScreen)
        console.app.screen.tick()
        assert painted == []


@pytest.mark.parametrize("with_engine", [True, False])
async def test_while_the_engine_is_down_nothing_says_when_a_sweep_ends(
    opened: OpenConsole, with_engine: bool
) -> None:
    async with opened(worlds.night, screen=SWEEP, with_engine=with_engine) as console:
        await console.sees("engine ok" if with_engine else "engine down", "seed 1")
        assert ("ends ~" in console.text()) is with_engine
        await console.press("t")
        await console.sees("medals over time")
        assert ("ends ~" in console.text()) is with_engine


def test_the_legend_says_what_the_number_in_a_bar_is(night: Timeline, places: Places) -> None:
    assert "2━ the run's second attempt" in "".join(text for text, _role in legend(night, UNICODE))
    world = worlds.outage(places)
    found = view.timeline(world.database, "aide-o3-all", NOW)
    world.database.close()
    assert found is not None and "attempt" not in "".join(text for text, _role in legend(found, UNICODE))


def test_a_live_attempt_without_a_valid_submission_says_so_once(places: Places) -> None:
    world = worlds.outage(places)
    found = view.timeline(world.database, "aide-o3-all", NOW)
    world.database.close()
    assert found is not None
    first = view.first_choice(found)
    assert first is not None
    told = ["".join(text for text, _role in line) for line in bar_facts(first, NOW, UNICODE)]
    assert "nothing graded" not in told[0] and "no valid submission" in told[1]
