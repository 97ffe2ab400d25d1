"""A plain summary at intervals, and the console served to a browser, from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.foundation.locks import FileLock
from mlebench_console.state.database import DATABASE_NAME
from tests.console import worlds
from tests.console.cli.conftest import Cli


def test_a_summary_tells_sweeps_and_what_needs_a_person(cli: Cli, places: Places) -> None:
    worlds.busy(places).database.close()
    told = cli("watch", "--times", "1")
    assert told.code == 0
    assert "engine not running" in told.out and "aide-o3-lite: 33 of 45 ended" in told.out
    assert "needs you: 3 runs of aide-o3-lite, low+medium: GPU lost: Failed to initialize NVML" in told.out
    assert "needs you: openhands-1 aerial-cactus-identification, seed 1" in told.out
    assert "the agent failed: 2 runs of aide-o3-lite, low: out of memory" in told.out


def test_summaries_are_also_documents_line_by_line(cli: Cli, places: Places) -> None:
    worlds.busy(places).database.close()
    told = cli("watch", "--times", "2", "--every", "1", "--json")
    documents = [json.loads(line) for line in told.out.splitlines()]
    assert len(documents) == 2
    sweep = next(each for each in documents[0]["sweeps"] if each["id"] == "aide-o3-lite")
    assert sweep["counts"]["failed"] == 8
    down, lost, *_others = documents[0]["needs_you"]
    assert (down["kind"], down["count"]) == ("engine", 0)
    assert (lost["kind"], lost["class"], lost["count"]) == ("runs", "infrastructure", 3)


def test_a_sweep_that_is_over_is_told_once_and_then_only_counted(cli: Cli, places: Places) -> None:
    worlds.scored(places).database.close()
    told = cli("watch", "--times", "2", "--every", "1").out
    assert told.count("aide-o3-lite: 66 of 66 ended") == 1
    assert told.count("2 sweeps are over as before") == 1


def test_a_summary_bounds_the_final_figure_and_says_when_it_comes(cli: Cli, places: Places) -> None:
    worlds.busy(places).database.close()
    lock = FileLock(lock_path(places))
    assert lock.acquire()
    told = cli("watch", "--times", "1").out
    lock.release()
    assert "13 medals of 33 ended, 3 without a result, final 28.9 to 62.2 %, 3 seeds" in told
    assert "ends ~" in told


def test_a_summary_tells_what_models_cost_and_of_their_budget(cli: Cli, places: Places) -> None:
    worlds.counted(places).database.close()
    told = cli("watch", "--times", "1").out
    assert "models ~24.17 USD, about 26.78 USD projected by 19 ended" in told
    assert "budget of sweep aide-counted: 24.17 of 30.00 USD used" in told
    assert "openai answers 429 since" in told
    (sweep,) = cli("watch", "--times", "1", "--json").document()["sweeps"]
    assert sweep["costs"]["per_medal"] == pytest.approx(24.17 / 8, abs=0.01)
    assert sweep["budgets"][0]["share"] == pytest.approx(24.17 / 30, abs=0.001)


def test_without_a_state_a_summary_says_so_calmly(cli: Cli) -> None:
    told = cli("watch", "--times", "1")
    assert told.code == 0 and "engine not running" in told.out


def test_a_state_that_cannot_be_read_is_told_and_watched_on(cli: Cli, places: Places) -> None:
    places.state_dir.mkdir(parents=True)
    (places.state_dir / DATABASE_NAME).write_text("no database")
    told = cli("watch", "--times", "2", "--every", "1")
    assert told.code == 0 and told.out.count("needs you:") == 2


def test_foreign_text_in_a_summary_is_harmless(cli: Cli, places: Places) -> None:
    worlds.hostile(places).database.close()
    told = cli("watch", "--times", "1")
    assert told.code == 0 and "\x1b" not in told.out and "\x9b" not in told.out


def test_serving_tells_its_address_and_ends_when_asked(places: Places) -> None:
    worlds.demo(places).database.close()
    process = subprocess.Popen(
        [
            sys.executable, "-m", "mlebench_console.console",
            f"--state-dir={places.state_dir}", f"--config={places.config_file}",
            "serve", "--port", "0",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(60) == 0
    process.stdout.close()
    assert address.startswith("http://127.0.0.1:") and "/?token=" in address
    port = urlsplit(address).port
    assert f"ssh -L {port}:127.0.0.1:{port} " in rest


def test_without_textual_serve_it_is_said_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.delitem(sys.modules, "mlebench_console.console.app.serve", raising=False)
    told = cli("serve")
    assert told.code == 5 and "mlebench-console[serve]" in told.err
