"""Measured facts are refreshed without touching a line beside them; half a leaderboard is refused."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.leaderboards import percentile, scores_of
from mlebench_console.competitions.model import Competition
from mlebench_console.engine.datasets import facts
from mlebench_console.engine.datasets.facts import (
    KnownLeaderboard,
    import_leaderboard,
    medal_positions,
    refresh_leaderboard,
    thresholds_of,
)
from mlebench_console.engine.datasets.preparing import prepare
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state.records import PreparationOptions
from tests.kaggle.fixtures import LOSS
from tests.kaggle.loopback import Loopback

ID = LOSS


def read(competition: Competition) -> dict[str, object]:
    return tomllib.loads((competition.folder / "competition.toml").read_text())


def test_a_whole_leaderboard_gives_the_cut_offs(loopback: Loopback, competition: Competition) -> None:
    before = read(competition)
    text = (competition.folder / "competition.toml").read_text()
    loopback.add(ID, leaderboard=tuple(f"{0.1 + number / 1000:.5f}" for number in range(1244)))
    assert refresh_leaderboard(ID) == KnownLeaderboard(competition.thresholds, None, is_new=False)
    assert refresh_leaderboard(ID, force=True).is_new
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
    assert (competition.folder / "leaderboard.csv").read_text().splitlines()[:3] == [
        "score",
        "0.10000",
        "0.10100",
    ]
    assert refresh_leaderboard(ID) == KnownLeaderboard(competition.thresholds, 1244, is_new=False)


def test_half_a_leaderboard_is_refused(loopback: Loopback, competition: Competition) -> None:
    before = (competition.folder / "competition.toml").read_text()
    rows = tuple(str(0.1 + number) for number in range(500))
    loopback.add(ID, leaderboard=rows, one_page_only=True)
    with pytest.raises(DataProblem, match="Kaggle returned 200 of 500 teams"):
        refresh_leaderboard(ID, force=True)
    assert (competition.folder / "competition.toml").read_text() == before


def test_a_leaderboard_of_mle_bench_is_kept_whole_and_tells_which_teams_a_score_beats(
    competition: Competition, tmp_path: Path
) -> None:
    theirs = tmp_path / "leaderboard.csv"
    rows = [f"{number},{0.1 + number / 10:.1f},2020-01-01" for number in range(8)]
    theirs.write_text("\n".join(["teamId,score,submissionDate", *rows, "9,0.8,2020-01-02"]) + "\n")
    assert percentile(competition, 0.1) is None
    assert import_leaderboard(ID, theirs).teams == 9
    assert scores_of(competition) == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.8)
    beaten = {score: percentile(competition, score) for score in (0.05, 0.1, 0.3, 0.75, 0.8, 9.0)}
    assert beaten == {0.05: 100, 0.1: 800 / 9, 0.3: 600 / 9, 0.75: 200 / 9, 0.8: 0, 9.0: 0}
    assert percentile(competition, None) is None
    higher = dataclasses.replace(competition.thresholds, is_lower_better=False)
    other = dataclasses.replace(competition, thresholds=higher, folder=tmp_path / "other")
    other.folder.mkdir()
    (other.folder / "leaderboard.csv").write_text("score\n0.9\n0.5\n0.5\n0.1\n")
    assert [percentile(other, score) for score in (1.0, 0.9, 0.5, 0.1)] == [100, 75, 25, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('score\n0.1\n""\n', "row 2 has the score ''"),
        ("team\n1\n", "no column score"),
        ("score\n0.9\n0.1\n", "against the direction"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
    ],
)
def test_what_is_no_whole_leaderboard_is_not_imported(
    competition: Competition, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "leaderboard.csv").write_text(text)
    with pytest.raises(DataProblem, match=said):
        import_leaderboard(ID, tmp_path / "leaderboard.csv")
    assert scores_of(competition) is None


@pytest.mark.parametrize(
    ("teams", "positions"),
    [(5, (1, 1, 2)), (99, (9, 19, 39)), (100, (10, 20, 40)), (250, (10, 50, 100)), (1000, (12, 50, 100))],
)
def test_medals_go_to_as_many_as_mle_bench_says(teams: int, positions: tuple[int, int, int]) -> None:
    assert medal_positions(teams) == positions


def test_scores_in_no_order_are_refused() -> None:
    with pytest.raises(DataProblem, match="not sorted"):
        thresholds_of(ID, [1.0, 3.0, 2.0])


def test_a_score_that_is_none_is_named_among_many() -> None:
    scores = [*map(float, range(870)), float("nan")]
    with pytest.raises(DataProblem, match="its score 871 of 871 is not a finite number"):
        thresholds_of(ID, scores)


def test_found_checksums_are_taken_on_demand(
    loopback: Loopback, competition: Competition, tmp_path: Path
) -> None:
    loopback.add(ID)
    prepare(ID, data_dir=tmp_path / "data", options=PreparationOptions(verify=False))
    facts.take_checksums(ID, tmp_path / "data")
    found = read(competition)["checksums"]
    assert isinstance(found, dict)
    assert found["zip"] != registry.get(ID).checksums.zip
    assert found["private"].keys() == {"test.csv"}
