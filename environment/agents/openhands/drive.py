"""Run OpenHands through its own library: one conversation in a folder of its own, until done or out of time."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
from pathlib import Path

from openhands.sdk import LLM, Conversation
from openhands.tools.preset.default import get_default_agent

DATA = Path(os.environ.get("DATA_DIR", "/home/data"))
SUBMISSION = Path(os.environ.get("SUBMISSION_DIR", "/home/submission"))
LOGS = Path(os.environ.get("LOGS_DIR", "/home/logs"))
CODE = Path(os.environ.get("CODE_DIR", "/home/code"))
INSTRUCTIONS = Path(os.environ.get("INSTRUCTIONS_FILE", "/home/instructions.txt"))
# Reserved at the end for a step that is under way.
SPARE_SECONDS = 60.0
MOST_CODE_BYTES = 1 << 20


def say(text: str) -> None:
    """Print a line without buffering."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def task(*, hours: float, steps: int) -> str:
    """Return the prompt for OpenHands: the benchmark's rules, its limits, then the competition."""
    limits = f"You have {hours:.1f} hours and {steps} steps. Nobody reads what you write; finish when you are done."
    description = (DATA / "description.md").read_text(encoding="utf-8")
    return f"{INSTRUCTIONS.read_text(encoding='utf-8')}\n{limits}\n\nDESCRIPTION\n{description}"


def keep_code(workspace: Path) -> None:
    """Copy the programs that were written to the folder from which they are collected."""
    for path in sorted(workspace.rglob("*")):
        if (
            path.suffix in (".py", ".ipynb", ".sh")
            and path.is_file()
            and path.stat().st_size <= MOST_CODE_BYTES
        ):
            target = CODE / path.relative_to(workspace)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def main() -> None:
    """Work on the task until OpenHands finishes, or its steps or its time are used up."""
    parser = argparse.ArgumentParser(description="Run OpenHands on one competition.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--steps", type=int, default=500)
    asked = parser.parse_args()
    seconds = float(os.environ.get("TIME_LIMIT_SECONDS", "86400"))
    # Removed from the environment, so that programs started by OpenHands can't print it.
    key, server = os.environ.pop("LLM_API_KEY"), os.environ.pop("LLM_BASE_URL", "")
    workspace = Path("workspace").absolute()
    workspace.mkdir(exist_ok=True)
    model = LLM(
        model=asked.model,
        api_key=key,
        base_url=server or None,
        seed=int(os.environ.get("SEED", "1")),
        usage_id="agent",
    )
    conversation = Conversation(
        agent=get_default_agent(llm=model, cli_mode=True),
        workspace=str(workspace),
        persistence_dir=str(LOGS / "openhands"),
        max_iteration_per_run=asked.steps,
        callbacks=[lambda event: say(f"{type(event).__name__}: {str(event)[:2000]}")],
        visualizer=None,
        delete_on_close=False,
    )
    out_of_time = threading.Timer(max(1.0, seconds - SPARE_SECONDS), conversation.pause)
    out_of_time.daemon = True
    out_of_time.start()
    try:
        conversation.send_message(task(hours=seconds / 3600, steps=asked.steps))
        conversation.run()
    finally:
        out_of_time.cancel()
        keep_code(workspace)
        conversation.close()
    handed_in = (SUBMISSION / "submission.csv").is_file()
    say(f"OpenHands has ended, {'with' if handed_in else 'without'} a submission")


if __name__ == "__main__":
    main()
