"""Paths of configuration, data and state, by flag, environment, config.toml or default.

Asking creates nothing; whoever writes first makes the directory.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.settings import PlaceSettings, read_table
from foundation.problems import UsageProblem

STATE_VARIABLE = "MLEBENCH_STATE_DIR"
DATA_VARIABLE = "MLEBENCH_DATA_DIR"
CONFIG_VARIABLE = "MLEBENCH_CONFIG"
# What of a state other hosts need, and from where or to where it is moved in one step.
_SHARED = ("runs", "agents", "leaving", "arriving")


@dataclass(frozen=True)
class Places:
    """The directories that one invocation works with."""

    config_file: Path
    data_dir: Path
    state_dir: Path

    @property
    def runs_dir(self) -> Path:
        """Where runs' directories are made."""
        return self.state_dir / "runs"

    @property
    def engine_log(self) -> Path:
        """Where the engine writes what it does and every traceback."""
        return self.state_dir / "engine.log"


def find_places(
    *,
    state_dir: Path | None = None,
    data_dir: Path | None = None,
    config_file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Places:
    """Find the places: an argument wins over the environment, that over config.toml, that over the default.

    Raises:
        UsageProblem: config.toml is there but can't be read.
    """
    # Imported here: nothing else at start-up needs it.
    import platformdirs

    variables = os.environ if environment is None else environment
    defaults = platformdirs.PlatformDirs("mlebench-console")
    config = config_file or _path(variables.get(CONFIG_VARIABLE)) or defaults.user_config_path / "config.toml"
    configured = read_table(config, PlaceSettings)
    return Places(
        config_file=config,
        data_dir=(
            data_dir
            or _path(variables.get(DATA_VARIABLE))
            or _path(configured.data_dir)
            or platformdirs.user_cache_path("mle-bench") / "data"
        ).absolute(),
        state_dir=(
            state_dir
            or _path(variables.get(STATE_VARIABLE))
            or _path(configured.state_dir)
            or defaults.user_state_path
        ).absolute(),
    )


def shared_folder(places: Places) -> Path | None:
    """Return the folder below `runs_dir` in which this state keeps runs and agents; None where config.toml has none.

    Raises:
        UsageProblem: config.toml can't be read.
    """
    configured = _path(read_table(places.config_file, PlaceSettings).runs_dir)
    if configured is None:
        return None
    identity = hashlib.sha256(f"{socket.gethostname()}:{places.state_dir}".encode()).hexdigest()[:8]
    return configured.absolute() / f"{places.state_dir.name}-{identity}"


def images_folder(places: Places) -> Path:
    """Return where images as one file lie: below `runs_dir`, for all states that share it, else with the state.

    Raises:
        UsageProblem: config.toml can't be read.
    """
    configured = _path(read_table(places.config_file, PlaceSettings).runs_dir)
    return (configured.absolute() if configured is not None else places.state_dir) / "images"


def share_runs(places: Places) -> None:
    """Let runs and agents lie below `runs_dir`, where the state's own folders lead then; before anything lies in these.

    Raises:
        UsageProblem: they lie elsewhere already.
        OSError: they can't be made there.
    """
    shared = shared_folder(places)
    if shared is None:
        return
    for name in _SHARED:
        own, wanted = places.state_dir / name, shared / name
        if own.is_symlink() and own.readlink() == wanted:
            continue
        if own.is_dir() and not own.is_symlink() and not any(own.iterdir()):
            own.rmdir()
        if own.is_symlink() or own.exists():
            raise UsageProblem(
                f"config.toml lets runs lie in {shared}",
                f"{own} is there already",
                f"Move it to {wanted} and put a link in its place, or leave runs_dir out.",
            )
        wanted.mkdir(parents=True, exist_ok=True)
        own.symlink_to(wanted)


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None


def agents_folders(agents_dir: str) -> tuple[Path, ...]:
    """List where agents are looked for: the operator's folder if there is one, which wins, then our own."""
    wanted = [Path(agents_dir.strip()).expanduser()] if agents_dir.strip() else []
    return tuple(dict.fromkeys([*wanted, own_agents_folder()]))


def own_agents_folder() -> Path:
    """Return the folder of the agents that come with this project."""
    import environment

    return Path(environment.__path__[0]) / "agents"
