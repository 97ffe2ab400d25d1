"""MLE-bench's container config is understood, and what is not understood is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient

from mlebench_console.engine.options.sweep import SweepOptions, read_container_config
from mlebench_console.environment.runner.docker.daemon import host_config
from mlebench_console.environment.runner.docker.plans import ContainerPlan, Role
from mlebench_console.foundation.problems import DataProblem


def written(folder: Path, content: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(content))
    return path


def test_a_config_as_mle_bench_has_it(tmp_path: Path) -> None:
    config = {"mem_limit": None, "shm_size": "4G", "nano_cpus": 4e9, "runtime": "sysbox-runc", "gpus": -1}
    assert read_container_config(written(tmp_path, config)) == SweepOptions(
        shm_gb=(4 << 30) / 1e9, cpus=4.0, container_runtime="sysbox-runc", gpus=-1
    )


def test_what_only_shares_out_the_host_goes_on_to_the_container(tmp_path: Path) -> None:
    config = {
        "cpuset_cpus": "0-3",
        "ulimits": [{"Name": "nofile", "Soft": 1024, "Hard": 2048}],
        "pids_limit": 512,
        "mem_reservation": None,
    }
    options = read_container_config(written(tmp_path, config)).container_options
    assert options == (
        'cpuset_cpus="0-3"',
        "pids_limit=512",
        'ulimits=[{"hard": 2048, "name": "nofile", "soft": 1024}]',
    )
    plan = ContainerPlan(Role.AGENT, "image", (), "0:0", (), (), "none", options=options)
    settings = host_config(APIClient(base_url="tcp://127.0.0.1:1", version="1.41"), plan)
    assert settings["CpusetCpus"] == "0-3"
    assert settings["PidsLimit"] == 512
    assert [(limit["Name"], limit["Soft"], limit["Hard"]) for limit in settings["Ulimits"]] == [
        ("core", 0, 0),
        ("nofile", 1024, 2048),
    ]


@pytest.mark.parametrize(
    ("content", "telling"),
    [
        ([], "not a JSON object"),
        ({"privileged": True}, "unknown key 'privileged'"),
        ({"shm_size": "much"}, "'shm_size' is not a size"),
        ({"gpus": "all"}, "'gpus' is not a number"),
        ({"runtime": 3}, "'runtime' is not a name"),
        ({"cpuset_cpus": 3}, "'cpuset_cpus' is not a text"),
        ({"ulimits": [{"Name": "nofile", "Softer": 3}]}, "'ulimits' is not valid"),
        ({"network_mode": "host"}, "unknown key 'network_mode'"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, content: Any, telling: str) -> None:
    with pytest.raises(DataProblem, match=telling):
        read_container_config(written(tmp_path, content))
