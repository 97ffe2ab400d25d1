"""Whatever is asked wrongly gets one or two lines that name it, and a code that tells the kind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.state import database as state_database
from tests.console.cli.conftest import Cli, Ran
from tests.state.worlds import create_sweep


def assert_told(ran: Ran, code: int, *parts: str) -> None:
    assert ran.code == code, ran
    assert ran.out == ""
    assert 1 <= len(ran.err.splitlines()) <= 2, ran.err
    for part in parts:
        assert part in ran.err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["engin"], ("there is no command 'engin'. Did you mean 'engine'?", "mlebench-console --help")),
        (["--colour"], ("there is no option '--colour'", "mlebench-console --help")),
        (
            ["grade-sample", "--jsn"],
            ("there is no option '--jsn'. Did you mean --json?", "mlebench-console grade-sample --help"),
        ),
        (["grade-sample"], ("error: argument SUBMISSION is missing",)),
        (["sweep", "launch", "--seeds", "x"], ("error: --seeds: 'x' is not a whole number",)),
        (
            ["sweep", "launch", "--seeds"],
            ("error: --seeds needs a value", "mlebench-console sweep launch --help"),
        ),
        (["runs", "show", "1", "2"], ("error: unexpected: 2", "mlebench-console runs show --help")),
        (["sweep", "launch"], ("no agent was given",)),
        (["sweep", "launch", "--agent", "dummy"], ("no competition was given", "--split low")),
        (["sweep", "launch", "--agent", "dummy", "--split", "lwo"], ("'lwo' is neither a split nor a file",)),
        (
            ["sweep", "launch", "--agent", "dummy", "--seeds", "0", "--split", "low"],
            ("error: --seeds: 0 is out of range (expected 1 or more)",),
        ),
        (
            ["competitions", "show", "spooky-author-identificaton"],
            ("Did you mean spooky-author-identification",),
        ),
        (["prepare"], ("no competition was chosen", "--lite")),
        (["prepare", "--lite", "--all"], ("not clear",)),
        (["prepare", "--lite", "--raw", "/tmp"], ("/tmp has neither a folder",)),
        (["runs", "classify", "1", "--class", "bad"], ("infrastructure",)),
        (["completion", "tcsh"], ("tcsh", "bash")),
        (["--theme", "neon", "status"], ("there is no theme 'neon'", "Choose one of dark, light")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_has_code_2(cli: Cli, arguments: list[str], parts: tuple[str, ...]) -> None:
    assert_told(cli(*arguments), 2, *parts)


def test_an_unreadable_submission_is_named(cli: Cli, tmp_path: Path) -> None:
    looped = tmp_path / "looped.csv"
    looped.symlink_to(looped)
    assert_told(cli("grade-sample", looped, "spooky-author-identification"), 3, str(looped), "symbolic links")
    missing = tmp_path / "missing.csv"
    assert_told(cli("validate", missing, "spooky-author-identification"), 3, str(missing), "No such file")
    assert_told(cli("validate", tmp_path, "spooky-author-identification"), 3, str(tmp_path), "directory")


def test_a_dataset_that_is_not_prepared_tells_how_to_prepare_it(cli: Cli, tmp_path: Path) -> None:
    submission = tmp_path / "submission.csv"
    submission.write_text("id\n1\n")
    told = cli("grade-sample", submission, "spooky-author-identification")
    assert_told(told, 3, "is not prepared", "mlebench-console prepare -c spooky-author-identification")


@pytest.mark.parametrize(
    "arguments", [["sweep", "list"], ["runs", "list"], ["runs", "show", "1"], ["sweep", "pause", "x"]]
)
def test_without_a_state_the_way_to_one_is_told(cli: Cli, arguments: list[str]) -> None:
    assert_told(cli(*arguments), 4, "there is no state", "mlebench-console engine start")
    assert_told(cli("--demo", *arguments), 4, "there is no demo yet", "mlebench-console demo")


@pytest.mark.parametrize(
    ("option", "value"),
    [("hours", "nan"), ("hours", "1e400"), ("memory-gb", "1e300"), ("disk-gb", "inf"), ("cpus", "nan")],
)
def test_a_number_that_is_none_is_refused_before_anything_is_worked_out(
    cli: Cli, option: str, value: str
) -> None:
    asked = cli("sweep", "launch", "--dry-run", "--agent", "dummy", "--split", "low", f"--{option}", value)
    assert_told(asked, 2, f"'{option.replace('-', '_')}' must be a number")


@pytest.mark.parametrize("number", ["9" * 25, "\u00b2"])
def test_a_run_of_an_impossible_number_is_refused(cli: Cli, places: Places, number: str) -> None:
    places.state_dir.mkdir()
    state_database.open_for_writing(places.state_dir).close()
    for command in ("show", "logs", "calls", "code", "audit"):
        assert_told(cli("runs", command, number), 2)


def test_without_an_engine_nothing_is_changed_and_it_says_so(cli: Cli, places: Places) -> None:
    places.state_dir.mkdir()
    with closing(state_database.open_for_writing(places.state_dir)) as database:
        create_sweep(database, "mine")
    paused = cli("sweep", "pause", "mine")
    assert_told(paused, 5, "the engine is not running", "nothing was changed", "engine start")


def test_a_damaged_state_is_named(cli: Cli, places: Places) -> None:
    places.state_dir.mkdir()
    (places.state_dir / state_database.DATABASE_NAME).write_bytes(b"no database at all, but long enough" * 50)
    assert_told(cli("sweep", "list"), 4, "state.db is damaged", "backup")


def test_a_newer_state_is_left_alone(cli: Cli, places: Places) -> None:
    places.state_dir.mkdir()
    path = places.state_dir / state_database.DATABASE_NAME
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    assert_told(cli("sweep", "list"), 4, "newer version", "Update mlebench-console")


def test_a_config_that_is_not_toml_is_named(cli: Cli, places: Places) -> None:
    places.config_file.write_text("[places\n")
    assert_told(cli("status"), 2, str(places.config_file), "Correct or remove it")


@pytest.mark.parametrize("arguments", [[], ["demo"]])
def test_the_console_is_not_opened_without_a_terminal(cli: Cli, arguments: list[str]) -> None:
    assert_told(cli(*arguments), 5, "needs a terminal", "mlebench-console status")


def test_an_unforeseen_error_is_two_lines_and_its_traceback_is_kept(
    cli: Cli, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the sky fell\x1b[2J")

    monkeypatch.setattr("mlebench_console.engine.control.status", fail)
    told = cli("status")
    log = places.state_dir / "console.log"
    assert_told(told, 1, "RuntimeError: the sky fell", str(log))
    assert "\x1b" not in told.err
    assert "Traceback" in log.read_text()


def test_where_a_traceback_cannot_be_kept_it_is_shown(
    cli: Cli, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("mlebench_console.engine.control.status", fail)
    places.state_dir.write_text("a file where the directory should be")
    told = cli("status")
    assert told.code == 1
    assert "could not be saved" in told.err
    assert "Traceback" in told.err


def test_names_of_agents_reach_the_terminal_only_made_harmless(cli: Cli) -> None:
    told = cli("competitions", "show", "spooky\x1b]0;owned\x07\x9b2J")
    assert told.code == 2
    assert not {"\x1b", "\x07", "\x9b"} & set(told.err)
