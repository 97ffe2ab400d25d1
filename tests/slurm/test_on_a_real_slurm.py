"""Runs as jobs of a real Slurm with three nodes: the same results as here, whatever is killed meanwhile."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from mlebench_console import leaderboard_row
from mlebench_console.console.cli import program
from mlebench_console.engine import control
from mlebench_console.engine.control import RefusedRequest
from mlebench_console.engine.images import import_image
from mlebench_console.engine.places import images_folder
from mlebench_console.engine.requests import ChosenRun, StopRuns
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import locks
from mlebench_console.foundation.conditions import HERE
from mlebench_console.state.lifecycle import FailureClass, RunState
from mlebench_console.state.records import Run
from tests.engine.harness import COMPETITION, SUBMIT, WAIT_FOR_GO, Harness, eventually
from tests.engine.test_exported_images import agent_with_image, exported_elsewhere
from tests.slurm.cluster import Cluster

JOBS: dict[str, Any] = {"placement": "slurm", "memory_bytes": 200_000_000}


def test_a_sweep_of_jobs_on_three_nodes_makes_the_row_that_it_makes_here(
    harness: Harness, cluster: Cluster, tmp_path: Path
) -> None:
    harness.agent("honest", f'{SUBMIT}; echo "gpu $CUDA_VISIBLE_DEVICES, data $(realpath "$DATA_DIR")"')
    import_image(
        exported_elsewhere(agent_with_image(harness, SUBMIT), tmp_path / "usb"), images_folder(harness.places)
    )
    harness.start()
    staged = {"placement": "slurm:staged", "runtime": "plain", "gpus": 1}
    sweeps = [
        harness.launch("honest", seeds=9, **JOBS),
        harness.launch("honest", seeds=8, **(JOBS | staged)),
        harness.launch("honest", seeds=9, runtime="plain"),
        harness.launch("boxed", seeds=1, runtime="auto", **(JOBS | {"placement": "slurm:staged"})),
    ]
    # Jobs are there of which the engine has not noted anything.
    eventually(lambda: cluster.ask("squeue", "-h", "-o", "%i").split())
    harness.kill_engine()
    harness.start()
    runs = harness.all_in("finished")
    rows = [leaderboard_row(name, pad_missing=True, state_dir=harness.places.state_dir) for name in sweeps]
    assert rows[0].own is not None
    assert (rows[0].own, rows[0].columns) == (rows[2].own, rows[2].columns)
    assert len({(run.outcome, run.score) for run in runs}) == 1
    (boxed,) = [run for run in runs if run.sweep_id == sweeps[3]]
    assert harness.attempts(boxed)[0].runtime == protocol.BUBBLEWRAP
    nodes = set()
    for run in runs:
        harness.assert_ended_once(run)
        (attempt,) = harness.attempts(run)
        if attempt.placement != HERE:
            nodes.add(attempt.node)
            assert attempt.job
            assert not [path for path in harness.folder(run).iterdir() if path.name == protocol.SCRATCH]
        if run.sweep_id == sweeps[1]:
            assert re.search(r"gpu [01], data .*/scratch/mlebench-\d+/store/\w+/public\n", harness.log(run))
    assert nodes == {"n1", "n2", "n3"}
    # No job was submitted twice.
    names = cluster.ask("sacct", "-X", "-n", "-P", "-o", "JobName").split()
    assert len(names) == len(set(names))


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
    eventually(lambda: "NODE_FAIL" in cluster.ask("sacct", "-X", "-n", "-o", "State"))
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
    harness.ask(StopRuns(runs=(ChosenRun(waiting.id, 1),)))
    cluster.do("scancel", harness.attempts(cancelled)[-1].job)
    node = eventually(lambda: harness.attempts(preempted)[-1].node)
    urgent = ("--partition=urgent", "--cpus-per-task=8", f"--nodelist={node}", "--mem=100")
    cluster.do("sbatch", *urgent, "--output=/dev/null", "--wrap=sleep 1")
    harness.ask(StopRuns(runs=(ChosenRun(stopped.id, 1),)))
    ended = {run.id: run for run in harness.ended()}
    assert ended[waiting.id].state is RunState.STOPPED
    assert not (harness.folder(waiting) / protocol.CODE / "starts").exists()
    assert ended[stopped.id].state is RunState.STOPPED
    for run, word in ((cancelled, "CANCELLED"), (preempted, "PREEMPTED")):
        (attempt,) = harness.attempts(run)
        assert ended[run.id].failure_class is FailureClass.INFRASTRUCTURE
        assert word in attempt.evidence
        assert not locks.is_held(harness.folder(run) / protocol.LOCK)


def test_what_ends_a_job_on_its_node_is_told_with_evidence(harness: Harness, cluster: Cluster) -> None:
    harness.agent("patient", f"{WAIT_FOR_GO}; {SUBMIT}")
    harness.agent("greedy", 'python3 -c "import time; x = bytearray(400_000_000); time.sleep(100)"')
    harness.start()
    brisk = JOBS | {"placement": "slurm:brisk"}
    # What no Slurm without control groups holds, the runner does.
    greedy = harness.launch("greedy", **brisk)
    harness.launch("patient", seeds=3, cpus=7, **brisk)
    eventually(lambda: any(run.state is RunState.FAILED for run in harness.runs()))
    runs = eventually(
        lambda: [run for run in harness.runs() if run.state is RunState.RUNNING][2:] and harness.runs()
    )
    (ended_first,) = [run for run in runs if run.sweep_id == greedy]
    assert ended_first.failure_class is FailureClass.MEMORY
    runs.remove(ended_first)
    killed, with_node, late = [harness.attempts(run)[-1] for run in runs]
    nodes = {eventually(lambda: harness.attempts(run)[-1].node) for run in runs}  # noqa: B023 - called at once
    assert nodes == {"n1", "n2", "n3"}
    harness.kill_job(runs[0])
    node = harness.attempts(runs[1])[-1].node
    cluster.do("scontrol", "update", f"nodename={node}", "state=down", "reason=broken fan")
    cluster.do("scontrol", "update", f"jobid={harness.attempts(runs[2])[-1].job}", "EndTime=now+1")
    ended = harness.ended()
    cluster.works("scontrol", "update", f"nodename={node}", "state=resume")  # unless it is back by itself
    for attempt, word in ((killed, "FAILED"), (with_node, "NODE_FAIL"), (late, "TIMEOUT")):
        (run,) = [run for run in ended if run.id == attempt.run_id]
        assert run.failure_class is FailureClass.INFRASTRUCTURE, run.failure_text
        assert word in harness.attempts(run)[-1].evidence


def test_what_slurm_has_forgotten_is_in_its_records_and_what_it_takes_later_waits(
    harness: Harness, cluster: Cluster
) -> None:
    harness.agent("patient", f"{WAIT_FOR_GO}; {SUBMIT}")
    harness.start()
    cluster.do("sacctmgr", "-i", "modify", "user", "set", "maxsubmitjobs=1")
    try:
        harness.launch("patient", seeds=2, **(JOBS | {"placement": "slurm:brisk"}))
        eventually(lambda: "Slurm has taken no job since" in control.status(harness.places).problem)
        first, second = sorted(harness.runs(), key=lambda run: run.state is not RunState.RUNNING)
        number = eventually(lambda: harness.attempts(first)[-1].job)
        eventually((harness.folder(first) / protocol.CODE / "starts").exists)
        # Whatever their administrators want, jobs do not begin again by themselves.
        assert not cluster.works("scontrol", "requeue", number)
        harness.kill_engine()
        cluster.do("scancel", number)
        cluster.until(lambda: number not in cluster.ask("squeue", "-t", "all", "-h", "-o", "%i").split())
        harness.start()
        eventually((harness.folder(second) / protocol.CODE / "starts").exists)
        harness.go(second)
        ended = {run.id: run for run in harness.ended()}
    finally:
        cluster.do("sacctmgr", "-i", "modify", "user", "set", "maxsubmitjobs=-1")
    assert ended[second.id].state is RunState.FINISHED
    assert ended[first.id].failure_class is FailureClass.INFRASTRUCTURE
    assert re.search(rf"job {number} on n\d, .*CANCELLED", harness.attempts(first)[-1].evidence)


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
    with pytest.raises(RefusedRequest, match="memory limit may get a whole node"):
        harness.launch("honest", placement="slurm")
    with pytest.raises(RefusedRequest, match="nodes can't reach the provider 'local'"):
        harness.launch("honest", gateway=["local"], **JOBS)
    with pytest.raises(RefusedRequest, match="runs_per_gpu has no effect on jobs"):
        harness.launch("honest", gpus=1, runs_per_gpu=2, **JOBS)
    assert harness.runs() == []


def test_what_a_placement_has_and_lacks_is_told_without_submitting_anything(
    harness: Harness, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.agent("honest", SUBMIT)
    before = cluster.ask("sacct", "-X", "-n", "-o", "JobIDRaw")
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
        "slurm:brisk": (100, True),
        "slurm:staged": (100, True),
        "slurm:short": (100, True),
        "slurm:lost": (100, False),
    }
    code, checked = told("placements", "check")
    assert (code, checked["good"]) == (0, True)
    texts = "\n".join(check["text"] for check in checked["checks"])
    assert "3 nodes with 24 processors and 6 GPUs" in texts
    assert "Slurm would take a small job: Job" in texts
    assert "Slurm keeps records of jobs" in texts
    assert "you may charge lab" in texts
    code, checked = told("placements", "check", "slurm:lost")
    assert (code, checked["good"]) == (1, False)
    (wrong,) = [check for check in checked["checks"] if "there is no partition" in check["text"]]
    assert wrong["next_step"] == "Choose one of main, short, urgent."
    sweep = ("--agent=honest", f"--agents-dir={harness.agents_dir}", f"--competitions={COMPETITION}")
    size = ("--seeds=4", "--hours=1", "--memory-gb=1", "--concurrency=3", "--placement=slurm")
    code, forecast = told("sweep", "launch", *sweep, *size, "--dry-run")
    assert (code, forecast["can_launch"]) == (0, True)
    jobs = forecast["jobs"]
    assert (jobs["most"], jobs["live"], jobs["submitted_now"]) == (100, 0, 3)
    assert jobs["estimate"]["limit_seconds"] == 86_400
    assert jobs["estimate"]["node"] in ("n1", "n2", "n3")
    assert abs(jobs["estimate"]["starts_at"] - time.time()) < 600
    assert cluster.ask("sacct", "-X", "-n", "-o", "JobIDRaw") == before
