"""Doing one task, in a process that may be killed over it; the only worker module that imports heavy things."""

from __future__ import annotations

import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.workers.tasks import (
    CheckTask,
    FetchTask,
    GradeTask,
    Offered,
    Prepared,
    PrepareTask,
    Pruned,
    PruneTask,
    Task,
    Verified,
    VerifyTask,
)

if TYPE_CHECKING:
    from engine.datasets.telling import TellStep


def preload() -> None:
    """Import what tasks need once, for all the children that are forked later."""
    import numpy as np
    import pandas as pd

    import engine.grading.single
    import engine.preparing  # noqa: F401 - loading is the purpose

    # The first use of the CSV reader loads more than the import does.
    pd.DataFrame({"a": np.arange(2)}).to_csv()


def do(task: Task, tell: TellStep) -> dict[str, Any]:
    """Do a task and return its value.

    Raises:
        Problem: it can't be done, for a reason that a person can mend.
    """
    match task:
        case GradeTask():
            return _grade(task)
        case CheckTask():
            return asdict(_check(task, tell))
        case FetchTask():
            return _fetch(task, tell)
        case PrepareTask():
            return asdict(_prepare(task, tell))
        case VerifyTask():
            return asdict(_verify(task, tell))
        case PruneTask():
            return asdict(_prune(task))


def _grade(task: GradeTask) -> dict[str, Any]:
    from engine.grading.single import grade

    report = grade(
        Path(task.submission),
        task.competition_id,
        data_dir=task.data_dir,
        edition=task.edition,
        follow_links=False,
        descriptions=task.descriptions,
    )
    return report.to_dict(extended=True)


def _check(task: CheckTask, tell: TellStep) -> Offered:
    from competitions import registry
    from engine.datasets import sources

    return Offered(sources.check(registry.get(task.competition_id), tell))


def _fetch(task: FetchTask, tell: TellStep) -> dict[str, Any]:
    from competitions import registry
    from engine.claims import claimed_folder
    from engine.datasets import sources
    from engine.datasets.telling import seldom
    from engine.layout import dataset_folder

    competition = registry.get(task.competition_id)
    folder = dataset_folder(competition, task.data_dir)
    _let_the_group_in(task.data_dir)
    with claimed_folder(folder.root, folder.claim, competition.id):
        sources.fetch(competition, folder, keep_free=task.keep_free, tell=seldom(tell))
    return {}


def _prepare(task: PrepareTask, tell: TellStep) -> Prepared:
    from engine.datasets.options import DEMO, Options
    from engine.datasets.telling import seldom
    from engine.preparing import prepare
    from engine.space import size_on_disk

    options = Options.from_text(task.options)
    _let_the_group_in(task.data_dir)
    raw: Path | None = Path(options.source) if options.source else None
    if options.source == DEMO:
        raw = _generate(task, tell)
    prepared = prepare(
        task.competition_id,
        data_dir=task.data_dir,
        raw=raw,
        edition=task.edition,
        verify=options.verify,
        keep_raw=options.keep_raw,
        discard_zip=options.discard_zip,
        descriptions=options.descriptions,
        keep_free=task.keep_free,
        tell=seldom(tell),
    )
    return Prepared(size_on_disk(prepared))


def _verify(task: VerifyTask, tell: TellStep) -> Verified:
    from competitions import registry
    from engine.datasets.sources import CHECKSUM
    from engine.datasets.telling import seldom
    from engine.datasets.verifying import verify
    from engine.layout import dataset_folder

    competition = registry.get(task.competition_id)
    told = seldom(tell)
    found = verify(
        competition,
        dataset_folder(competition, task.data_dir, task.edition),
        lambda what, done, total: told(CHECKSUM, what, done, total),
    )
    return Verified(len(found.sums), found.differs)


def _prune(task: PruneTask) -> Pruned:
    from competitions import registry
    from engine.datasets.pruning import prune

    return Pruned(prune(registry.get(task.competition_id), Path(task.data_dir), task.what))


def _let_the_group_in(data_dir: str) -> None:
    """Let those who share the data directory read what is made, and go on with it if they may write there."""
    folder = Path(data_dir)
    folder.mkdir(parents=True, exist_ok=True)
    shared = folder.stat().st_mode & (stat.S_ISGID | stat.S_IWGRP)
    mask = os.umask(0o022)
    os.umask(mask & ~(stat.S_IRWXG if shared else stat.S_IRGRP | stat.S_IXGRP))


def _generate(task: PrepareTask, tell: TellStep) -> Path:
    """Make the demo's raw data where downloaded ones would lie; the demo has a data directory of its own."""
    from engine.demo_data import generate

    tell("download", "making synthetic data", 0, 0)
    raw = Path(task.data_dir) / task.competition_id / "raw"
    generate(task.competition_id, raw)
    return raw
