"""Which groups of tests this machine can run: decided once for a test run, told before and after it.

A test belongs to a group by asking for the group's fixture (`docker_daemon`, `bubblewrap`, `tmux`, `chromium`,
`squashed_images`, `apptainer`, `slurm`, `slurm_groups`, `root`, `official_clients`), directly or through
another fixture; with one of its parameters alone by the mark `group`, which names fixtures. A group that can't run here
is left out as a whole; what is there but broken is not left out: its tests fail. Under CI=true nothing is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

BASE_IMAGE = os.environ.get("MLEBENCH_TEST_BASE", "mlebench-test-base")
ORDINARY_USER = "mlebench-test"
_CAP_SYS_ADMIN = 21
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
_CLIENTS = Path(os.environ.get("MLEBENCH_TEST_CLIENTS") or _CACHE / "mlebench-console" / "test-clients")
CLIENTS_PYTHON = _CLIENTS / "bin" / "python"


@dataclass(frozen=True)
class Group:
    """A group of tests that need something which not every machine has."""

    fixture: str
    title: str
    reason_missing: Callable[[], str]  # "" where the machine has it
    remedy: str = "as root: make test-setup"


def _program(name: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else f"no {name} on the PATH"


def _docker() -> str:
    if not shutil.which("docker"):
        return "no docker on the PATH"
    answer = _run("docker", "info", "--format", "{{.ServerVersion}}")
    if answer.returncode:
        return "no Docker daemon that answers"
    if _run("docker", "image", "inspect", BASE_IMAGE).returncode == 0 or may_make_base_image():
        return ""
    return f"the Docker daemon has no image '{BASE_IMAGE}'"


def may_make_base_image() -> bool:
    """Return whether the base image of the container tests can be built here when it is missing."""
    return os.geteuid() == 0 and shutil.which("debootstrap") is not None


def _bubblewrap() -> str:
    if not shutil.which("bwrap"):
        return "no bwrap on the PATH"
    tried = _run("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true")
    return "" if tried.returncode == 0 else "this machine does not let bwrap make namespaces"


def _squashed_images() -> str:
    missing = [name for name in ("mksquashfs", "squashfuse") if not shutil.which(name)]
    return f"no {missing[0]} on the PATH" if missing else ""


def _apptainer() -> str:
    if missing := [name for name in ("apptainer", "setpriv") if not shutil.which(name)]:
        return f"no {missing[0]} on the PATH"
    if os.geteuid():
        return "not root, who becomes an ordinary user"
    users = Path("/etc/passwd").read_text(encoding="utf-8").splitlines()
    is_there = any(line.startswith(f"{ORDINARY_USER}:") for line in users)
    return "" if is_there else f"there is no user {ORDINARY_USER}"


def _slurm() -> str:
    programs = ("slurmctld", "slurmd", "sbatch", "slurmdbd", "mariadbd")
    missing = [name for name in programs if not shutil.which(name)]
    return f"no {missing[0]} on the PATH" if missing else ""


def _slurm_groups() -> str:
    if reason := _slurm() or _root():
        return reason
    held = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    options = {
        option for line in held if " - cgroup " in line for option in line.rpartition(" ")[2].split(",")
    }
    missing = {"memory", "freezer"} - options
    return f"no control groups of version 1 for {' and '.join(sorted(missing))}" if missing else ""


def _root() -> str:
    if os.geteuid():
        return "not root"
    status = Path("/proc/self/status").read_text(encoding="ascii")
    capabilities = int(status.partition("CapEff:")[2].split()[0], 16)
    return "" if capabilities >> _CAP_SYS_ADMIN & 1 else "root may not mount file systems here"


def _official_clients() -> str:
    wanted = Path(__file__).parents[1] / "tools" / "test-clients.txt"
    installed = _CLIENTS / "installed.txt"
    if not installed.is_file():
        return "not installed"
    return "" if installed.read_bytes() == wanted.read_bytes() else "others than tools/test-clients.txt names"


def become(user: str) -> tuple[str, ...]:
    """Return what to put before a command that root has another user run."""
    return (
        *("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"),
        # Read access only, since the interpreter may be in root's home.
        *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
    )


def _run(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


GROUPS = (
    Group("docker_daemon", "containers", _docker),
    Group("bubblewrap", "isolation", _bubblewrap),
    Group("tmux", "terminal", _program("tmux")),
    Group("chromium", "browser", _program("chromium")),
    Group("squashed_images", "squashed images", _squashed_images),
    Group("apptainer", "Apptainer", _apptainer),
    Group("slurm", "batch jobs", _slurm),
    Group("slurm_groups", "memory of batch jobs", _slurm_groups, "as root, with control groups of version 1"),
    Group("root", "file systems", _root, "as root: make test"),
    Group("official_clients", "official clients", _official_clients, "make test-clients"),
)


def missing_groups() -> dict[str, str]:
    """Return the reason for each group, by its fixture, that this machine can't run."""
    return {group.fixture: reason for group in GROUPS if (reason := group.reason_missing())}


def is_left_out(fixtures: Iterable[str], missing: dict[str, str]) -> str | None:
    """Return the fixture of the first missing group that a test belongs to."""
    names = set(fixtures)
    return next(
        (group.fixture for group in GROUPS if group.fixture in missing and group.fixture in names), None
    )


class LeavesOutGroups:
    """The pytest plug-in that decides which groups run, deselects the others and reports them."""

    NAME = "left-out-groups"

    def __init__(self, config: pytest.Config) -> None:
        # The workers of pytest-xdist get the decision of the first process.
        worker_input: dict[str, dict[str, str]] | None = getattr(config, "workerinput", None)
        self._missing = missing_groups() if worker_input is None else worker_input["missing_groups"]
        self._counts: Counter[str] = Counter()
        self._is_ci = bool(os.environ.get("CI"))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Pass the decision to a worker of pytest-xdist."""
        node.workerinput["missing_groups"] = self._missing  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Read from a worker how many tests it deselected; each worker collects all tests."""
        output: dict[str, dict[str, int]] = getattr(node, "workeroutput", {})
        self._counts |= Counter(output.get("left_out_tests", {}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Pass the counts of a worker to the first process."""
        output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left_out_tests"] = dict(self._counts)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect the tests of missing groups; under CI they stay, and fail by their fixture."""
        if self._is_ci:
            return
        left_out: list[pytest.Item] = []
        kept: list[pytest.Item] = []
        for item in items:
            # The parameters of one test may need different groups.
            marked = (name for mark in item.iter_markers("group") for name in mark.args)
            fixture = is_left_out((*getattr(item, "fixturenames", ()), *marked), self._missing)
            (kept if fixture is None else left_out).append(item)
            if fixture is not None:
                self._counts[fixture] += 1
        if left_out:
            items[:] = kept
            config.hook.pytest_deselected(items=left_out)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Report before the first test which groups are deselected."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or hasattr(session.config, "workerinput") or self._is_ci:
            return
        for group in GROUPS:
            if reason := self._missing.get(group.fixture):
                reporter.write_line(f"leaving out {group.title}: {reason}; {group.remedy}", yellow=True)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report after the last test which groups were deselected, why, and how to run them."""
        for group in GROUPS:
            if count := self._counts[group.fixture]:
                tests = "1 test" if count == 1 else f"{count} tests"
                terminalreporter.write_line(
                    f"{group.title}: {tests} not run, {self._missing[group.fixture]}; {group.remedy}",
                    yellow=True,
                )

    def require(self, fixture: str) -> None:
        """Fail a test of a missing group where nothing may be deselected."""
        for group in GROUPS:
            if group.fixture == fixture and fixture in self._missing:
                pytest.fail(f"{group.title}: {self._missing[fixture]}; {group.remedy}", pytrace=False)
