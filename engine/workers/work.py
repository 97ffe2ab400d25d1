"""Doing one task, in a process that may be killed over it; the only worker module that imports heavy things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.workers.tasks import GradeTask, Prepared, PrepareTask, Task

DEMO = "demo"

# Called with the name of the step, what is being done, how many items are done and how many there are.
Tell = Callable[[str, str, int, int], None]


def preload() -> None:
    """Import what tasks need once, for all the children that are forked later."""
    import numpy as np
    import pandas as pd

    import engine.grading.single
    import engine.preparing  # noqa: F401 - loading is the purpose

    # The first use of the CSV reader loads more than the import does.
    pd.DataFrame({"a": np.arange(2)}).to_csv()


def do(task: Task, tell: Tell) -> dict[str, Any]:
    """Do a task and return its value.

    Raises:
        Problem: it can't be done, for a reason that a person can mend.
    """
    return _grade(task) if isinstance(task, GradeTask) else asdict(_prepare(task, tell))


def _grade(task: GradeTask) -> dict[str, Any]:
    from engine.grading.single import grade

    report = grade(
        Path(task.submission),
        task.competition_id,
        data_dir=task.data_dir,
        edition=task.edition,
        follow_links=False,
    )
    return report.to_dict(extended=True)


def _prepare(task: PrepareTask, tell: Tell) -> Prepared:
    from engine.preparing import prepare

    raw: Path | None = Path(task.source) if task.source else None
    if task.source == DEMO:
        raw = _generate(task, tell)
    tell("prepare", "", 0, 0)
    prepared = prepare(
        task.competition_id,
        data_dir=task.data_dir,
        raw=raw,
        edition=task.edition,
        progress=lambda what, done, total: tell("prepare", what, done, total),
    )
    tell("checksum", "", 0, 0)
    return Prepared(sum(path.stat().st_size for path in prepared.rglob("*") if path.is_file()))


def _generate(task: PrepareTask, tell: Tell) -> Path:
    """Make the demo's raw data where downloaded ones would lie; the demo has a data directory of its own."""
    from engine.demo import generate

    tell("download", "making synthetic data", 0, 0)
    raw = Path(task.data_dir) / task.competition_id / "raw"
    generate(task.competition_id, raw)
    return raw
