"""Call Slurm's commands, parse their output and classify their errors; decisions are made in `slurm`."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlebench_console.foundation.problems import EnvironmentProblem

_TIMEOUT_SECONDS = 25.0  # short, because a stopping engine waits for a running command
_SHOWN = 300
# The engine's variables that commands need. Others may be secrets, and SBATCH_... variables would be hidden options.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "KRB5CCNAME", "LD_LIBRARY_PATH", "TZ")
# Text output, because JSON differs between versions. The name comes last, because it may contain any character.
_SQUEUE = "%i|%T|%r|%N|%V|%S|%Q|%j"
_SACCT = "JobIDRaw,State,ExitCode,NodeList,Submit,Start,Priority,JobName"
_COLUMNS = 8
_OF_RECORDS = ("sacct", "sacctmgr")
# States of nodes that take no jobs; `drained*` and `down~` are states too.
_AWAY = ("down", "drain", "fail", "maint", "unknown")
# What `sbatch --test-only` says of a job that it would accept.
_START = re.compile(r"to start at (\S+) using \d+ processors on nodes (\S+)(?: in partition (\S+))?")
# What a message of a command begins with: its name, and the level unless that is `fatal`.
_PREFIX = re.compile(r"^(?:\w+: )?(?:error: |(?=fatal: ))")
_FATAL = "fatal: "
# The length of an argument is limited.
MOST_NAMES = 500
# Columns that a version of 2020 knows too, each uncut and with its own separator.
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
    """Slurm does not answer at the moment; it is unknown whether it has executed the command."""


class SlurmRefuses(EnvironmentProblem):
    """Slurm will never run such a job."""


class SlurmUnfit(SlurmRefuses):
    """Slurm has no node for such a job, perhaps only while nodes are down; it was not submitted."""


class SlurmFull(EnvironmentProblem):
    """Slurm accepts no more jobs of this user at the moment; this one was not submitted."""


class NoAccounting(EnvironmentProblem):
    """Slurm keeps no records of ended jobs."""


# Slurm's commands end with the same code for nearly every error and name it in words alone, so that this is the one
# place where its words decide. The first pattern that is found in the lower-case messages of a command counts; what
# none matches, as `Unable to contact slurm controller`, may be over later.
_ERRORS: tuple[tuple[str, type[EnvironmentProblem]], ...] = (
    ("accounting storage is disabled|not running a supported accounting_storage plugin", NoAccounting),
)
_ERRORS_OF_SBATCH: tuple[tuple[str, type[EnvironmentProblem]], ...] = (
    # After a start of the controller, this may also mean that nodes have not registered yet.
    ("requested node configuration is not available", SlurmUnfit),
    # Limits on the size of one job are permanent; on a user's jobs at once they are not.
    (r"(qos|assoc)\w*max(?!submit)\w+", SlurmRefuses),
    ("maxsubmit|submit limit|temporarily unable to accept job", SlurmFull),
    # The job itself is wrong.
    (
        r"invalid (partition|account|qos|feature|license|gres|generic resource|trackable resource|node name|wckey"
        r"|option|directive|--)",
        SlurmRefuses,
    ),
    ("requested time limit is invalid|node count specification invalid|unrecognized option", SlurmRefuses),
    ("access/permission denied|user's group not permitted|unable to open file", SlurmRefuses),
    ("requested reservation is invalid|access denied to requested reservation", SlurmRefuses),
    ("requested gres option unsupported|more processors requested than permitted", SlurmRefuses),
)
# Messages of scancel about jobs that are gone; its exit code differs between versions and in federations.
_GONE = re.compile("invalid job id|already completing or completed|job/step already")
_NO_CONFIGURATION = "could not establish a configuration source"
_CONFIGURE = "Set SLURM_CONF to the cluster's slurm.conf, or use a host where 'scontrol ping' answers."
_PING = "'scontrol ping' says whether its controller is up."
_CORRECT = "Correct the sweep, or its table in config.toml."
_MEANINGS = {
    NoAccounting: ("Slurm keeps no records", ""),
    SlurmUnfit: ("Slurm refuses the job", _CORRECT),
    SlurmRefuses: ("Slurm refuses the job", _CORRECT),
    SlurmFull: ("Slurm takes no more jobs now", ""),
}


@dataclass(frozen=True)
class Job:
    """A job, as Slurm reports it.

    Attributes:
        id: its number, which may be reused after a crash of the controller, so that only number and name together
            identify a job.
        state: such as RUNNING, without the words that sometimes follow it.
        reason: why it waits or has ended, `None` where Slurm has no reason; in Slurm's records the exit code.
        submitted: when, as Slurm writes it.
        starts_at: when it started, or is expected to, to the minute; None if unknown.
        priority: among waiting jobs; None if unknown.
    """

    id: str
    state: str
    reason: str
    node: str
    submitted: str
    starts_at: float | None
    priority: int | None
    name: str

    @property
    def reason_code(self) -> str:
        """Slurm's code for its reason, without the details of `(ReqNodeNotAvail, Reserved for maintenance)`."""
        return self.reason.strip("()").partition(",")[0]

    def in_words(self) -> str:
        """Return it as text, for evidence."""
        reason = "" if self.reason in ("", "None") else f", {self.reason}"
        node = f" on {self.node}" if self.node else ""
        return f"job {self.id}{node}, submitted {self.submitted}: {self.state}{reason}"


@dataclass(frozen=True)
class JobEstimate:
    """Slurm's estimate for a job, which is not submitted.

    Attributes:
        partition, node: where it would start; empty where Slurm does not say.
        job_seconds: its time limit; 0 where nobody has asked for it.
        limit_seconds: the time limit of its partition; None without one, or where nobody has asked for it.
        starts_at: when it would start if it was submitted now; None where Slurm does not say.
        message: Slurm's own.
    """

    partition: str = ""
    job_seconds: float = 0.0
    limit_seconds: float | None = None
    starts_at: float | None = None
    node: str = ""
    message: str = ""


@dataclass(frozen=True)
class Partition:
    """A partition.

    Attributes:
        limit_seconds: the time limit of jobs; None without one.
        has_nodes: whether any of its nodes can be used now or soon.
    """

    limit_seconds: float | None
    has_nodes: bool


@dataclass(frozen=True)
class Node:
    """A node, as sinfo reports it; unknown values are None.

    Attributes:
        state: such as `mixed`, without the marks after it.
        answers: whether its daemon answers the controller.
        load: of all its processes, over the last minutes.
        reason: why an administrator has taken it out of service; empty otherwise.
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
        """Whether it accepts no jobs."""
        return not self.answers or self.state.startswith(_AWAY)


class SlurmCommands:
    """Calls sbatch, squeue, sacct, scancel and sinfo; each call may block."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        kept = {name: environment[name] for name in _KEPT if name in environment}
        self._variables = {**kept, "LC_ALL": "C"}

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Submit a script and return its job's number.

        Raises:
            SlurmRefuses, SlurmFull, SlurmAway: it was not submitted; with SlurmAway that is uncertain.
        """
        return self._run("sbatch", "--parsable", *options, str(script)).strip().partition(";")[0]

    def try_out(self, options: Sequence[str]) -> JobEstimate:
        """Return when and where a job would start, without submitting it.

        Raises:
            SlurmRefuses, SlurmFull, SlurmAway: it would not be accepted, or that is unknown.
        """
        with tempfile.TemporaryDirectory(prefix="mlebench-check-") as folder:
            script = Path(folder) / "job.sh"
            script.write_text("#!/bin/bash\n")
            answer = self._run("sbatch", "--test-only", *options, str(script), answers_on_stderr=True)
        message = _essential(answer.replace("sbatch: ", ""))
        start = _START.search(message)
        if start is None:
            return JobEstimate(message=message)
        partition, starts_at = start[3] or "", moment_of(start[1])
        return JobEstimate(partition, starts_at=starts_at, node=start[2], message=message)

    def jobs(self) -> list[Job]:
        """List all jobs of this user, including those that have ended recently.

        Raises:
            SlurmAway: Slurm does not answer.
        """
        return _jobs(
            self._run("squeue", f"--user={_user()}", "--noheader", "--states=all", f"--format={_SQUEUE}")
        )

    def ended(self, names: Sequence[str], since: str) -> list[Job]:
        """List jobs with these names, at most MOST_NAMES, from Slurm's records.

        Raises:
            NoAccounting: Slurm keeps no records.
            SlurmAway: they can't be read now.
        """
        columns = ("--noheader", "--parsable2", "--allocations", f"--format={_SACCT}", f"--starttime={since}")
        return _jobs(self._run("sacct", *columns, f"--name={','.join(names)}"))

    def cancel(self, numbers: Sequence[str]) -> None:
        """Cancel jobs; those that have ended or are unknown are ignored.

        Raises:
            SlurmAway: they may not have been cancelled.
        """
        self._run("scancel", *numbers)

    def nodes(self, partitions: Sequence[str] = ()) -> list[Node]:
        """Return the nodes of some partitions; by default of all.

        Raises:
            SlurmAway: Slurm does not answer.
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
        """Return Slurm's version, such as `slurm-wlm 22.05.8`.

        Raises:
            SlurmAway: its commands are not installed.
        """
        return self._run("sinfo", "--version").strip()

    def partitions(self) -> dict[str, Partition]:
        """Return the partitions by their names; the default one also as ''.

        Raises:
            SlurmAway: Slurm does not answer.
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
        """Return the accounts that this user may charge, each with its qos; None where Slurm has no accounts.

        Raises:
            SlurmAway: Slurm does not answer.
        """
        try:
            lines = self._run("sacctmgr", "-nP", "show", "assoc", f"user={_user()}", "format=account,qos")
        except NoAccounting:
            return None
        found: dict[str, frozenset[str]] = {}
        for line in lines.splitlines():
            account, _, qos = line.partition("|")
            found[account] = found.get(account, frozenset()) | frozenset(filter(None, qos.split(",")))
        return found

    def _run(self, *command: str, answers_on_stderr: bool = False) -> str:
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
            why = f"{program} took more than {_TIMEOUT_SECONDS:g} s"
            raise SlurmAway("Slurm does not answer", why, _PING) from error
        except OSError as error:
            raise SlurmAway("Slurm does not answer", f"{program}: {error}") from error
        answer = done.stderr if answers_on_stderr else done.stdout
        if done.returncode == 0 or (program == "scancel" and _says_that_jobs_are_gone(done.stderr)):
            return answer
        raise _problem_of(program, f"{done.stderr}\n{done.stdout}", done.returncode)


def _problem_of(program: str, messages: str, code: int) -> EnvironmentProblem:
    """Return what the messages of a command that failed mean."""
    why, words = _essential(messages)[:_SHOWN] or f"code {code}", messages.lower()
    for pattern, problem in (*_ERRORS, *(_ERRORS_OF_SBATCH if program == "sbatch" else ())):
        if re.search(pattern, words):
            what, next_step = _MEANINGS[problem]
            return problem(what, why, next_step)
    step = _CONFIGURE if _NO_CONFIGURATION in words else _PING
    return SlurmAway("Slurm does not answer", f"{program}: {why}", step)


def _says_that_jobs_are_gone(messages: str) -> bool:
    return all(_GONE.search(line) for line in messages.lower().splitlines() or [""])


def _essential(messages: str) -> str:
    """Return the error messages of a command in one line, without its name; a fatal one tells all."""
    lines = [_PREFIX.sub("", line.strip()) for line in messages.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(_FATAL)]
    return "; ".join(dict.fromkeys(line.removeprefix(_FATAL) for line in fatal or lines))


def output_option(path: Path) -> str:
    """Return a path as a value for sbatch's `--output`, with `%` escaped."""
    return str(path).replace("%", "%%")


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def _jobs(text: str) -> list[Job]:
    found = []
    for line in text.splitlines():
        columns = line.split("|", _COLUMNS - 1)
        if len(columns) == _COLUMNS:
            number, state, reason, node, submitted, starts, priority, name = columns
            state = state.partition(" ")[0]  # "CANCELLED by 0"
            found.append(
                Job(number, state, reason, node, submitted, moment_of(starts), _whole(priority), name)
            )
    return found


def moment_of(text: str) -> float | None:
    """Parse a time in Slurm's format, rounded to the minute; None for `N/A`."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) // 60 * 60
    except (ValueError, OverflowError):
        return None


def _node(line: str) -> Node | None:
    """Parse a line of sinfo about a node in one partition; None for other lines."""
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
    """Parse a duration in Slurm's format, `1-00:00:00` or `5:00`; None for no limit."""
    days, _, clock = limit.strip().rpartition("-")
    try:
        seconds = 0.0
        for part in clock.split(":"):
            seconds = seconds * 60 + float(part)
        return seconds + 86_400 * float(days or 0)
    except ValueError:
        return None  # infinite, UNLIMITED, n/a
