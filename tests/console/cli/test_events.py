"""`events` lists what happened, filtered as on the Events screen, also what is older than that shows."""

from __future__ import annotations

import pytest

from mlebench_console.console.nouns import event as event_noun
from mlebench_console.engine.places import Places
from tests.console import worlds
from tests.console.cli.conftest import Cli


def test_events_are_listed_newest_last_for_people_and_programs(
    cli: Cli, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("events").code == 4
    worlds.busy(places).database.close()
    lines = cli("events", "sweep:openhands", "sev:error").out.splitlines()
    assert lines[0].split()[:6] == ["time", "severity", "sweep", "competition", "seed", "what"]
    assert lines[1].startswith("2026-03-14 02:42:20  error     openhands-1  aerial-cactus-identification")
    every = cli("events", "-n", "100000", "--json").document()
    assert [event["at"] for event in every] == sorted(event["at"] for event in every)
    failed = cli("events", "kind:run.failed", "-n", "3", "--json").document()
    assert len(failed) == 3 and all(event["severity"] == "error" and event["seed"] for event in failed)
    happened = [event["id"] for event in every if event["kind"] == "run.failed"]
    assert [event["id"] for event in failed] == happened[-3:], (
        "those that happened last, not those reported last"
    )
    assert happened[-3:] != sorted(happened)[-3:]
    monkeypatch.setattr(event_noun, "_PAGE", 7)
    assert cli("events", "-n", "100000", "--json").document() == every, "over pages nothing is lost"
    ended = cli("events", "comp:aerial-cactus", "sweep:aide", "seed:1", "-n", "2").out
    assert "bronze 1.00000" in ended and "being graded" not in ended
    assert "attempt 1 ended" not in ended, "that an agent ended by itself without an error is nothing to read"
    assert "attempt 1 is being graded" in cli("events", "--all", "-n", "1000").out
    assert cli("events", "kind:nothing").out == "no event matches this filter\n"
    refused = cli("events", "sve:bad")
    assert refused.code == 2 and "events have no field 'sve:'" in refused.err
