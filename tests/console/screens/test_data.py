"""The datasets screen steers what is marked or under the cursor, and tells what a person has to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from competitions import registry
from engine.datasets.steps import CHECKSUM, DOWNLOAD
from engine.places import Places
from state import datasets
from state.records import DatasetState, StepState
from tests.console import worlds
from tests.console.conftest import Desk, OpenDesk
from tests.console.world import NOW, World

LOW = registry.splits()["low"]
PREPARED, DOWNLOADING, PREPARING, REFUSED, GONE, FAILED, WAITING, ABSENT = LOW[1], *LOW[2:8], LOW[10]


def about(*names: str, edition: str = "v1", **more: object) -> dict[str, object]:
    return {"competition_ids": list(names), "edition": edition, **more}


async def only(desk: Desk, words: str) -> None:
    """Filter, and put the cursor on the first that is left."""
    await desk.press("escape", "slash", *words, "enter", "g")


async def test_states_steps_amounts_and_totals_are_told(opened: OpenDesk) -> None:
    async with opened(worlds.preparing, screen="data") as desk:
        await desk.sees(
            "1 refused", "1 unavailable", "9.7 GB to download", "1.7 TB free", "missing would fit"
        )
        await only(desk, DOWNLOADING)
        await desk.sees("7.4 GB of 17.1 GB", "43%", "download", "2/6", "open")


async def test_rate_and_time_left_are_measured(opened: OpenDesk) -> None:
    async with opened(worlds.preparing, screen="data") as desk:
        await desk.sees("43%")
        assert desk.world is not None
        desk.clock.at += 10
        further = datasets.Progress(StepState.WORKING, 7_500_000_000, 17_100_000_000, "bytes")
        desk.world.working(DOWNLOADING, DOWNLOAD, further)
        await desk.sees("10.0 MB/s", "16m", "9.6 GB to download   16m left at this rate")


async def test_actions_apply_to_what_is_marked_and_only_where_they_make_sense(
    opened: OpenDesk, asked: list[Any]
) -> None:
    async with opened(worlds.preparing, screen="data") as desk:
        await desk.sees(ABSENT)
        await only(desk, "v1 low !tensorflow")
        await desk.press("a")
        await desk.sees("22 marked", "fits")
        for key, kind, names in (
            ("s", "dataset.stop", {DOWNLOADING, PREPARING, WAITING, LOW[8]}),
            ("r", "dataset.prepare", {REFUSED, GONE, FAILED}),
            ("c", "dataset.prepare", {REFUSED, GONE}),
            ("K", "dataset.prepare", {REFUSED, GONE}),
            ("v", "dataset.verify", set(LOW[:2])),
        ):
            asked.clear()
            await desk.press(key)
            await desk.until(lambda: asked, key)
            assert (asked[0][0], set(asked[0][1]["competition_ids"])) == (kind, names), key
        asked.clear()
        await desk.press("escape", "p")
        await desk.sees("prepared or being prepared")
        assert asked == []


async def test_a_range_is_marked_from_the_last_mark_to_the_cursor(opened: OpenDesk) -> None:
    async with opened(worlds.preparing, screen="data") as desk:
        await desk.sees(ABSENT)
        await only(desk, "v1 low !tensorflow")
        await desk.press("space", "j", "j", "j", "M")
        await desk.sees("4 marked")
        await desk.press("escape")
        await desk.misses("marked")


async def test_what_is_pruned_is_listed_first_and_no_is_the_default(
    opened: OpenDesk, asked: list[Any], places: Places
) -> None:
    folder = places.data_dir / PREPARED
    folder.mkdir(parents=True)
    (folder / f"{PREPARED}.zip").write_bytes(bytes(2_000_000))
    async with opened(worlds.preparing, screen="data") as desk:
        await desk.sees(PREPARED)
        await only(desk, PREPARED)
        await desk.press("x")
        await desk.sees("Remove 1 part?", "zip", "2.0 MB in all", "What is prepared stays")
        await desk.press("enter")
        await desk.misses("Remove 1 part?")
        assert asked == []
        await desk.press("x")
        await desk.sees("Remove 1 part?")
        await desk.press("y")
        await desk.until(lambda: asked == [("dataset.prune", about(PREPARED, parts=["zip"]))])
        await only(desk, ABSENT)
        await desk.press("x")
        await desk.sees("nothing to remove")


async def test_where_to_accept_the_rules_is_told_and_copied_and_k_still_moves_up(
    opened: OpenDesk, asked: list[Any]
) -> None:
    url = f"https://www.kaggle.com/c/{REFUSED}/rules"
    async with opened(worlds.preparing, screen="data") as desk:
        await desk.sees(REFUSED)
        await only(desk, "v1 low !tensorflow")
        await desk.press("j", "j", "j", "j")
        await desk.sees("accept at", url, "y copies it, c checks again")
        await desk.press("y")
        await desk.until(lambda: desk.app.clipboard == url)
        await desk.press("k")
        await desk.misses("accept at")
        assert asked == []


async def test_a_small_terminal_tells_what_to_do_in_one_line(opened: OpenDesk) -> None:
    async with opened(worlds.preparing, screen="data", size=(80, 24)) as desk:
        await desk.sees("1 refused", "1 unavailable")
        await only(desk, REFUSED)
        await desk.sees("y copies the address, then c checks again")
        await only(desk, GONE)
        await desk.sees("no longer; it counts in every denominator")


async def test_everything_about_a_dataset_has_a_screen_of_its_own(
    opened: OpenDesk, asked: list[Any], places: Places
) -> None:
    public = places.data_dir / FAILED / "prepared" / "public"
    public.mkdir(parents=True)
    (public / "sample\x1b]0;owned\x07.csv").write_bytes(bytes(3_000))

    def make(places: Places) -> World:
        world = worlds.preparing(places)
        told = "not as known \x1b[2J\u202e" + "far " * 60 + "end of the text"
        datasets.set_state(world.database, FAILED, "v1", DatasetState.FAILED, now=NOW, problem=told)
        return world

    async with opened(make, screen="data", size=(100, 60)) as desk:
        await desk.sees(FAILED)
        await only(desk, FAILED)
        await desk.press("enter")
        await desk.sees("Kaggle: open", "end of the text", "requested", "3 kB", "expected", "esc back")
        assert not {"\x1b", "\x07", "\u202e"} & set(desk.text())
        await desk.press("r")
        await desk.until(lambda: asked == [("dataset.prepare", about(FAILED))])
        await desk.press("Y")
        await desk.until(lambda: Path(desk.app.clipboard) == places.data_dir / FAILED)
        await desk.press("escape")
        await desk.sees("1 of 83")


async def test_verifying_is_seen_and_can_be_stopped(opened: OpenDesk, asked: list[Any]) -> None:
    def verifying(places: Places) -> World:
        world = worlds.preparing(places)
        half = datasets.Progress(StepState.WORKING, 5_000_000, 10_000_000, "bytes", "train.csv")
        datasets.set_step(world.database, PREPARED, "v1", CHECKSUM, half, now=NOW)
        waits = datasets.Progress(StepState.WAITING, note="to be verified")
        datasets.set_step(world.database, LOW[0], "v1", CHECKSUM, waits, now=NOW)
        return world

    async with opened(verifying, screen="data", size=(160, 40)) as desk:
        await desk.sees("checksum", "6/6", "50%", "to be verified")
        await only(desk, PREPARED)
        await desk.press("s")
        await desk.until(lambda: asked == [("dataset.stop", about(PREPARED))])


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
        await desk.sees("download", "1/4", "43%")
