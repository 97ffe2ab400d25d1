"""Snapshots of agents' folders: a sweep runs the files that it was launched with, even if the folder changes later.

Each is stored in the state directory under the SHA-256 of its content, which is the sweep's agent version.
"""

from __future__ import annotations

import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from mlebench_console.engine.agents import IGNORED, Agent, get_agent
from mlebench_console.engine.places import agents_folders
from mlebench_console.environment.container import trees
from mlebench_console.foundation import files, folders
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.files import PARTIAL_SUFFIX
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Sweep, SweepSpec

FOLDER = "agents"
MOST_BYTES = 1 << 30
_MOST_FILES = 50_000
_TIDY_SECONDS = 60.0
# A launch that waits asks many times a second.
_ASKED_SECONDS = 30.0
_TOKEN_BYTES = 4


def take(folder: Path, state_dir: Path, *, most_bytes: int = MOST_BYTES) -> str:
    """Store a snapshot of an agent's folder, and return its version.

    Raises:
        DataProblem: it is too large, can't be read, or has files that can't be copied.
    """
    home = state_dir / FOLDER
    home.mkdir(parents=True, exist_ok=True)
    partial = home / f".{secrets.token_hex(_TOKEN_BYTES)}{PARTIAL_SUFFIX}"
    copy = partial / folder.name
    try:
        folders.copy_read_only(folder, copy, most_bytes=most_bytes, most_files=_MOST_FILES, ignored=IGNORED)
        version = folders.content_digest(copy)
        kept = home / version
        if not (kept / folder.name).is_dir() or folders.content_digest(kept / folder.name) != version:
            trees.remove_tree(kept)
            files.sync_file_system(partial)
            partial.rename(kept)
            files.sync_directory(home)
    except OSError as error:
        raise DataProblem(f"the agent's folder {folder} can't be copied", str(error)) from error
    finally:
        trees.remove_tree(partial)
    return version


def check(folder: Path) -> None:
    """Check that a snapshot of an agent's folder can be taken.

    Raises:
        DataProblem: it is too large, can't be read, or has files that can't be copied.
    """
    folders.check_copy(folder, most_bytes=MOST_BYTES, most_files=_MOST_FILES, ignored=IGNORED)


def version_of(folder: Path) -> str:
    """Return the version that a snapshot of an agent's folder would have now."""
    return folders.content_digest(folder, ignored=IGNORED)


def agent_of(spec: SweepSpec) -> Agent:
    """Read the agent that a sweep would be launched with now.

    Raises:
        Problem: it is missing or broken.
    """
    return get_agent(spec.agent_id, agents_folders(spec.agents_dir))


def agent_of_sweep(state_dir: Path, sweep: Sweep) -> Agent:
    """Read a sweep's agent as it was when the sweep was launched.

    Raises:
        Problem: its snapshot is gone or damaged.
    """
    agent_id, kept = sweep.spec.agent_id, state_dir / FOLDER / sweep.agent_version
    if not sweep.agent_version or not kept.is_dir():
        raise DataProblem(
            f"the files of agent '{agent_id}' are gone", f"{kept} does not exist", "Launch a new sweep."
        )
    return get_agent(agent_id, [kept])


class AgentSnapshots:
    """Takes snapshots on another thread, and removes snapshots that no sweep uses."""

    def __init__(self, database: Database, state_dir: Path, clock: Clock, log: Log) -> None:
        self._database = database
        self._state_dir = state_dir
        self._clock = clock
        self._log = log
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="agents")
        self._taking: dict[Path, tuple[Future[str], float]] = {}  # with when each was last asked for
        self._removing: list[Future[None]] = []
        self._tidy_at = 0.0

    @property
    def is_taking(self) -> bool:
        """Whether a snapshot is being taken."""
        return bool(self._taking)

    def take(self, folder: Path) -> str | None:
        """Start to take a snapshot of an agent's folder, or return its version once it is taken.

        Returns:
            None while it is being taken, in which case this must be called again.

        Raises:
            Problem: it can't be taken.
        """
        self._forget_unasked()
        taken, _ = self._taking.get(folder) or (self._worker.submit(take, folder, self._state_dir), 0.0)
        self._taking[folder] = taken, self._clock.monotonic()
        if not taken.done():
            return None
        del self._taking[folder]
        return taken.result()

    def _forget_unasked(self) -> None:
        """Forget what launches have left that were refused meanwhile: a later one is to have the files of then."""
        asked = self._clock.monotonic() - _ASKED_SECONDS
        self._taking = {folder: found for folder, found in self._taking.items() if found[1] >= asked}

    def step(self) -> None:
        """Once in a while, remove unused snapshots, unless a new one is about to be used."""
        self._forget_unasked()
        if self._clock.monotonic() < self._tidy_at or self._taking:
            return
        if not all(removal.done() for removal in self._removing):
            return
        self._tidy_at = self._clock.monotonic() + _TIDY_SECONDS
        home = self._state_dir / FOLDER
        if not home.is_dir():
            return
        used = {sweep.agent_version for sweep in sweeps.all_sweeps(self._database)}
        unused = [path for path in sorted(home.iterdir()) if path.name not in used]
        self._removing = [self._worker.submit(self._remove, path) for path in unused]

    def _remove(self, path: Path) -> None:
        # Renamed first, so that a half-removed folder is never taken for a snapshot.
        aside = path.with_name(f".{secrets.token_hex(_TOKEN_BYTES)}{PARTIAL_SUFFIX}")
        try:
            path.rename(aside)
            for left in trees.remove_tree(aside):
                self._log(f"the agent's snapshot {path.name} can't be removed: {left}", None)
        except OSError as error:
            self._log(f"the agent's snapshot {path.name} can't be removed", error)
