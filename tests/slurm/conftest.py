"""A real Slurm with three nodes, and engines that submit to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.places import Places
from tests.engine.conftest import empty_state, prepared_data
from tests.engine.harness import Harness
from tests.slurm.cluster import Cluster

__all__ = ["cluster", "empty_state", "harness", "prepared_data"]

CONFIG = """\
[engine]
cpus = 10
[providers.local]
url = "http://localhost:9/v1"
[slurm.default]
account = "lab"
poll_seconds = 1
submissions_per_minute = 600
silent_seconds = 120
slack_minutes = 1
[slurm.brisk]
poll_seconds = 1
submissions_per_minute = 600
silent_seconds = 15
slack_minutes = 1
[slurm.staged]
staging = "copy"
scratch = "SCRATCH"
gres = "gpu:a100:{n}"
poll_seconds = 1
submissions_per_minute = 600
slack_minutes = 1
[slurm.short]
partition = "short"
[slurm.lost]
partition = "nowhere"
"""


@pytest.fixture(scope="session")
def cluster(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Slurm that is up, with accounts and records of jobs."""
    made = Cluster(tmp_path_factory.mktemp("slurm") / "toy", keeps_records=True)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def harness(
    tmp_path: Path, cluster: Cluster, prepared_data: Path, empty_state: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Harness]:
    """An engine that knows the Slurm; not started yet, gone when the test is over."""
    for name, value in cluster.variables.items():
        monkeypatch.setenv(name, value)
    places = Places(tmp_path / "config.toml", prepared_data, tmp_path / "state")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    config = CONFIG.replace("SCRATCH", str(scratch))
    places.config_file.write_text(f'[places]\nruns_dir = "{tmp_path / "shared"}"\n{config}')
    made = Harness(places, tmp_path / "agents", empty_state)
    yield made
    made.close()
    cluster.end_jobs()
    cluster.start_what_is_gone()
