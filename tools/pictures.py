"""Draw the README's pictures: the real app on a finished demo, without a terminal, at a moment that stands still."""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections.abc import Sequence
from pathlib import Path

from console.app import ConsoleApp
from console.config import read_settings
from engine.demo.sweep import BASELINE, demo_places
from engine.places import Places, find_places
from state import events, runs
from state.database import open_for_reading

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZE = (120, 30)
PATIENCE_SECONDS = 30.0


class StillClock:
    """A clock that stands where the demo's last event happened."""

    def __init__(self, moment: float) -> None:
        self._moment = moment

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._moment

    def monotonic(self) -> float:
        """The machine's own monotonic time: nothing drawn depends on it."""
        return time.monotonic()


async def draw(
    places: Places, name: str, screen: str, *, keys: Sequence[str], shows: str, theme: str
) -> None:
    """Open the app on a screen, press keys, wait until it shows a text, and keep what is seen."""
    with_state = open_for_reading(places.state_dir)
    try:
        moment = events.newest(with_state, limit=1)[0].at
    finally:
        with_state.close()
    settings = read_settings(places.config_file, theme=theme, ascii_only=False)
    app = ConsoleApp(places, settings, screen=screen, demo=True, clock=StillClock(moment))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        give_up = time.monotonic() + PATIENCE_SECONDS
        while shows not in _words(svg := app.export_screenshot(title="mlebench-console")):
            if time.monotonic() > give_up:
                raise SystemExit(f"{name}: '{shows}' is not seen on the screen {screen}")
            await pilot.pause(0.1)
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{name}.svg").write_text(_self_contained(svg), encoding="utf-8")


def _words(svg: str) -> str:
    """The text of a picture, without its markup."""
    return re.sub(r"<[^>]*>", "", svg).replace("&#160;", " ")


def _self_contained(svg: str) -> str:
    """Leave out the fonts that a viewer would have to load from elsewhere; any monospaced one will do."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def _telling_run(places: Places) -> int:
    """The run whose picture says most: the first of the baseline's with a medal."""
    database = open_for_reading(places.state_dir)
    try:
        return next(run.id for run in runs.of_sweep(database, BASELINE) if run.outcome == "silver")
    finally:
        database.close()


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(prog="make pictures", description=__doc__)
    parser.add_argument("--state-dir", type=Path, help="the state beside whose demo to draw")
    places = demo_places(find_places(state_dir=parser.parse_args().state_dir))
    run = f"run:{_telling_run(places)}"
    for name, screen, keys, shows, theme in (
        ("sweep", f"sweep:{BASELINE}", (), "spooky-author-identification", "dark"),
        ("run", run, (), "submission is valid", "dark"),
        ("board", "board", (), "Famou-Agent 2.0", "dark"),
        ("overview-light", "overview", (), BASELINE, "light"),
    ):
        asyncio.run(draw(places, name, screen, keys=keys, shows=shows, theme=theme))


if __name__ == "__main__":
    main()
