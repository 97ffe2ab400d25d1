"""The runner's loop: one attempt's trouble stays its own, and does not last for ever."""

from __future__ import annotations

from pathlib import Path

from environment.runner import protocol
from environment.runner.gpus import RecordedReader
from environment.runner.loop import Runner
from environment.runner.protocol import Exit, Handed
from tests.clocks import HandClock


def hand_over(state_dir: Path, number: int, order: str | None) -> Path:
    inbox = protocol.inbox(state_dir)
    inbox.mkdir(parents=True, exist_ok=True)
    folder = state_dir / f"attempt-{number}"
    folder.mkdir()
    if order is not None:
        (folder / protocol.ORDER).write_text(order)
    protocol.write(inbox / f"{number}.json", Handed(number, folder.name))
    return folder


def test_an_attempt_that_can_not_be_looked_after_is_given_up_in_the_end(tmp_path: Path) -> None:
    clock, logged = HandClock(100.0), list[str]()
    folder = hand_over(tmp_path, 1, "{")
    runner = Runner(tmp_path, clock, lambda text, _error: logged.append(text), RecordedReader(()))
    for _ in range(30):
        runner.tick()
        clock.moment += 3
    ended = protocol.read(folder / protocol.EXIT, Exit)
    assert ended.reason == "lost"
    assert "run.json is damaged" in ended.problem
    assert logged


def test_an_attempt_that_the_engine_has_taken_in_is_forgotten(tmp_path: Path) -> None:
    clock = HandClock(100.0)
    folder = hand_over(tmp_path, 1, None)
    protocol.write(folder / protocol.EXIT, Exit("exited", 0, None, None, 1.0))
    runner = Runner(tmp_path, clock, lambda _text, _error: None, RecordedReader(()))
    runner.tick()
    assert not runner.holds_nothing
    (protocol.inbox(tmp_path) / "1.json").unlink()
    runner.tick()
    assert runner.holds_nothing
