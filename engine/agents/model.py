"""What an agent is, as read from its folder; secrets are named in it but never held."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from foundation.problems import Problem


class KwargsType(StrEnum):
    """How a start script takes its arguments."""

    ARGPARSE = "argparse"
    OMEGACONF = "omegaconf"


@dataclass(frozen=True)
class Agent:
    """One agent id of one agent folder.

    Attributes:
        id: the key in `config.yaml`, such as `aide/dev`.
        folder: the agent's folder; its name is the name of the agent's image.
        start: the start script, inside `folder`.
        dockerfile: what builds its image; None when it has none and can only run as a process.
        kwargs_type: how `kwargs` become arguments; None when there are none.
        kwargs: arguments in the order of the file, values as text, secrets as `${{ secrets.NAME }}`.
        env_vars: environment variables, likewise.
        privileged: asks for a privileged container.
        version: a hash of all files of the folder.
    """

    id: str
    folder: Path
    start: Path
    dockerfile: Path | None
    kwargs_type: KwargsType | None
    kwargs: tuple[tuple[str, str], ...]
    env_vars: tuple[tuple[str, str], ...]
    privileged: bool
    version: str

    @property
    def image_name(self) -> str:
        """The name under which the agent's image is built."""
        return self.folder.name

    @property
    def start_below_folder(self) -> Path:
        """Where the start script lies when the folder is mounted or copied elsewhere."""
        return self.start.relative_to(self.folder)


@dataclass(frozen=True)
class FoundAgents:
    """All agents of some folders; one broken folder does not hide the others."""

    agents: tuple[Agent, ...]
    problems: tuple[Problem, ...]
