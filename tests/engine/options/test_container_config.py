"""MLE-bench's container config is understood, and what is not understood is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.options.sweep import SweepOptions, read_container_config
from foundation.problems import DataProblem


def written(folder: Path, content: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(content))
    return path


def test_a_config_as_mle_bench_has_it(tmp_path: Path) -> None:
    config = {"mem_limit": None, "shm_size": "4G", "nano_cpus": 4e9, "runtime": "sysbox-runc", "gpus": -1}
    assert read_container_config(written(tmp_path, config)) == SweepOptions(
        shm_gb=(4 << 30) / 1e9, cpus=4.0, container_runtime="sysbox-runc", gpus=-1
    )


@pytest.mark.parametrize(
    ("content", "telling"),
    [
        ([], "not a JSON object"),
        ({"privileged": True}, "unknown key 'privileged'"),
        ({"shm_size": "much"}, "'shm_size' is not a size"),
        ({"gpus": "all"}, "'gpus' is not a number"),
        ({"runtime": 3}, "'runtime' is not a name"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, content: Any, telling: str) -> None:
    with pytest.raises(DataProblem, match=telling):
        read_container_config(written(tmp_path, content))
