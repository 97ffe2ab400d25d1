"""The runner's loop: one attempt's trouble stays its own, and does not last for ever; one alone is done to its end."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path

import pytest

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import loop, protocol
from mlebench_console.environment.runner.attempt import RunnerAttempt
from mlebench_console.environment.runner.loop import Runner
from mlebench_console.environment.runner.protocol import InboxEntry, Order
from mlebench_console.environment.runner.sandbox import AgentStatus, Unreachable
from tests.clocks import HandClock
from tests.conditions import changed
from tests.engine.harness import eventually
from tests.environment.runner.orders import order_with


def hand_over(state_dir: Path, number: int, order: str | None) -> Path:
    inbox = protocol.inbox(state_dir)
    inbox.mkdir(parents=True, exist_ok=True)
    folder = state_dir / f"attempt-{number}"
    folder.mkdir()
    if order is not None:
        (folder / protocol.ORDER).write_text(order)
    protocol.write(inbox / f"{number}.json", InboxEntry(number, folder.name))
    return folder


def test_an_attempt_that_can_not_be_looked_after_is_given_up_in_the_end(tmp_path: Path) -> None:
    clock, logged = HandClock(100.0), list[str]()
    folder = hand_over(tmp_path, 1, "{")
    runner = Runner(tmp_path, clock, lambda text, _error: logged.append(text), tuple)
    for _ in range(30):
        runner.tick()
        clock.moment += 3
    ended = protocol.read(folder / protocol.EXIT, Ending)
    assert ended.reason == "lost"
    assert "run.json is damaged" in ended.problem
    assert logged


class Container:
    """The Docker runtime of an attempt, of which a test says where its agent is."""

    where: AgentStatus | Unreachable

    def __init__(self, *_arguments: object) -> None:
        pass

    def status(self) -> AgentStatus:
        if isinstance(self.where, Unreachable):
            raise self.where
        return self.where

    def bytes_outside(self) -> int:
        return 0

    def bytes_seen_by_root(self) -> int | None:
        return None

    def end_leftovers(self) -> bool:
        return True

    def removing(self) -> Generator[None, None, list[str]]:
        yield
        return []


def looked_after_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception, where: AgentStatus | Unreachable
) -> Path:
    """Let a runner try for minutes to look after an attempt in a container, each time with the same trouble."""

    def fail(_attempt: RunnerAttempt) -> None:
        raise trouble

    monkeypatch.setattr(loop, "DockerSandbox", Container)
    monkeypatch.setattr(Container, "where", where, raising=False)
    monkeypatch.setattr(RunnerAttempt, "step", fail)
    clock, logged = HandClock(100.0), list[str]()
    folder = hand_over(tmp_path, 1, json.dumps(asdict(order_with(runtime=protocol.DOCKER))))
    protocol.make_folders(folder)
    runner = Runner(tmp_path, clock, lambda text, _error: logged.append(text), tuple)
    for _ in range(40):
        runner.tick()
        clock.moment += 6
    assert logged
    return folder


@pytest.mark.parametrize(
    ("trouble", "where"),
    [
        (OSError(errno.EIO, "Input/output error"), AgentStatus.ALIVE),
        (OSError(errno.ENOSPC, "No space left on device"), AgentStatus.GONE),
        (KeyError("a record of another form"), AgentStatus.ALIVE),
        (KeyError("a record of another form"), Unreachable("the daemon does not answer")),
    ],
)
def test_no_trouble_of_ours_ends_an_attempt_whose_container_may_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception, where: AgentStatus | Unreachable
) -> None:
    folder = looked_after_in_vain(tmp_path, monkeypatch, trouble, where)
    assert not (folder / protocol.EXIT).exists()


def test_an_attempt_that_can_not_be_looked_after_is_lost_once_its_container_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = looked_after_in_vain(tmp_path, monkeypatch, KeyError("a record"), AgentStatus.GONE)
    assert protocol.read(folder / protocol.EXIT, Ending).reason == "lost"
    assert (folder / protocol.CLAIM).exists()


def test_an_attempt_that_the_engine_has_taken_in_is_forgotten(tmp_path: Path) -> None:
    clock = HandClock(100.0)
    folder = hand_over(tmp_path, 1, None)
    protocol.write(folder / protocol.EXIT, Ending("exited", 0, None, None, 1.0))
    runner = Runner(tmp_path, clock, lambda _text, _error: None, tuple)
    runner.tick()
    assert not runner.holds_nothing
    (protocol.inbox(tmp_path) / "1.json").unlink()
    runner.tick()
    assert runner.holds_nothing


def single_attempt(tmp_path: Path, order: Order, script: str) -> Path:
    folder = tmp_path / "attempt"
    protocol.make_folders(folder)
    (Path(order.agent_folder) / "start.sh").write_text(script)
    protocol.write(folder / protocol.ORDER, changed(order, runtime=protocol.PLAIN))
    return folder


def runner_of(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "mlebench_console.environment.runner", "--once", str(folder)]
    )


def test_a_single_attempt_is_looked_after_until_it_is_gathered(tmp_path: Path, order: Order) -> None:
    folder = single_attempt(tmp_path, order, 'echo "a,b" > "$SUBMISSION_DIR/submission.csv"; exit 3')
    with runner_of(folder) as runner:
        assert runner.wait() == 0
    ending = protocol.read(folder / protocol.EXIT, Ending)
    assert (ending.reason, ending.exit_code, ending.submission_sequence) == ("exited", 3, 1)


def test_a_single_attempt_goes_on_under_another_runner(tmp_path: Path, order: Order) -> None:
    folder = single_attempt(tmp_path, order, "echo begun; while [ ! -e go ]; do sleep 0.05; done")
    with runner_of(folder) as first:
        eventually((folder / protocol.LOG).exists)
        eventually(lambda: (folder / protocol.LOG).read_text() == "begun\n")
        first.kill()
    with runner_of(folder) as second:
        (folder / protocol.SCRATCH / "agent" / "go").touch()
        assert second.wait() == 0
    assert protocol.read(folder / protocol.EXIT, Ending).exit_code == 0
    assert (folder / protocol.LOG).read_text() == "begun\n"


def test_a_directory_without_an_order_is_no_attempt(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mlebench_console.environment.runner", "--once", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"has no run.json" in done.stderr
