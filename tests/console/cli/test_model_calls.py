"""What model calls came to, as commands tell it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.records import CallOutcome, Journal, ModelCall
from mlebench_console.state import database as state_database
from mlebench_console.state import runs
from mlebench_console.state.database import Database
from mlebench_console.state.records import Run
from mlebench_console.state.usage import model_calls
from mlebench_console.state.usage.model_calls import ModelUse
from tests.conditions import changed
from tests.console.cli.conftest import Cli
from tests.engine.scoreboard.worlds import SPEC, start, sweep


@pytest.fixture
def run(places: Places) -> Iterator[Run]:
    """A live run that has called two models."""
    places.state_dir.mkdir()
    database = state_database.open_for_writing(places.state_dir)
    found = sweep(database, "caller", changed(SPEC, gateway=("openai", "local")))[0]
    start(database, found)
    attempt = runs.latest_attempt(database, found.id)
    assert attempt is not None
    folder = places.state_dir / attempt.directory
    folder.mkdir(parents=True)
    journal = Journal(folder)
    usage = TokenUsage(input_tokens=1_000_000, cached_tokens=500_000, output_tokens=100_000)
    journal.end(ModelCall("1", 5.0, "openai", "chat", CallOutcome.OK, "gpt-4o", "gpt-4o", 200, usage=usage))
    journal.end(
        ModelCall(
            "2", 6.0, "local", "chat", CallOutcome.CUT, "my\x1b[2Jmodel", usage=TokenUsage(7), estimated=True
        )
    )
    count(database, attempt.id, "openai", "gpt-4o", 1_000_000, 500_000, 100_000)
    count(database, attempt.id, "local", "my\x1b[2Jmodel", 7, 0, 0)
    yield found
    database.close()


def count(
    database: Database, attempt_id: int, provider: str, model: str, given: int, cached: int, got: int
) -> None:
    use = ModelUse(
        attempt_id, provider, model, calls=1, input_tokens=given, cached_tokens=cached, output_tokens=got
    )
    with database.transaction():
        model_calls.add(database, attempt_id, [use], 10)


def test_a_run_s_calls_are_shown_with_what_they_cost(cli: Cli, run: Run) -> None:
    shown = cli("runs", "calls", str(run.id)).out
    assert "2.8750 USD" in shown
    costs = {
        total["model"]: total["cost"]
        for total in cli("runs", "calls", str(run.id), "--json").document()["totals"]
    }
    assert costs == {"gpt-4o": pytest.approx(0.5 * 2.5 + 0.5 * 1.25 + 0.1 * 10), "my\x1b[2Jmodel": None}
    assert "in all: cost unknown, at least 2.8750 USD" in shown, "an unknown price is never taken for nothing"
    assert "~7" in shown
    assert "\x1b" not in shown


def test_a_run_and_its_sweep_tell_what_their_calls_came_to(cli: Cli, run: Run, places: Places) -> None:
    told = "model calls: 2, 1,000,007 tokens in and 100,000 out, "
    assert f"{told}cost unknown" in cli("runs", "show", str(run.id)).out
    places.config_file.write_text('[model_prices."my*"]\ninput = 1\noutput = 2\n')
    assert f"{told}2.8750 USD" in cli("sweep", "show", run.sweep_id).out
    for shown in (("runs", "show", str(run.id)), ("sweep", "show", run.sweep_id)):
        assert [use["calls"] for use in cli(*shown, "--json").document()["model_use"]] == [1, 1]


def test_the_last_calls_can_be_chosen(cli: Cli, run: Run) -> None:
    document = cli("runs", "calls", str(run.id), "-n", "1", "--json").document()
    assert [call["id"] for call in document["calls"]] == ["2"]
    assert len(document["totals"]) == 2
    assert document["cost"] is None


def test_models_without_a_price_are_named_until_they_have_one(cli: Cli, run: Run, places: Places) -> None:
    checked = cli("prices", "check")
    assert checked.code == 1
    assert "local" in checked.out
    assert "gpt-4o" not in checked.out
    places.config_file.write_text('[model_prices."my*"]\ninput = 1\noutput = 2\n')
    assert cli("prices", "check").code == 0
    assert cli("runs", "calls", str(run.id), "--json").document()["cost"] == pytest.approx(2.875 + 7e-6)


@pytest.mark.parametrize(
    "text",
    [
        '[model_prices."a"]\ninput = -1\noutput = 1\n',
        '[model_prices."a"]\ninput = 1\n',
        "[model_prices]\na = 1\n",
    ],
)
def test_prices_that_are_none_are_refused(cli: Cli, run: Run, places: Places, text: str) -> None:
    places.config_file.write_text(text)
    refused = cli("prices", "check")
    assert refused.code == 2
    assert "model_prices" in refused.err


def test_lines_that_no_gateway_has_written_are_passed_over(cli: Cli, run: Run, places: Places) -> None:
    (path,) = places.state_dir.glob("runs/**/model_calls.jsonl")
    with path.open("a") as stream:
        stream.write('{"id": "3", "at": 1e999, "provider": "x", "api": "chat", "outcome": "ok"}\n')
        stream.write(
            '{"id": "4", "at": 1, "provider": "x", "api": "y", "outcome": "ok", "usage": {"input_tokens": -5}}\n'
        )
        stream.write('[]\n{"id"\n')
    calls = cli("runs", "calls", str(run.id), "--json").document()["calls"]
    assert [call["id"] for call in calls] == ["1", "2"]
