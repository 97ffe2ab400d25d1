"""Slurm's commands: their text in and out, and which of their errors mean what. Nothing here decides anything."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foundation.problems import EnvironmentProblem

_TIMEOUT_SECONDS = 25.0  # a stopping engine waits for it
_SHOWN = 300
# What commands need of the engine's variables; no secret of the operator's is their business, and of SBATCH_... each
# would be an option that nobody sees.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "KRB5CCNAME", "LD_LIBRARY_PATH", "TZ")
# Text is the same in all versions, JSON is not. The name comes last, since it may hold anything.
_SQUEUE = "%i|%T|%r|%N|%V|%S|%Q|%j"
_SACCT = "JobIDRaw,State,ExitCode,NodeList,Submit,Start,Priority,JobName"
_COLUMNS = 8
_OF_RECORDS = ("sacct", "sacctmgr")
# What is wrong with the job, so that trying again would be refused again.
_REFUSALS = (
    "invalid partition",
    "invalid account",
    "invalid qos",
    "invalid feature",
    "invalid license",
    "invalid generic resource",
    "invalid node name",
    "requested time limit is invalid",
    "node count specification invalid",
    "unrecognized option",
    "invalid option",
    "access/permission denied",
    "user's group not permitted",
    "unable to open file",
    "invalid directive",
    "invalid --",
)
# Nodes that have not registered yet, after a start of the controller, make it say so too.
_NO_SUCH_NODES = "requested node configuration is not available"
# States of nodes that take no jobs; `drained*` and `down~` are states too.
_AWAY = ("down", "drain", "fail", "maint", "unknown")
_NOT_KEPT = ("accounting storage is disabled", "not running a supported accounting_storage plugin")
# What a user may have at once; limits of the size of one job never let it pass.
_FULL = ("maxsubmit", "submit limit", "temporarily unable to accept job")
_TOO_LARGE = re.compile(r"(qos|assoc)\w*max(?!submit)\w+", re.IGNORECASE)
# What scancel says of jobs that are gone, with a code that differs between versions and in federations.
_GONE = ("invalid job id", "already completing or completed", "job/step already")
# What one argument may hold is limited.
MOST_NAMES = 500
# As few columns as a version of 2020 knows, each with its own mark behind it and not cut.
_SINFO_NODES = (
    "NodeList",
    "StateLong",
    "CPUsState",
    "CPUsLoad",
    "Memory",
    "Gres",
    "GresUsed",
    "Partition",
    "Reason",
)


class SlurmAway(EnvironmentProblem):
    """Slurm does not answer, or not now: whether it has done what it was asked is not known."""


class SlurmRefuses(EnvironmentProblem):
    """Slurm will never run such a job."""


class SlurmUnfit(SlurmRefuses):
    """Slurm has no node for such a job: never, or while nodes are away; it was not submitted."""


class SlurmFull(EnvironmentProblem):
    """Slurm takes no more jobs of this user at present; this one was not submitted."""


class NoAccounting(EnvironmentProblem):
    """Slurm keeps no records of jobs that have ended."""


@dataclass(frozen=True)
class Job:
    """What Slurm says of a job.

    Attributes:
        id: its number, which is given again after a crash of the controller: only with the name it means this job.
        state: such as RUNNING, without the words that sometimes follow it.
        reason: why it waits or has ended, `None` where Slurm has none; in its records the exit code.
        starts: when it has started, or may; `N/A` where nobody knows.
    """

    id: str
    state: str
    reason: str
    node: str
    submitted: str
    starts: str
    priority: str
    name: str

    def in_words(self) -> str:
        """Write it as evidence."""
        reason = "" if self.reason in ("", "None") else f", {self.reason}"
        node = f" on {self.node}" if self.node else ""
        return f"job {self.id}{node}, submitted {self.submitted}: {self.state}{reason}"


@dataclass(frozen=True)
class Partition:
    """A partition.

    Attributes:
        limit_seconds: how long a job may take; None for any time.
        has_nodes: whether any of its nodes can be used now, or soon.
    """

    limit_seconds: float | None
    has_nodes: bool


@dataclass(frozen=True)
class Node:
    """A node, as sinfo tells; None where it does not.

    Attributes:
        state: such as `mixed`, without the marks behind it.
        answers: whether its daemon answers the controller.
        load: of all its processes, over the last minutes.
        reason: why somebody has taken it away; empty where nobody has.
    """

    name: str
    state: str
    answers: bool
    cpus: int | None
    cpus_used: int | None
    load: float | None
    memory_bytes: int | None
    gpus: int
    gpus_used: int
    partitions: tuple[str, ...]
    reason: str

    @property
    def is_away(self) -> bool:
        """Whether it takes no jobs."""
        return not self.answers or self.state.startswith(_AWAY)


class SlurmCommands:
    """Calls sbatch, squeue, sacct, scancel and sinfo; each call may take its time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        kept = {name: environment[name] for name in _KEPT if name in environment}
        self._variables = {**kept, "LC_ALL": "C"}

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Submit a script and return its job's number.

        Raises:
            SlurmRefuses, SlurmFull, SlurmAway: it did not; in the last case it may have.
        """
        said = self._run("sbatch", "--parsable", *options, str(script))
        return said.strip().partition(";")[0]

    def try_out(self, script: Path, options: Sequence[str]) -> str:
        """Return when and where a job would start, without submitting it.

        Raises:
            SlurmRefuses, SlurmFull, SlurmAway: it would not be taken, or nobody knows.
        """
        return self._run("sbatch", "--test-only", *options, str(script), told_on_stderr=True).strip()

    def jobs(self) -> list[Job]:
        """List all jobs of this user, those that have ended a short time ago among them.

        Raises:
            SlurmAway: it can't be known now.
        """
        return _jobs(
            self._run("squeue", f"--user={_user()}", "--noheader", "--states=all", f"--format={_SQUEUE}")
        )

    def ended(self, names: Sequence[str], since: str) -> list[Job]:
        """List jobs of these names from Slurm's records, as far as they go; of at most MOST_NAMES names.

        Raises:
            NoAccounting: it keeps none.
            SlurmAway: they can't be read now.
        """
        columns = ("--noheader", "--parsable2", "--allocations", f"--format={_SACCT}", f"--starttime={since}")
        return _jobs(self._run("sacct", *columns, f"--name={','.join(names)}"))

    def cancel(self, numbers: Sequence[str]) -> None:
        """Cancel jobs; one that has ended already, or is not known any more, is fine.

        Raises:
            SlurmAway: it may not have been done.
        """
        self._run("scancel", *numbers)

    def nodes(self, partitions: Sequence[str] = ()) -> list[Node]:
        """Return the nodes of some partitions, of all where none is named.

        Raises:
            SlurmAway: they can't be known now.
        """
        columns = ",".join(f"{name}:|" for name in _SINFO_NODES)
        chosen = [f"--partition={','.join(partitions)}"] if partitions else []
        found: dict[str, Node] = {}
        for line in self._run("sinfo", "--Node", "--noheader", *chosen, f"--Format={columns}").splitlines():
            node = _node(line)
            if node is not None:
                before = found.get(node.name)
                others = before.partitions if before is not None else ()
                found[node.name] = replace(node, partitions=(*others, *node.partitions))
        return list(found.values())

    def version(self) -> str:
        """Return what Slurm calls itself, such as `slurm-wlm 22.05.8`.

        Raises:
            SlurmAway: its commands are not here.
        """
        return self._run("sinfo", "--version").strip()

    def partitions(self) -> dict[str, Partition]:
        """Return the partitions by their names; the default one also as ''.

        Raises:
            SlurmAway: they can't be known now.
        """
        found: dict[str, Partition] = {}
        for line in self._run("sinfo", "--noheader", "--format=%P|%l|%T").splitlines():
            name, _, rest = line.partition("|")
            limit, _, state = rest.partition("|")
            for known in (name.removesuffix("*"), *([""] if name.endswith("*") else [])):
                before = known in found and found[known].has_nodes
                found[known] = Partition(seconds_of(limit), before or not state.startswith(_AWAY))
        return found

    def accounts(self) -> dict[str, frozenset[str]] | None:
        """Return the accounts that this user may charge, each with its qos; None where Slurm keeps none.

        Raises:
            SlurmAway: they can't be known now.
        """
        try:
            said = self._run("sacctmgr", "-nP", "show", "assoc", f"user={_user()}", "format=account,qos")
        except NoAccounting:
            return None
        found: dict[str, frozenset[str]] = {}
        for line in said.splitlines():
            account, _, qos = line.partition("|")
            found[account] = found.get(account, frozenset()) | frozenset(filter(None, qos.split(",")))
        return found

    def _run(self, *command: str, told_on_stderr: bool = False) -> str:
        program = command[0]
        try:
            done = subprocess.run(
                command,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            if program in _OF_RECORDS:
                raise NoAccounting(
                    "Slurm's records can't be read", f"there is no {program} on the PATH"
                ) from error
            raise SlurmAway(
                "Slurm can't be asked",
                f"there is no {program} on the PATH",
                "Start the engine where Slurm is.",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise SlurmAway(
                "Slurm does not answer", f"{program} took more than {_TIMEOUT_SECONDS:g} s"
            ) from error
        except OSError as error:
            raise SlurmAway("Slurm does not answer", f"{program}: {error}") from error
        said = done.stderr if told_on_stderr else done.stdout
        if done.returncode == 0:
            return said
        if program == "scancel" and all(map(_tells_of_gone_job, done.stderr.splitlines() or [""])):
            return said
        why = " ".join(f"{done.stderr} {done.stdout}".split())[:_SHOWN] or f"code {done.returncode}"
        if any(sign in why.lower() for sign in _NOT_KEPT):
            raise NoAccounting("Slurm keeps no records", why)
        if program == "sbatch" and _NO_SUCH_NODES in why.lower():
            raise SlurmUnfit("Slurm refuses the job", why, "Correct the sweep, or its table in config.toml.")
        if program == "sbatch" and any(sign in why.lower() for sign in _FULL) and not _TOO_LARGE.search(why):
            raise SlurmFull("Slurm takes no more jobs now", why)
        if program == "sbatch" and (_TOO_LARGE.search(why) or any(sign in why.lower() for sign in _REFUSALS)):
            raise SlurmRefuses(
                "Slurm refuses the job", why, "Correct the sweep, or its table in config.toml."
            )
        raise SlurmAway("Slurm does not answer", f"{program}: {why}")


def output_option(path: Path) -> str:
    """Return a path as the value of sbatch's `--output`, in which a `%` begins a pattern."""
    return str(path).replace("%", "%%")


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def _jobs(text: str) -> list[Job]:
    found = []
    for line in text.splitlines():
        columns = line.split("|", _COLUMNS - 1)
        if len(columns) == _COLUMNS:
            job = Job(*columns)
            found.append(replace(job, state=job.state.partition(" ")[0]))  # "CANCELLED by 0"
    return found


def _tells_of_gone_job(line: str) -> bool:
    return any(sign in line.lower() for sign in _GONE)


def _node(line: str) -> Node | None:
    """Read a line of sinfo about a node in one partition; None for anything else."""
    columns = [column.strip() for column in line.split("|", len(_SINFO_NODES) - 1)]
    if len(columns) != len(_SINFO_NODES):
        return None
    name, state, cpus, load, memory, gres, gres_used, partition, reason = columns
    counts = cpus.split("/")  # allocated, idle, other, all
    reason = reason.removesuffix("|")
    return Node(
        name,
        state.rstrip("*~#!%$@^-+"),
        "*" not in state,
        _whole(counts[-1]),
        _whole(counts[0]),
        _number(load),
        None if (megabytes := _whole(memory)) is None else megabytes << 20,
        _gpus(gres),
        _gpus(gres_used),
        (partition.removesuffix("*"),),
        "" if reason in ("none", "(null)") else reason,
    )


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _gpus(gres: str) -> int:
    """Count the GPUs of a node's generic resources, such as `gpu:a100:2(S:0),shard:8`."""
    plain = re.sub(r"\([^)]*\)", "", gres)
    names = [each.split(":") for each in plain.split(",")]
    return sum(_whole(name[-1]) or 0 for name in names if name[0] == "gpu" and len(name) > 1)


def seconds_of(limit: str) -> float | None:
    """Read a span of time as Slurm writes it, `1-00:00:00` or `5:00`; None where there is no limit."""
    days, _, clock = limit.strip().rpartition("-")
    try:
        seconds = 0.0
        for part in clock.split(":"):
            seconds = seconds * 60 + float(part)
        return seconds + 86_400 * float(days or 0)
    except ValueError:
        return None  # infinite, UNLIMITED, n/a
