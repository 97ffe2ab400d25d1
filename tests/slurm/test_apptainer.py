"""A job of a user without root, whose agent runs in Apptainer on the node."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mlebench_console.engine.placements.sbatch import job_script
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.container.output import Ending, Started
from mlebench_console.environment.runner import protocol
from tests.engine.conftest import prepared_data
from tests.engine.harness import COMPETITION, SUBMIT, eventually
from tests.environment.runner.test_image_runtimes import LOOK_AROUND, World
from tests.machine import ORDINARY_USER
from tests.slurm.cluster import Cluster

__all__ = ["prepared_data"]


@pytest.fixture
def cluster(slurm: None, apptainer: None) -> Iterator[Cluster]:
    """A Slurm of an ordinary user's own."""
    with TemporaryDirectory(prefix="mlebench-test-") as home:
        made = Cluster(Path(home, "toy"), user=ORDINARY_USER)
        made.start()
        yield made
        made.stop()


def test_an_agent_of_a_job_in_apptainer_finds_its_image_and_submits(
    cluster: Cluster, prepared_data: Path
) -> None:
    home = cluster.folder.parent
    prepared, scratch = home / "prepared", home / "scratch"
    shutil.copytree(prepared_data / COMPETITION / "prepared", prepared)
    scratch.mkdir()
    world = World(protocol.APPTAINER, home / "world", prepared, scratch, ORDINARY_USER)
    world.folder.mkdir()
    attempt = world.place(
        world.order(
            f"python3 - << 'END'\n{LOOK_AROUND}\nEND\n{SUBMIT}; $VALIDATE_SCRIPT $SUBMISSION_DIR/submission.csv; exit 7"
        )
    )
    subprocess.run(["chown", f"{ORDINARY_USER}:", str(scratch)], check=True)
    script = attempt / protocol.JOB_SCRIPT
    script.write_text(job_script(attempt, protocol.read_order(attempt), SlurmProfile(scratch=str(scratch))))
    cluster.do("sbatch", "--export=NIL", "--mem=2000", f"--output={attempt / protocol.JOB_LOG}", str(script))
    eventually((attempt / protocol.EXIT).exists, or_tell=[cluster.ask("squeue", "-t", "all")])
    ended = protocol.read(attempt / protocol.EXIT, Ending)
    assert ended.exit_code == 7, (ended.problem, (attempt / protocol.JOB_LOG).read_text())
    assert protocol.read(attempt / protocol.STARTED, Started).runtime == protocol.APPTAINER
    log = (attempt / protocol.LOG).read_text()
    for sign in (
        '"mark": "as it was built\\n"',
        '"answers": []',
        '"interfaces": ["lo"]',
        "The submission is valid.",
    ):
        assert sign in log, log
    eventually(lambda: {path.name.split("-")[0] for path in scratch.iterdir()} <= {"mlebench"})
