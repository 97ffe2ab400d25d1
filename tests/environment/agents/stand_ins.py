"""Stand-ins for what foreign agents are made of: each does in a moment what the real one takes hours for."""

from __future__ import annotations

from pathlib import Path

_SUBMIT = """
import os, shutil
from pathlib import Path


def submit() -> None:
    sample = Path(os.environ["DATA_DIR"], "sample_submission.csv")
    shutil.copy(sample, Path(os.environ["SUBMISSION_DIR"], "submission.csv"))
"""

# As much of openhands-sdk and openhands-tools 1.55 as our driver uses, with their signatures.
OPENHANDS = {
    "openhands/sdk/__init__.py": """
import json, os
from pathlib import Path
from stand_in import submit


class LLM:
    def __init__(self, *, model, api_key, base_url, seed, usage_id):
        self.told = {"model": model, "api_key": api_key, "base_url": base_url, "seed": seed}


class Conversation:
    def __init__(
        self, agent, *, workspace, persistence_dir, max_iteration_per_run, callbacks, visualizer, delete_on_close
    ):
        self.llm, self.workspace, self.callbacks = agent, Path(workspace), callbacks
        self.folder, self.steps = Path(persistence_dir), max_iteration_per_run

    def send_message(self, text):
        self.message = text

    def run(self):
        assert "LLM_API_KEY" not in os.environ, "a program of the agent could print the key"
        self.folder.mkdir()
        (self.folder / "seen.json").write_text(
            json.dumps(
                self.llm.told
                | {"steps": self.steps, "message": self.message, "python": os.environ["CONDA_PREFIX"]}
            )
        )
        (self.workspace / "deep").mkdir()
        (self.workspace / "deep" / "solve.py").write_text("print('solved')")
        self.callbacks[0]("an event")
        submit()

    def pause(self):
        raise AssertionError("there was time enough")

    def close(self):
        pass
""",
    "openhands/tools/preset/default.py": """
def get_default_agent(llm, cli_mode=False):
    assert cli_mode, "a container has no browser"
    return llm
""",
}

# As much of MLAgentBench's runner as shows what it was given: its arguments, its task's folder, its working folder.
MLAB = {
    "MLAgentBench/benchmarks/tasks.json": "{}",
    "MLAgentBench/runner.py": """
import argparse, json, os, shutil
from pathlib import Path

parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("task", "log-dir", "work-dir", "max-steps", "max-time", "device", "python", "llm-name", "fast-llm-name",
             "edit-script-llm-name", "agent-max-steps", "max-retries", "max-tokens"):
    parser.add_argument(f"--{name}")
asked = parser.parse_args()
task = Path(__file__).parent / "benchmarks" / asked.task
work = Path(asked.work_dir, asked.task)
shutil.copytree(task / "env", work, symlinks=True)
seen = vars(asked) | {
    "message": (task / "scripts" / "research_problem.txt").read_text(),
    "api_key": os.environ["OPENAI_API_KEY"],
    "files": sorted(path.name for path in work.iterdir()),
}
Path(asked.log_dir).mkdir()
Path(asked.log_dir, "seen.json").write_text(json.dumps(seen))
(work / "train.py").write_text("print('trained')")
shutil.copy(work / "data" / "sample_submission.csv", work / "submission" / "submission.csv")
""",
}

# As much of RepoMaster's checkout as our driver imports; it prints its key, as the real one does.
REPOMASTER = {
    "configs/__init__.py": "",
    "src/core/agent_scheduler.py": """
import json, os
from pathlib import Path
from configs.oai_config import get_llm_config
from stand_in import submit


class RepoMasterAgent:
    def __init__(self, llm_config=None, code_execution_config=None):
        self.config, self.work = get_llm_config(api_type="basic", service_type="code_explore"), code_execution_config
        assert self.config == llm_config
        print(f"llm_config: {self.config}")

    def _solve(self, told, how):
        (Path(self.work["work_dir"]) / "train.py").write_text("print('trained')")
        fetched = Path(self.work["work_dir"]) / ".venvs" / "lib"
        fetched.mkdir(parents=True)
        (fetched / "not_its_own.py").touch()
        seen = {"config": self.config, "message": told, "how": how, "here": os.getcwd(), "work": self.work}
        Path(os.environ["LOGS_DIR"], "seen.json").write_text(json.dumps(seen))
        submit()
        return "the answer"

    def solve_task_with_repo(self, task):
        return self._solve(task, "search")

    def run_general_code_assistant(self, task_description, work_directory=None):
        return self._solve(task_description, "general")
""",
}


def lay_out(folder: Path, package: dict[str, str]) -> Path:
    """Write a stand-in's files."""
    for name, content in (package | {"stand_in.py": _SUBMIT}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder
