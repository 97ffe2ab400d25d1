"""The operator's session, saved in a file across restarts: screen, sweep, filters, cursors; damage is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem

FILE_NAME = "console.json"
_MOST_BYTES = 1 << 16

# The saved values of one screen by name; when read again, any may be missing or invalid.
SessionValues = Mapping[str, str]


@dataclass(frozen=True)
class Session:
    """What a console restores at its next start."""

    screen: str = ""
    sweep_id: str = ""
    screens: Mapping[str, SessionValues] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The screen in the form of the `--screen` option."""
        return f"sweep:{self.sweep_id}" if self.screen == "sweep" else self.screen


def read_session(state_dir: Path) -> Session:
    """Read the saved session; an empty one if there is none or it can't be read."""
    try:
        with files.reading_untrusted(state_dir / FILE_NAME, max_bytes=_MOST_BYTES) as stream:
            return msgspec.json.decode(stream.read(), type=Session)
    except (OSError, msgspec.DecodeError, DataProblem):
        return Session()


def write_session(state_dir: Path, session: Session) -> None:
    """Save the session in the state directory, if possible."""
    # It fails on a full disk or in another user's state; then the next console opens at the overview.
    with suppress(OSError):
        files.write_json(state_dir / FILE_NAME, asdict(session), durable=False)
