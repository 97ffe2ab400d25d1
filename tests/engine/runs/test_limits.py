"""An attempt that is idle or fills the disk is over a limit; one that works is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.runs.failures import Graded, classify
from environment.runner import protocol
from environment.runner.protocol import Exit
from environment.runner.usage import LimitWatch, Measured
from state.lifecycle import FailureClass
from state.transitions import Failure
from tests.environment.runner.orders import order_with


def watch(folder: Path, *, idle: float | None = None, disk: int | None = None) -> LimitWatch:
    order = order_with(idle_limit_seconds=idle, disk_limit_bytes=disk)
    return LimitWatch(folder, order)


def measured(cpu: float = 0.0, disk: int | None = None) -> Measured:
    return Measured(0.0, cpu, 1, disk, 1)


def test_an_attempt_in_which_nothing_happens_is_idle(tmp_path: Path) -> None:
    watching = watch(tmp_path, idle=60)
    assert watching.look(measured(), 0) is None
    assert watching.look(measured(), 59) is None
    assert watching.idle_seconds == 59
    over = watching.look(measured(), 61)
    assert over is not None
    assert over.kind == "idle"


def test_work_output_and_files_count_as_something(tmp_path: Path) -> None:
    watching = watch(tmp_path, idle=60)
    watching.look(measured(disk=1), 0)
    assert watching.look(measured(cpu=50, disk=1), 50) is None
    (tmp_path / protocol.OUTPUT).mkdir()
    (tmp_path / protocol.LOG).with_suffix(".times").touch()
    assert watching.look(measured(disk=1), 100) is None
    assert watching.look(measured(disk=2), 150) is None
    assert watching.look(measured(disk=2), 200) is None
    assert watching.look(measured(disk=2), 211) is not None


def test_a_full_disk_is_told_with_its_figures(tmp_path: Path) -> None:
    watching = watch(tmp_path, disk=1000)
    assert watching.look(measured(disk=1000), 0) is None
    over = watching.look(measured(disk=1001), 1)
    assert over is not None
    assert "1,001 bytes" in over.problem


@pytest.mark.parametrize(
    ("reason", "kind"), [("idle", FailureClass.TIMEOUT), ("disk", FailureClass.DISK)], ids=str
)
def test_the_end_by_a_limit_is_the_agents_own_and_a_submission_still_counts(
    reason: str, kind: FailureClass
) -> None:
    verdict = classify(Exit(reason, None, None, 1.0, 2.0, problem="figures"), "")
    assert isinstance(verdict, Failure)
    assert verdict.kind is kind
    assert "figures" in verdict.text
    graded = classify(Exit(reason, None, None, 1.0, 2.0, submission_sequence=1), "")
    assert isinstance(graded, Graded)
