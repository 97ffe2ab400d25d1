"""Secrets lie in memory for as long as somebody may take them, and no longer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.secrets import SecretLaunch
from mlebench_console.foundation.problems import EnvironmentProblem

LAUNCH = SecretLaunch((("TOKEN", "hidden"),), ("hidden",))


@pytest.fixture
def attempts(tmp_path: Path) -> Iterator[list[Path]]:
    """Attempts of two states for each of which secrets and keys were left."""
    made = [
        tmp_path / state / protocol.attempt_folder("sweep", "competition", 1, number, "token")
        for state in ("one", "two")
        for number in (1, 2)
    ]
    for folder in made:
        folder.mkdir(parents=True)
        secrets.leave(folder, LAUNCH)
        secrets.leave_keys(folder, {"KEY": "dear"})
    yield made
    for folder in made:
        secrets.discard(folder)


def test_what_was_left_for_attempts_that_are_over_or_whose_state_is_gone_is_removed(
    attempts: list[Path], tmp_path: Path
) -> None:
    over, waiting, gone, _ = attempts
    (over / protocol.EXIT).touch()
    shutil.rmtree(tmp_path / "two")
    secrets.discard_orphans()
    for folder in (over, gone):
        with pytest.raises(EnvironmentProblem, match="are gone"):
            secrets.take(folder)
        with pytest.raises(EnvironmentProblem, match="are gone"):
            secrets.read_keys(folder)
        with pytest.raises(EnvironmentProblem, match="are gone"):
            secrets.read_hidden(folder)
    assert secrets.take(waiting) == LAUNCH
    assert secrets.read_keys(waiting) == {"KEY": "dear"}
    assert secrets.read_hidden(waiting) == ("hidden",)


def test_no_secret_is_left_half_written_by_who_was_killed(tmp_path: Path) -> None:
    of_engine = tmp_path / "state" / protocol.attempt_folder("sweep", "competition", 1, 1, "token")
    folder = tmp_path / "shared" / "attempt"
    folder.mkdir(parents=True)
    secrets.leave(of_engine, LAUNCH)
    half_sent = folder / ".secrets.json.0a1b2c3d.partial"
    half_sent.write_text("hidden")
    secrets.send(of_engine, folder)
    assert not half_sent.exists()
    half_sent.write_text("hidden")
    secrets.withdraw(folder)
    assert not list(folder.iterdir())
    half_left, being_left = (
        secrets.memory_folder() / f".{tmp_path.name}.{name}.json.partial" for name in ("a", "b")
    )
    for path in (half_left, being_left):
        path.write_text("hidden")
    os.utime(half_left, (1, 1))
    secrets.discard_orphans()
    assert not half_left.exists()
    assert being_left.exists()  # perhaps by an engine that lives
    being_left.unlink()


def test_a_run_directory_that_is_out_of_reach_costs_no_secret(attempts: list[Path], tmp_path: Path) -> None:
    folder = attempts[0]
    (tmp_path / "one" / "runs").rename(tmp_path / "unmounted")
    secrets.discard_orphans()
    assert secrets.read_keys(folder) == {"KEY": "dear"}


def test_what_a_main_process_has_emptied_is_left_to_its_runner(attempts: list[Path]) -> None:
    place = secrets.path_of(attempts[0])
    place.write_bytes(b"")
    secrets.discard_orphans()
    assert place.exists()


def test_what_a_job_has_taken_stays_while_it_lives_wherever_its_state_is_and_no_longer(
    tmp_path: Path,
) -> None:
    of_engine = tmp_path / "login" / protocol.attempt_folder("sweep", "competition", 1, 1, "token")
    folder = tmp_path / "shared" / "attempt"
    folder.mkdir(parents=True)
    secrets.leave(of_engine, LAUNCH)
    secrets.leave_keys(of_engine, {"KEY": "dear"})
    secrets.send(of_engine, folder)
    lock = secrets.receive(folder)
    assert lock is not None
    secrets.discard_orphans()  # as each runner of this node does
    assert secrets.read_keys(folder) == {"KEY": "dear"}
    assert secrets.take(folder) == LAUNCH
    lock.release()  # as a kill does
    secrets.discard_orphans()
    with pytest.raises(EnvironmentProblem, match="are gone"):
        secrets.read_keys(folder)
    assert not Path(lock.path).exists()
