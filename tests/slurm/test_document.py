"""The worked example of docs/slurm.md, run as it stands there, with a Slurm of the test's own that keeps no records."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engine.conftest import prepared_data
from tests.engine.harness import eventually
from tests.slurm.cluster import private_options

__all__ = ["prepared_data"]
_DOCUMENT = Path(__file__).parents[2] / "docs" / "slurm.md"
_CHAPTER = re.compile(r"^## From nothing to a sweep in ten minutes\n(.*?)^## ", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Reader:
    """Somebody who does what the document says, at home in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        etc = folder / "etc"
        etc.mkdir(parents=True)
        self.variables = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ} | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "SLURM_CONF": str(etc / "slurm.conf"),
        }

    def do(self, text: str) -> str:
        """Run commands; those that need the whole machine get this folder instead."""
        for wanted, own in (
            ("/etc/slurm", str(self.folder / "etc")),
            ("/var/spool", str(self.folder / "spool")),
            ("install -d -o slurm", "install -d"),
            ("ClusterName=box", f"ClusterName=box\n{private_options(self.folder)}"),
            ("systemctl restart munge slurmctld slurmd", "slurmctld && slurmd"),
        ):
            text = text.replace(wanted, own)
        done = subprocess.run(
            ["bash", "-euc", text],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def leave(self) -> None:
        """Stop the engine and Slurm."""
        with suppress(AssertionError):  # what the test has found wrong is told, not what follows from it
            self.do("mlebench-console engine stop --with-runs; scancel -u $(id -un)")
        for file in self.folder.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.fixture
def reader(slurm: None, bubblewrap: None, tmp_path: Path, prepared_data: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    data = made.home / ".cache" / "mle-bench" / "data"
    data.parent.mkdir(parents=True)
    data.symlink_to(prepared_data)  # which spares the download
    yield made
    made.leave()


def test_a_reader_of_the_document_gets_from_nothing_to_a_sweep(reader: Reader) -> None:
    chapter = _CHAPTER.search(_DOCUMENT.read_text())
    assert chapter is not None
    packages, slurm, profile, dry_run, launch, results = _BLOCK.findall(chapter[1])
    assert packages.startswith("apt-get install")
    reader.do(slurm)
    assert "jobs can be placed on slurm" in reader.do(profile)
    told = reader.do(dry_run)
    assert "2 would be submitted now" in told
    assert "the first would start" in told
    assert "nothing was launched" in told
    assert "spaceship-titanic" in reader.do(launch)

    def is_over() -> bool:
        return bool(
            json.loads(reader.do("mlebench-console sweep show first --json"))["counts"]["finished"] == 2
        )

    eventually(is_over, patience=240)  # a job that a busy machine loses is tried again
    told = reader.do(results)
    assert re.search(r"job \d+ in slurm on \S+", told)
    assert "submitted sample_submission.csv" in told
