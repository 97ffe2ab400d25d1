"""Survey of a host's runtimes and of the limits enforced there.

    python -m mlebench_console.environment.runner.survey [--output FILE]

Everything is tested instead of concluded from versions; leftovers of the tests are removed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from mlebench_console.environment.container import trees
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.readings import GpuReader, read_nvidia
from mlebench_console.environment.runner.process import runtimes
from mlebench_console.environment.runner.process.containment import limits_here
from mlebench_console.foundation import files

# The programs that runtimes and the staging of datasets use.
_TOOLS = ("bwrap", "apptainer", "fuse-overlayfs", "squashfuse")
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_TOOL_SECONDS = 20


@dataclass(frozen=True)
class RuntimeOffer:
    """A runtime on a host.

    Attributes:
        why_not: why it does not work there; empty where it does.
        unenforced: the codes of the limits that it does not enforce there.
    """

    name: str
    why_not: str
    unenforced: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostOffer:
    """The result of a survey.

    Attributes:
        at: when it was made.
        limits: what enforces the limits of agents there, in words.
        unenforced: the codes of the limits that nothing enforces there.
        is_watched: whether a limit is only watched, so that it can be exceeded for a moment.
        network: why the networks `none` and `models` can't be enforced; empty where they can.
        tools: versions by program; empty where a program does not report it.
        auto: the runtime that `auto` chooses there for an agent with an exported image; empty where none works.
        scratch, scratch_free_bytes: the folder on its own disk, and the free space there.
    """

    at: float
    host: str
    cpus: int
    memory_bytes: int
    gpus: tuple[str, ...]
    kernel: str
    runtimes: tuple[RuntimeOffer, ...]
    limits: str
    unenforced: tuple[str, ...]
    is_watched: bool
    network: str
    tools: dict[str, str]
    scratch: str
    scratch_free_bytes: int
    auto: str


def survey(scratch: Path, gpus: GpuReader = read_nvidia) -> HostOffer:
    """Test what works on this host, with a folder on its own disk."""
    place = Path(tempfile.mkdtemp(prefix="mlebench-survey-", dir=scratch))
    try:
        offers = tuple(_offer(name, place) for name in protocol.OF_IMAGE_FILES)
        working = [one.name for one in offers if not one.why_not]
        limits = limits_here(isolated=protocol.BUBBLEWRAP in working)
        return HostOffer(
            at=time.time(),
            host=os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
            cpus=len(os.sched_getaffinity(0)),
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            gpus=tuple(gpu.name for gpu in gpus()),
            kernel=os.uname().release,
            runtimes=offers,
            limits=limits.in_words(),
            unenforced=limits.unenforced,
            is_watched=limits.is_watched,
            network="" if working else "no runtime isolates here",
            tools={name: version for name in _TOOLS if (version := _version(name)) is not None},
            scratch=str(scratch),
            scratch_free_bytes=shutil.disk_usage(scratch).free,
            auto=next(iter(working), ""),
        )
    finally:
        trees.remove_tree(place)


def _offer(runtime: str, scratch: Path) -> RuntimeOffer:
    why_not = runtimes.why_unavailable(runtime, scratch)
    return RuntimeOffer(runtime, why_not, () if why_not else runtimes.enforced_limits(runtime).unenforced)


@cache
def _version(program: str) -> str | None:
    """Return the version of a program; None where it is not installed."""
    if shutil.which(program) is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TOOL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search((done.stdout + done.stderr).decode("utf-8", "replace"))
    return found.group() if found else ""


def main() -> None:
    """Print or write the survey of this host."""
    parser = argparse.ArgumentParser(
        prog="python -m mlebench_console.environment.runner.survey",
        description="Test what works on this host.",
    )
    parser.add_argument(
        "--scratch", type=Path, default=Path(tempfile.gettempdir()), help="on this host's own disk"
    )
    parser.add_argument("--output", type=Path, help="a file to write; the output if not given")
    options = parser.parse_args()
    found = asdict(survey(options.scratch))
    if options.output is None:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        files.write_json(options.output, found)


if __name__ == "__main__":
    main()
