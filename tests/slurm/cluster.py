"""A Slurm of a test's own in a folder: a controller and three nodes on this machine, and records of jobs if wanted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.engine.harness import eventually
from tests.machine import become

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
{holds}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=2,bf_interval=2
GresTypes=gpu
KillWait=3
MinJobAge={remembers}
SlurmdTimeout=5
MessageTimeout=5
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{records}
JobCompType=jobcomp/none
NodeName=DEFAULT CPUs=8 RealMemory=8000 Gres=gpu:a100:2 State=UNKNOWN
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{node_ports}]
PartitionName=DEFAULT Nodes=n[1-3] DefaultTime=10 State=UP
PartitionName=main Default=YES MaxTime=1-00:00:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=short MaxTime=00:05:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent MaxTime=1-00:00:00 PriorityTier=10 PreemptMode=OFF
"""
_HOLDS_NOTHING = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherParams=OverMemoryKill"""
_HOLDS_MEMORY = """\
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup"""
# A job gets a part of what it asks for, so that this limit is reached before the runner's own.
_GROUPS_CONFIG = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint={groups}
ConstrainRAMSpace=yes
AllowedRAMSpace={percent}
"""
_GROUPS = "/sys/fs/cgroup"
MEMORY_PERCENT = 20
_WITHOUT_RECORDS = "AccountingStorageType=accounting_storage/none"
_RECORDS = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStorageEnforce=associations,limits,qos"""
# Who reads it finds everything: nothing else is in this database, and nobody else reaches it.
_RECORDS_CONFIG = """\
AuthType=auth/none
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=any
StoragePass=any
StorageLoc=toy
LogFile={folder}/records.log
PidFile={folder}/records.pid
"""
ACCOUNT = "lab"
_SYSTEM_TABLES = Path("/usr/share/mysql/mysql_system_tables.sql")
_GRES = "NodeName=n[1-3] Name=gpu Type=a100 File=/dev/tty[0-1]\n"


def private_options(folder: Path) -> str:
    """Return the options that make a Slurm one of this user's alone, beside any other of this machine."""
    port = _free_ports(2)
    return "\n".join(
        (
            f"SlurmctldPort={port}\nSlurmdPort={port + 1}\nSlurmUser={_user_name()}\nSlurmdUser={_user_name()}",
            "AuthType=auth/none\nCredType=cred/none\nMpiDefault=none",
            f"SlurmctldPidFile={folder}/controller.pid\nSlurmdPidFile={folder}/node.pid",
            f"SlurmctldLogFile={folder}/controller.log\nSlurmdLogFile={folder}/node.log",
        )
    )


class Cluster:
    """Starts, breaks and stops a Slurm; `variables` point its commands at it."""

    def __init__(
        self, folder: Path, *, keeps_records: bool = False, holds_memory: bool = False, user: str = ""
    ) -> None:
        """Write its configuration.

        Args:
            folder: where everything of it lies.
            keeps_records: whether it has a database of jobs and accounts, and forgets what has ended soon.
            holds_memory: whether the kernel ends processes of a job that takes more than MEMORY_PERCENT of its memory.
            user: whose it is, as root may become somebody else; this process's own if not given.
        """
        self.folder = folder
        self.keeps_records = keeps_records
        self.holds_memory = holds_memory
        self._user = user or _user_name()
        self._become = become(user) if user else ()
        port = _free_ports(6)
        self._database_port = port + 5
        self._database: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir()
        text = _CONFIG.format(
            folder=folder,
            host=socket.gethostname().partition(".")[0],
            user=self._user,
            controller_port=port,
            node_ports=f"{port + 1}-{port + 3}",
            holds=_HOLDS_MEMORY if holds_memory else _HOLDS_NOTHING,
            remembers=2 if keeps_records else 300,
            records=_RECORDS.format(port=port + 4) if keeps_records else _WITHOUT_RECORDS,
        )
        if keeps_records:
            ports = {"port": port + 4, "database_port": self._database_port}
            # It takes no other's.
            (folder / "slurmdbd.conf").touch(0o600)
            (folder / "slurmdbd.conf").write_text(
                _RECORDS_CONFIG.format(folder=folder, user=_user_name(), **ports)
            )
        (folder / "slurm.conf").write_text(text)
        (folder / "gres.conf").write_text(_GRES)
        groups = _GROUPS_CONFIG.format(groups=_GROUPS, percent=MEMORY_PERCENT) if holds_memory else ""
        (folder / "cgroup.conf").write_text(groups)
        self.variables = {"SLURM_CONF": str(folder / "slurm.conf")}
        if user:
            subprocess.run(["chown", "-R", f"{user}:", str(folder.parent)], check=True)

    def start(self) -> None:
        """Start everything, and return when all nodes are idle."""
        if self.keeps_records:
            self._start_records()
        self.start_what_is_gone()
        if self.keeps_records:
            self.until(lambda: "toy" in self.ask("sacctmgr", "-nP", "show", "cluster", "format=cluster"))
            self.do("sacctmgr", "-i", "add", "account", ACCOUNT)
            self.do("sacctmgr", "-i", "add", "user", _user_name(), f"account={ACCOUNT}")

    def _start_records(self) -> None:
        folder = self.folder
        (folder / "database" / "mysql").mkdir(parents=True)
        server = (
            *("mariadbd", "--no-defaults", f"--user={_user_name()}", f"--datadir={folder}/database"),
            *(
                "--innodb-log-file-size=4M",
                "--innodb-buffer-pool-size=16M",
                "--innodb-flush-log-at-trx-commit=0",
            ),
        )
        # Of its own tables it needs those of procedures, which slurmdbd writes. It asks no user for a password.
        tables = f"use mysql;\n{_SYSTEM_TABLES.read_text()}"
        subprocess.run([*server, "--bootstrap"], input=tables, text=True, capture_output=True, check=True)
        self._database = subprocess.Popen(
            [
                *(
                    *server,
                    "--skip-grant-tables",
                    f"--port={self._database_port}",
                    "--bind-address=127.0.0.1",
                ),
                *(f"--socket={folder}/database.socket", f"--pid-file={folder}/database.pid"),
                f"--log-error={folder}/database.log",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        eventually((folder / "database.pid").exists)
        self._run("slurmdbd")
        eventually(lambda: "started" in _text(folder / "records.log"))

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

    def works(self, *command: str) -> bool:
        """Tell whether a command works."""
        return self._command(*command).returncode == 0

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
        self._command("scancel", f"--user={self._user}")
        self.until(lambda: not self.ask("squeue", "-h").split())

    def stop(self) -> None:
        """End every job, then everything else."""
        self.end_jobs()
        for name in (*NODES, "controller", "records"):
            self._kill(name)
        if self._database is not None:
            self._database.kill()
            self._database.wait()
        for node in NODES if self.holds_memory else ():
            for group in Path(_GROUPS).glob(f"*/slurm_{node}"):
                for folder, _, _ in os.walk(group, topdown=False):
                    Path(folder).rmdir()

    def _command(self, *command: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | self.variables
        whole = [*self._become, *command]
        return subprocess.run(whole, env=variables, capture_output=True, text=True, timeout=60, check=False)

    def _run(self, *command: str) -> None:
        done = self._command(*command)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    def _kill(self, name: str) -> None:
        file = self.folder / f"{name}.pid"
        if not file.exists():
            return
        pid = int(file.read_text())
        file.unlink()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            # Who is to bury it may take seconds: what it held is free before.
            eventually(lambda: _is_dead(pid))


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


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
