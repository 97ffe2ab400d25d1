"""Marking ranges, changing the order, classifying and reading several logs as one on the sweep screen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from competitions import registry
from console.tui.widgets.line_list import LineList
from console.views.lists import SortOrder
from console.views.sweep import RunOrder, ordered_board, sweep_board
from engine.places import Places
from state.lifecycle import RunState
from tests.console import worlds
from tests.console.conftest import Desk, OpenDesk

SWEEP = "sweep:aide-o3-lite"


async def test_a_range_is_a_rectangle_of_the_matrix(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("M")
        await desk.sees("mark one end of the range first")
        await desk.press("space", "down", "down", "right", "M")
        await desk.sees("6 marked")


async def test_a_range_of_the_table_is_every_line_between(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("v", "space", "down", "down", "down", "M")
        await desk.sees("4 marked")


async def test_failures_are_classified_with_a_note(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("f", "c")
        await desk.sees("What did 1 run fail of?", "infrastructure")
        await desk.press("down", *"disk", "enter")
        await desk.until(lambda: asked)
        assert asked[0][0] == "run.classify"
        assert asked[0][1]["class"] == "timeout" and asked[0][1]["note"] == "disk"


async def test_leaving_the_classes_changes_nothing(opened: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.control.ask", lambda *_: pytest.fail("nothing was to be asked"))
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("f", "c")
        await desk.sees("What did 1 run fail of?")
        await desk.press("escape")
        await desk.misses("What did")


def test_what_needs_a_person_comes_first_in_that_order(places: Places) -> None:
    world = worlds.busy(places)
    board = sweep_board(world.database, "aide-o3-lite")
    assert board is not None
    ordered = ordered_board(board, SortOrder(RunOrder.NEED))
    states = [run.state for run in ordered.runs]
    failed = states.count(RunState.FAILED)
    assert failed and set(states[:failed]) == {RunState.FAILED}
    assert {run.id for run in ordered.runs} == {run.id for run in board.runs}
    names = [
        row.competition_id.lower() for row in ordered_board(board, SortOrder(RunOrder.NAME)).groups[0].rows
    ]
    assert names == sorted(names)
    world.database.close()


async def test_the_order_changes_by_key_and_the_cursor_stays_with_its_run(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("down", "down")
        await desk.sees("denoising-dirty-documents seed 1")
        await desk.press("o", "o")
        await desk.sees("order: what needs you first", "denoising-dirty-documents seed 1")


async def test_marked_logs_are_read_as_one(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("m", "L")
        await desk.sees("3 logs by time", "aerial-cactus-identificat")
        await desk.press("escape")
        await desk.sees("LOW")


async def click(desk: Desk, title: str) -> None:
    """Click on the name of a column, over the table or in the matrix."""
    top = desk.app.screen.query_one(LineList).region.y
    line = desk.text().splitlines()[top]
    await desk.pilot.click(offset=(line.index(title), top))
    await desk.pilot.pause()


async def test_a_click_on_a_columns_name_sorts_the_matrix_and_a_second_one_turns_it_round(
    opened: OpenDesk,
) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW", "aerial-cactus-identification seed 1")
        await click(desk, "LOW")
        await desk.sees("LOW ↓", "order: by name", "aerial-cactus-identification seed 1")
        await click(desk, "LOW")
        await desk.sees("LOW ↑", "order: by name, reversed", "aerial-cactus-identification seed 1")
        names = [key for key in keys_of(desk) if key in registry.splits()["low"]]
        assert len(names) > 2 and names == sorted(names, reverse=True)
        await click(desk, "medal")
        await desk.sees("medal↓", "order: most medals first")
        await click(desk, "seed 2")
        await desk.sees("seed 1 ↓", "seed 2 ↓", "order: what needs you first")


async def test_a_click_on_a_columns_name_sorts_the_table_of_runs(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP, size=(160, 40)) as desk:
        await desk.sees("LOW")
        await desk.press("v")
        await desk.sees("run ↓")
        ids = keys_of(desk)
        await click(desk, "run ↓")
        await desk.sees("run ↑", "order: the benchmark's order, reversed")
        assert keys_of(desk) == ids[::-1]
        for title, order in (
            ("competition", "by name"),
            ("state", "what needs you first"),
            ("standing", "most medals first"),
            ("quiet", "longest quiet first"),
        ):
            await click(desk, title)
            await desk.sees(f"order: {order}")
        await desk.sees("quiet↓")
        await click(desk, "score")
        await desk.sees("order: longest quiet first")


async def test_the_order_is_reversed_by_key(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("o", "O")
        await desk.sees("LOW ↑", "order: by name, reversed")
        await desk.press("O")
        await desk.sees("LOW ↓")
        await desk.press("o")
        await desk.sees("order: what needs you first")


def keys_of(desk: Desk) -> list[Hashable]:
    return [line.key for line in desk.app.screen.query_one(LineList).lines if line.selectable]
