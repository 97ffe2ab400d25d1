"""The agent's environment: its folders, its log, and its submission, which is replaced atomically."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# By the environment, or as in a container.
DATA = Path(os.environ.get("DATA_DIR", "/home/data"))
SUBMISSION = Path(os.environ.get("SUBMISSION_DIR", "/home/submission")) / "submission.csv"
LOGS = Path(os.environ.get("LOGS_DIR", "/home/logs"))
CODE = Path(os.environ.get("CODE_DIR", "/home/code"))
VALIDATE = Path(os.environ.get("VALIDATE_SCRIPT", "/home/validate_submission.sh"))
COMPETITION = os.environ.get("COMPETITION_ID", "unknown")
SEED = int(os.environ.get("SEED", "0"))
_STARTED = time.monotonic()


class CannotSolveError(Exception):
    """This competition is beyond the baseline; the message says why."""


def say(text: str) -> None:
    """Print a line without buffering, and append it to the agent's log."""
    line = f"[{time.monotonic() - _STARTED:6.1f}s] {text}\n"
    sys.stdout.write(line)
    sys.stdout.flush()
    with (LOGS / "agent.log").open("a", encoding="utf-8") as log:
        log.write(line)


def submit(table: pd.DataFrame) -> None:
    """Replace the submission atomically."""
    partial = SUBMISSION.with_name(f".{SUBMISSION.name}.partial")
    table.to_csv(partial, index=False, lineterminator="\n")
    partial.replace(SUBMISSION)


def validate() -> None:
    """Validate the form of the submission, and log the answer."""
    answer = subprocess.run([VALIDATE, SUBMISSION], capture_output=True, text=True, check=False)
    say(f"validation: {(answer.stdout + answer.stderr).strip()}")


def keep_code() -> None:
    """Save the code that made the submission beside it."""
    for module in sorted(Path(__file__).parent.glob("*.py")):
        shutil.copyfile(module, CODE / module.name)
