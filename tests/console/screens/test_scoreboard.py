"""The scoreboard in the console: sorting, one experiment, comparing two, and exporting a row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench_console.console.lists import SortOrder
from mlebench_console.console.pieces import cells_of
from mlebench_console.console.roles import Drawing
from mlebench_console.console.screens.run.screen import RunScreen
from mlebench_console.console.screens.scoreboard import SORTS, sorted_rows, table_lines
from mlebench_console.console.tui.widgets.blocks import laid_out
from mlebench_console.console.views.scoreboard import Subject, scoreboard
from mlebench_console.engine.places import Places
from mlebench_console.engine.scoreboard.model import Row
from mlebench_console.engine.scoreboard.published import published_rows
from mlebench_console.engine.scoreboard.reports import FOLDER
from mlebench_console.state.lifecycle import Outcome
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole
from tests.console.stillness import stillness


async def on_board(console: ShownConsole, *keys: str) -> None:
    """Press keys once own rows are shown."""
    await console.sees("ours: aide-o3")
    await console.press(*keys)


async def until_sorted(console: ShownConsole, title: str, arrow: str) -> None:
    """Wait until a column's title has an arrow."""
    await console.until(lambda: re.search(rf"{title} ?{arrow}", console.text()) is not None)


async def test_the_board_sorts_by_the_column_under_the_cursor_and_turns(opened: OpenConsole) -> None:
    async with opened(worlds.demo, screen="board", demo=True) as console:
        await console.sees("All ▾", "ours: demo-baseline", "demo data, not a result", "demo 0/3 ▶")
        await console.press("s")
        await console.sees("agent ▾")
        await console.press("s")
        await console.sees("agent ▴")
        await console.press("right", "right", "s")
        await console.sees("Low ▾")
        await console.press("S")
        await console.sees("Low ▴")


async def test_a_click_on_a_columns_name_sorts_the_board_and_a_second_one_turns_it_round(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.scored, screen="board", size=(240, 48)) as console:
        await console.sees("All ▾", "ours: aide-o3")
        await stillness(console.app, console.pilot)  # what comes above the list would move its heading
        for title in ("agent", "models", "Low", "limit", "date", "seeds"):
            heading = console.app.screen.query_one("#list").region
            x = console.text().splitlines()[heading.y].index(title)
            for arrow in "▾▴":
                await console.pilot.click(offset=(x, heading.y))
                # The arrow follows at once where the column has no more room.
                await until_sorted(console, title, arrow)


@pytest.mark.parametrize("column", SORTS)
def test_every_column_sorts_and_turning_it_gives_the_other_order(column: str) -> None:
    rows = published_rows()
    order = sorted_rows(rows, SortOrder(column))
    turned = sorted_rows(rows, SortOrder(column, reversed=True))
    assert sorted(map(id, order)) == sorted(map(id, turned)) == sorted(map(id, rows))
    given: dict[str, Callable[[Row], object]] = {
        "name": lambda row: row.name.lower(), "models": lambda row: row.llms.lower(), "hours": lambda row: row.hours,
        "date": lambda row: row.date, "seeds": lambda row: row.table,
    }  # fmt: skip
    values = given.get(column, lambda row: row.columns[column].cell.mean)
    assert values(order[0]) == values(turned[-1]) and values(order[0]) != values(turned[0])


def test_the_additional_table_stands_apart_with_its_footnotes() -> None:
    _, lines = table_lines(published_rows(), SortOrder("all"), Drawing(0.0, width=140))
    drawn = ["".join(text for text, _ in line.pieces) for line in laid_out(lines, Drawing(0.0, width=140))]
    heading = next(place for place, text in enumerate(drawn) if "additional table" in text)
    assert not any("Disarray" in text for text in drawn[:heading])
    disarray = next(text for text in drawn[heading:] if "Disarray" in text)
    number = disarray.partition("[")[2].partition("]")[0]
    assert any(text.strip() == f"[{number}] test-set feedback" for text in drawn)


async def test_words_leave_only_rows_that_have_them(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board") as console:
        await console.sees("ours: aide-o3", "imported: operand", "Famou-Agent 2.0")
        await console.press("slash", *"operand", "enter")
        await console.misses("Famou-Agent")
        await console.sees("imported: operand", "Operand ensemble", "/ operand")
        await console.press("escape")
        await console.sees("Famou-Agent 2.0")


async def test_a_cell_leads_to_its_runs(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board", size=(120, 60)) as console:
        await on_board(console, "right", "right", "enter")
        await console.sees(
            "split low",
            "seed 3",
            "aerial-cactus-identification",
            "any medal",
            "statistics",
            "pass@k",
            "medal in some, not all",
        )
        # The splits without a figure have no column, nor what would repeat that of Low.
        assert not {"Its own", "Medium", "High"} & set(console.text().split())
        # Statistics are tables side by side, not sentences.
        assert any("k = 2" in line and "2h" in line for line in console.text().splitlines())
        await console.press("v")
        await console.sees("split medium", "it has no runs of this split")
        await console.press("p")
        await console.sees(
            "By split",
            "Any medal at shorter limits",
            "a whole bar is 100 %",
            "20  30.3 %",
            "esc competitions",
        )
        bars = [
            line.index("·") for line in console.text().splitlines() if line.rstrip().endswith("···· 0.0 ±0.0")
        ]
        assert len(set(bars)) == 1  # in all plots they begin at the same place
        await console.press("p", "v", "v", "enter")
        await console.until(lambda: isinstance(console.app.screen, RunScreen))
        await console.sees("aerial-cactus-identification", "fixed the label encoder")
        await console.press("escape", "escape")
        await console.sees("ours: openhands")


async def test_a_published_row_says_that_no_runs_of_it_are_known(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board") as console:
        await console.sees("competitions  e export  c compare  s sort")
        await on_board(console, "j", "j", "j")
        await console.until(lambda: "e export" not in console.text(), "the footer has keys that do something")
        await console.press("enter")
        await console.sees("s sort", "of a published row only its numbers")


async def test_padding_counts_what_is_missing(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board") as console:
        await console.sees("imported: operand", "comparable on Low, place 15 of 29, 1 seed")
        await console.press("p")
        await console.sees(
            "padded: lost and missing runs count as no medal", "comparable on all 75, place 24 of 29, padded"
        )
        await console.misses("comparable on Low")


async def test_two_experiments_are_compared_by_competition(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board") as console:
        await on_board(console, "c")
        await console.sees("mark one experiment with space")
        await console.press("space", "j", "c")
        await console.sees(
            "A aide-o3 50.0 %", "B openhands 43.9 %", "by any medal", "competitions that decide"
        )
        await console.sees(
            "better on 9, worse on 5 of 22 common competitions: may well be chance", "common 22"
        )
        await console.press("m")
        await console.sees("by gold")
        await console.press("x", "v")
        await console.sees("A openhands", "B aide-o3", "all competitions")
        await console.press("escape")
        await console.sees("models")


async def test_what_names_are_worth_is_told_where_one_had_none(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board") as console:
        assert console.world is not None
        without_names = (
            "UPDATE sweeps SET spec = json_set(spec, '$.conditions.obfuscated', json('true')) WHERE id = ?"
        )
        with console.world.database.transaction():
            console.world.database.execute(without_names, ("openhands-lite",))
        await on_board(console, "space", "j", "c")
        await console.sees("mixed descriptions: obfuscated, usual", "name is worth +6.1 points")


async def test_what_cannot_be_compared_says_why(opened: OpenConsole, places: Places) -> None:
    async with opened(worlds.scored, screen="board") as console:
        assert console.world is not None
        console.world.prepared(worlds.DEMO[0], demo=True)
        console.world.sweep("other", worlds.DEMO, agent="dummy")
        console.world.finish(
            console.world.launch(console.world.run("other", worlds.DEMO[0], 1), ago=900),
            Outcome.GOLD,
            1.0,
            ago=60,
        )
        await console.sees("ours: other", "ours: aide-o3")
        await console.press("g", "space", "j", "c")
        await console.sees("can't be compared", "mixed kinds of data")


async def test_a_row_is_previewed_copied_and_written(
    opened: OpenConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(worlds.scored, screen="board") as console:
        copied: list[str] = []
        monkeypatch.setattr(console.app, "copy_to_clipboard", copied.append)  # what reaches the terminal
        await on_board(console, "e")
        await console.sees("Markdown", "| Agent | LLM(s) used |", "complete seeds: 3 of 3")
        await console.press("n", *"Mine", "enter", "l", *"o3", "enter")
        await console.sees("| Mine (aide-o3) | o3 |")
        await console.press("y")
        await console.until(lambda: copied)
        assert copied[0].startswith("| Agent |") and "| Mine (aide-o3) | o3 |" in copied[0]
        await console.press("f", "f")
        await console.sees('"agent": "Mine"')
        await console.press("w", "enter")
        await console.until((tmp_path / "aide-o3.json").is_file)
        assert json.loads((tmp_path / "aide-o3.json").read_text())["llms"] == "o3"
        await console.press("w", "enter")
        # What was typed is there again, to be corrected.
        await console.sees(" file aide-o3.json")
        refused = f"not written: {tmp_path / 'aide-o3.json'} exists already. Name another file."
        await console.until(lambda: refused in " ".join(console.text().split()), refused)
        await console.press(*("backspace",) * 5, *"-2.json", "enter")
        await console.until((tmp_path / "aide-o3-2.json").is_file)
        await console.press("b", "enter")
        await console.until((tmp_path / "aide-o3-bundle" / "manifest.json").is_file)


async def test_a_watcher_writes_no_file(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board", readonly=True) as console:
        await on_board(console, "e")
        await console.sees("complete seeds")
        await console.press("w")
        await console.sees("this console is read-only")
        await console.press("b")
        assert not any(prompt.has_class("-open") for prompt in console.app.screen.query(".prompt"))


def test_a_damaged_import_keeps_no_other_row_away(places: Places) -> None:
    world = worlds.scored(places)
    (places.state_dir / FOLDER / "operand" / "about.json").write_text("{")
    board = scoreboard(world.database, world.places.config_file, pad_missing=False)
    world.database.close()
    assert {Subject("own", "aide-o3"), Subject("main", "AIBuildAI")} <= {
        Subject(r.table, r.name) for r in board.rows
    }
    assert len(board.problems) == 1 and "'operand' is damaged" in board.problems[0]


@pytest.mark.parametrize(
    "text", ["", "a b", "wide 日本語 text here", "x" * 50, "two  spaces   kept as they are"]
)
def test_a_preview_loses_no_letter_and_fits(text: str) -> None:
    from rich.cells import cell_len

    parts = cells_of(text, 9)
    assert "".join(parts) == text and all(cell_len(part) <= 9 for part in parts)


async def test_a_row_that_cannot_be_made_is_said_and_ends_nothing(opened: OpenConsole) -> None:
    """A sweep of an older state may be on a competition that is no longer there."""
    async with opened(worlds.hostile, screen="board") as console:
        await console.sees("ours: exp")
        await console.press("e")
        await console.sees("Competition 'compevil")
        await console.misses("making the row")
        await console.press("escape")
        await console.sees("ours: exp")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_costs_of_models_stand_above_the_table_and_take_no_room_of_names(
    opened: OpenConsole, size: tuple[int, int]
) -> None:
    async with opened(worlds.counted, screen="board", size=size) as console:
        await console.sees("ours: aide-counted", "models: 733k tokens and 0.87 USD a run, 2.06 USD a medal")
        assert "CAIR MLE-STAR-Pro-1.5" in console.text()


@pytest.mark.parametrize("form", range(4))
async def test_an_export_begins_in_every_format_with_what_the_row_lacks_then_its_figures(
    opened: OpenConsole, form: int
) -> None:
    async with opened(worlds.scored, screen="board", size=(80, 40)) as console:
        await on_board(console, "e", *["tab"] * form)
        await console.sees(
            "not ready for the leaderboard: 4 things are missing",
            "53 of 75 have no run: no figure for Medium, High, All",
            "models        their names are missing: l types them",
            "integrity     no detector has looked at its runs",
            "conditions    not known: agent images, machines",
            "low         50.00 ± 2.62      22 of 22      3",
        )


async def test_an_export_shows_the_row_in_a_low_terminal_and_how_many_runs_are_left(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.counted, screen="board", size=(80, 24)) as console:
        await console.sees("ours: aide-counted")
        await console.press("e")
        await console.sees("6 of 27 have not ended", "the row as Markdown", "| aide-o3 (aide-counted) |")


async def test_queued_seeds_are_not_drawn_as_running(opened: OpenConsole) -> None:
    async with opened(worlds.demo, screen="board", demo=True, size=(200, 60)) as console:
        await console.sees("seeds by competition", "1 running")
        pane = "".join(line.partition("│")[2] for line in console.text().splitlines())
        assert (pane.count("▶"), pane.count("…")) == (1, 15)


async def test_a_narrow_board_keeps_the_scope_of_figures_and_the_models_of_a_row(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board", size=(80, 24)) as console:
        await console.sees("Low: place 15 of 29, 1 seed", "any medal 56.6 % on its own 53")
        await on_board(console, "j", "j", "j")
        await console.sees("models Gemini-3-Pro-Preview")


async def test_a_long_line_of_an_export_is_shown_in_part_and_copied_whole(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    async with opened(worlds.scored, screen="board", size=(80, 48)) as console:
        monkeypatch.setattr(console.app, "copy_to_clipboard", copied.append)
        await on_board(console, "e", "tab")
        await console.sees("more characters, written in full", "# of those no longer available")
        assert "whale-categorization-playground" not in console.text()
        await console.press("y")
        await console.until(lambda: copied)
    assert "whale-categorization-playground" in copied[0]


async def test_competitions_that_come_out_even_are_shown_where_all_have_room(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board", size=(120, 40)) as console:
        await on_board(console, "space", "j", "c")
        await console.sees("competitions that decide", "competitions that come out even", "mlsp-2013-birds")
        await console.pilot.resize_terminal(80, 24)
        await console.misses("come out even")


async def test_one_run_is_not_called_runs(opened: OpenConsole) -> None:
    async with opened(worlds.outage, screen="board") as console:
        await console.sees("ours: dummy-2")
        await console.press("enter")
        await console.sees("hours in 1 run")
        assert "in 1 runs" not in console.text()


async def test_an_engine_that_is_down_is_told_whole_on_a_narrow_screen(opened: OpenConsole) -> None:
    async with opened(worlds.scored, screen="board", size=(80, 24), with_engine=False) as console:
        await console.sees("the engine is not running", "is graded, agents go on; :engine start")
