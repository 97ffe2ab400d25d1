"""Paths of configuration, data and state, by flag, environment, config.toml or default.

All are absolute: the engine works in another directory than the command that starts it.

Nothing here creates the directories, except `share_runs`.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.engine.settings import PlaceSettings, read_table
from mlebench_console.foundation.folders import make_private
from mlebench_console.foundation.problems import UsageProblem

STATE_VARIABLE = "MLEBENCH_STATE_DIR"
DATA_VARIABLE = "MLEBENCH_DATA_DIR"
CONFIG_VARIABLE = "MLEBENCH_CONFIG"
# The folders of a state that other hosts need, and those from or to which their files are renamed.
_SHARED = ("runs", "agents", "leaving", "arriving")


@dataclass(frozen=True)
class Places:
    """The directories that one invocation works with."""

    config_file: Path
    data_dir: Path
    state_dir: Path

    @property
    def runs_dir(self) -> Path:
        """The folder of all runs' directories."""
        return self.state_dir / "runs"

    @property
    def engine_log(self) -> Path:
        """The engine's log."""
        return self.state_dir / "engine.log"


def find_places(
    *,
    state_dir: Path | None = None,
    data_dir: Path | None = None,
    config_file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Places:
    """Return the places: an argument wins over the environment, that over config.toml, that over the default.

    Raises:
        UsageProblem: config.toml exists but can't be read.
    """
    # Imported here, because nothing else at start-up needs it.
    import platformdirs

    variables = os.environ if environment is None else environment
    defaults = platformdirs.PlatformDirs("mlebench-console")
    config = config_file or _path(variables.get(CONFIG_VARIABLE)) or defaults.user_config_path / "config.toml"
    config = config.absolute()
    configured = read_table(config, PlaceSettings)
    return Places(
        config_file=config,
        data_dir=(
            data_dir
            or _path(variables.get(DATA_VARIABLE))
            or _path(configured.data_dir, config.parent)
            or platformdirs.user_cache_path("mle-bench") / "data"
        ).absolute(),
        state_dir=(
            state_dir
            or _path(variables.get(STATE_VARIABLE))
            or _path(configured.state_dir, config.parent)
            or defaults.user_state_path
        ).absolute(),
    )


def shared_folder(places: Places) -> Path | None:
    """Return this state's folder for runs and agents in `runs_dir`; None where config.toml has no `runs_dir`.

    Raises:
        UsageProblem: config.toml can't be read.
    """
    configured = _configured_runs(places)
    if configured is None:
        return None
    return configured / f"{places.state_dir.name}-{identity_of(places.state_dir)}"


def identity_of(state_dir: Path) -> str:
    """Return digits that no other state has, on this or another host."""
    return hashlib.sha256(f"{socket.gethostname()}:{state_dir}".encode()).hexdigest()[:8]


def images_folder(places: Places) -> Path:
    """Return the folder of exported images: in `runs_dir`, for all states that share it, or else in the state.

    Raises:
        UsageProblem: config.toml can't be read.
    """
    return (_configured_runs(places) or places.state_dir) / "images"


def _configured_runs(places: Places) -> Path | None:
    return _path(read_table(places.config_file, PlaceSettings).runs_dir, places.config_file.parent)


def share_runs(places: Places) -> None:
    """Create the folders of runs and agents in `runs_dir`, with links from the state, before anything else uses them.

    Raises:
        UsageProblem: the state already has such folders of its own.
        OSError: they can't be created.
    """
    shared = shared_folder(places)
    if shared is None:
        return
    make_private(shared)
    for name in _SHARED:
        own, wanted = places.state_dir / name, shared / name
        if own.is_symlink() and own.readlink() == wanted:
            continue
        if own.is_dir() and not own.is_symlink() and not any(own.iterdir()):
            own.rmdir()
        if own.is_symlink() or own.exists():
            raise UsageProblem(
                f"config.toml places runs in {shared}",
                f"{own} already exists",
                f"Move it to {wanted} and replace it with a link, or remove runs_dir from config.toml.",
            )
        wanted.mkdir(parents=True, exist_ok=True)
        own.symlink_to(wanted)


def _path(text: str | None, folder: Path | None = None) -> Path | None:
    """Return the path that a text names, relative to a folder if given; None for none."""
    if not text:
        return None
    path = Path(text).expanduser()
    return path if folder is None else folder / path


def agents_folders(agents_dir: str) -> tuple[Path, ...]:
    """List the folders of agents: the operator's, if given, which has precedence, and our own."""
    wanted = [Path(agents_dir.strip()).expanduser()] if agents_dir.strip() else []
    return tuple(dict.fromkeys([*wanted, own_agents_folder()]))


def own_agents_folder() -> Path:
    """Return the folder of the agents that come with this project."""
    from mlebench_console import environment

    return Path(environment.__path__[0]).resolve() / "agents"
