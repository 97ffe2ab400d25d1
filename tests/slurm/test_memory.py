"""Jobs of which the kernel ends a process for the memory that Slurm allows: the agent, or a child of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import FailureClass, RunState
from tests.engine.harness import SUBMIT, Harness
from tests.slurm.cluster import MEMORY_PERCENT, Cluster

_ALLOWED = 2_000_000_000  # of which Slurm gives the job less than what is taken
# Where its runner may make groups, an agent is in one of its own, of which Slurm counts nothing; this one goes back to
# the job's.
_LEAVE = """\
group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
echo $$ > "/sys/fs/cgroup/memory${group%/*}/cgroup.procs"
"""
_TAKE = f"python3 -c 'x = bytearray({_ALLOWED // 2})'"


@pytest.fixture
def cluster(slurm_groups: None, tmp_path: Path) -> Iterator[Cluster]:
    """A Slurm that holds what memory its jobs take."""
    made = Cluster(tmp_path / "toy", holds_memory=True)
    made.start()
    yield made
    made.stop()


def test_an_agent_that_slurm_ends_for_its_memory_has_failed_for_it_and_one_whose_child_it_ends_has_not(
    harness: Harness, cluster: Cluster
) -> None:
    assert (_ALLOWED + (1 << 30)) * MEMORY_PERCENT / 100 < _ALLOWED / 2
    for where, leave in (("inside", ""), ("outside", _LEAVE)):
        harness.agent(f"greedy-{where}", f"{leave}exec {_TAKE}")
        harness.agent(f"parent-{where}", f"{leave}{_TAKE}; echo its child ended with $?; {SUBMIT}")
    harness.start()
    sweeps = {
        (who, where): harness.launch(
            f"{who}-{where}", runtime=runtime, placement="slurm:brisk", memory_bytes=_ALLOWED
        )
        for who in ("greedy", "parent")
        for where, runtime in (("inside", protocol.BUBBLEWRAP), ("outside", protocol.PLAIN))
    }
    ended = {run.sweep_id: run for run in harness.ended()}
    listed = cluster.ask("squeue", "-t", "all", "-h", "-o", "%i %T").splitlines()
    states = dict(line.split() for line in listed)
    for (who, where), sweep in sweeps.items():
        run = ended[sweep]
        (attempt,) = harness.attempts(run)
        told = protocol.read(harness.folder(run) / protocol.EXIT, Ending)
        assert told.oom_kills == 1, where
        if where == "outside":
            assert states[attempt.job] == "OUT_OF_MEMORY"
        if who == "greedy":
            assert run.failure_class is FailureClass.MEMORY, (where, run.failure_text)
        else:
            assert run.state is RunState.FINISHED, (where, run.failure_text)
            assert harness.log(run).endswith("its child ended with 137\n")
