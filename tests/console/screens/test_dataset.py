"""The datasets screen steers what is marked or under the cursor, and tells what a person has to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from mlebench_console.competitions import registry
from mlebench_console.console.actions.dataset import prepare_raw
from mlebench_console.console.screens.dataset import DataScreen
from mlebench_console.engine.datasets.steps import CHECKSUM, DOWNLOAD
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import PrepareDatasets, PruneDatasets, StopDatasets
from mlebench_console.foundation.problems import ProblemRecord, UsageProblem
from mlebench_console.state import datasets
from mlebench_console.state.records import DatasetState, PreparationOptions, StepState
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole
from tests.console.world import NOW, World

LOW = registry.splits()["low"]
PREPARED, DOWNLOADING, PREPARING, REFUSED, GONE, FAILED, WAITING, ABSENT = LOW[1], *LOW[2:8], LOW[10]


async def only(console: ShownConsole, words: str) -> None:
    """Filter, and put the cursor on the first that is left."""
    await console.press("escape", "slash", *words, "enter", "g")


async def test_states_steps_amounts_and_totals_are_told(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data") as console:
        await console.sees(
            "1 refused", "1 unavailable", "9.7 GB of 19.6 GB to download", "1.7 TB free", "room for all 16"
        )
        await only(console, DOWNLOADING)
        await console.sees("7.4 GB of 17.1 GB", "43%", "download", "2/6", "open")


async def test_demo_data_are_told_as_such_where_they_are_prepared(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data") as console:
        await console.sees(PREPARED)
        assert console.world is not None
        console.world.prepared(PREPARED, demo=True)
        await console.sees("✓ demo data")
        await console.press("slash", *"demo", "enter")
        await console.misses(ABSENT)
        await console.sees(PREPARED)


async def test_rate_and_time_left_are_measured(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data") as console:
        await console.sees("43%")
        assert console.world is not None
        console.clock.at += 10
        further = datasets.Progress(StepState.WORKING, 7_500_000_000, 17_100_000_000, "bytes")
        console.world.working(DOWNLOADING, DOWNLOAD, further)
        await console.sees("10.0 MB/s", "16m", "9.6 GB of 19.6 GB to download at 10.0 MB/s   16m left")


async def test_actions_apply_to_what_is_marked_and_only_where_they_make_sense(
    opened: OpenConsole, asked: list[Any]
) -> None:
    async with opened(worlds.preparing, screen="data") as console:
        await console.sees(ABSENT)
        await only(console, "v1 low !tensorflow")
        await console.press("a")
        await console.sees("22 marked", "fits")
        for key, kind, names in (
            ("s", "dataset.stop", {DOWNLOADING, PREPARING, WAITING, LOW[8]}),
            ("r", "dataset.prepare", {REFUSED, GONE, FAILED}),
            ("c", "dataset.prepare", {REFUSED, GONE}),
            ("K", "dataset.prepare", {REFUSED, GONE}),
            ("v", "dataset.verify", set(LOW[:2])),
            ("V", "dataset.verify", set(LOW[:2])),
            ("plus", "dataset.priority", {DOWNLOADING, PREPARING, WAITING, LOW[8]}),
        ):
            asked.clear()
            await console.press(key)
            await console.until(lambda: asked, key)
            assert (asked[0].kind, set(asked[0].competition_ids)) == (kind, names), key
        asked.clear()
        await console.press("escape", "p")
        await console.sees("prepared or being prepared")
        assert asked == []


async def test_a_range_is_marked_from_the_last_mark_to_the_cursor(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data") as console:
        await console.sees(ABSENT)
        await only(console, "v1 low !tensorflow")
        await console.press("space", "j", "j", "j", "M")
        await console.sees("4 marked")
        await console.press("escape")
        await console.misses("marked")


async def test_what_is_pruned_is_listed_first_and_no_is_the_default(
    opened: OpenConsole, asked: list[Any], places: Places
) -> None:
    folder = places.data_dir / PREPARED
    folder.mkdir(parents=True)
    (folder / f"{PREPARED}.zip").write_bytes(bytes(2_000_000))
    async with opened(worlds.preparing, screen="data") as console:
        await console.sees(PREPARED)
        await only(console, PREPARED)
        await console.press("x")
        await console.sees("Remove 1 part?", "zip", "2.0 MB in all", "Prepared data is kept")
        await console.press("enter")
        await console.misses("Remove 1 part?")
        assert asked == []
        await console.press("x")
        await console.sees("Remove 1 part?")
        await console.press("y")
        await console.until(lambda: asked == [PruneDatasets(competition_ids=(PREPARED,), parts=("zip",))])
        await only(console, ABSENT)
        await console.press("x")
        await console.sees("nothing to remove")


async def test_where_to_accept_the_rules_is_told_and_copied_and_k_still_moves_up(
    opened: OpenConsole, asked: list[Any]
) -> None:
    url = f"https://www.kaggle.com/c/{REFUSED}/rules"
    async with opened(worlds.preparing, screen="data") as console:
        await console.sees(REFUSED)
        await only(console, "v1 low !tensorflow")
        await console.press("j", "j", "j", "j")
        await console.sees("accept at", url, "y copies it, c checks again")
        await console.press("y")
        await console.until(lambda: console.app.clipboard == url)
        await console.press("k")
        await console.misses("accept at")
        assert asked == []


async def test_a_small_terminal_tells_what_to_do_in_one_line(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data", size=(80, 24)) as console:
        await console.sees("1 refused", "1 unavailable")
        await only(console, REFUSED)
        await console.sees(f"accept the rules at https://www.kaggle.com/c/{REFUSED}/rules")
        await console.sees("refused", "c check again", "y copy URL")
        assert "p prepare" not in console.text() and "s stop" not in console.text()
        await only(console, GONE)
        await console.sees("no longer on Kaggle; it counts in every denominator")


async def test_everything_about_a_dataset_has_a_screen_of_its_own(
    opened: OpenConsole, asked: list[Any], places: Places
) -> None:
    public = places.data_dir / FAILED / "prepared" / "public"
    public.mkdir(parents=True)
    (public / "sample\x1b]0;owned\x07.csv").write_bytes(bytes(3_000))

    def make(places: Places) -> World:
        world = worlds.preparing(places)
        told = "not as known \x1b[2J\u202e" + "far " * 60 + "end of the text"
        datasets.set_state(
            world.database, FAILED, "v1", DatasetState.FAILED, now=NOW, problem=ProblemRecord("data", told)
        )
        return world

    async with opened(make, screen="data", size=(100, 60)) as console:
        await console.sees(FAILED)
        await only(console, FAILED)
        await console.press("enter")
        await console.sees("Kaggle: open", "end of the text", "requested", "3 kB", "expected", "esc back")
        await console.sees("low split", "metric", "cut-offs  gold ")
        assert not {"\x1b", "\x07", "\u202e"} & set(console.text())
        await console.press("r")
        await console.until(lambda: asked == [PrepareDatasets(competition_ids=(FAILED,))])
        await console.press("Y")
        await console.until(lambda: Path(console.app.clipboard) == places.data_dir / FAILED)
        await console.press("question_mark")
        await console.sees("One dataset", "Compare with the manifest and known checksums")
        await console.press("escape")
        await console.misses("One dataset")
        await console.press("escape")
        await console.sees("1 of 83")


async def test_verifying_is_seen_and_can_be_stopped(opened: OpenConsole, asked: list[Any]) -> None:
    def verifying(places: Places) -> World:
        world = worlds.preparing(places)
        half = datasets.Progress(StepState.WORKING, 5_000_000, 10_000_000, "bytes", "train.csv")
        datasets.set_step(world.database, PREPARED, "v1", CHECKSUM, half, now=NOW)
        waits = datasets.Progress(StepState.WAITING, note="to be verified")
        datasets.set_step(world.database, LOW[0], "v1", CHECKSUM, waits, now=NOW)
        return world

    async with opened(verifying, screen="data", size=(160, 40)) as console:
        await console.sees("checksum", "50%", "to be verified")
        await only(console, PREPARED)
        await console.press("s")
        await console.until(lambda: asked == [StopDatasets(competition_ids=(PREPARED,))])


async def test_a_dataset_is_asked_for_by_key(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen="data") as console:
        await console.sees("aerial-cactus")
        await console.press("slash", *"pizza", "enter")
        await console.misses("aerial-cactus")
        await console.press("p")
        await console.sees("done as you asked")
        assert asked == [PrepareDatasets(competition_ids=("random-acts-of-pizza",))]
        await console.press("escape")
        await console.sees("aerial-cactus")


async def test_a_dataset_on_its_way_shows_how_far_it_is(opened: OpenConsole) -> None:
    async with opened(screen="data") as console:
        await console.press("slash", *"working", "enter")
        await console.sees("download", "1/4", "43%")


async def test_without_a_state_the_screen_shows_what_there_is_and_what_the_disk_holds(
    opened: OpenConsole, places: Places
) -> None:
    competition = registry.get(LOW[0])
    folder = dataset_folder(competition, places.data_dir)
    for name in (competition.answers, competition.sample_submission):
        path = folder.prepared / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id\n")
    async with opened(None, screen="data") as console:
        await console.sees("1 prepared", f"{len(registry.all_ids()) - 1} absent", LOW[1])


async def test_a_dataset_is_prepared_from_raw_data_on_this_disk(
    opened: OpenConsole, asked: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    async with opened(screen="data") as console:
        await console.press("R")
        await console.sees(
            "from raw data on this disk", "an extracted Kaggle folder or its zip", "⏎ prepare", "esc cancel"
        )
        field = console.app.screen.query_one("#raw Input", Input)
        field.value = str(tmp_path / "none.zip")
        await console.press("enter")
        # What was typed is there to be corrected.
        await console.sees("were not found", "Kaggle's zip", "/none.zip", "⏎ prepare")
        assert not asked
        field.value = str(tmp_path / "raw")
        await console.press("enter")
        await console.until(lambda: asked)
        assert isinstance(asked[0], PrepareDatasets) and asked[0].options.source == str(tmp_path / "raw")
        assert len(asked[0].competition_ids) == 1
        screen = console.app.screen
        assert isinstance(screen, DataScreen) and screen.words == ""
        await console.misses("from raw data on this disk")
        await console.misses("⏎ prepare")


def test_raw_data_of_several_competitions_are_a_folder_or_zip_of_each(tmp_path: Path) -> None:
    ids = ["spaceship-titanic", "leaf-classification"]
    (tmp_path / "spaceship-titanic").mkdir()
    with pytest.raises(UsageProblem, match="has neither a folder leaf-classification nor its zip"):
        prepare_raw(ids, tmp_path)
    (tmp_path / "leaf-classification.zip").touch()
    assert prepare_raw(ids, tmp_path).requests == (
        PrepareDatasets(competition_ids=tuple(ids), options=PreparationOptions(source=str(tmp_path))),
    )


async def test_a_filter_that_lets_nothing_through_says_so(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data", size=(80, 24)) as console:
        await console.press("slash", *"zzz", "enter")
        await console.sees("no dataset has these words: Esc clears the filter")
        await console.press("escape")
        await console.sees("aerial-cactus-identification")


async def test_every_state_is_counted_on_a_narrow_screen(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data", size=(80, 24)) as console:
        await console.sees(
            "? 1 refused", "x 1 unavailable", "! 1 failed", "▶ 2 working", "… 2", "✓ 3", "· 73"
        )


async def test_names_have_the_room_of_bars_and_of_long_problems_on_a_narrow_screen(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.preparing, screen="data", size=(80, 24)) as console:
        await console.sees(LOW[4], "download 43%", "prepare 34%")
        await console.sees("jigsaw-toxic-comment-classification-challenge")


async def test_the_room_for_missing_datasets_is_told_of_those_of_known_size(opened: OpenConsole) -> None:
    async with opened(worlds.preparing, screen="data", size=(160, 48)) as console:
        await console.sees("room for all 16 missing of known size")


async def test_made_up_data_are_not_compared_with_those_of_kaggle(opened: OpenConsole) -> None:
    async with opened(worlds.demo, screen="data", demo=True) as console:
        await console.sees("demo data", "not compared: this data is made up")
        assert "expected" not in console.text()
