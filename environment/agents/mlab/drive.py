"""Make a task of MLAgentBench from a competition, run its research agent on it, and collect its programs."""

from __future__ import annotations

import argparse
import os
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
MLAB = Path(os.environ.get("MLAB_DIR", "/opt/mlab"))
TASK = "competition"
# Reserved at the end for a step that is under way.
SPARE_SECONDS = 120
MOST_CODE_BYTES = 1 << 20


def research_problem(*, seconds: int, steps: str) -> str:
    """Return the agent's prompt, with paths relative to the agent's own folder."""
    prompt = INSTRUCTIONS.read_text(encoding="utf-8")
    for place, here in ((DATA, "data"), (SUBMISSION, "submission"), (VALIDATE, VALIDATE.name)):
        prompt = prompt.replace(str(place), here)
    description = (DATA / "description.md").read_text(encoding="utf-8")
    return (
        f"{prompt.replace('/home/', '')}\nYou have {seconds / 3600:.1f} hours and {steps} steps. "
        f"train.py is there for your program, and is empty.\n\nDESCRIPTION\n{description}"
    )


def make_task(problem: str) -> None:
    """Create the task where MLAgentBench expects tasks, with links to the data and to the submission."""
    folder = MLAB / "MLAgentBench" / "benchmarks" / TASK
    shutil.rmtree(folder, ignore_errors=True)
    env, scripts = folder / "env", folder / "scripts"
    for place in (env, scripts):
        place.mkdir(parents=True)
    (env / "data").symlink_to(DATA)
    (env / "submission").symlink_to(SUBMISSION)
    (env / "train.py").touch()
    (env / "instructions.txt").write_text(problem, encoding="utf-8")
    shutil.copy(VALIDATE, env / VALIDATE.name)
    (scripts / "research_problem.txt").write_text(problem, encoding="utf-8")


def keep_code(workspace: Path) -> None:
    """Copy the programs that were written to the folder from which they are collected."""
    for path in sorted(workspace.rglob("*.py")):
        if path.is_file() and "backup" not in path.parts and path.stat().st_size <= MOST_CODE_BYTES:
            target = CODE / path.relative_to(workspace)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def main() -> int:
    """Run the agent; unknown arguments are passed to MLAgentBench."""
    parser = argparse.ArgumentParser(
        description="Run MLAgentBench's agent on one competition.", allow_abbrev=False
    )
    parser.add_argument("--max-steps", default="50")
    asked, others = parser.parse_known_args()
    seconds = max(1, int(float(os.environ.get("TIME_LIMIT_SECONDS", "86400"))) - SPARE_SECONDS)
    make_task(research_problem(seconds=seconds, steps=asked.max_steps))
    workspace = Path("workspace").absolute()
    workspace.mkdir(exist_ok=True)
    command = [
        sys.executable, "-u", "-m", "MLAgentBench.runner",
        "--python", sys.executable, "--task", TASK, "--device", "0",
        "--log-dir", str(LOGS / "mlab"), "--work-dir", str(workspace),
        "--max-time", str(seconds), "--max-steps", asked.max_steps, *others,
    ]  # fmt: skip
    ended = subprocess.run(command, cwd=MLAB, check=False)
    keep_code(workspace)
    handed_in = (SUBMISSION / "submission.csv").is_file()
    sys.stdout.write(f"MLAgentBench has ended, {'with' if handed_in else 'without'} a submission\n")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
