"""Where an operator was, kept across restarts: screen, sweep, filters, cursors; a damaged note is no trouble."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from foundation import files
from foundation.problems import DataProblem

NOTE_NAME = "console.json"
_MOST_BYTES = 1 << 16

# What one screen wants to find again: names and texts, any of which may be missing or wrong the next time.
SessionValues = Mapping[str, str]


@dataclass(frozen=True)
class Session:
    """What is found again."""

    screen: str = ""
    sweep_id: str = ""
    screens: Mapping[str, SessionValues] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The screen as `--screen` takes it."""
        return f"sweep:{self.sweep_id}" if self.screen == "sweep" else self.screen

    def of(self, screen: str) -> SessionValues:
        """What a screen has remembered."""
        return self.screens.get(screen, {})


def read_session(state_dir: Path) -> Session:
    """Read where one was; nowhere if that is not known."""
    try:
        with files.reading_untrusted(state_dir / NOTE_NAME, max_bytes=_MOST_BYTES) as stream:
            values = json.loads(stream.read())
        screens = {
            str(name): {str(key): str(value) for key, value in remembered.items()}
            for name, remembered in values["screens"].items()
        }
        return Session(str(values["screen"]), str(values["sweep_id"]), screens)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DataProblem):
        return Session()


def write_session(state_dir: Path, session: Session) -> None:
    """Keep where one is, where there is a state to keep it beside that is ours to write in."""
    if not state_dir.is_dir():
        return
    try:
        files.write_json(state_dir / NOTE_NAME, asdict(session), durable=False)
    except OSError:
        # A disk that is full, or a state of somebody else's: then one begins at the overview the next time.
        return
