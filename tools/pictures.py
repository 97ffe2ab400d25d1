"""Draw the README's pictures: the real app, without a terminal, on generated states at a fixed time."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.console.app.app import ConsoleApp
from mlebench_console.console.cli.program import shell
from mlebench_console.console.tui.config import Settings
from mlebench_console.console.tui.theme import PALETTE_NAMES
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.foundation.locks import FileLock
from tests.console import worlds
from tests.console.world import FrozenClock, World

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
        world: creates the state.
        shows: a text that appears once everything is drawn.
    """

    name: str
    world: Callable[[Places], World]
    screen: str
    keys: Sequence[str]
    shows: str
    theme: str = "dark"
    size: tuple[int, int] = (132, 34)


PICTURES = (
    Picture("overview", worlds.busy, "overview", (), "GPU lost"),
    Picture("timeline", worlds.busy, "sweep:aide-o3-lite", ("t",), "medals", "light"),
    Picture("sweep", worlds.busy, "sweep:aide-o3-lite", ("j", "right"), "any medal, 1 of 3"),
    Picture("run", worlds.busy, "run:81", ("tab", "tab"), "3 valid of 4"),
    Picture("board", worlds.scored, "board", (), "imported: operand", size=(132, 30)),
    Picture("compare", worlds.scored, "board", ("space", "j", "c"), "that decide", "light", (132, 30)),
)


async def draw(picture: Picture) -> None:
    """Open the app on a state, press keys, wait until it shows a text, and save the screen."""
    with tempfile.TemporaryDirectory() as folder:
        places = worlds.places_in(Path(folder))
        picture.world(places).database.close()
        with FileLock(lock_path(places)) as engine:
            engine.acquire()
            settings = Settings(palette=PALETTE_NAMES[picture.theme])
            app = ConsoleApp(places, settings, screen=picture.screen, shell=shell(), clock=FrozenClock())
            async with app.run_test(size=picture.size) as pilot:
                await _until(lambda: app.engine is not None and "engine ok" in _seen(app))
                await pilot.press(*picture.keys)
                await _until(lambda: picture.shows in _seen(app))
                svg = app.export_screenshot(title="mlebench-console")
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{picture.name}.svg").write_text(_self_contained(svg), encoding="utf-8")


async def _until(true: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    # Several times in a row, so that an unfinished screen is not saved.
    held = 0
    while held < 5:
        if time.monotonic() > give_up:
            raise SystemExit("a picture never showed the expected text")
        await asyncio.sleep(0.1)
        held = held + 1 if true() else 0


def _seen(app: ConsoleApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def _self_contained(svg: str) -> str:
    """Remove the fonts that a viewer would have to download; any monospaced one will do."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(prog="make pictures", description=__doc__)
    parser.add_argument("names", nargs="*", help="pictures to draw (default: all)")
    wanted = parser.parse_args().names
    os.environ["TZ"] = "UTC"
    time.tzset()
    for picture in PICTURES:
        if not wanted or picture.name in wanted:
            asyncio.run(draw(picture))


if __name__ == "__main__":
    main()
