"""Commands that run an agent in Apptainer, without a daemon and without root; facts about options are of Apptainer 1.4.

Apptainer filters no system calls, and an agent keeps the number of the operator's user.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from mlebench_console.environment.container import trees
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.readings import MARK
from mlebench_console.environment.runner.layout import AgentLayout, binds_without_daemon
from mlebench_console.environment.runner.process import guard
from mlebench_console.environment.runner.process.bubblewrap import gpu_nodes
from mlebench_console.environment.runner.process.containment import EnforcedLimits
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.problems import EnvironmentProblem

# Its programs around an agent, whose end would kill it.
PROCESSES = ("apptainer", "starter", "starter-suid", "fuse-overlayfs")
_OF_THE_HOST = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR")
_PROBE_SECONDS = 30
_ENV = "/usr/bin/env"
_GUARD = (sys.executable, "-I", "-m", guard.__name__, "--")
_SEPARATORS = re.compile(r"[,:\\\"\n]")


@cache
def why_unavailable(folder: Path) -> str:
    """Try whether Apptainer makes containers here with its files in a folder; return why not, empty where it does."""
    if shutil.which("apptainer") is None:
        return "apptainer is not installed"
    if os.geteuid() == 0:
        return "an agent in a container of root could change the settings of this host's kernel"
    place = folder / ".apptainer"
    image = place / "image"
    try:
        for name in ("dev", "etc", "proc", "sys", "tmp"):
            (image / name).mkdir(parents=True, exist_ok=True)
        # Nothing is in this image; its exit code is the same whatever went wrong, so its message has to be read.
        command = [*_apptainer("none", place), str(image), "/nothing"]
        tried = subprocess.run(
            command,
            env=_host_variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"apptainer can't be run: {error}"
    finally:
        trees.remove_tree(place)
    message = (
        tried.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("FATAL:").strip()
    )
    return "" if "/nothing" in message else message or f"apptainer ends with code {tried.returncode}"


def wrap(
    command: Sequence[str],
    attempt: Path,
    order: Order,
    layout: AgentLayout,
    root: Path,
    *,
    variables: Mapping[str, str],
) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs an agent in an Apptainer container, and that command's own variables.

    Args:
        command: to be put there.
        attempt: its directory.
        order: what it is.
        layout: where the agent finds what.
        root: the agent's unpacked image.
        variables: the agent's; they are passed in Apptainer's own variables, so that none is visible to `ps`.

    Raises:
        EnvironmentProblem: a path can't be given to Apptainer.
    """
    scratch = (attempt / protocol.SCRATCH).resolve()
    arguments = [
        *_apptainer(order.conditions.network, scratch),
        *(("--nv",) if gpu_nodes(attempt) else ()),
        *("--hostname", "sandbox", "--pwd", str(layout.agent)),
    ]
    for bind in binds_without_daemon(attempt, order, layout):
        mode = "ro" if bind.read_only else "rw"
        arguments += ["--bind", f"{_path(bind.source)}:{_path(bind.target)}:{mode}"]
    own = {f"APPTAINERENV_{name}": value for name, value in variables.items()}
    # Apptainer sets these to the operator's, whose home does not exist in the container.
    user = [f"{name}={variables[name]}" for name in ("HOME", "USER", "LOGNAME") if name in variables]
    wrapped = [*_GUARD, *arguments, str(root), _ENV, *user, *command]
    return wrapped, _host_variables() | own | {MARK: str(attempt)}


def _apptainer(network: str, scratch: Path) -> list[str]:
    """Return what begins each command; what is written in the container lies below a folder of this host."""
    workdir, overlay = scratch / "apptainer", scratch / "overlay"
    for folder in (workdir, overlay):
        folder.mkdir()
    return [
        *(shutil.which("apptainer") or "apptainer", "--silent", "exec"),
        # Without --no-eval a shell would expand the values of the agent's variables.
        *("--containall", "--no-home", "--cleanenv", "--no-privs", "--no-eval"),
        *(() if network == "open" else ("--net", "--network", "none")),
        # By default, written files would be in 64 MB of memory.
        *("--workdir", str(workdir), "--overlay", _path(overlay)),
    ]


def _host_variables() -> dict[str, str]:
    return {name: os.environ[name] for name in _OF_THE_HOST if name in os.environ}


def _path(path: Path | str) -> str:
    """Return a path for an option in which some characters are separators.

    Raises:
        EnvironmentProblem: it has such a character.
    """
    if _SEPARATORS.search(str(path)):
        raise EnvironmentProblem(
            f"{path} can't be given to a container",
            "it has a comma, colon or quote in its name",
            "Rename it.",
        )
    return str(path)


def enforced_limits(by_host: EnforcedLimits) -> EnforcedLimits:
    """Return what enforces limits in a container, given what this host enforces for its processes."""
    return replace(by_host, shared_memory="", user_namespaces="", system_calls="")
