"""Fixtures of every test: a clean environment, its own home, and a check that no process is left behind."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from mlebench_console.engine.places import Places
from tests import failures, shared
from tests.keywords import may_hold, sought_names
from tests.leftovers import wait_for_none
from tests.machine import CLIENTS_PYTHON, LeavesOutGroups

_FOREIGN = ("MLEBENCH_", "KAGGLE_", "XDG_", "TEXTUAL", "DOCKER_", "_TYPER_", "_MLEBENCH_")
_ALSO_FOREIGN = (
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "TMUX",
    "I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS",
)
# Where pytest-textual-snapshot collects differences; it passes the path to its tests in the environment.
_OF_THE_TESTS = ("TEXTUAL_SNAPSHOT_TEMPDIR",)
_PATIENCE_WITH_LEFTOVERS = 20.0
_LONG_ARGUMENT = 80
# 'make test-setup' makes the first; no sandbox sees the second, as each has its own.
_MEMORY, _SHARED_MEMORY = Path("/tmp/mem"), Path("/dev/shm")
_ROOM_IN_MEMORY = 4 << 30
# Python looks for garbage after each 700 new objects, of which an app has thousands at every key.
_GARBAGE = (20_000, 20, 20)
# Where tests take long, in the order in which they begin.
_LONG = (
    "tests/docker/",
    "tests/competitions/test_hostile_submissions.py",
    "tests/slurm/",
    "tests/kaggle/",
    "tests/soak/",
    "tests/test_operator",
    "tests/engine/test_fault_drill",
    "tests/console/test_snapshots.py",
    "tests/environment/agents/",
    "tests/environment/runner/test_image_runtimes.py",
    "tests/engine/",
    "tests/console/cli/",
    "tests/console/",
    "tests/competitions/test_",
    "tests/environment/",
    "tests/conformance/",
    "tests/state/",
)
# Tests that keep a processor busy; others mostly wait, for processes, containers and screens.
_CALCULATING = ("tests/competitions/", "tests/conformance/", "tests/environment/agents/", "tests/state/")
_UNDIVIDED = ("tests/docker/", "tests/kaggle/")
# Those that take the Docker daemon for themselves, and about as many others; the rest is for another process.
_HALF_OF_DOCKER = tuple(
    f"tests/docker/test_{name}.py"
    for name in ("agents_of_mle_bench", "faults_in_containers", "images", "shell", "whatever_is_killed")
)
_DIVIDED = ("tests/soak/test_histories.py", "tests/competitions/test_hostile_submissions.py")

# A slow machine makes slow examples; that says nothing of what is tested.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

# Whoever starts the tests in the background has them ignore interrupts, and all that they start inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _LongestFirst(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives tests to workers file by file, the largest files by their functions.

    All that share the loopback Kaggle's port go to the same worker, and those of the Docker daemon to two. Half as many
    workers as processors begin with the tests that keep one busy, the others with those that wait.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        calculates = int(node.gateway.id.removeprefix("gw")) < max(1, (os.cpu_count() or 1) // 2)
        fitting = (scope for scope in self.workqueue if scope.startswith(_CALCULATING) == calculates)
        self.workqueue.move_to_end(next(fitting, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        if scope in _DIVIDED:
            return nodeid.partition("[")[0]
        if scope in _HALF_OF_DOCKER:
            return "half of tests/docker"
        return next((folder for folder in _UNDIVIDED if scope.startswith(folder)), scope)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plug-ins that deselect tests this machine can't run, and shorten the output of failures."""
    _keep_temporary_files_in_memory()
    config.pluginmanager.register(failures)
    config.pluginmanager.register(LeavesOutGroups(config), LeavesOutGroups.NAME)


def _keep_temporary_files_in_memory() -> None:
    """Use a file system in memory for temporary files: tests make 500,000, which a disk makes slowly."""
    folder = _MEMORY if _MEMORY.is_mount() else _SHARED_MEMORY if shutil.which("bwrap") is None else None
    if folder is None or "TMPDIR" in os.environ or not os.access(folder, os.W_OK):
        return
    room = min(shutil.disk_usage(folder).free, psutil.virtual_memory().available // 2)
    if room >= _ROOM_IN_MEMORY and not os.statvfs(folder).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # pytest itself has asked for it before


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _LongestFirst:
    """Have pytest-xdist distribute tests in the order of collection."""
    config.option.loadscopereorder = False
    return _LongestFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, so that at the end no process works while others are idle.

    The console's, which wait most of all, are spread among the others.
    """
    sizes = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[int, int]:
        folder = next((at for at, name in enumerate(_LONG) if item.nodeid.startswith(name)), len(_LONG))
        return folder, -sizes[item.path]

    items.sort(key=place)
    progress: dict[Path, float] = {}
    for is_console in (True, False):
        of_these = (item for item in items if item.nodeid.startswith("tests/console/") == is_console)
        files = list(dict.fromkeys(item.path for item in of_these))
        progress |= {path: at / len(files) for at, path in enumerate(files)}
    items.sort(key=lambda item: progress[item.path])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file in which a test that `-k` names can't be: importing all of them takes some seconds."""
    names = sought_names(config.option.keyword)
    is_file = collection_path.suffix == ".py" and collection_path.is_file()
    return True if names and is_file and not may_hold(collection_path, names) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests with the garbage collector off, since nearly all objects stay until the end, and rarely later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*_GARBAGE)
        gc.enable()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Call a test by the beginning of a long argument: names travel between processes, and one had ten megabytes."""
    if isinstance(val, str | bytes) and len(val) > _LONG_ARGUMENT:
        start = val[:_LONG_ARGUMENT]
        return f"{start if isinstance(start, str) else start.decode('ascii', 'backslashreplace')}..."
    return None


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all tests' homes."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def clean_environment(homes: Path) -> Iterator[Path]:
    """Isolate a test from the machine's settings, and give it an empty home that is removed afterwards."""
    # Not pytest's own numbered folders: for each it lists all others, and thousands would stay.
    home = Path(tempfile.mkdtemp(dir=homes))
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if (name.startswith(_FOREIGN) or name in _ALSO_FOREIGN) and name not in _OF_THE_TESTS:
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("LANG", "C.UTF-8")
        patch.setenv("TZ", "UTC")
        yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Return a test's own paths, none of which exists yet."""
    return Places(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state")


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A test's own folder on a disk, wherever other temporary files are."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session", autouse=True)
def shared_folders(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Share the folders that are made once among all processes of the test run, and remove them at its end."""
    own = tmp_path_factory.getbasetemp()
    shared.share_below((own.parent if hasattr(pytestconfig, "workerinput") else own) / "shared")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the shared folders in a separate process, since their many small files take long."""
    factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    own = factory.getbasetemp()
    if not hasattr(session.config, "workerinput") and (own / "shared").exists():
        aside = (own / "shared").replace(own.with_name(f"{own.name}-shared"))
        subprocess.run(["sh", "-c", 'rm -rf "$0" >/dev/null 2>&1 &', aside], check=True)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail tests that leave an engine, a runner or an agent running."""
    yield
    left = wait_for_none(tmp_path_factory.getbasetemp(), patience=_PATIENCE_WITH_LEFTOVERS)
    assert not left, "tests left processes behind: " + "; ".join(process.command for process in left)


@pytest.fixture(scope="session", autouse=True)
def one_root() -> Iterator[None]:
    """Fail tests that import one of our packages by its folder's name, as it is a second module beside the real one."""
    yield
    folders = {"competitions", "console", "engine", "environment", "foundation", "state"}
    twice = {name: getattr(sys.modules[name], "__file__", None) for name in folders & set(sys.modules)}
    assert not twice, f"imported by the folders' names: {twice}"


@pytest.fixture(scope="session")
def docker_daemon(pytestconfig: pytest.Config) -> None:
    """Require a Docker daemon, and the base image of the container tests or the means to build it."""
    _require(pytestconfig, "docker_daemon")


@pytest.fixture(scope="session")
def bubblewrap(pytestconfig: pytest.Config) -> str:
    """Require a working bubblewrap, and return its path."""
    return _require(pytestconfig, "bubblewrap", "bwrap")


@pytest.fixture(scope="session")
def tmux(pytestconfig: pytest.Config) -> str:
    """Require tmux, and return its path."""
    return _require(pytestconfig, "tmux", "tmux")


@pytest.fixture(scope="session")
def chromium(pytestconfig: pytest.Config) -> str:
    """Require Chromium, and return its path."""
    return _require(pytestconfig, "chromium", "chromium")


@pytest.fixture(scope="session")
def slurm(pytestconfig: pytest.Config) -> None:
    """Require the daemons and commands of Slurm; tests start their own cluster."""
    _require(pytestconfig, "slurm")


@pytest.fixture(scope="session")
def slurm_groups(pytestconfig: pytest.Config) -> None:
    """Require Slurm, and control groups with which it limits the memory of jobs."""
    _require(pytestconfig, "slurm_groups")


@pytest.fixture(scope="session")
def squashed_images(pytestconfig: pytest.Config) -> None:
    """Require the programs that make and mount squashed images."""
    _require(pytestconfig, "squashed_images")


@pytest.fixture(scope="session")
def apptainer(pytestconfig: pytest.Config) -> None:
    """Require Apptainer that works for an ordinary user."""
    _require(pytestconfig, "apptainer")


@pytest.fixture(scope="session")
def root(pytestconfig: pytest.Config) -> None:
    """Require root, for a test's own file systems."""
    _require(pytestconfig, "root")


@pytest.fixture(scope="session")
def official_clients(pytestconfig: pytest.Config) -> Path:
    """Require the official clients of model providers, and return the Python that has them."""
    _require(pytestconfig, "official_clients")
    return CLIENTS_PYTHON


def _require(config: pytest.Config, group: str, program: str = "") -> str:
    plugin = config.pluginmanager.get_plugin(LeavesOutGroups.NAME)
    assert isinstance(plugin, LeavesOutGroups)
    plugin.require(group)
    return shutil.which(program) or ""
