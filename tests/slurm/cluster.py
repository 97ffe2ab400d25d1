"""A Slurm of a test's own: one controller and three nodes on this machine, without accounting, in a folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

NODES = ("n1", "n2", "n3")
PATIENCE = 60.0

_CONFIG = """\
ClusterName=toy
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ReturnToService=2
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=2,bf_interval=2
GresTypes=gpu
KillWait=5
MinJobAge=300
SlurmdTimeout=5
MessageTimeout=5
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
NodeName=DEFAULT CPUs=8 RealMemory=8000 Gres=gpu:a100:2 State=UNKNOWN
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{node_ports}]
PartitionName=DEFAULT Nodes=n[1-3] DefaultTime=10 State=UP
PartitionName=main Default=YES MaxTime=1-00:00:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=short MaxTime=00:05:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent MaxTime=1-00:00:00 PriorityTier=10 PreemptMode=OFF
"""
_GRES = "NodeName=n[1-3] Name=gpu Type=a100 File=/dev/tty[0-1]\n"


class Cluster:
    """Starts, breaks and stops a Slurm; `variables` point its commands at it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = _free_ports(4)
        folder.mkdir()
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir()
        text = _CONFIG.format(
            folder=folder,
            host=socket.gethostname().partition(".")[0],
            user=_user_name(),
            controller_port=port,
            node_ports=f"{port + 1}-{port + 3}",
        )
        (folder / "slurm.conf").write_text(text)
        (folder / "gres.conf").write_text(_GRES)
        (folder / "cgroup.conf").write_text("")
        self.variables = {"SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        """Start everything, and return when all nodes are idle."""
        self.start_what_is_gone()

    def start_controller(self) -> None:
        self._run("slurmctld")

    def start_node(self, node: str) -> None:
        self._run("slurmd", "-N", node)

    def kill_controller(self) -> None:
        self._kill("controller")

    def until_saved(self, jobs: Sequence[str]) -> None:
        """Wait until the controller has saved what it knows of jobs."""
        marks = [f"saved-{job}-{time.monotonic()}" for job in jobs]
        for job, mark in zip(jobs, marks, strict=True):
            self.do("scontrol", "update", f"jobid={job}", f"comment={mark}")
        saved = self.folder / "state" / "job_state"
        self.until(lambda: saved.exists() and all(mark.encode() in saved.read_bytes() for mark in marks))

    def start_what_is_gone(self) -> None:
        """Start again what a test has killed."""
        if not (self.folder / "controller.pid").exists():
            self.start_controller()
        for node in NODES:
            if not (self.folder / f"{node}.pid").exists():
                self.start_node(node)
        self.until(lambda: self.ask("sinfo", "-h", "-o", "%T %D").split() == ["idle", "3"])

    def kill_node(self, node: str) -> None:
        assert node in NODES
        self._kill(node)

    def ask(self, *command: str) -> str:
        """Return what a command prints, and nothing where it fails."""
        return self._command(*command).stdout

    def do(self, *command: str) -> None:
        """Carry out a command that must work."""
        done = self._command(*command)
        assert done.returncode == 0, done.stderr

    def until(self, look: Callable[[], bool]) -> None:
        give_up = time.monotonic() + PATIENCE
        while not look():
            assert time.monotonic() < give_up, self.ask("sinfo") + self.ask("squeue", "-t", "all")
            time.sleep(0.1)

    def end_jobs(self) -> None:
        """End every job, and return when none is left."""
        self._command("scancel", f"--user={_user_name()}")
        self.until(lambda: not self.ask("squeue", "-h").split())

    def stop(self) -> None:
        """End every job, then everything else."""
        self.end_jobs()
        for name in (*NODES, "controller"):
            self._kill(name)

    def _command(self, *command: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | self.variables
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)

    def _run(self, *command: str) -> None:
        done = self._command(*command)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    def _kill(self, name: str) -> None:
        file = self.folder / f"{name}.pid"
        if not file.exists():
            return
        pid = int(file.read_text())
        file.unlink()
        give_up = time.monotonic() + PATIENCE
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            while time.monotonic() < give_up:
                os.kill(pid, 0)
                time.sleep(0.02)


def _free_ports(count: int) -> int:
    """Find a port behind which so many more are free."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
        if port + count < 1 << 16 and all(_is_free(port + more) for more in range(count)):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _user_name() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name
