"""A dry run tells what would start, what is missing with the next step, and how long it takes; it changes nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.engine.checks import Remedy
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.control.status import publish
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.engine.options.sweep import SweepOptions, resolve
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.engine.sweeps.checks import HostCapacity
from mlebench_console.engine.sweeps.forecast import PastRuns, forecast, past_runs, runs_at_once, schedule
from mlebench_console.environment.runner.process.containment import limits_here
from mlebench_console.environment.runner.protocol import BUBBLEWRAP
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import database, runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.records import SweepSpec
from mlebench_console.state.usage.samples import Samples
from tests.conditions import changed, spec_of
from tests.engine.harness import COMPETITION
from tests.engine.states import new_sweep

TWO = ("leaf-classification", "spaceship-titanic")
SPEC = spec_of("dummy", "", TWO, 2, 100.0)
HOST = HostCapacity(cpus=8, memory_bytes=64 * 10**9, gpus=2, free_disk=10**12)


@pytest.fixture
def ready(tmp_path: Path, prepared_data: Path) -> Iterator[tuple[Places, Database]]:
    places = Places(tmp_path / "config.toml", prepared_data, tmp_path / "state")
    places.state_dir.mkdir()
    opened = database.open_for_writing(places.state_dir)
    yield places, opened
    opened.close()


def launch(places: Places, **said: object) -> LaunchSweep:
    usual = SweepOptions(agent="dummy", competitions=(COMPETITION,), runtime="plain")
    return resolve(replace(usual, **said), places)  # type: ignore[arg-type]  # fields of the form


@pytest.mark.parametrize(
    ("spec", "concurrency", "told"),
    [
        (SPEC, 3, (3, "concurrency")),
        (changed(SPEC, cpus=2.0), 9, (4, "CPUs")),
        (changed(SPEC, memory_bytes=30 * 10**9), 9, (2, "memory")),
        (changed(SPEC, gpus=1, runs_per_gpu=2), 9, (4, "GPUs")),
        (changed(SPEC, gpus=-1), 9, (1, "GPUs")),
        (changed(SPEC, gpus=3), 9, (0, "GPUs")),
    ],
)
def test_what_fits_at_once_is_bound_by_the_scarcest(
    spec: SweepSpec, concurrency: int, told: tuple[int, str]
) -> None:
    assert runs_at_once(LaunchSweep(spec=spec, concurrency=concurrency), HOST) == told


def test_all_competitions_come_before_the_second_seed_and_slots_are_used_in_turn() -> None:
    known = PastRuns({"leaf-classification": 10.0}, usual_seconds=30.0)
    planned = schedule(LaunchSweep(spec=SPEC), known, 2)
    assert [(run.competition_id, run.seed, run.starts_after) for run in planned] == [
        ("leaf-classification", 1, 0.0),
        ("spaceship-titanic", 1, 0.0),
        ("leaf-classification", 2, 10.0),
        ("spaceship-titanic", 2, 20.0),
    ]
    assert [run.seconds for run in planned] == [10.0, 30.0, 10.0, 30.0]


def test_a_start_ramp_keeps_starts_apart_and_nothing_is_planned_where_nothing_fits() -> None:
    ramped = LaunchSweep(spec=replace(SPEC, start_ramp_seconds=7.0))
    assert [run.starts_after for run in schedule(ramped, PastRuns(), 4)] == [0.0, 7.0, 14.0, 21.0]
    assert schedule(ramped, PastRuns(), 0) == ()


def test_everything_that_is_missing_is_told_with_its_next_step(ready: tuple[Places, Database]) -> None:
    places, _ = ready
    found = forecast(launch(places, competitions=(COMPETITION, "leaf-classification"), cpus=10_000.0), places)
    missing = {check.remedy: check for check in found.checks if not check.allows_work}
    assert missing.keys() == {Remedy.ENGINE, Remedy.PREPARE, None}
    assert missing[Remedy.PREPARE].subjects == ("leaf-classification",)
    assert all(check.next_step for check in missing.values())
    assert not found.can_launch and not found.planned


def test_a_launch_on_demo_data_is_warned_of_what_it_is_worth(
    ready: tuple[Places, Database], tmp_path: Path
) -> None:
    places, _ = ready
    demo = replace(places, data_dir=tmp_path / "data")
    shutil.copytree(places.data_dir / COMPETITION, demo.data_dir / COMPETITION)
    folder = dataset_folder(registry.get(COMPETITION), demo.data_dir)
    folder.marker.write_text(json.dumps({"synthetic": "demo"}))
    told = [check.text for check in forecast(launch(demo), demo).checks if check.warns]
    assert f"1 of 1 datasets are demo data, which give no results: {COMPETITION}" in told
    folder.marker.unlink()
    assert not any("demo data" in check.text for check in forecast(launch(demo), demo).checks)


def test_a_dry_run_tells_which_limits_nothing_holds(ready: tuple[Places, Database]) -> None:
    places, _ = ready
    (told,) = (check.text for check in forecast(launch(places), places).checks if "limits" in check.text)
    assert told == f"limits of runs: {limits_here(isolated=False).in_words()}"
    assert "not enforced: " in told, "without bubblewrap some are not"


def test_secrets_are_looked_for_by_name(ready: tuple[Places, Database], tmp_path: Path) -> None:
    places, _ = ready
    folder = tmp_path / "agents" / "keyed"
    folder.mkdir(parents=True)
    (folder / "start.sh").write_text("true\n")
    config = "keyed:\n  start: keyed/start.sh\n  env_vars:\n    KEY: ${{ secrets.MISSING_KEY }}\n"
    (folder / "config.yaml").write_text(config)
    found = forecast(launch(places, agent="keyed", agents_dir=str(folder.parent)), places)
    (check,) = (check for check in found.checks if "keyed" in check.text)
    assert not check.allows_work and "MISSING_KEY" in check.text + check.next_step


@pytest.mark.usefixtures("bubblewrap")
def test_an_agent_that_plans_for_more_time_or_wants_a_key_without_a_network_is_told_and_not_refused(
    ready: tuple[Places, Database], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, _ = ready
    folder = tmp_path / "agents" / "aide"
    folder.mkdir(parents=True)
    (folder / "start.sh").write_text("true\n")
    (folder / "config.yaml").write_text(
        "aide:\n  start: aide/start.sh\n  env_vars:\n    TIME_LIMIT_SECS: 86400\n"
        "    OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}\n"
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.runtimes.resolve", lambda _: BUBBLEWRAP)

    def warned(**said: object) -> list[str]:
        asked = launch(places, agent="aide", agents_dir=str(folder.parent), **said)
        found = forecast(asked, places, starts_engine=True)
        assert found.can_launch
        return [check.text for check in found.checks if check.warns]

    assert warned(hours=24.0, network="open") == []
    assert warned(hours=2.0) == [
        "agent aide plans for 24 h, its runs are ended after 2 h",
        "agent aide has OPENAI_API_KEY, but can't reach any service on the network 'none'",
    ]


def test_too_little_disk_is_a_warning_as_a_launch_does_not_refuse_it(ready: tuple[Places, Database]) -> None:
    places, _ = ready
    found = forecast(launch(places, disk_gb=10.0**9), places, starts_engine=True)
    (check,) = (check for check in found.checks if check.warns)
    assert "all runs may use" in check.text and "free space" in check.next_step
    assert found.can_launch


def test_earlier_runs_tell_how_long_it_takes_and_what_it_holds(ready: tuple[Places, Database]) -> None:
    places, state = ready
    spec = replace(launch(places).spec, seeds=1)
    new_sweep(state, spec, name="old")
    (run,) = runs.of_sweep(state, "old")
    attempt = transitions.launch(state, run.id, directory="a", runtime="plain", now=1.0)
    transitions.started(state, attempt.id, isolated=False, at=10.0, now=10.0)
    transitions.agent_ended(state, attempt.id, EndReason.EXITED, exit_code=0, at=70.0, now=70.0)
    samples = Samples(places.state_dir, writable=True)
    samples.add(attempt.id, [UsageSample(at, 1.0, 1, held, 1) for at, held in ((11.0, 5000), (12.0, 9000))])
    samples.close()
    assert past_runs(places, "dummy") == PastRuns({COMPETITION: 60.0}, 60.0, 9000)
    assert past_runs(places, "other") == PastRuns()
    publish(places, EngineStatus(slots=4.0))
    found = forecast(launch(places, seeds=4, concurrency=2), places)
    assert (found.measured, found.seconds, found.seconds_at_most) == (4, 120.0, 2 * 86_400.0)
    idle = EngineStatus(running=True, slots=4.0)
    found = forecast(launch(places, seeds=4, concurrency=2), places, idle)
    assert (found.leaves_room, found.fit_at_once, found.seconds_if_full) == (True, 4, 60.0)
    assert (found.model_usd, found.machine_cost) == (None, None)
    places.config_file.write_text("[prices]\nrun_hour = 3.0\ncurrency = 'EUR'\n")
    found = forecast(launch(places, seeds=4, concurrency=2), places, replace(idle, slots_used=2.0))
    assert not found.leaves_room, "other runs use the rest"
    assert (round(found.machine_cost or 0, 3), found.currency) == (0.2, "EUR")
    assert any("all runs need about" in check.text for check in found.checks)


def test_a_dry_run_creates_nothing(ready: tuple[Places, Database]) -> None:
    places, state = ready
    before = sorted(path.name for path in places.state_dir.iterdir())
    forecast(launch(places), places)
    assert sweeps.all_sweeps(state) == []
    assert sorted(path.name for path in places.state_dir.iterdir()) == before
