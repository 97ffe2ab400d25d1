"""The agent's environment: its folders, its log, and its submission, which is replaced atomically."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class CannotSolveError(Exception):
    """This competition is beyond the baseline; the message says why."""


@dataclass(frozen=True)
class Workplace:
    """Paths and identity of this run, by the environment or as in a container."""

    data: Path
    submission: Path
    logs: Path
    code: Path
    validate_script: Path
    competition: str
    seed: int
    started: float

    @classmethod
    def from_environment(cls) -> Workplace:
        """Read the environment."""
        variable = os.environ.get
        return cls(
            data=Path(variable("DATA_DIR", "/home/data")),
            submission=Path(variable("SUBMISSION_DIR", "/home/submission")),
            logs=Path(variable("LOGS_DIR", "/home/logs")),
            code=Path(variable("CODE_DIR", "/home/code")),
            validate_script=Path(variable("VALIDATE_SCRIPT", "/home/validate_submission.sh")),
            competition=variable("COMPETITION_ID", "unknown"),
            seed=int(variable("SEED", "0")),
            started=time.monotonic(),
        )

    def say(self, text: str) -> None:
        """Print a line without buffering, and append it to the agent's log."""
        line = f"[{time.monotonic() - self.started:6.1f}s] {text}\n"
        sys.stdout.write(line)
        sys.stdout.flush()
        with (self.logs / "agent.log").open("a", encoding="utf-8") as log:
            log.write(line)

    def submit(self, table: pd.DataFrame) -> None:
        """Replace the submission atomically."""
        partial = self.submission / ".submission.csv.partial"
        table.to_csv(partial, index=False, lineterminator="\n")
        partial.replace(self.submission / "submission.csv")

    def validate(self) -> None:
        """Validate the form of the submission, and log the answer."""
        answer = subprocess.run(
            [self.validate_script, self.submission / "submission.csv"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.say(f"validation: {(answer.stdout + answer.stderr).strip()}")

    def keep_code(self) -> None:
        """Save the code that made the submission beside it."""
        for module in sorted(Path(__file__).parent.glob("*.py")):
            shutil.copyfile(module, self.code / module.name)
