"""From a run group's metadata to the JSONL of its submissions, which `grade` takes."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from engine.grading.batch import SubmissionLine
from engine.rungroups.groups import RunGroup
from foundation.files import write_text
from foundation.problems import DataProblem

SUBMISSION = "submission/submission.csv"
LOG = "logs/agent.log"
CODE = "code/train.py"


def submission_lines(group: RunGroup, *, log: str = LOG, code: str = CODE) -> tuple[SubmissionLine, ...]:
    """List a group's runs; what a run has not left is null.

    Args:
        group: whose runs.
        log: where a run's log lies, relative to the run's folder.
        code: likewise its code.

    Raises:
        DataProblem: such a path leads out of the run's folder.
    """
    for relative in (log, code):
        if Path(relative).is_absolute() or ".." in Path(relative).parts:
            raise DataProblem(f"{relative} leads out of the run's folder")
    return tuple(
        SubmissionLine(
            run.competition_id,
            _left(group.folder / run.run_id, SUBMISSION),
            _left(group.folder / run.run_id, log),
            _left(group.folder / run.run_id, code),
        )
        for run in group.runs
    )


def write_submission_list(path: Path, lines: Sequence[SubmissionLine]) -> None:
    """Write lines as `grade` and MLE-bench read them.

    Raises:
        DataProblem: the file can't be written.
    """
    text = "".join(json.dumps(asdict(line)) + "\n" for line in lines)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except OSError as error:
        raise DataProblem(f"{path} can't be written", error.strerror or str(error)) from error


def _left(folder: Path, relative: str) -> str | None:
    """The path of what an agent left; neither the file nor a folder on the way to it may be a link."""
    here = folder
    for part in Path(relative).parts:
        here = here / part
        try:
            found = here.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(found.st_mode):
            return None
    return str(here) if stat.S_ISREG(here.lstat().st_mode) else None
