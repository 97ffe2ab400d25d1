"""Where an operator was, kept across restarts in a file: screen, sweep, filters, cursors; damage does no harm."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from foundation import files
from foundation.problems import DataProblem

FILE_NAME = "console.json"
_MOST_BYTES = 1 << 16

# What one screen wants to find again: names and texts, any of which may be missing or wrong the next time.
SessionValues = Mapping[str, str]


@dataclass(frozen=True)
class Session:
    """Where an operator was."""

    screen: str = ""
    sweep_id: str = ""
    screens: Mapping[str, SessionValues] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The screen, as `--screen` takes it."""
        return f"sweep:{self.sweep_id}" if self.screen == "sweep" else self.screen


def read_session(state_dir: Path) -> Session:
    """Read where the operator was; an empty session if that is not known."""
    try:
        with files.reading_untrusted(state_dir / FILE_NAME, max_bytes=_MOST_BYTES) as stream:
            return msgspec.json.decode(stream.read(), type=Session)
    except (OSError, msgspec.DecodeError, DataProblem):
        return Session()


def write_session(state_dir: Path, session: Session) -> None:
    """Write where the operator is, if there is a state beside which it may be written."""
    # A full disk, or a state of another user: then the console opens at the overview the next time.
    with suppress(OSError):
        files.write_json(state_dir / FILE_NAME, asdict(session), durable=False)
