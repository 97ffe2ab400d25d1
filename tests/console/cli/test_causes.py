"""`runs causes` lists what needs somebody by cause; a cause is acknowledged and relaunched by its key."""

from __future__ import annotations

from typing import Any

import pytest

from mlebench_console.engine.control import Answer
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import AcknowledgeCause, RelaunchRuns, Request, WithdrawAcknowledgement
from mlebench_console.state import acknowledgements
from mlebench_console.state.records import Acknowledgement
from tests.console import worlds
from tests.console.cli.conftest import Cli
from tests.console.world import NOW, World


@pytest.fixture
def outage(places: Places) -> World:
    world = worlds.outage(places)
    world.database.close()
    return world


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    requests: list[Request] = []

    def ask(_places: Places, request: Request) -> Answer:
        requests.append(request)
        return Answer("done")

    monkeypatch.setattr("mlebench_console.engine.control.ask", ask)
    monkeypatch.setattr(
        "mlebench_console.engine.control.ensure_running", lambda _places: pytest.fail("not asked")
    )
    monkeypatch.setattr(
        "mlebench_console.engine.control.status", lambda _places: type("Running", (), {"running": True})
    )
    return requests


def test_causes_are_listed_for_people_and_programs(cli: Cli, outage: World) -> None:
    told = cli("runs", "causes").out
    first = told.splitlines()[1]
    assert "GPU lost: Failed to initialize NVML: Unknown Error  " in first
    assert first.split()[1] == "18" and "aide-o3-all, dummy-2" in first and first.endswith("free")
    groups = cli("runs", "causes", "--json").document()
    assert (groups[0]["class"], groups[0]["free"]) == ("infrastructure", True)
    assert [group["class"] for group in groups][-2:] == ["crash", "crash"] and not groups[-1]["free"]
    assert groups[0]["splits"] == ["low", "medium", "high"] and len(groups[0]["runs"]) == 18
    (only,) = cli("runs", "causes", "--sweep", "dummy-2", "--json").document()
    assert (only["key"], only["count"]) == (groups[0]["key"], 1)
    assert cli("runs", "causes", "--sweep", "none").code == 2


def test_what_is_acknowledged_is_counted_and_listed_on_demand(cli: Cli, places: Places) -> None:
    world = worlds.outage(places)
    key = cli("runs", "causes", "--json").document()[0]["key"]
    said = Acknowledgement(key, "GPU lost", "op@here", NOW, "driver reset, ticket 12")
    acknowledgements.acknowledge(world.database, said)
    world.database.close()
    told = cli("runs", "causes").out
    assert "GPU lost" not in told and "1 acknowledged; --all lists them" in told
    assert "acknowledged by op@here 03:14: 'driver reset, ticket 12'" in cli("runs", "causes", "--all").out
    (first, *_) = cli("runs", "causes", "--all", "--json").document()
    assert first["acknowledged"] and first["acknowledgement"]["reason"] == "driver reset, ticket 12"


def test_a_cause_is_acknowledged_snoozed_and_taken_back_by_how_its_key_begins(
    cli: Cli, outage: World, asked: list[Any]
) -> None:
    assert cli("runs", "acknowledge", "infra", "--reason", "driver reset").code == 0
    assert cli("runs", "acknowledge", "infra", "--reason", "later", "--snooze", "8h").code == 0
    assert cli("runs", "acknowledge", "infra", "--undo").code == 0
    key = asked[0].key
    assert key.startswith("infrastructure-")
    assert asked == [
        AcknowledgeCause(key=key, reason="driver reset", text=asked[0].text),
        AcknowledgeCause(key=key, reason="later", text=asked[0].text, seconds=8 * 3600.0),
        WithdrawAcknowledgement(key=key),
    ]


def test_what_cannot_be_done_is_told(cli: Cli, outage: World, asked: list[Any]) -> None:
    for arguments, told in {
        "acknowledge infra": "needs a reason",
        "acknowledge crash --reason x": "several causes begin with 'crash'",
        "acknowledge nothing --reason x": "no run has the cause 'nothing' now",
        "acknowledge infra --undo --reason x": "--undo takes neither",
        "acknowledge infra --reason x --snooze soon": "'soon' is not a duration",
        "retry": "give either runs or a --cause",
        "retry 1 --cause infra": "give either runs or a --cause",
        "retry --cause nothing": "no run has the cause 'nothing' now",
        "retry --cause crash-": "several causes begin with 'crash-'",
        "retry --cause late": "is running",
    }.items():
        ran = cli("runs", *arguments.split())
        assert ran.code == 2 and told in ran.err, (arguments, ran.err)
    assert not asked


def test_a_whole_cause_is_relaunched_freely_and_agents_own_failures_only_with_consent(
    cli: Cli, outage: World, asked: list[Any]
) -> None:
    assert cli("runs", "retry", "--cause", "infra").code == 0
    (request,) = asked
    assert isinstance(request, RelaunchRuns) and len(request.runs) == 18
    assert not any(run.reroll for run in request.runs)
    crash = next(g for g in cli("runs", "causes", "--json").document() if g["class"] == "crash")
    refused = cli("runs", "retry", "--cause", crash["key"])
    assert refused.code == 2 and "re-rolled" in refused.err and len(asked) == 1
    assert cli("runs", "retry", "--cause", crash["key"], "--yes").code == 0
    assert all(run.reroll for run in asked[-1].runs)
