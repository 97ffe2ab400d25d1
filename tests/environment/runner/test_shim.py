"""One attempt's own process, without engine and runner around it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.runs.failures import last_lines
from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending, Started
from mlebench_console.environment.container.run_log import CUT_MARK
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process.shim import EXIT_CLAIMED, Shim, main
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import jsonlines
from tests.conditions import changed


def run(folder: Path, order: Order, script: str) -> subprocess.CompletedProcess[bytes]:
    protocol.make_folders(folder)
    (Path(order.agent_folder) / "start.sh").write_text(script)
    protocol.write(folder / protocol.ORDER, order)
    return subprocess.run(
        [
            *(sys.executable, "-I", "-m", "mlebench_console.environment.runner.process.shim"),
            *(str(folder), str(folder.parent / "cache")),
        ],
        capture_output=True,
        check=False,
        env={**os.environ, "SECRET_OF_THE_ENGINE": "x"},
    )


def ending(folder: Path) -> Ending:
    return protocol.read(folder / protocol.ENDING, Ending)


@pytest.mark.usefixtures("bubblewrap")
def test_an_attempt_is_claimed_once_and_for_ever(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    assert run(folder, order, 'echo "$OWN $*"; exit 3').returncode == 0
    assert ending(folder).exit_code == 3
    assert (folder / protocol.LOG).read_text() == "value --lr 0.1\n"
    assert protocol.read(folder / protocol.STARTED, Started).isolated
    assert run(folder, order, "echo twice").returncode == EXIT_CLAIMED
    assert (folder / protocol.LOG).read_text() == "value --lr 0.1\n"


@pytest.mark.usefixtures("bubblewrap")
def test_a_huge_and_binary_log_is_cut_in_the_middle_with_a_mark(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    script = "echo the beginning; head -c 200000 /dev/urandom; echo; echo the end"
    run(folder, replace(order, log_limit_bytes=40_000), script)
    assert ending(folder).exit_code == 0
    head = (folder / protocol.LOG).read_bytes()
    assert head.startswith(b"the beginning\n")
    assert head.endswith(CUT_MARK)
    assert last_lines(folder / protocol.LOG).rstrip().endswith("the end")
    assert sum(path.stat().st_size for path in folder.glob("output/run.log*")) < 50_000


@pytest.mark.parametrize("runtime", [protocol.BUBBLEWRAP, protocol.PLAIN])
@pytest.mark.usefixtures("bubblewrap")
def test_a_path_too_long_for_a_socket_is_no_hindrance(tmp_path: Path, order: Order, runtime: str) -> None:
    folder = tmp_path / ("long" * 20) / ("longer" * 20) / "attempt"
    script = (
        'cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"\n'
        '"$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv"\n'
    )
    run(folder, changed(order, runtime=runtime), script)
    assert "The submission is valid." in (folder / protocol.LOG).read_text()


def test_a_sandbox_that_can_not_be_made_is_told_and_nothing_runs(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    run(folder, changed(order, runtime=protocol.PLAIN, prepared_dir=str(tmp_path / "none")), "echo never")
    told = ending(folder)
    assert told.reason == "unstarted"
    assert "dataset is gone" in told.problem
    assert not (folder / protocol.STARTED).exists()


@pytest.mark.parametrize("runtime", [protocol.BUBBLEWRAP, protocol.PLAIN])
@pytest.mark.parametrize(
    ("name", "value"), [("ZZ", "a\0--bind\0/\0/mnt\0--share-net"), ("A=B", "c"), ("", "c")]
)
@pytest.mark.usefixtures("bubblewrap")
def test_a_variable_that_would_open_the_sandbox_is_told_and_nothing_runs(
    tmp_path: Path, order: Order, runtime: str, name: str, value: str
) -> None:
    """Whoever let it in: bubblewrap reads its arguments up to NUL characters."""
    folder = tmp_path / "attempt"
    run(folder, changed(order, runtime=runtime, variables=((name, value),)), "echo never")
    told = ending(folder)
    assert (told.reason, told.problem_code) == ("unstarted", "not_started")
    assert "variables can't be set" in told.problem
    assert not (folder / protocol.STARTED).exists()


def test_secrets_that_are_gone_are_told(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    run(folder, changed(order, runtime=protocol.PLAIN, secret=True), "echo never")
    assert "secrets are gone" in ending(folder).problem


def test_a_validation_server_is_started_again_however_often_it_dies_in_a_day(
    tmp_path: Path, order: Order
) -> None:
    shim = Shim(tmp_path, order, tmp_path)
    server = shim._services[0]
    server.served_at = time.monotonic() - 120
    assert [shim._record_end(server, -9) for _ in range(100)] == [0.5] * 100
    server.served_at = time.monotonic()
    assert [shim._record_end(server, -11) for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    told = [line["from_outside"] for line in jsonlines.read(tmp_path / protocol.RESTARTS).values]
    assert told == [True] * 100 + [False] * 9, "what it dies of by itself an agent may have brought about"


def test_without_a_sandbox_an_agent_may_have_killed_the_validation_server(
    tmp_path: Path, order: Order
) -> None:
    shim = Shim(tmp_path, changed(order, runtime=protocol.PLAIN), tmp_path)
    shim._record_end(shim._services[0], -9)
    (line,) = jsonlines.read(tmp_path / protocol.RESTARTS).values
    assert not line["from_outside"]


def test_a_validation_server_that_dies_while_the_disk_is_full_takes_no_agent_with_it(
    tmp_path: Path, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / protocol.RESTARTS).mkdir()  # so that nothing can be written there
    # What was to be logged can't be written in the end either.
    with pytest.raises(OSError, match="No space"), Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        shim = Shim(tmp_path, order, tmp_path)
        assert shim._record_end(shim._services[0], -9) == 0.5


def test_a_shim_that_fails_when_its_agent_has_begun_does_not_say_that_none_has_run(
    tmp_path: Path, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Shim) -> None:
        output.write(tmp_path / protocol.STARTED, Started.now(os.getpid(), isolated=False))
        raise OSError("trouble")

    protocol.make_folders(tmp_path)
    protocol.write(tmp_path / protocol.ORDER, order)
    monkeypatch.setattr(Shim, "run", fail)
    monkeypatch.setattr(sys, "argv", ["shim", str(tmp_path), str(tmp_path / "cache")])
    with pytest.raises(OSError, match="trouble"):
        main()
    assert not (tmp_path / protocol.ENDING).exists()


@pytest.mark.usefixtures("bubblewrap")
def test_an_agents_variables_are_not_those_of_what_makes_its_sandbox(tmp_path: Path, order: Order) -> None:
    # Outside of the sandbox a loader would run what it names, and in the agent's own folder.
    (Path(order.agent_folder) / "own.so").write_text("no library")
    variables = (("LD_PRELOAD", "./own.so"), ("GCONV_PATH", "."), ("OWN", "it's\nof two lines"))
    folder = tmp_path / "attempt"
    script = 'echo "$OWN|$GCONV_PATH"; tr "\\0" "\\n" < /proc/1/environ'
    run(folder, replace(order, variables=variables, arguments=()), script)
    told = (folder / protocol.LOG).read_text()
    assert "it's\nof two lines|." in told
    # Process 1 is bubblewrap's own, with what it was started with.
    outside = [
        line for line in told.rpartition("|.\n")[2].splitlines() if not line.startswith("ERROR: ld.so")
    ]
    assert outside == ["LANG=C.UTF-8"]
    assert ending(folder).exit_code == 0
