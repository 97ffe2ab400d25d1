"""Commands that print facts, on a small state: as text that is harmless, and as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.places import Places
from mlebench_console.engine.scoreboard.model import Row
from mlebench_console.environment.container.run_log import CUT_MARK
from mlebench_console.foundation import jsonlines
from mlebench_console.state import database as state_database
from mlebench_console.state import experiments, runs
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.records import Run, Sweep
from tests.conditions import spec_of
from tests.console.cli.conftest import Cli
from tests.engine.scoreboard.worlds import SPEC, fail, finish, start, sweep

LOG = b"first\nsecond\x1b]0;owned\x07\nthird\n"


@pytest.fixture
def world(places: Places) -> Iterator[Database]:
    """A sweep with a medal, a crash, a live run and a queued one."""
    places.state_dir.mkdir()
    database = state_database.open_for_writing(places.state_dir)
    spec = replace(SPEC, competitions=("leaf-classification", "spooky-author-identification"), seeds=2)
    leaf, spooky, second, _queued = sweep(database, "dummy-1", spec, demo=True)
    finish(database, leaf, Outcome.SILVER, score=0.005)
    fail(database, spooky)
    start(database, second)
    experiments.assign(database, "trial", "dummy-1", now=9.0)
    for run in (leaf, second):
        latest = runs.latest_attempt(database, run.id)
        assert latest is not None
        folder = places.state_dir / latest.directory
        (folder / "output").mkdir(parents=True)
        (folder / "output" / "run.log").write_bytes(LOG)
    yield database
    database.close()


def names(record: type) -> set[str]:
    return {field.name for field in fields(record)}


def test_sweeps_are_listed_with_their_counts(cli: Cli, world: Database) -> None:
    (listed,) = cli("sweep", "list", "--json").document()
    assert set(listed) == names(Sweep) | {
        "counts",
        "demo",
        "any_medal",
        "interim",
        "ends",
        "no_end",
        "waits_for",
    }
    assert listed["counts"]["medals"] == 1
    assert listed["counts"]["live"] == 1
    assert listed["demo"] and listed["interim"]["low"] == 25.0 and listed["interim"]["high"] == 75.0
    text = cli("sweep", "list").out
    assert "dummy-1" in text
    assert "demo data, not a result" in text
    assert "1 of 2 ended, final 25.0 to 75.0 %" in text


def test_the_columns_that_a_pipe_gets_do_not_depend_on_what_is_in_them(cli: Cli, world: Database) -> None:
    assert {"attempts", "notes"} <= set(cli("runs", "list").out.splitlines()[0].split())
    assert "notes" in cli("sweep", "list").out.splitlines()[0].split()


def test_one_competition_and_one_seed_are_not_called_several() -> None:
    spec = spec_of("dummy", "", ("leaf-classification",), 1, 60.0)
    assert spec.extent == "1 competition x 1 seed"
    assert replace(spec, seeds=3).extent == "1 competition x 3 seeds"


def test_a_sweep_is_shown_by_an_unambiguous_beginning_of_its_name(cli: Cli, world: Database) -> None:
    shown = cli("sweep", "show", "dum", "--json").document()
    assert shown["id"] == "dummy-1"
    assert {run["state"] for run in shown["runs"]} == {"finished", "failed", "running", "queued"}
    text = cli("sweep", "show", "dum").out
    assert "failed (crash)" in text
    assert "2 competitions x 2 seeds" in text
    assert text.count("final 25.0 to 75.0 %") == 1, "medals are said once"
    # One column has what a run earned, or else its state.
    assert "result" in text and "standing" not in text and "  finished  " not in text.partition("result")[2]


def test_runs_are_chosen_by_sweep_and_state(cli: Cli, world: Database) -> None:
    (failed,) = cli("runs", "list", "--state", "failed", "--json").document()
    assert set(failed) == names(Run) | {"idle_seconds", "job"}
    assert failed["failure_class"] == "crash"
    assert failed["idle_seconds"] is None
    (running,) = cli("runs", "list", "--state", "running", "--json").document()
    assert running["idle_seconds"] > 0
    assert len(cli("runs", "list", "--sweep", "dummy-1", "--json").document()) == 4
    assert cli("runs", "list", "--state", "stopped").out == "no runs\n"


@pytest.mark.parametrize("name", ["1", "dummy-1/leaf-classification/1", "dum/leaf-classification/1"])
def test_a_run_is_named_by_number_or_by_what_it_is(cli: Cli, world: Database, name: str) -> None:
    shown = cli("runs", "show", name, "--json").document()
    assert (shown["id"], shown["outcome"]) == (1, "silver")
    assert Path(shown["attempts_made"][0]["directory"]).is_dir()
    assert shown["submissions_made"][0]["score"] == 0.005
    assert (shown["attempts_made"][0]["validations"], shown["attempts_made"][0]["last_validation_at"]) == (
        0,
        None,
    )
    assert shown["events"][0]["kind"] == "run.starting"


def test_a_run_says_how_often_its_agent_asked_for_validation(cli: Cli, world: Database) -> None:
    directory = Path(cli("runs", "show", "1", "--json").document()["attempts_made"][0]["directory"])
    lines = [{"time": at, "sha256": "0" * 64, "bytes": 5, "valid": True} for at in (1.0e9, 1.1e9)]
    jsonlines.append(directory / "validations.jsonl", lines)
    (attempt,) = cli("runs", "show", "1", "--json").document()["attempts_made"]
    assert (attempt["validations"], attempt["last_validation_at"]) == (2, 1.1e9)
    assert "2 validations by the agent, the last at 2004-11-09" in cli("runs", "show", "1").out


@pytest.mark.parametrize("name", ["99", "dummy-1/leaf-classification/7", "dummy-1", "x/y/1"])
def test_a_run_that_is_not_there_is_named(cli: Cli, world: Database, name: str) -> None:
    shown = cli("runs", "show", name)
    assert shown.code == 2
    assert "there is no" in shown.err


def test_the_end_of_a_runs_log_is_printed_harmless(cli: Cli, world: Database) -> None:
    assert cli("runs", "logs", "1", "-n", "2").out == "second<OSC>\nthird\n"
    assert cli("runs", "logs", "1").out.startswith("first\n")
    assert cli("runs", "logs", "1", "-n", "0").out == ""
    told = cli("runs", "logs", "1", "-n", "2", "--json").document()
    assert told == [{"run": None, "text": "second\x1b]0;owned\x07"}, {"run": None, "text": "third"}]
    endless = cli("runs", "logs", "1", "--follow", "--json")
    assert endless.code == 2 and "has no end" in endless.err


def log_of(cli: Cli, run: str) -> Path:
    return (
        Path(cli("runs", "show", run, "--json").document()["attempts_made"][-1]["directory"])
        / "output/run.log"
    )


def test_each_line_of_several_logs_stands_behind_its_run(cli: Cli, world: Database) -> None:
    for run in ("1", "3"):
        log_of(cli, run).write_bytes(f"early {run}\nlate {run}\n".encode())
    first, second = ("1 leaf-classification s1", "3 leaf-classification s2")
    assert cli("runs", "logs", "1", "3", "-n", "2").out.splitlines() == [
        f"{first} | early 1",
        f"{first} | late 1",
        f"{second} | early 3",
        f"{second} | late 3",
    ]
    assert cli("runs", "logs", "1", "3", "-n", "1", "--json").document() == [
        {"run": first, "text": "late 1"},
        {"run": second, "text": "late 3"},
    ]


def test_the_end_of_a_capped_log_is_read_over_all_its_parts(cli: Cli, world: Database) -> None:
    log = log_of(cli, "1")
    log.write_bytes(b"head\n" + CUT_MARK)
    log.with_name("run.log.1000").write_bytes(b"one\ntw")
    log.with_name("run.log.1006").write_bytes(b"o\nthree\n")
    assert cli("runs", "logs", "1", "-n", "3").out == "one\ntwo\nthree\n"


def test_a_run_without_a_log_says_so(cli: Cli, world: Database) -> None:
    assert "has no log: it is queued" in cli("runs", "logs", "dummy-1/spooky-author-identification/2").err


def test_rerolls_are_not_done_without_being_told_to(cli: Cli, world: Database) -> None:
    told = cli("runs", "retry", "dummy-1/spooky-author-identification/1")
    assert told.code == 2
    assert "spooky-author-identification seed 1, agent crash" in told.err
    assert "--yes" in told.err


def test_status_tells_engine_sweeps_and_places(cli: Cli, world: Database, places: Places) -> None:
    told = cli("status", "--json").document()
    assert set(told) == {
        "state_dir",
        "data_dir",
        "engine",
        "sweeps",
        "ungradable",
        "kaggle",
        "datasets",
        "provider_outages",
        "causes",
        "needs",
    }
    assert set(told["engine"]) == names(EngineStatus)
    assert told["state_dir"] == str(places.state_dir)
    assert [one["id"] for one in told["sweeps"]] == ["dummy-1"]
    assert "not running" in cli("status").out


def test_status_works_before_there_is_any_state(cli: Cli) -> None:
    assert cli("status", "--json").document()["sweeps"] == []
    assert "none yet" in cli("status").out


def test_the_scoreboard_marks_a_demo_and_shows_no_column_for_a_part(cli: Cli, world: Database) -> None:
    text = cli("scoreboard").out.splitlines()
    own = next(line for line in text if line.startswith("trial"))
    assert "demo data, not a result" in own
    titles = next(line for line in text if line.startswith("experiment"))
    end = titles.index("of 75") + len("of 75")
    assert own[:end].endswith("  2")  # of two competitions, and no percentage of a split
    assert (
        "50.00 " in own and "±" not in own.partition("trial")[2]
    )  # the crash is the agent's own and counts as no medal
    assert "1 of 2, running" in own
    assert any(line.startswith("Famou-Agent 2.0") for line in text)
    rows = cli("scoreboard", "--own", "--json").document()
    assert [set(row) for row in rows] == [names(Row)]


def test_the_scoreboard_sorts_and_takes_a_users_split(cli: Cli, world: Database, tmp_path: Path) -> None:
    rows = cli("scoreboard", "--sort", "high", "--json").document()
    highs = [row["columns"]["high"]["cell"]["mean"] for row in rows if row["table"] == "main"]
    assert highs == sorted(highs, reverse=True)
    split = tmp_path / "mine.txt"
    split.write_text("leaf-classification\n")
    (own,) = cli("scoreboard", "--own", "--split", split, "--json").document()
    assert own["columns"][str(split)]["cell"] == {"mean": 100.0, "sem": 0.0, "n": 1, "competitions": 1}
    assert "100.00 " in cli("scoreboard", "--own", "--split", split).out


def test_competitions_tell_their_facts(cli: Cli) -> None:
    assert len(cli("competitions", "list", "--split", "low", "--json").document()) == 22
    shown = cli("competitions", "show", "spooky-author-identification", "--json").document()
    assert shown["gold"] == 0.16506
    assert shown["direction"] == "lower"
    assert {"id", "text", "severity", "treatment", "remedy", "known"} == set(shown["defects"][0])
    told = cli("competitions", "show", "spooky-author-identification").out
    for fact in ("https://", "test_size = 0.1, seed = 0", "Kaggle's zip known", "remedy: Rows are rescaled"):
        assert fact in told
    left_out = cli("competitions", "show", "vesuvius-challenge-ink-detection").out
    assert "left out of edition corrected" in left_out
    assert "leak, open in edition corrected too" in left_out
    defects = cli("competitions", "defects", "--json").document()
    facts = {"competition_id", "excluded", "id", "severity", "treatment", "text", "remedy", "known"}
    assert facts == set(defects[0])
    assert {defect["severity"] for defect in defects} <= {"leak", "wrong_score", "crash", "cosmetic"}


def test_a_unit_for_systemd_is_printed(cli: Cli, places: Places) -> None:
    text = cli("engine", "unit").out
    assert text.startswith("[Unit]\n")
    assert f"--state-dir={places.state_dir}" in text


def test_an_engine_that_does_not_run_is_code_1_in_both_forms(cli: Cli) -> None:
    assert cli("engine", "status").code == 1
    assert cli("engine", "status", "--json").code == 1
    assert "no engine was running" in cli("engine", "stop").out
