"""MLE-bench's functions for datasets: check and prepare them, and get leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mlebench.registry import NO_LEADERBOARD, Competition
from mlebench.utils import get_logger
from mlebench_console.competitions import registry as known
from mlebench_console.engine import layout

if TYPE_CHECKING:
    import pandas as pd

logger = get_logger(__name__)


def is_dataset_prepared(competition: Competition, grading_only: bool = False) -> bool:
    """Return whether agents can run on a dataset and their submissions be graded, or the latter alone."""
    facts = known.get(competition.id)
    folder = layout.dataset_folder(facts, competition.raw_dir.parent.parent)
    return layout.can_grade(facts, folder) if grading_only else layout.is_prepared(facts, folder)


def download_and_prepare_dataset(
    competition: Competition,
    keep_raw: bool = True,
    overwrite_checksums: bool = False,
    overwrite_leaderboard: bool = False,
    skip_verification: bool = False,
) -> None:
    """Prepare a dataset, downloading it if necessary; a prepared dataset is kept.

    Raises:
        RuntimeError: it can't be prepared; the reason was written to standard error.
    """
    from mlebench_console.console.cli.program import run

    flags = {
        "--keep-raw": keep_raw,
        "--overwrite-checksums": overwrite_checksums,
        "--overwrite-leaderboard": overwrite_leaderboard,
        "--skip-verification": skip_verification,
    }
    given = [flag for flag, wanted in flags.items() if wanted]
    data_dir = competition.raw_dir.parent.parent
    code = run(["prepare", "-c", competition.id, "--data-dir", str(data_dir), *given])
    if code:
        raise RuntimeError(f"{competition.id} was not prepared (exit code {code})")


def ensure_leaderboard_exists(competition: Competition, force: bool = False) -> Path:
    """Return the path of a competition's leaderboard, downloading it if `force` is set.

    Raises:
        Problem: it can't be downloaded, or only a part of it.
    """
    from mlebench_console.competitions.leaderboards import path_of
    from mlebench_console.engine.datasets.facts import refresh_leaderboard

    if not force:
        return competition.leaderboard
    refresh_leaderboard(competition.id, force=True)
    return path_of(known.get(competition.id))


def get_leaderboard(competition: Competition) -> pd.DataFrame:
    """Read a competition's leaderboard, best score first; empty where only its cut-offs are known."""
    import pandas as pd

    if competition.leaderboard == NO_LEADERBOARD:
        logger.warning(
            f"Only the cut-offs of {competition.id} are known, so its leaderboard is empty; "
            "to have all of it: mlebench-console dev import-leaderboards"
        )
    return pd.read_csv(competition.leaderboard, dtype={"score": float})
