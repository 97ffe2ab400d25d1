"""Kaggle's private leaderboards: the score of every team, where a complete one was downloaded or imported.

The cut-offs of medals need no leaderboard: `competition.toml` states them for every competition.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from operator import neg
from pathlib import Path

from mlebench_console.competitions.model import Competition
from mlebench_console.foundation.files import read_csv
from mlebench_console.foundation.problems import DataProblem

# One line per team with its score alone, under the heading that MLE-bench's readers look for.
SCORE = "score"
_NAME = "leaderboard.csv"


def path_of(competition: Competition) -> Path:
    """Return the path of a competition's leaderboard; the file need not exist."""
    return competition.folder / _NAME


def scores_of(competition: Competition) -> tuple[float, ...] | None:
    """Read every team's score, best first; None where there is no leaderboard.

    Raises:
        DataProblem: the file can't be read.
    """
    path = path_of(competition)
    try:
        changed = path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    return _read(path, changed)


@lru_cache(maxsize=128)
def _read(path: Path, _changed: int) -> tuple[float, ...]:
    return tuple(map(float, read_scores(path)))


def read_scores(path: Path) -> list[str]:
    """Read the scores in a leaderboard's file, ours or MLE-bench's, as they are written there.

    Raises:
        DataProblem: it can't be read, or a score in it is not a number.
    """
    texts = [row[SCORE] for row in read_csv(path, (SCORE,), "leaderboard")]
    for number, text in enumerate(texts, start=1):
        try:
            float(text)
        except (TypeError, ValueError) as error:
            raise DataProblem(
                f"{path} is not a leaderboard", f"row {number} has the score {text!r}"
            ) from error
    return texts


def percentile(competition: Competition, score: float | None) -> float | None:
    """Return the percentage of teams that a score beats; None without a score or a whole leaderboard."""
    scores = scores_of(competition)
    if score is None or not scores:
        return None
    if competition.thresholds.is_lower_better:
        not_beaten = bisect_right(scores, score)
    else:
        not_beaten = bisect_right(scores, -score, key=neg)
    return 100 * (len(scores) - not_beaten) / len(scores)
