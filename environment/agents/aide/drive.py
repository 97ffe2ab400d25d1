"""Drives AIDE through its own library: steps until the time is up, and submits the best solution so far.

AIDE's command line shows a full-screen display and leaves the last solution's predictions where it ran;
here every step is a line, and predictions are handed in only when they belong to the best solution.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from pathlib import Path

from aide.agent import Agent
from aide.interpreter import Interpreter
from aide.journal import Journal, Node
from aide.utils.config import load_cfg, prep_agent_workspace, save_run
from omegaconf import OmegaConf

DATA = Path(os.environ.get("DATA_DIR", "/home/data"))
SUBMISSION = Path(os.environ.get("SUBMISSION_DIR", "/home/submission"))
LOGS = Path(os.environ.get("LOGS_DIR", "/home/logs"))
CODE = Path(os.environ.get("CODE_DIR", "/home/code"))
INSTRUCTIONS = Path(os.environ.get("INSTRUCTIONS_FILE", "/home/instructions.txt"))
# Reserved at the end for a step that is being written.
SPARE_SECONDS = 60.0


def say(text: str) -> None:
    """Print a line without buffering."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def task_description() -> str:
    """Return the prompt for AIDE's models: the benchmark's rules, then the competition."""
    description = (DATA / "description.md").read_text(encoding="utf-8")
    note = (
        "Where these instructions and the implementation guideline name different places, use the guideline's: "
        "the data are in ./input, and the predictions go to ./working/submission.csv."
    )
    return f"{INSTRUCTIONS.read_text(encoding='utf-8')}\n{note}\n\nCOMPETITION\n{description}"


def hand_in(node: Node, predictions: Path) -> None:
    """Submit a solution, replacing each file atomically."""
    for target, content in (
        (SUBMISSION / "submission.csv", predictions.read_bytes()),
        (CODE / "solution.py", node.code.encode()),
    ):
        partial = target.with_name(f".{target.name}.partial")
        partial.write_bytes(content)
        partial.replace(target)


def main() -> None:
    """Search until the steps or the time are used up."""
    end = time.monotonic() + float(os.environ.get("TIME_LIMIT_SECONDS", "86400")) - SPARE_SECONDS
    random.seed(int(os.environ.get("SEED", "1")))
    sys.argv += [f"data_dir={DATA}", "goal=the description", "copy_data=False", "preprocess_data=False"]
    sys.argv += [f"log_dir={LOGS}/aide", "workspace_dir=workspaces", "exp_name=run"]
    config = load_cfg()
    prep_agent_workspace(config)
    journal = Journal()
    agent = Agent(task_desc=task_description(), cfg=config, journal=journal)
    settings = OmegaConf.to_container(config.exec)
    interpreter = Interpreter(config.workspace_dir, **settings)
    predictions = Path(config.workspace_dir) / "working" / "submission.csv"

    def execute(code: str, reset_session: bool) -> object:
        # A step that writes no predictions must not be credited with an earlier one's.
        predictions.unlink(missing_ok=True)
        interpreter.timeout = max(1, min(settings["timeout"], int(end - time.monotonic())))
        return interpreter.run(code, reset_session)

    while len(journal) < config.agent.steps and time.monotonic() < end:
        agent.step(exec_callback=execute)
        save_run(config, journal)
        node = journal.nodes[-1]
        is_best = not node.is_buggy and journal.get_best_node() is node
        say(
            f"step {len(journal)}: {'failed' if node.is_buggy else f'metric {node.metric.value}'}: {node.analysis}"
        )
        if is_best and predictions.is_file():
            hand_in(node, predictions)
            say(f"step {len(journal)}: handed in as the best so far")
    interpreter.cleanup_session()
    shutil.copytree(config.log_dir, CODE / "journal", dirs_exist_ok=True)
    say(f"{len(journal)} steps, {len(journal.good_nodes)} of them worked")


if __name__ == "__main__":
    main()
