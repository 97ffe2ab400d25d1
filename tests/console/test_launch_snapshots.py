"""Pictures of composing a sweep, over facts that are the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from mlebench_console.competitions import registry
from mlebench_console.console.app.app import ConsoleApp
from mlebench_console.console.cli.program import shell
from mlebench_console.console.screens.launch import Composed
from mlebench_console.console.tui.config import Settings
from mlebench_console.console.tui.theme import DARK, MONOCHROME, Palette
from mlebench_console.engine.checks import Check, Health, Remedy
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.engine.sweeps.forecast import Forecast, PastRuns, schedule
from tests.conditions import spec_of
from tests.console.stillness import stillness
from tests.console.test_snapshots import LARGE, SMALL
from tests.console.world import FrozenClock

LITE = registry.splits()["lite"]
LAUNCH = LaunchSweep(spec=spec_of("aide", "", LITE, 3, 86_400.0, runtime="docker", gpus=1), concurrency=8)
KNOWN = PastRuns({name: 3600.0 * (5 + place % 19) for place, name in enumerate(LITE[::2])})
GOOD = (
    Check(Health.OK, "the engine is running with 36 slots"),
    Check(Health.OK, "agent aide, version 0123456789ab"),
    Check(Health.OK, "the images aide and mlebench-grader are there"),
    Check(Health.OK, "the data of all 22 competitions are prepared"),
    Check(Health.OK, "a run takes 1 GPU, this host has 4"),
    Check(Health.OK, "all runs hold about 158.4 GB, 2,104.0 GB are free"),
)
MISSING = (
    Check(Health.FAIL, "the engine is not running", "mlebench-console engine start", Remedy.ENGINE),
    Check(
        Health.FAIL,
        "agent 'aide' cannot be launched: the environment variable OPENAI_API_KEY is not set",
        "export OPENAI_API_KEY=... where the engine is started",
    ),
    Check(Health.FAIL, "not built: images aide, mlebench-grader", "build them", Remedy.BUILD, ("aide",)),
    Check(Health.FAIL, "2 of 22 datasets are not prepared: a, b", "prepare them", Remedy.PREPARE, ("a", "b")),
    *GOOD[4:],
)

# No run would ever start: each takes more GPUs than there are.
NEVER = tuple(
    Check(Health.FAIL, "a run takes 8 GPUs, this host has 4", "give fewer with --gpus")
    if "GPU" in check.text
    else check
    for check in MISSING
)

# name: checks, runs at once, keys, theme, ASCII
CASES: dict[str, tuple[tuple[Check, ...], int, tuple[str, ...], Palette, bool]] = {
    "launch": (GOOD, 4, (), DARK, False),
    "launch_missing": (MISSING, 4, (), DARK, False),
    "launch_missing_ascii": (MISSING, 4, (), MONOCHROME, True),
    "launch_dry_run": (GOOD, 4, ("ctrl+t",), DARK, False),
    "launch_never": (NEVER, 0, (), DARK, False),
}


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
@pytest.mark.parametrize("case", CASES)
def test_composing_looks_as_it_did(
    case: str, size: tuple[int, int], snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks, at_once, keys, palette, ascii_only = CASES[case]
    planned = schedule(LAUNCH, KNOWN, at_once)
    seconds = max((run.starts_after + run.seconds for run in planned), default=0.0)
    measured = sum(run.measured for run in planned)
    forecast = Forecast(checks, planned, at_once, "GPUs", seconds, 17 * 86_400.0, measured)
    monkeypatch.setattr(
        "mlebench_console.console.screens.launch.compose",
        lambda *_: Composed(forecast.checks, LAUNCH, forecast),
    )
    places = Places(Path("/nowhere/config.toml"), Path("/nowhere/data"), Path("/nowhere/state"))
    settings = Settings(palette=palette, ascii_only=ascii_only)
    app = ConsoleApp(places, settings, screen="launch", shell=shell(), clock=FrozenClock())

    async def settle(pilot: Pilot[Any]) -> None:
        await stillness(app, pilot)
        await pilot.press(*keys)
        await stillness(app, pilot)

    assert snap_compare(app, terminal_size=size, run_before=settle)
