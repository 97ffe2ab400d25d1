"""Runs as jobs of a real Slurm with three nodes: the same results as here, whatever is killed meanwhile."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from console.cli import program
from engine import leaderboard_row
from engine.control import RefusedRequest
from engine.images import bring
from engine.places import images_folder
from environment.runner import protocol
from foundation import locks
from state.lifecycle import FailureClass, RunState
from state.records import HERE, Run
from tests.engine.harness import COMPETITION, SUBMIT, WAIT_FOR_GO, Harness, eventually
from tests.engine.test_exported_images import agent_with_image, exported_elsewhere
from tests.slurm.cluster import Cluster

JOBS: dict[str, Any] = {"placement": "slurm", "memory_bytes": 200_000_000}


def test_a_sweep_of_jobs_makes_the_row_that_it_makes_here(
    harness: Harness, cluster: Cluster, tmp_path: Path
) -> None:
    harness.agent("honest", f'{SUBMIT}; echo "gpu $CUDA_VISIBLE_DEVICES, data $(realpath "$DATA_DIR")"')
    bring(
        exported_elsewhere(agent_with_image(harness, SUBMIT), tmp_path / "usb"), images_folder(harness.places)
    )
    harness.start()
    sweeps = [
        harness.launch("honest", seeds=3, **JOBS),
        harness.launch("honest", seeds=1, runtime="plain", gpus=1, **(JOBS | {"placement": "slurm:staged"})),
        harness.launch("honest", seeds=3),
        harness.launch("boxed", seeds=1, runtime="auto", **(JOBS | {"placement": "slurm:staged"})),
    ]
    runs = harness.all_in("finished")
    rows = [leaderboard_row(name, pad_missing=True, state_dir=harness.places.state_dir) for name in sweeps]
    assert rows[0].own is not None
    assert (rows[0].own, rows[0].columns) == (rows[2].own, rows[2].columns)
    assert len({(run.outcome, run.score) for run in runs}) == 1
    (staged,) = [run for run in runs if run.sweep_id == sweeps[1]]
    assert re.search(r"gpu [01], data .*/scratch/mlebench-\d+/datasets/\w+/public\n", harness.log(staged))
    (boxed,) = [run for run in runs if run.sweep_id == sweeps[3]]
    assert harness.attempts(boxed)[0].runtime == protocol.ROOTFS
    for run in runs:
        (attempt,) = harness.attempts(run)
        if attempt.placement != HERE:
            assert attempt.job in cluster.ask("squeue", "-t", "all", "-h", "-o", "%i").split()
            assert attempt.node in ("n1", "n2", "n3")
            assert not [path for path in harness.folder(run).iterdir() if path.name == protocol.SCRATCH]
        harness.assert_ended_once(run)


def test_whatever_is_killed_every_job_ends_once_with_its_result(harness: Harness, cluster: Cluster) -> None:
    harness.agent("patient", f"{WAIT_FOR_GO}; {SUBMIT}")
    harness.start()
    harness.launch("patient", seeds=2, **JOBS)
    runs = harness.until_started()
    harness.kill_engine()
    cluster.until_saved([harness.attempts(run)[-1].job for run in runs])  # what was not, is forgotten
    cluster.kill_controller()
    harness.go(runs[0])
    eventually((harness.folder(runs[0]) / protocol.EXIT).exists)
    harness.start()
    cluster.start_controller()
    # An engine that is killed early has not asked where its jobs run.
    node = eventually(lambda: harness.attempts(runs[1])[-1].node)
    cluster.kill_node(node)
    # Slurm gives up the node, but the job lives there and writes.
    eventually(lambda: "NODE_FAIL" in cluster.ask("squeue", "-t", "all", "-h", "-o", "%T"))
    harness.go(runs[1])
    ended = harness.all_in("finished")
    cluster.start_node(node)
    for run in ended:
        harness.assert_ended_once(run)


def test_what_others_end_is_no_fault_of_the_agent_and_what_is_stopped_is_stopped(
    harness: Harness, cluster: Cluster
) -> None:
    harness.agent("patient", f"{WAIT_FOR_GO}; {SUBMIT}")
    harness.start()
    # Eight processors of each node: one run on each, and the fourth waits.
    harness.launch("patient", seeds=4, cpus=8, **JOBS)
    cancelled, preempted, stopped, waiting = eventually(lambda: _three_running_and_one_waiting(harness))
    harness.ask("run.stop", runs=[{"id": waiting.id, "attempt": 1, "reroll": False}])
    cluster.do("scancel", harness.attempts(cancelled)[-1].job)
    node = eventually(lambda: harness.attempts(preempted)[-1].node)
    urgent = ("--partition=urgent", "--cpus-per-task=8", f"--nodelist={node}", "--mem=100")
    cluster.do("sbatch", *urgent, "--output=/dev/null", "--wrap=sleep 1")
    harness.ask("run.stop", runs=[{"id": stopped.id, "attempt": 1, "reroll": False}])
    ended = {run.id: run for run in harness.ended()}
    assert ended[waiting.id].state is RunState.STOPPED
    assert not (harness.folder(waiting) / protocol.CODE / "starts").exists()
    assert ended[stopped.id].state is RunState.STOPPED
    for run, word in ((cancelled, "CANCELLED"), (preempted, "PREEMPTED")):
        (attempt,) = harness.attempts(run)
        assert ended[run.id].failure_class is FailureClass.INFRASTRUCTURE
        assert word in attempt.evidence
        assert not locks.is_held(harness.folder(run) / protocol.LOCK)


def _three_running_and_one_waiting(harness: Harness) -> list[Run]:
    runs = harness.runs()
    running = [run for run in runs if run.state is RunState.RUNNING]
    waiting = [run for run in runs if run.state is RunState.STARTING and harness.attempts(run)[-1].waits_for]
    return [*running, *waiting] if (len(running), len(waiting)) == (3, 1) else []


def test_a_job_that_its_partition_would_cut_short_is_refused_before_it_is_submitted(
    harness: Harness, cluster: Cluster
) -> None:
    harness.agent("honest", SUBMIT)
    harness.start()
    with pytest.raises(RefusedRequest, match="partition short ends jobs after 5 minutes"):
        harness.launch("honest", time_limit_seconds=3600, **(JOBS | {"placement": "slurm:short"}))
    with pytest.raises(RefusedRequest, match="there is no placement 'slurm:nowhere'"):
        harness.launch("honest", **(JOBS | {"placement": "slurm:nowhere"}))
    with pytest.raises(RefusedRequest, match="Requested node configuration is not available"):
        harness.launch("honest", **(JOBS | {"memory_bytes": 10**12}))
    with pytest.raises(RefusedRequest, match="memory may take a whole node"):
        harness.launch("honest", placement="slurm")
    with pytest.raises(RefusedRequest, match="nodes can't reach the provider 'local'"):
        harness.launch("honest", gateway=["local"], **JOBS)
    with pytest.raises(RefusedRequest, match="jobs do not share a GPU by runs_per_gpu"):
        harness.launch("honest", gpus=1, runs_per_gpu=2, **JOBS)
    assert harness.runs() == []


def test_what_a_placement_has_and_lacks_is_told_without_submitting_anything(
    harness: Harness, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.agent("honest", SUBMIT)
    before = cluster.ask("squeue", "-t", "all", "-h", "-o", "%i")
    places = harness.places

    def told(*words: str) -> tuple[int, Any]:
        where = (
            f"--state-dir={places.state_dir}",
            f"--data-dir={places.data_dir}",
            f"--config={places.config_file}",
        )
        code = program.run([*where, *words, "--json"])
        return code, json.loads(capsys.readouterr().out)

    code, listed = told("placements", "list")
    assert code == 0
    assert {one["placement"]: (one["room"], one["answers"]) for one in listed} == {
        "here": (None, True),
        "slurm": (100, True),
        "slurm:staged": (100, True),
        "slurm:short": (100, True),
        "slurm:lost": (100, False),
    }
    code, checked = told("placements", "check")
    assert (code, checked["good"]) == (0, True)
    texts = "\n".join(check["text"] for check in checked["checks"])
    assert "3 nodes with 24 processors and 6 GPUs" in texts
    assert "Slurm would take a small job: Job" in texts
    assert "Slurm keeps no records of jobs" in texts
    code, checked = told("placements", "check", "slurm:lost")
    assert (code, checked["good"]) == (1, False)
    (wrong,) = [check for check in checked["checks"] if "there is no partition" in check["text"]]
    assert wrong["next_step"] == "Known are: main, short, urgent."
    sweep = ("--agent=honest", f"--agents-dir={harness.agents_dir}", f"--competitions={COMPETITION}")
    size = ("--seeds=4", "--hours=1", "--memory-gb=1", "--concurrency=3", "--placement=slurm")
    code, forecast = told("sweep", "launch", *sweep, *size, "--dry-run")
    assert (code, forecast["can_launch"]) == (0, True)
    jobs = forecast["jobs"]
    assert (jobs["most"], jobs["live"], jobs["submitted_now"]) == (100, 0, 3)
    assert jobs["estimate"]["limit_seconds"] == 86_400
    assert jobs["estimate"]["node"] in ("n1", "n2", "n3")
    assert abs(jobs["estimate"]["starts_at"] - time.time()) < 600
    assert cluster.ask("squeue", "-t", "all", "-h", "-o", "%i") == before
