"""A real engine calls a real receiver through the real apprise, with no console open."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from mlebench_console.engine.notifications.notifier import NOTE_NAME
from mlebench_console.engine.places import Places
from mlebench_console.state import runs
from mlebench_console.state.database import open_for_writing
from mlebench_console.state.lifecycle import FailureClass
from tests.console import worlds
from tests.console.world import World

PATIENCE = 60.0


def test_an_engine_calls_when_a_run_fails(places: Places, receiver: tuple[str, list[dict[str, Any]]]) -> None:
    world = worlds.paused(places)
    world.database.close()
    url, taken = receiver
    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text(f'[notifications]\non = ["failed"]\nurls = ["{url}"]\n')
    engine = subprocess.Popen(
        [
            sys.executable, "-m", "mlebench_console.engine.supervisor", f"--state-dir={places.state_dir}",
            f"--data-dir={places.data_dir}", f"--config={places.config_file}",
        ],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _until((places.state_dir / NOTE_NAME).exists)
        again = World(places, open_for_writing(places.state_dir))
        run = runs.of_sweep(again.database, "dummy-1")[0]
        again.fail(again.launch(run.id, ago=100), FailureClass.CRASH, "boom in the night", ago=5)
        again.database.close()
        _until(lambda: bool(taken))
    finally:
        engine.terminate()
        engine.wait(PATIENCE)
    assert len(taken) == 1 and "boom in the night" in taken[0]["message"]


def _until(true: Any) -> None:
    give_up = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.1)
