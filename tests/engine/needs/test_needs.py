"""What needs a person: everything is known once, whoever shows it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mlebench_console.console.cli.program import run
from mlebench_console.console.views.overview import overview
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.need import Need, NeedKind, host_needs, is_about_runs
from mlebench_console.engine.needs.needs import NeedFacts, needs, read_needs
from mlebench_console.engine.places import Places
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import ProblemRecord
from mlebench_console.state import acknowledgements, datasets, sweeps
from mlebench_console.state.records import Acknowledgement, DatasetState, KaggleState
from tests.console import worlds
from tests.console.world import NOW, World

UP = EngineStatus(running=True, heartbeat_at=NOW - 1)


@pytest.fixture
def world(places: Places) -> World:
    """A state with runs that failed, a dataset that can't be prepared, and Kaggle out of reach."""
    made = worlds.outage(places)
    problem = ProblemRecord("data", "spooky-author-identification: its zip is damaged", "", "Remove it.")
    datasets.set_state(
        made.database, "spooky-author-identification", "v1", DatasetState.FAILED, now=NOW, problem=problem
    )
    datasets.set_kaggle(made.database, KaggleState(NOW - 60, 2, NOW + 60, "it answers 503"), now=NOW)
    return made


def kinds(found: tuple[Need, ...]) -> list[NeedKind]:
    return [need.kind for need in found]


def test_status_watch_and_the_overview_list_the_same(
    world: World, places: Places, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    world.engine(problem="the inbox can't be read")
    flags = [
        f"--state-dir={places.state_dir}", f"--data-dir={places.data_dir}", f"--config={places.config_file}"
    ]  # fmt: skip

    def document(*words: str) -> dict[str, list[dict[str, str]]]:
        capsys.readouterr()
        assert run([*flags, *words]) == 0
        found: dict[str, list[dict[str, str]]] = json.loads(capsys.readouterr().out)
        return found

    lock = FileLock(places.state_dir / "engine.lock")
    assert lock.acquire()
    try:
        of_status = document("status", "--json")["needs"]
        of_watch = document("watch", "--times", "1", "--json")["needs_you"]
        status = EngineStatus(running=True, heartbeat_at=NOW - 1, problems=("the inbox can't be read",))
        listed = needs(overview(world.database, places.config_file, NOW).needs, status, NOW)
    finally:
        lock.release()
    wanted = [need.key for need in listed.every]
    assert [one["key"] for one in of_status] == [one["key"] for one in of_watch] == wanted
    assert set(kinds(listed.every)) == {NeedKind.HOST, NeedKind.RUNS, NeedKind.KAGGLE, NeedKind.DATASET}
    assert [one["text"] for one in of_status] == [need.text for need in listed.every]


def test_an_engine_that_is_down_or_silent_and_full_disks_need_a_person() -> None:
    (down,) = host_needs(None, NOW)
    assert down.kind is NeedKind.ENGINE
    assert host_needs(None, NOW, has_state=False) == ()
    (silent,) = host_needs(replace(UP, heartbeat_at=NOW - 60), NOW)
    assert (silent.kind, silent.since) == (NeedKind.ENGINE, NOW - 60)
    assert silent.key != down.key
    disks = replace(UP, state_disk_free=1, state_disk_total=100, data_disk_free=50, data_disk_total=100)
    (full,) = host_needs(disks, NOW)
    assert (full.kind, full.text) == (NeedKind.DISK, "the disk with the state is 99 % full")
    assert host_needs(UP, NOW) == ()


def test_runs_that_can_never_start_are_listed_with_the_reason(world: World) -> None:
    found = read_needs(world.database)
    sweep = next(one for one in sweeps.all_sweeps(world.database) if one.spec.competitions)
    resources = replace(sweep.conditions.resources, cpus=4.0, memory_bytes=64_000_000_000, gpus=2)
    wanted = replace(
        sweep, spec=replace(sweep.spec, conditions=replace(sweep.conditions, resources=resources))
    )
    facts = NeedFacts(queued_here=(wanted,))
    roomy = replace(UP, slots=8.0, memory_for_runs=128_000_000_000, gpus=2)
    assert found.causes and needs(facts, roomy, NOW).every == ()
    for engine, why in (
        (replace(roomy, slots=2.0), "each takes 4 processors, and this engine has 2"),
        (
            replace(roomy, memory_for_runs=32_000_000_000),
            "each takes 64 GB of memory, and this engine has 32 GB",
        ),
        (replace(roomy, gpus=1), "each takes 2 GPUs, and this host has 1"),
        (replace(roomy, gpus=0), "each takes 2 GPUs, and this host has none"),
    ):
        (need,) = needs(facts, engine, NOW).needed
        assert (need.kind, need.sweep_id) == (NeedKind.NO_ROOM, sweep.id)
        assert need.text == f"the runs of {sweep.id} can never start here: {why}"
    assert needs(facts, replace(UP, slots=None), NOW).every == ()  # unknown is not too little


def test_what_is_acknowledged_is_kept_apart_and_keys_say_whether_they_are_of_runs(world: World) -> None:
    found = needs(read_needs(world.database), UP, NOW)
    kaggle = next(need for need in found.needed if need.kind is NeedKind.KAGGLE)
    (first, *_others) = (need for need in found.needed if need.kind is NeedKind.RUNS)
    assert is_about_runs(first.key)
    assert not is_about_runs(kaggle.key)
    known = Acknowledgement(kaggle.key, kaggle.text, "op", NOW, "maintenance", NOW + 3600)
    acknowledgements.acknowledge(world.database, known, sweep_id=None)
    again = needs(read_needs(world.database), UP, NOW)
    assert [need.key for need in again.acknowledged] == [kaggle.key]
    assert kaggle.key not in [need.key for need in again.needed]


def test_a_report_lists_what_its_sweeps_need(world: World, places: Places) -> None:
    listed = needs(read_needs(world.database), UP, NOW)
    (lost,) = listed.of_sweeps(("dummy-2",))
    assert lost.group is not None and "dummy-2" in lost.group.sweep_ids
    assert listed.of_sweeps(()) == ()
    page = places.state_dir / "report.html"
    flags = (
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
    )
    assert run([*flags, "report", "dummy-2", "-o", str(page)]) == 0
    assert "Needs a person" in page.read_text()
    assert lost.text.split(":")[0] in page.read_text()
