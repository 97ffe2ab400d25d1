"""Whatever is killed, locked, damaged and filled: `make soak` plays more of these histories, of other seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.behaviours import BEHAVIOURS
from tests.soak.plans import FAULTS, LAUNCH, plan

# Together they hold every behaviour and every fault.
ISOLATED_SEED, BARE_SEED = 36, 1907
PATIENCE = 280.0


@pytest.mark.usefixtures("bubblewrap", "root")
def test_each_run_ends_once_and_as_its_own_agent_made_it_end(tmp_path: Path) -> None:
    assert_holds(tmp_path, ISOLATED_SEED)


def test_without_isolation_each_run_ends_once_and_as_its_own_agent_made_it_end(tmp_path: Path) -> None:
    assert_holds(tmp_path, BARE_SEED, "--bare")


def assert_holds(folder: Path, seed: int, *options: str) -> None:
    command = [sys.executable, "-m", "tests.soak", f"--seed={seed}", "--minutes=0", *options]
    done = subprocess.run(
        command,
        env=os.environ | {"TMPDIR": str(folder)},  # so that whatever outlives it is found by its place
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_behaviour_and_every_fault_is_in_the_histories_that_are_always_played() -> None:
    steps = plan(ISOLATED_SEED) + plan(BARE_SEED)
    assert {step.behaviour for step in steps if step.kind == LAUNCH} == {one.name for one in BEHAVIOURS}
    assert {step.kind for step in steps} == {LAUNCH, *FAULTS}


def test_a_seed_always_makes_the_same_plan() -> None:
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)
