"""What nodes offer is found out by a short job on one node of each kind, and kept for a day."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mlebench_console.engine.agents import Agent
from mlebench_console.engine.placements.commands import Job, Node, SlurmCommands, SlurmRefuses
from mlebench_console.engine.placements.survey import KEPT_SECONDS, kept_offers, require_node, survey_nodes
from mlebench_console.engine.places import Places
from mlebench_console.engine.sweeps import checks
from mlebench_console.environment.runner import survey
from mlebench_console.environment.runner.host.readings import Gpu
from mlebench_console.environment.runner.survey import RuntimeOffer
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import EnvironmentProblem
from tests.slurm.cluster import Cluster


class Nodes(SlurmCommands):
    """Four nodes of three kinds; a job on n1 writes what it finds, one on n3 waits, n4 takes none."""

    def __init__(self) -> None:
        super().__init__({})
        self.submitted: list[str] = []
        self.cancelled: list[str] = []

    def nodes(self, partitions: Sequence[str] = ()) -> list[Node]:
        assert list(partitions) == ["main"]
        sizes = {"n1": (8, "idle", 0), "n2": (8, "mixed", 0), "n3": (16, "idle", 2), "n4": (32, "down", 0)}
        return [
            Node(name, state, True, cpus, 0, 0.0, 1 << 30, gpus, 0, ("main",), "")
            for name, (cpus, state, gpus) in sizes.items()
        ]

    def submit(self, script: Path, options: Sequence[str]) -> str:
        (node,) = (option.partition("=")[2] for option in options if option.startswith("--nodelist="))
        assert "--export=NIL" in options
        assert str(script.with_suffix(".json")) in script.read_text()
        self.submitted.append(node)
        if node == "n1":
            write_offer(script.with_suffix(".json"))
        return f"7{node[1:]}"

    def jobs(self) -> list[Job]:
        return [Job("73", "PENDING", "Priority", "", "2026-01-01", None, 1, "mlebench-survey")]

    def cancel(self, numbers: Sequence[str]) -> None:
        self.cancelled += numbers


def write_offer(file: Path, *, age: float = 0.0) -> None:
    offer = asdict(survey.survey(file.parent, tuple))
    files.write_json(file, offer | {"at": time.time() - age})


@pytest.fixture
def places(tmp_path: Path) -> Places:
    config = tmp_path / "config.toml"
    config.write_text(f'[places]\nruns_dir = "{tmp_path / "shared"}"\n[slurm.default]\npartition = "main"\n')
    return Places(config, tmp_path / "data", tmp_path / "state")


def test_one_node_of_each_kind_is_asked_once_a_day_and_what_waits_is_cancelled(places: Places) -> None:
    slurm = Nodes()
    found = survey_nodes(places, "slurm", wait_seconds=0.0, commands=slurm)
    assert slurm.submitted == ["n1", "n3"]
    assert [one.nodes for one in found] == [("n1", "n2"), ("n3",), ("n4",)]
    assert found[0].offer is not None
    assert {one.name for one in found[0].offer.runtimes} == {"bubblewrap", "apptainer"}
    assert "PENDING, Priority" in found[1].problem
    assert (found[1].gpus, slurm.cancelled) == (2, ["73"])
    assert "n4 is down" in found[2].problem
    again = survey_nodes(places, "slurm", wait_seconds=0.0, commands=slurm)
    assert again[0] == found[0]
    assert slurm.submitted == ["n1", "n3", "n3"]
    (kept,) = (path for path in (places.config_file.parent / "shared").rglob("*.json"))
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"at": time.time() - KEPT_SECONDS - 1}))
    survey_nodes(places, "slurm", wait_seconds=0.0, commands=slurm)
    assert slurm.submitted[3:] == ["n1", "n3"]


def test_a_number_that_slurm_has_given_to_another_job_is_not_cancelled(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = Nodes()
    (job,) = slurm.jobs()
    monkeypatch.setattr(slurm, "jobs", lambda: [replace(job, name="somebody-elses", state="RUNNING")])
    found = survey_nodes(places, "slurm", wait_seconds=0.0, commands=slurm)
    assert "its job was not seen" in found[1].problem or "its job was not seen" in found[0].problem
    assert slurm.cancelled == []


def test_a_launch_tells_where_its_runtime_does_not_work_as_far_as_that_is_known(places: Places) -> None:
    agent = cast(Agent, SimpleNamespace(dockerfile=Path("Dockerfile")))
    assert list(checks._offers("auto", agent, "slurm", places)) == []
    survey_nodes(places, "slurm", wait_seconds=0.0, commands=Nodes())
    assert kept_offers(places, "slurm:night") == []
    (offer,) = kept_offers(places, "slurm")
    lacking = replace(offer, host="n9", runtimes=(RuntimeOffer("bubblewrap", "it is not installed"),))
    (kept,) = (path for path in (places.config_file.parent / "shared").rglob("*.json"))
    files.write_json(kept.with_name("n9.json"), asdict(lacking))
    files.write_json(kept, asdict(replace(offer, runtimes=(RuntimeOffer("apptainer", ""),))))
    (told,) = checks._offers("auto", agent, "slurm", places)
    assert told.warns
    assert told.text == "the runtime 'auto' does not work on node n9, of 2 kinds examined"
    kept.with_name("n9.json").unlink()
    (told,) = checks._offers("auto", agent, "slurm", places)
    assert (told.warns, told.text) == (
        False,
        "the runtime 'auto' works on the one kind of nodes examined",
    )
    (told,) = checks._offers("bubblewrap", agent, "slurm", places)
    assert told.warns


def test_what_slurm_refuses_is_told_and_no_node_is_an_error(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> str:
        raise SlurmRefuses("Slurm refuses the job", "invalid account")

    monkeypatch.setattr(Nodes, "submit", refuse)
    found = survey_nodes(places, "slurm", wait_seconds=0.0, commands=Nodes())
    assert "invalid account" in found[0].problem
    with pytest.raises(EnvironmentProblem, match="no node has reported what it offers"):
        require_node(found)


def test_a_real_node_tells_what_it_offers(
    places: Places, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cluster.variables.items():
        monkeypatch.setenv(name, value)
    places.config_file.write_text(f'[places]\nruns_dir = "{places.config_file.parent}"\n')
    (found,) = survey_nodes(places, "slurm", wait_seconds=60.0)
    assert found.nodes == ("n1", "n2", "n3")
    assert found.offer is not None, found.problem
    assert found.offer.host == found.node


def test_a_survey_leaves_nothing_behind(tmp_path: Path) -> None:
    found = survey.survey(tmp_path, lambda: (Gpu("GPU-1", "H100", None, None, None),))
    assert list(tmp_path.iterdir()) == []
    assert found.gpus == ("H100",)
    assert found.cpus > 0
