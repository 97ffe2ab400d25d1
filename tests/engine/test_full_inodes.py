"""An agent that takes all inodes of the runs' disk ends in time, frees its slot, and buys nothing by it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine import control
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import FailureClass, RunState
from tests.engine.harness import SLOTS, SUBMIT, WAIT_FOR_GO, Harness, eventually

pytestmark = pytest.mark.usefixtures("root", "bubblewrap")

TAKE_ALL = """
python - << 'END'
import itertools, os
try:
    for number in itertools.count():
        open(os.environ["CODE_DIR"] + "/" + str(number), "w").close()
except OSError as error:
    print(error, flush=True)
END
"""


@pytest.fixture
def runs_dir(tmp_path: Path) -> Iterator[Path]:
    """A file system of few inodes."""
    folder = tmp_path / "runs"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g,nr_inodes=3000", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize(
    ("then", "expected"), [("exit 3", FailureClass.CRASH), ("sleep 600", FailureClass.TIMEOUT)]
)
def test_an_agent_that_takes_all_inodes_ends_in_time_by_its_own_fault(
    runs_dir: Path, harness: Harness, then: str, expected: FailureClass
) -> None:
    harness.places.config_file.write_text(f'[places]\nruns_dir = "{runs_dir}"\n[engine]\ncpus = {SLOTS}\n')
    harness.agent("taker", f"{TAKE_ALL}\n{then}")
    harness.start()
    harness.launch("taker", time_limit_seconds=8, disk_limit_bytes=500 << 20)
    (run,) = harness.ended()
    assert "No space left" in harness.log(run)
    assert (run.failure_class, run.rerolls) == (expected, 0)
    assert not (harness.folder(run) / protocol.RESERVE).exists()


def test_a_run_waits_until_what_it_may_take_of_the_disk_is_free_beside_the_others(
    runs_dir: Path, harness: Harness
) -> None:
    harness.places.config_file.write_text(f'[places]\nruns_dir = "{runs_dir}"\n[engine]\ncpus = {SLOTS}\n')
    harness.agent("worker", f"{SUBMIT}; {WAIT_FOR_GO}")
    harness.start()
    harness.launch("worker", seeds=2, disk_limit_bytes=600 << 20)
    first = eventually(lambda: [run for run in harness.runs() if run.state is RunState.RUNNING])[0]
    eventually(lambda: (control.status(harness.places).disk_for_runs or 0) > 0)
    assert (control.status(harness.places).disk_for_runs or 0) < 600 << 20
    assert [run.state for run in harness.runs() if run.id != first.id] == [RunState.QUEUED]
    eventually((harness.folder(first) / protocol.CODE / "starts").exists)
    harness.go(first)
    second = eventually(
        lambda: [run for run in harness.runs() if run.state is RunState.RUNNING and run.id != first.id]
    )[0]
    harness.go(second)
    harness.ended()
