"""Update measured facts of competitions: checksums, and Kaggle's leaderboards with their medal cut-offs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlebench_console.competitions import leaderboards, registry
from mlebench_console.competitions.medals import Thresholds
from mlebench_console.competitions.model import Competition
from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.kaggle.client import Kaggle
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.foundation.files import csv_text, write_text
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem

_FEWEST_TEAMS = 2


def take_checksums(competition_id: str, data_dir: Path | str) -> None:
    """Record the checksums of a prepared dataset, edition v1, as the known ones.

    Raises:
        EnvironmentProblem: the facts can't be written.
    """
    competition = registry.get(competition_id)
    folder = dataset_folder(competition, data_dir)
    found = checksums.checksums_of(folder.prepared)
    table: dict[str, Any] = {"public": dict(found.public), "private": dict(found.private)}
    zips = folder.zips()
    md5 = checksums.zip_md5(zips[0]) if zips else competition.checksums.zip
    _replace_table(competition, "checksums", ({"zip": md5} if md5 else {}) | table)


@dataclass(frozen=True)
class KnownLeaderboard:
    """A competition's leaderboard.

    Attributes:
        teams: how many teams' scores are stored; None where only the cut-offs are known.
        is_new: whether it was updated now.
    """

    cut_offs: Thresholds
    teams: int | None
    is_new: bool


def refresh_leaderboard(competition_id: str, *, force: bool = False) -> KnownLeaderboard:
    """Download a leaderboard, and store its scores and cut-offs.

    As in MLE-bench, nothing is downloaded without `force`, because the cut-offs are always known.

    Raises:
        Problem: Kaggle refuses or can't be reached, or returns only a part of the leaderboard.
    """
    competition = registry.get(competition_id)
    if not force:
        known = leaderboards.scores_of(competition)
        return KnownLeaderboard(competition.thresholds, None if known is None else len(known), is_new=False)
    with Kaggle() as kaggle:
        scores, expected = kaggle.leaderboard(competition_id), kaggle.team_count(competition_id)
    if expected is None or len(scores) < expected:
        raise _not_imported(
            competition_id,
            f"Kaggle returned {len(scores):,} of {'unknown' if expected is None else f'{expected:,}'} teams",
            "Nothing was changed; import one from a file: mlebench-console dev import-leaderboards FILE -c ID",
        )
    return _keep_leaderboard(competition, scores)


def import_leaderboard(competition_id: str, path: Path) -> KnownLeaderboard:
    """Store the scores and cut-offs of a leaderboard's file, such as MLE-bench's.

    Raises:
        Problem: it can't be read, is incomplete, or contradicts the direction of the metric.
    """
    return _keep_leaderboard(registry.get(competition_id), leaderboards.read_scores(path))


def _keep_leaderboard(competition: Competition, scores: Sequence[str]) -> KnownLeaderboard:
    try:
        after = thresholds_of(competition.id, [float(score) for score in scores])
    except ValueError as error:
        raise _not_imported(competition.id, str(error)) from error
    if after.is_lower_better != competition.thresholds.is_lower_better:
        raise _not_imported(competition.id, "it is sorted against the direction of its metric")
    _write(
        leaderboards.path_of(competition), csv_text([(leaderboards.SCORE,), *((score,) for score in scores)])
    )
    values = asdict(after)
    del values["is_lower_better"]  # follows from the metric
    _replace_table(competition, "thresholds", values)
    return KnownLeaderboard(after, len(scores), is_new=True)


def _not_imported(competition_id: str, why: str, next_step: str = "") -> DataProblem:
    return DataProblem(f"the leaderboard of {competition_id} was not imported", why, next_step)


def thresholds_of(competition_id: str, scores: Sequence[float]) -> Thresholds:
    """Return the cut-offs by MLE-bench's rules: positions by the number of teams, counted from the best.

    Raises:
        DataProblem: there are too few scores, one is none, or they are not sorted.
    """
    if len(scores) < _FEWEST_TEAMS:
        raise _not_imported(competition_id, "it has too few scores")
    if wrong := next((place for place, score in enumerate(scores, 1) if not math.isfinite(score)), None):
        raise _not_imported(competition_id, f"its score {wrong} of {len(scores)} is not a finite number")
    lower = scores[0] < scores[-1]
    ordered = sorted(scores, reverse=not lower)
    if list(scores) != ordered:
        raise _not_imported(competition_id, "its scores are not sorted")
    gold, silver, bronze = medal_positions(len(ordered))
    return Thresholds(
        gold=ordered[gold - 1],
        silver=ordered[silver - 1],
        bronze=ordered[bronze - 1],
        median=statistics.median(ordered),
        num_teams=len(ordered),
        is_lower_better=lower,
        confidence="high",
    )


def medal_positions(teams: int) -> tuple[int, int, int]:
    """Return the last positions, counted from 1, that earn gold, silver and bronze."""
    if teams < 100:
        return max(1, int(0.1 * teams)), max(1, int(0.2 * teams)), max(1, int(0.4 * teams))
    if teams < 250:
        return 10, max(1, int(0.2 * teams)), max(1, int(0.4 * teams))
    gold = 10 + int(0.002 * teams)
    if teams < 1000:
        return gold, 50, 100
    return gold, max(1, int(0.05 * teams)), max(1, int(0.1 * teams))


def _replace_table(competition: Competition, name: str, values: dict[str, Any]) -> None:
    """Replace one table of a competition's facts; all other lines stay as they are.

    Raises:
        EnvironmentProblem: it can't be written.
    """
    import tomlkit

    path = competition.facts_path
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    _update(document, {name: values}, only=False)
    _write(path, tomlkit.dumps(document))


def _update(table: MutableMapping[str, Any], values: Mapping[str, Any], *, only: bool = True) -> None:
    """Set values in a table, line by line; with `only`, remove other keys."""
    for key in [key for key in table if only and key not in values]:
        del table[key]
    for key, value in values.items():
        if isinstance(value, Mapping) and key in table:
            _update(table[key], value)
        elif key not in table or table[key] != value:
            table[key] = value


def _write(path: Path, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise EnvironmentProblem(
            f"{path} can't be written", error.strerror or str(error), "Use a checkout of your own."
        ) from error
