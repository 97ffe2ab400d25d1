"""`integrity judge` and `integrity familiarity`: what they say before they ask a model, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlebench_console.engine.control import Answer
from mlebench_console.engine.integrity.results import IntegrityRequests
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import RecordIntegrity
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.state import database
from tests.console.cli.conftest import Cli
from tests.engine.integrity.made_runs import COMPETITION, MadeRun, add_run
from tests.engine.integrity.model_server import KEY, ModelServer, honest
from tests.engine.integrity.test_familiarity import vllm

GUILTY = "r = client.chat.completions.create(model='x')\n"


@pytest.fixture
def server(places: Places, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model at a provider of config.toml, and a run in a state whose engine answers at once."""
    places.state_dir.mkdir(parents=True, exist_ok=True)
    opened = database.open_for_writing(places.state_dir)
    add_run(opened, MadeRun(code={"main.py": GUILTY}, submissions=["a\n1\n"]), "guilty")

    def ask(_places: Places, request: RecordIntegrity) -> Answer:
        return IntegrityRequests(opened, SystemClock()).record(request, "me")

    @contextmanager
    def engine_for(own: Places, _data_dir: Path) -> Iterator[Places]:
        yield own

    monkeypatch.setattr("mlebench_console.engine.control.ask", ask)
    monkeypatch.setattr("mlebench_console.console.cli.host.engine.engine_for", engine_for)
    monkeypatch.setenv("LOCAL_KEY", KEY)
    with ModelServer(honest).running() as running:
        places.config_file.parent.mkdir(parents=True, exist_ok=True)
        places.config_file.write_text(
            f'[providers.local]\nurl = "{running.url}"\nkey = "LOCAL_KEY"\n'
            '[model_prices."m"]\ninput = 1.0\noutput = 4.0\n'
        )
        yield running
    opened.close()


def test_what_judging_costs_is_told_and_nothing_is_asked_without_consent(
    cli: Cli, server: ModelServer
) -> None:
    ran = cli("integrity", "judge", "guilty", "--model", "local/m")
    assert ran.code == 2
    assert "2 of 2 windows of 1 run: about 4 calls to local/m" in ran.err
    assert "about 0.01 $" in ran.err
    assert "Give --yes" in ran.err
    assert server.asked == []


def test_runs_are_judged_once_and_written_in_mlebenchs_form(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    judge = ("integrity", "judge", "guilty", "--model", "local/m", "--yes", "--json")
    ran = cli(*judge, "--budget", "1", "--mlebench-format", tmp_path / "out")
    (run,) = ran.document()
    found = {one["detector"]: one for one in run["results"]}
    assert found["judge-external-model"]["findings"][0]["severity"] == "high"
    assert found["judge-external-model"]["coverage"] == "2 of 2 windows read"
    assert "4 calls to local/m with 4,000 tokens in and 400 out" in ran.err
    assert len(list((tmp_path / "out").iterdir())) == 2
    calls = len(server.asked)
    again = cli(*judge)
    assert "all of these runs have been judged so" in again.err
    assert again.document() == [run]
    forced = cli(*judge, "--again")
    assert "4 were answered already" in forced.err
    assert len(server.asked) == calls


def test_the_layer_that_needs_a_model_has_a_command_of_its_own(cli: Cli, server: ModelServer) -> None:
    ran = cli("integrity", "run", "guilty", "--layer", "judge")
    assert ran.code == 2
    assert "Use 'integrity judge --model'" in ran.err


def test_familiarity_is_measured_and_told(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    server.script = vllm
    known = ("integrity", "familiarity", "--model", "local/m", "--yes")
    ran = cli(*known, "--experiment", "guilty", "--plot", tmp_path / "f.svg")
    assert ran.code == 0
    assert "1 text of 1 competition: about 1 call to local/m" in ran.err
    assert COMPETITION in ran.out
    assert "this project's own" in ran.out
    assert "fewer than three competitions" in ran.out
    assert (tmp_path / "f.svg").read_text().startswith("<svg")
    document = cli(*known, "-c", COMPETITION, "--json").document()
    assert document["method"] == "prompt_logprobs"
    assert 0.1 < document["competitions"][0]["probability"] < 0.9
    assert cli(*known).code == 2
