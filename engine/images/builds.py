"""Image builds that the engine starts: one at a time, each in a process of its own that outlives the engine.

The folder `image-build` in the state directory has the order, the build's log, its outcome, and the lock of a running
build; consoles and commands follow the build there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mlebench_console.engine.agents import find_agents
from mlebench_console.engine.images.building import Image, build, recipes_for, with_environment
from mlebench_console.engine.places import agents_folders
from mlebench_console.engine.requests import Answer, BuildImages, StopBuild
from mlebench_console.environment.runner.docker.daemon import connect
from mlebench_console.foundation import files, problems
from mlebench_console.foundation.daemons import open_log
from mlebench_console.foundation.locks import FileLock, is_held
from mlebench_console.foundation.problems import Problem, ProblemRecord, UsageProblem

_FOLDER = "image-build"
_ORDER = "order.json"
_LOG = "build.log"
_OUTCOME = "outcome.json"
_LOCK = "lock"
_POLL_SECONDS = 0.1
_LAST_BYTES = 4096


class ImageBuilds:
    """Handles the requests to build images and to stop a build."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / _FOLDER
        self._child: subprocess.Popen[bytes] | None = None

    def build(self, order: BuildImages, _by: str) -> Answer:
        """Start a build, unless one is running."""
        self._folder.mkdir(exist_ok=True)
        lock = FileLock(self._folder / _LOCK)
        if not lock.acquire():
            raise UsageProblem("images are being built already", "", "Wait until that build has ended.")
        with lock, open_log(self._folder / _LOG, anew=True) as log:
            (self._folder / _OUTCOME).unlink(missing_ok=True)
            files.write_json(self._folder / _ORDER, asdict(order))
            self._child = subprocess.Popen(
                [sys.executable, "-m", "mlebench_console.engine.images", str(self._folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # The child inherits the lock: the kernel releases it when the child ends, however it ends.
                pass_fds=(lock.descriptor,),
            )
            os.pwrite(lock.descriptor, str(self._child.pid).encode(), 0)
        return Answer(f"building {', '.join(order.names) or 'all images'}")

    def stop(self, _request: StopBuild, _by: str) -> Answer:
        """Stop the running build."""
        if not is_held(self._folder / _LOCK):
            raise UsageProblem("no image is being built")
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(int((self._folder / _LOCK).read_text()), signal.SIGTERM)
        return Answer("the build is being stopped")

    def step(self) -> None:
        """Reap the build's process if it has ended."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None


@dataclass(frozen=True)
class BuildStatus:
    """The status of the newest build.

    Attributes:
        started_at: None where nothing was ever built.
        names: of the images; empty: all known images.
        line: the last line of its log.
        problem: why it failed; None if it did not.
    """

    is_running: bool = False
    started_at: float | None = None
    names: tuple[str, ...] = ()
    line: str = ""
    problem: Problem | None = None


def build_status(state_dir: Path) -> BuildStatus:
    """Read the status of the newest build."""
    folder = state_dir / _FOLDER
    try:
        # Read first: if the build ends after this, its outcome is read as running, and if before, it exists.
        is_running = is_held(folder / _LOCK)
        order = json.loads((folder / _ORDER).read_bytes())
        started_at = (folder / _ORDER).stat().st_mtime
        with (folder / _LOG).open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LAST_BYTES))
            lines = log.read().decode("utf-8", "replace").split("\n")
    except (OSError, ValueError):
        return BuildStatus()
    line = next((text for text in reversed(lines) if text.strip()), "")
    problem: Problem | None = None
    if not is_running:
        try:
            _outcome(folder)
        except Problem as found:
            problem = found
    return BuildStatus(is_running, started_at, tuple(order.get("names", ())), line, problem)


def follow_build(state_dir: Path, on_line: Callable[[str], None]) -> list[Image]:
    """Wait until the build has ended, and call `on_line` with each line of its log.

    Raises:
        Problem: the build failed.
    """
    folder = state_dir / _FOLDER
    with (folder / _LOG).open(encoding="utf-8", errors="replace") as log:
        line, building = "", True
        while building:
            building = is_held(folder / _LOCK)  # checked before the log is read to its end
            while piece := log.readline():
                line += piece
                if line.endswith("\n"):
                    on_line(line.rstrip("\n"))
                    line = ""
            if building:
                time.sleep(_POLL_SECONDS)
    return _outcome(folder)


def _outcome(folder: Path) -> list[Image]:
    try:
        outcome = json.loads((folder / _OUTCOME).read_bytes())
    except FileNotFoundError:
        raise problems.EnvironmentProblem("the build was killed", "", f"See {folder / _LOG}.") from None
    if outcome["problem"] is not None:
        raise Problem.of(ProblemRecord(**outcome["problem"]))
    return [Image(**image) for image in outcome["images"]]


def main(folder: Path) -> None:
    """Build the images of the order in a folder, and write the outcome there."""

    def stop(_number: int, _frame: object) -> None:
        raise problems.EnvironmentProblem("the build was stopped")

    signal.signal(signal.SIGTERM, stop)
    built: list[Image] = []
    problem = None
    try:
        _build_all(BuildImages(**json.loads((folder / _ORDER).read_bytes())), built)
    except Problem as error:
        problem = asdict(error.record)
    files.write_json(folder / _OUTCOME, {"images": [asdict(image) for image in built], "problem": problem})


def _build_all(order: BuildImages, built: list[Image]) -> None:
    agents = find_agents(agents_folders(order.agents_dir)).agents
    recipes = recipes_for(order.names, agents)
    client = connect()
    for recipe, choices in with_environment(client, recipes, order):
        _say(f"building {recipe.name}")
        built.append(build(client, recipe, choices, _say))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
