"""Run RepoMaster through its own classes on one task, with or without a search for repositories."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

DATA = Path(os.environ.get("DATA_DIR", "/home/data"))
SUBMISSION = Path(os.environ.get("SUBMISSION_DIR", "/home/submission"))
LOGS = Path(os.environ.get("LOGS_DIR", "/home/logs"))
CODE = Path(os.environ.get("CODE_DIR", "/home/code"))
INSTRUCTIONS = Path(os.environ.get("INSTRUCTIONS_FILE", "/home/instructions.txt"))
REPOMASTER = Path(os.environ.get("REPOMASTER_DIR", "/opt/repomaster"))
MOST_CODE_BYTES = 1 << 20
# Folders of repositories and environments that RepoMaster fetched, which are not its own work.
NOT_ITS_OWN = (".git", ".venvs", "site-packages")


def task(*, hours: float) -> str:
    """Return the prompt for RepoMaster: the benchmark's rules, its time, then the competition."""
    description = (DATA / "description.md").read_text(encoding="utf-8")
    return (
        f"{INSTRUCTIONS.read_text(encoding='utf-8')}\nYou have {hours:.1f} hours. The data are in {DATA}; write the "
        f"predictions to {SUBMISSION / 'submission.csv'}.\n\nDESCRIPTION\n{description}"
    )


def keep_code(workspace: Path) -> None:
    """Copy the programs that were written to the folder from which they are collected."""
    for path in sorted(workspace.rglob("*.py")):
        fetched = any(part in NOT_ITS_OWN for part in path.parts)
        if not fetched and path.is_file() and path.stat().st_size <= MOST_CODE_BYTES:
            target = CODE / path.relative_to(workspace)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def main() -> None:
    """Solve the task and return an exit code: 0 if there is a submission."""
    parser = argparse.ArgumentParser(description="Run RepoMaster on one competition.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--mode", choices=("search", "general"), default="search")
    asked = parser.parse_args()
    os.environ["OPENAI_MODEL"] = asked.model
    workspace = Path("workspace").absolute()
    workspace.mkdir(exist_ok=True)
    os.chdir(REPOMASTER)
    sys.path.insert(0, str(REPOMASTER))
    # Importable only now, since both are folders of RepoMaster's checkout.
    from configs.oai_config import get_llm_config
    from src.core.agent_scheduler import RepoMasterAgent

    agent = RepoMasterAgent(
        llm_config=get_llm_config(),
        code_execution_config={"work_dir": str(workspace), "use_docker": False},
    )
    hours = float(os.environ.get("TIME_LIMIT_SECONDS", "86400")) / 3600
    prompt = task(hours=hours)
    try:
        if asked.mode == "general":
            answer = agent.run_general_code_assistant(prompt, work_directory=str(workspace))
        else:
            answer = agent.solve_task_with_repo(prompt)
        (LOGS / "answer.md").write_text(str(answer), encoding="utf-8")
    finally:
        keep_code(workspace)
    handed_in = (SUBMISSION / "submission.csv").is_file()
    sys.stdout.write(f"RepoMaster has ended, {'with' if handed_in else 'without'} a submission\n")


if __name__ == "__main__":
    main()
