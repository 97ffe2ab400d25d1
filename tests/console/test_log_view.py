"""What can be done with a log besides reading it: numbers, times, counted hits, only some lines, taking a part."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.screens.logs import FileScreen
from console.screens.run import without_secrets
from engine.places import Places
from environment.runner import protocol
from tests.console.conftest import OpenDesk
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


async def test_lines_are_numbered_and_timed(opened: OpenDesk, places: Places) -> None:
    async with opened(screen="run:81") as desk:
        await desk.sees("following")
        write_log(places)
        await desk.sees("epoch 400")
        await desk.press("number_sign", "t")
        await desk.sees("02:20:39 400 epoch 400")
        await desk.press("at", *"02", "colon", *"16", "enter")
        await desk.sees("02:16:00 121 epoch 121", "paused")


async def test_hits_are_counted_and_only_their_lines_shown(opened: OpenDesk, places: Places) -> None:
    async with opened(screen="run:81") as desk:
        await desk.sees("following")
        write_log(places)
        await desk.sees("epoch 400")
        await desk.press("g", "slash", *"error", "enter")
        await desk.sees("hit 1 of 57")
        await desk.press("n", "n")
        await desk.sees("hit 3 of 57")
        await desk.press("G", "ampersand", *"error", "enter")
        await desk.sees("only lines with a hit", "Error 399")
        await desk.misses("epoch")
        with log_of(places).open("a") as stream:
            stream.write("epoch 401\nError 402\n")
        await desk.sees("Error 402")
        assert "epoch" not in desk.text()
        await desk.press("ampersand", "enter")
        await desk.sees("epoch 401")


async def test_a_selection_is_copied_and_saved_harmless(
    opened: OpenDesk, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(screen="run:81") as desk:
        await desk.sees("following")
        log_of(places).write_text("first\n\x1b]0;title\x07second\n")
        await desk.sees("<OSC>second")
        await desk.press("y")
        await desk.sees("copied 2 lines")
        assert desk.app.clipboard == "first\n<OSC>second"
        await desk.press("S", *"part", "enter")
        await desk.sees("saved part")
        assert (tmp_path / "part").read_text() == "first\n<OSC>second\n"
        await desk.press("S", *"part", "enter")
        await desk.sees("part exists already")
        assert (tmp_path / "part").read_text() == "first\n<OSC>second\n"


async def test_a_file_of_a_run_is_read_from_its_beginning(opened: OpenDesk, places: Places) -> None:
    async with opened(screen="run:81") as desk:
        await desk.sees("following")
        code = log_of(places).parent.parent / "code"
        code.mkdir()
        (code / "train.py").write_text("import os\nprint('\x9b31m')  # hostile\n")
        # It looks like a segment of a log of the file's name, which it is not.
        (code / "train.py.5").write_text("x" * 100)
        await desk.press("shift+tab", "shift+tab")
        await desk.sees("train.py")
        while "train.py" not in str(desk.app.screen.query_one("#list").key):  # type: ignore[attr-defined]  # a list
            await desk.press("down")
        await desk.press("enter")
        await desk.until(lambda: isinstance(desk.app.screen, FileScreen))
        await desk.sees("import os", "print('<9B>31m')")
        await desk.press("escape")
        await desk.sees("train.py")


def test_secrets_among_arguments_are_hidden() -> None:
    given = ("--model", "o3", "--api-key", "sk-1", "agent.token=abc", "agent.steps=500", "--password=x")
    assert without_secrets(given) == (
        "--model", "o3", "--api-key", "hidden", "agent.token=hidden", "agent.steps=500", "--password=hidden",
    )  # fmt: skip
