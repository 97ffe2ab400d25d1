"""An agent that learns nothing: it prints what its environment is like and submits the sample submission."""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

DATA = Path(os.environ.get("DATA_DIR", "/home/data"))
SUBMISSION = Path(os.environ.get("SUBMISSION_DIR", "/home/submission"))
LOGS = Path(os.environ.get("LOGS_DIR", "/home/logs"))
CODE = Path(os.environ.get("CODE_DIR", "/home/code"))
INSTRUCTIONS = Path(os.environ.get("INSTRUCTIONS_FILE", "/home/instructions.txt"))
VALIDATE = Path(os.environ.get("VALIDATE_SCRIPT", "/home/validate_submission.sh"))


def say(text: str) -> None:
    """Print a line without buffering, and append it to the agent's log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    with (LOGS / "agent.log").open("a", encoding="utf-8") as log:
        log.write(text + "\n")


def user_name() -> str:
    """Return the user this runs as, by name where it has one."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def gpu_names() -> list[str]:
    """Return the GPUs that nvidia-smi lists; none where there is no nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return []
    done = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def describe() -> None:
    """Print where this agent runs and what it can access."""
    say(f"competition {os.environ.get('COMPETITION_ID', 'unknown')}, seed {os.environ.get('SEED', 'none')}")
    say(f"user {user_name()}, Python {platform.python_version()} at {sys.executable}")
    say(f"{len(os.sched_getaffinity(0))} processors, GPUs: {', '.join(gpu_names()) or 'none'}")
    for folder in (DATA, SUBMISSION, LOGS, CODE):
        rights = "can be written" if os.access(folder, os.W_OK) else "is read-only"
        say(f"{folder} {rights}, {shutil.disk_usage(folder).free >> 30} GiB free")
    say(f"instructions have {len(INSTRUCTIONS.read_text(encoding='utf-8').splitlines())} lines")
    for path in sorted(DATA.iterdir()):
        say(f"  {path.name}{'/' if path.is_dir() else f', {path.stat().st_size:,} bytes'}")


def main() -> int:
    """Describe, submit, validate."""
    describe()
    samples = sorted(DATA.glob("sample_submission*.csv")) or sorted(DATA.glob("*ample*ubmission*.csv"))
    if not samples:
        say(f"there is no sample submission in {DATA}, so there is nothing to submit")
        return 1
    shutil.copyfile(Path(__file__), CODE / "train.py")
    partial = SUBMISSION / ".submission.csv.partial"
    shutil.copyfile(samples[0], partial)
    partial.replace(SUBMISSION / "submission.csv")
    say(f"submitted {samples[0].name}")
    done = subprocess.run(
        [VALIDATE, SUBMISSION / "submission.csv"], capture_output=True, text=True, check=False
    )
    say((done.stdout + done.stderr).strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
