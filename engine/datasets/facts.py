"""Refreshing the measured facts in a competition.toml: checksums, and medal cut-offs by Kaggle's leaderboard."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from competitions import registry
from competitions.model import Competition, Thresholds
from engine.datasets import checksums
from engine.kaggle.client import Kaggle
from engine.layout import dataset_folder
from foundation.files import csv_text, write_text
from foundation.problems import DataProblem, EnvironmentProblem

_FEWEST_TEAMS = 2


def take_checksums(competition_id: str, data_dir: Path | str) -> None:
    """Take the sums of a prepared dataset, edition v1, for the known ones.

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


def refresh_leaderboard(competition_id: str, *, force: bool = False) -> tuple[Thresholds, bool]:
    """Download a leaderboard and take its cut-offs, unless one was downloaded before and it is not forced.

    Returns the cut-offs, and whether they were taken now.

    Raises:
        Problem: Kaggle refuses or can't be reached, or gives a part of the leaderboard only.
    """
    competition = registry.get(competition_id)
    path = competition.folder / "leaderboard.csv"
    if path.exists() and not force:
        return competition.thresholds, False
    with Kaggle() as kaggle:
        teams, expected = kaggle.leaderboard(competition_id), kaggle.team_count(competition_id)
    if expected is None or len(teams) < expected:
        raise _not_imported(
            competition_id,
            f"Kaggle gave {len(teams):,} of {'unknown' if expected is None else f'{expected:,}'} teams",
            "The cut-offs stay as they are; use a leaderboard from Kaggle's Meta Kaggle dataset instead.",
        )
    try:
        after = thresholds_of(competition_id, [float(team.score) for team in teams])
    except ValueError as error:
        raise _not_imported(competition_id, str(error)) from error
    if after.is_lower_better != competition.thresholds.is_lower_better:
        raise _not_imported(competition_id, "it is sorted against the direction of its metric")
    rows = [("teamId", "teamName", "score"), *((team.id, team.name, team.score) for team in teams)]
    _write(path, csv_text(rows))
    values = asdict(after)
    del values["is_lower_better"]  # the metric's direction says so
    _replace_table(competition, "thresholds", values)
    return after, True


def _not_imported(competition_id: str, why: str, next_step: str = "") -> DataProblem:
    return DataProblem(f"the leaderboard of {competition_id} was not imported", why, next_step)


def thresholds_of(competition_id: str, scores: Sequence[float]) -> Thresholds:
    """The cut-offs by MLE-bench's rules: positions by the number of teams, counted from the best.

    Raises:
        DataProblem: there are too few scores, or they are in no order.
    """
    if len(scores) < _FEWEST_TEAMS or not all(map(math.isfinite, scores)):
        raise _not_imported(competition_id, "it holds too few scores")
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
    """The last place, counted from 1, that earns gold, silver, and bronze."""
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
    """Set the values in a table, line by line; with `only` what is not among them goes."""
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
