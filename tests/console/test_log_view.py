"""What can be done with a log besides reading it: numbers, times, counted hits, only some lines, taking a part."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.views.run import without_secrets
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from tests.console.conftest import OpenConsole
from tests.console.world import NOW


def log_of(places: Places) -> Path:
    return next(places.runs_dir.glob(f"aide-o3-lite/dogs*/seed-3/attempt-1/{protocol.LOG}"))


def write_log(places: Places, *, lines: int = 400) -> Path:
    log = log_of(places)
    texts = [f"epoch {n}" if n % 7 else f"Error {n}" for n in range(1, lines + 1)]
    starts = [sum(len(text) + 1 for text in texts[:place]) for place in range(lines)]
    log.write_text("".join(f"{text}\n" for text in texts))
    times = [f"{start} {NOW - 3600 + place}\n" for place, start in enumerate(starts)]
    log.with_suffix(".times").write_text("".join(times))
    return log


async def test_lines_are_numbered_and_timed(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="run:81") as console:
        await console.sees("following")
        write_log(places)
        await console.sees("epoch 400")
        await console.press("number_sign", "t")
        await console.sees("02:20:39 400 epoch 400")
        await console.press("at", *"02", "colon", *"16", "enter")
        await console.sees("02:16:00 121 epoch 121", "paused")


async def test_hits_are_counted_and_only_their_lines_shown(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="run:81") as console:
        await console.sees("following")
        write_log(places)
        await console.sees("epoch 400")
        await console.press("g", "slash", *"error", "enter")
        await console.sees("hit 1 of 57")
        await console.press("n", "n")
        await console.sees("hit 3 of 57")
        await console.press("G", "ampersand", *"error", "enter")
        await console.sees("/error: 57 lines", "Error 399")
        await console.misses("epoch")
        with log_of(places).open("a") as stream:
            stream.write("epoch 401\nError 402\n")
        await console.sees("Error 402")
        assert "epoch" not in console.text()
        await console.press("ampersand", *"nothing of that", "enter")
        await console.sees("/nothing of that: 0 lines", "& \N{RETURN SYMBOL} shows all")
        await console.press("ampersand", "enter")
        await console.sees("epoch 401")


async def test_the_next_hit_has_its_key_in_the_footer_of_an_ended_run_too(opened: OpenConsole) -> None:
    async with opened(screen="run:48", size=(80, 24)) as console:
        await console.sees("the end", "r re-roll")
        await console.press("slash", *"shapes", "enter")
        await console.sees("/shapes: hit 1 of 12", "n next hit", "esc back")


async def test_after_a_search_in_vain_no_earlier_hit_is_counted(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="run:81", size=(80, 24)) as console:
        await console.sees("following")
        assert "next hit" not in console.text()
        write_log(places)
        await console.sees("epoch 400")
        await console.press("slash", *"error", "enter")
        await console.sees("of 57", "n next hit")
        await console.press("slash", *"nothing of that", "enter")
        await console.sees("no hit")
        await console.misses("hit 1 of")
        await console.misses("0 hits")


async def test_a_search_right_after_the_opening_looks_at_the_whole_log(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen="run:81") as console:
        await console.sees("following")
        write_log(places)
        await console.sees("epoch 400")
        await console.press("e")
        await console.sees("hit 1 of 57", "Error 7", "from the beginning again")
        await console.press("E")
        await console.sees("hit 57 of 57", "from the end again")
        await console.press("slash", *"nowhere", "enter")
        await console.sees("no hit")


async def test_a_hit_is_seen_with_what_led_to_it_however_long_lines_are(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen="run:81", size=(80, 24)) as console:
        await console.sees("following")
        long = "".join(f"{'x' * 3000} {number}\n" for number in range(9))
        log_of(places).write_text(f"{long}{'y' * 900} Needle {'z' * 900}\n{long}")
        await console.sees("xxxx")
        await console.press("slash", *"Needle", "enter")
        await console.sees("Needle", "from column")
        await console.press("w", "g", "n")
        await console.sees("yyyy", "Needle")


async def test_a_log_that_has_ended_is_not_followed(opened: OpenConsole) -> None:
    async with opened(screen="run:48") as console:
        await console.sees("the end")
        assert "following" not in console.text()
        await console.press("k")
        await console.misses("the end")
        assert "paused" not in console.text()


async def test_a_selection_is_copied_and_saved_harmless(
    opened: OpenConsole, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(screen="run:81") as console:
        await console.sees("following")
        log_of(places).write_text("first\n\x1b]0;title\x07second\n")
        await console.sees("<OSC>second")
        await console.press("y")
        await console.sees("copied 2 lines")
        assert console.app.clipboard == "first\n<OSC>second"
        await console.press("S", *"part", "enter")
        await console.sees("saved part")
        assert (tmp_path / "part").read_text() == "first\n<OSC>second\n"
        await console.press("S", *"part", "enter")
        await console.sees("part exists already")
        assert (tmp_path / "part").read_text() == "first\n<OSC>second\n"


async def test_a_file_of_a_run_is_read_from_its_beginning(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="run:81") as console:
        await console.sees("following")
        code = log_of(places).parent.parent / "code"
        code.mkdir()
        (code / "train.py").write_text("import os\nprint('\x9b31m')  # hostile\n")
        # It looks like a segment of a log of the file's name, which it is not.
        (code / "train.py.5").write_text("x" * 100)
        await console.press("shift+tab", "shift+tab")
        await console.sees("train.py")
        while "train.py" not in str(console.app.screen.query_one("#list").key):  # type: ignore[attr-defined]  # a list
            await console.press("down")
        await console.press("enter")
        await console.until(lambda: isinstance(console.app.screen, FileScreen))
        await console.sees("import os", "print('<9B>31m')")
        await console.press("escape")
        await console.sees("train.py")


def test_secrets_among_arguments_are_hidden() -> None:
    given = ("--model", "o3", "--api-key", "sk-1", "agent.token=abc", "agent.steps=500", "--password=x")
    assert without_secrets(given) == (
        "--model", "o3", "--api-key", "hidden", "agent.token=hidden", "agent.steps=500", "--password=hidden",
    )  # fmt: skip
