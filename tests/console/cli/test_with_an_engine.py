"""The commands that need an engine, with a real one and the dummy agent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.trees import Vector
from tests.console.cli.conftest import Cli

PATIENCE = 120.0


@pytest.fixture
def engine(cli: Cli) -> Iterator[None]:
    started = cli("engine", "start")
    assert started.code == 0, started.err
    yield
    stopped = cli("engine", "stop", "--with-runs")
    assert stopped.code == 0, stopped.err


def wait_for(cli: Cli, sweep_id: str, *states: str) -> list[dict[str, Any]]:
    """Wait until every run of a sweep is in one of some states."""
    give_up = time.monotonic() + PATIENCE
    while True:
        found: list[dict[str, Any]] = cli("runs", "list", "--sweep", sweep_id, "--json").document()
        if all(run["state"] in states for run in found):
            return found
        assert time.monotonic() < give_up, found
        time.sleep(0.1)


def launch(cli: Cli, vector: Vector, *more: str) -> Any:
    return cli("sweep", "launch", "--agent", "dummy", "-c", vector.id, "--minutes", "5", *more)


def test_a_second_engine_is_refused_and_the_first_goes_on(cli: Cli, engine: None) -> None:
    second = cli("engine", "start")
    assert second.code == 4
    assert "an engine is already running" in second.err
    assert len(second.err.splitlines()) <= 2
    assert cli("engine", "status", "--json").document()["running"] is True
    assert "is up" in cli("engine", "logs").out


def test_a_launch_starts_the_engine_where_none_runs(cli: Cli, prepared: Vector) -> None:
    launched = launch(cli, prepared, "--seeds", "1", "--json")
    try:
        assert launched.code == 0 and "started the engine, process" in launched.err
        wait_for(cli, launched.document()["sweep_id"], "finished")
    finally:
        assert cli("engine", "stop", "--with-runs").code == 0


def test_a_sweep_is_launched_followed_and_shown(cli: Cli, engine: None, prepared: Vector) -> None:
    launched = launch(cli, prepared, "--seeds", "2", "--concurrency", "2", "--experiment", "trial", "--json")
    sweep_id = launched.document()["sweep_id"]
    ended = wait_for(cli, sweep_id, "finished", "failed")
    assert [run["outcome"] for run in ended] == ["below_median", "below_median"]
    assert "1.0515" in cli("runs", "show", f"{sweep_id}/{prepared.id}/1").out
    assert cli("runs", "logs", f"{sweep_id}/{prepared.id}/1").out
    (row,) = cli("scoreboard", "--own", "--json").document()
    assert (row["name"], row["seeds_done"], row["running"]) == ("trial", 2, False)
    assert row["own"]["cell"] == {"mean": 0.0, "sem": 0.0, "n": 2, "competitions": 1}


def test_a_paused_sweep_starts_nothing_until_it_goes_on(cli: Cli, engine: None, prepared: Vector) -> None:
    (paused_id, done_id) = ("held", "free")
    assert launch(cli, prepared, "--seeds", "2", "--name", paused_id).code == 0
    assert "paused" in cli("sweep", "pause", paused_id).out
    before = wait_for(cli, paused_id, "queued", "finished")
    assert launch(cli, prepared, "--seeds", "1", "--name", done_id).code == 0
    wait_for(cli, done_id, "finished")
    assert [run["state"] for run in wait_for(cli, paused_id, "queued", "finished")] == [
        run["state"] for run in before
    ]
    assert "at most 2 at once" in cli("sweep", "concurrency", paused_id, "2").out
    for sweep_id in (paused_id, done_id):
        assert cli("sweep", "assign", sweep_id, "both").code == 0
    assert cli("sweep", "resume", paused_id).code == 0
    wait_for(cli, paused_id, "finished")
    (row,) = cli("scoreboard", "--own", "--json").document()
    assert (row["name"], row["seeds_done"]) == ("both", 3)


def test_what_was_stopped_is_relaunched_on_demand(cli: Cli, engine: None, prepared: Vector) -> None:
    assert launch(cli, prepared, "--seeds", "1", "--name", "one").code == 0
    assert cli("sweep", "pause", "one").code == 0
    (run,) = wait_for(cli, "one", "queued", "finished")
    if run["state"] == "queued":
        assert cli("runs", "stop", str(run["id"])).code == 0
        wait_for(cli, "one", "stopped")
    assert cli("sweep", "resume", "one").code == 0
    assert cli("runs", "retry", str(run["id"]), "--yes").code == 0
    wait_for(cli, "one", "finished")


def test_what_the_engine_refuses_comes_with_its_reason_and_creates_nothing(
    cli: Cli, engine: None, prepared: Vector
) -> None:
    launch = ["sweep", "launch", "--agent", "dummy"]
    cases = {
        "dumy": ["sweep", "launch", "--agent", "dumy", "--split", "low"],
        "is not prepared": [*launch, "-c", "leaf-classification"],
        "is not a valid name of a sweep": [*launch, "-c", prepared.id, "--name", "../x"],
        "there is no sweep 'nothing'": ["sweep", "pause", "nothing"],
        "there is no run 7": ["runs", "stop", "7"],
    }
    for told, arguments in cases.items():
        refused = cli(*arguments)
        assert refused.code in (2, 3), arguments
        assert told in refused.err
        assert len(refused.err.splitlines()) <= 2
    assert cli("sweep", "list", "--json").document() == []
