"""Wide, combining and invisible characters keep columns straight, whoever wrote them."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mlebench_console.competitions import registry
from mlebench_console.console.pieces import distinct_names, fit, foreign
from mlebench_console.engine.places import Places
from mlebench_console.state.lifecycle import FailureClass
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.world import World

WIDE = "日本語の夜間スイープ"
COMBINED = unicodedata.normalize("NFD", "Ünïçödé-é́́-agent")


@given(st.text(max_size=60), st.integers(1, 40))
def test_foreign_text_takes_exactly_its_cells(text: str, width: int) -> None:
    assert cell_len(foreign(text, width)) == width


@given(st.lists(st.text(max_size=60), unique=True, max_size=5), st.integers(2, 40))
def test_distinct_names_fit_their_width(names: list[str], width: int) -> None:
    assert all(cell_len(short) <= width for short in distinct_names(names, width).values())


def test_no_two_competitions_read_the_same_however_short_their_names_are() -> None:
    names = registry.splits()["split75"]
    for width in range(18, 60):
        assert len(set(distinct_names(names, width).values())) == len(names), width
    short = distinct_names(names, 21)
    assert short["tabular-playground-series-dec-2021"] == "tabular-play…dec-2021"
    assert short["text-normalization-challenge-russian-language"] == "text-norma…russian-l…"


@given(st.text(st.sampled_from("aé日\u0301語 x"), max_size=30), st.integers(1, 20), st.booleans())
def test_our_own_text_takes_exactly_its_cells(text: str, width: int, right: bool) -> None:
    assert cell_len(fit(text, width, right=right)) == width


def wide(places: Places) -> World:
    world = worlds.open_world(places)
    for sweep_id, agent, cause in ((WIDE, COMBINED, "one"), ("plain", "plain", "two")):
        world.sweep(sweep_id, worlds.DEMO, agent=agent)
        attempt = world.launch(world.run(sweep_id, worlds.DEMO[0], 1), ago=900)
        world.fail(attempt, FailureClass.CRASH, f"{WIDE}: {COMBINED} {cause}", ago=60)
        world.launch(world.run(sweep_id, worlds.DEMO[1], 2), ago=800)
    world.engine()
    return world


async def test_columns_are_straight_beside_wide_names(opened: OpenConsole) -> None:
    async with opened(wide) as console:
        await console.sees("needs you", "plain", "日本語")
        for screen in "1268":
            await console.press(screen)
            await console.pilot.pause(0.3)
            strips = console.app.screen._compositor.render_strips()
            assert {strip.cell_length for strip in strips} == {120}
        await console.press("1")
        await console.sees("needs you", "agents' own failures")
        failed = [line for line in console.text().splitlines() if "  !c  " in line]
        ends = {_cells_before(line, "03:13") for line in failed}
        names = {_cells_before(line, worlds.DEMO[0]) for line in failed}
        assert len(failed) == 2 and len(ends) == 1 and len(names) == 1


def _cells_before(line: str, text: str) -> int:
    return cell_len(line.partition(text)[0])
