"""Measured facts are refreshed without touching a line beside them; half a leaderboard is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from competitions import registry
from competitions.model import Competition
from engine.datasets import facts
from engine.datasets.facts import medal_positions, refresh_leaderboard, thresholds_of
from engine.datasets.plans import Options
from engine.datasets.preparing import prepare
from foundation.problems import DataProblem
from tests.kaggle.fixtures import LOSS
from tests.kaggle.loopback import Loopback

ID = LOSS


def read(competition: Competition) -> dict[str, object]:
    return tomllib.loads((competition.folder / "competition.toml").read_text())


def test_a_whole_leaderboard_gives_the_cut_offs(loopback: Loopback, competition: Competition) -> None:
    before = read(competition)
    text = (competition.folder / "competition.toml").read_text()
    loopback.add(ID, leaderboard=tuple(f"{0.1 + number / 1000:.5f}" for number in range(1244)))
    _, is_new = refresh_leaderboard(ID)
    assert is_new
    after = read(competition)
    assert {name: value for name, value in after.items() if name != "thresholds"} == {
        name: value for name, value in before.items() if name != "thresholds"
    }
    lines, now = text.splitlines(), (competition.folder / "competition.toml").read_text().splitlines()
    begin, end = now.index("[thresholds]"), len(now) - now[::-1].index('confidence = "high"')
    assert now[:begin] == lines[: lines.index("[thresholds]")], "all lines beside the table stay as they are"
    assert now[end:] == lines[len(lines) - len(now[end:]) :]
    # 1244 teams: gold 10 + int(2.488) = 12th, silver int(62.2) = 62nd, bronze int(124.4) = 124th
    assert after["thresholds"] == {
        "gold": 0.111,
        "silver": 0.161,
        "bronze": 0.223,
        "median": 0.7215,
        "num_teams": 1244,
        "confidence": "high",
    }
    assert len((competition.folder / "leaderboard.csv").read_text().splitlines()) == 1245
    assert refresh_leaderboard(ID) == (registry.get(ID).thresholds, False)
    _, is_new = refresh_leaderboard(ID, force=True)
    assert is_new


def test_half_a_leaderboard_is_refused(loopback: Loopback, competition: Competition) -> None:
    before = (competition.folder / "competition.toml").read_text()
    rows = tuple(str(0.1 + number) for number in range(500))
    loopback.add(ID, leaderboard=rows, one_page_only=True)
    with pytest.raises(DataProblem, match="Kaggle gave 200 of 500 teams"):
        refresh_leaderboard(ID)
    assert (competition.folder / "competition.toml").read_text() == before


@pytest.mark.parametrize(
    ("teams", "positions"),
    [(5, (1, 1, 2)), (99, (9, 19, 39)), (100, (10, 20, 40)), (250, (10, 50, 100)), (1000, (12, 50, 100))],
)
def test_medals_go_to_as_many_as_mle_bench_says(teams: int, positions: tuple[int, int, int]) -> None:
    assert medal_positions(teams) == positions


def test_scores_in_no_order_are_refused() -> None:
    with pytest.raises(DataProblem, match="not sorted"):
        thresholds_of(ID, [1.0, 3.0, 2.0])


def test_found_checksums_are_taken_on_demand(
    loopback: Loopback, competition: Competition, tmp_path: Path
) -> None:
    loopback.add(ID)
    prepare(ID, data_dir=tmp_path / "data", options=Options(verify=False))
    facts.take_checksums(ID, tmp_path / "data")
    found = read(competition)["checksums"]
    assert isinstance(found, dict)
    assert found["zip"] != registry.get(ID).checksums.zip
    assert found["private"].keys() == {"test.csv"}
