"""A log that is followed by a command: whatever becomes of the file, what is printed comes once and soon."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from mlebench_console.console.cli import output
from mlebench_console.console.logs.reader import LONGEST_LINE, LogFile
from mlebench_console.engine.places import Places
from mlebench_console.environment.container.run_log import CappedLog
from mlebench_console.state import transitions
from mlebench_console.state.lifecycle import FailureClass
from tests.console.cli.conftest import Cli
from tests.console.world import NOW
from tests.console.worlds import open_world


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Follow a log while some things happen, each between two looks; returns what was printed, line by line."""

    def run(
        log: Path, *happens: Callable[[], object], renewed: Callable[[], Mapping[str, LogFile]] = dict
    ) -> list[str]:
        waiting = list(happens)

        def sleep(_seconds: float) -> None:
            if not waiting:
                raise KeyboardInterrupt
            waiting.pop(0)()

        monkeypatch.setattr(time, "sleep", sleep)
        with pytest.raises(KeyboardInterrupt):
            output.say_logs({"": LogFile(log)}, 10, json=False, following=True, renewed=renewed)
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text("one\ntwo\n")
    return path


def append(log: Path, text: str) -> Callable[[], object]:
    def write() -> None:
        with log.open("a") as stream:
            stream.write(text)

    return write


def nothing() -> None:
    pass


def test_a_log_that_is_begun_anew_is_followed_from_its_beginning(
    log: Path, follow: Callable[..., list[str]]
) -> None:
    append(log, "line\n" * 100)()
    seen = follow(log, nothing, lambda: log.write_text("new\n"), append(log, "more\n"))
    assert seen[-2:] == ["new", "more"]


def test_a_log_that_is_away_for_a_moment_is_followed_from_its_beginning(
    log: Path, follow: Callable[..., list[str]]
) -> None:
    seen = follow(log, append(log, "line\n" * 100), log.unlink, nothing, lambda: log.write_text("again\n"))
    assert seen[-2:] == ["line", "again"]


def test_a_file_that_is_put_in_the_place_of_another_is_followed(
    log: Path, tmp_path: Path, follow: Callable[..., list[str]]
) -> None:
    def replace() -> None:
        (tmp_path / "next").write_text("three\nfour\nfive\n")
        (tmp_path / "next").rename(log)

    assert follow(log, replace, append(log, "six\n"))[-2:] == ["five", "six"]


def test_a_log_that_outgrows_its_limit_is_followed_on_and_nothing_comes_twice(
    tmp_path: Path, follow: Callable[..., list[str]]
) -> None:
    path = tmp_path / "run.log"
    capped = CappedLog(path, 400)

    def print_some(first: int) -> Callable[[], object]:
        return lambda: capped.write(b"".join(b"line %03d\n" % number for number in range(first, first + 10)))

    with closing(capped):
        seen = follow(path, *(print_some(number) for number in range(0, 200, 10)))
    assert seen == [f"line {number:03d}" for number in range(200)]


def test_what_has_no_line_feeds_is_printed_in_pieces_and_read_once(
    log: Path, follow: Callable[..., list[str]], bytes_read: Callable[[], int]
) -> None:
    times = 40
    seen = follow(log, *[append(log, "x" * LONGEST_LINE)] * times)
    printed = sum(map(len, seen[2:]))
    assert printed > (times - 3) * LONGEST_LINE
    assert bytes_read() < 6 * times * LONGEST_LINE


def test_a_run_that_is_launched_again_is_followed_in_its_next_attempt(
    log: Path, tmp_path: Path, follow: Callable[..., list[str]]
) -> None:
    second = tmp_path / "second.log"
    found: list[dict[str, LogFile]] = [{}, {"": LogFile(second)}]
    seen = follow(
        log,
        append(log, "half"),
        lambda: second.write_text("again\n"),
        nothing,
        renewed=lambda: found.pop(0) if found else {},
    )
    assert seen == ["one", "two", "half", "again"]


def test_the_command_goes_on_with_the_log_of_the_next_attempt(
    cli: Cli, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = open_world(places)
    world.sweep("night", ("spooky-author-identification",), seeds=1)
    run = world.run("night", "spooky-author-identification", 1)
    first = world.launch(run, ago=600, log=b"first\n")
    world.fail(first, FailureClass.INFRASTRUCTURE, "GPU lost", ago=300)

    def relaunch() -> None:
        transitions.requeued(world.database, run, by="tester", now=NOW)
        world.launch(run, ago=10, log=b"second\n")

    waiting = [nothing, relaunch, nothing]

    def sleep(_seconds: float) -> None:
        if not waiting:
            raise KeyboardInterrupt
        waiting.pop(0)()

    monkeypatch.setattr(time, "sleep", sleep)
    ran = cli("runs", "logs", "1", "-f")
    assert ran.out.splitlines() == ["first", "second"]
    assert "launched again" in ran.err
    world.database.close()
