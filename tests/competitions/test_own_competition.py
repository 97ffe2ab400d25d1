"""A competition that is not in MLE-bench, made by following docs/adding-a-competition.md, works like the others."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console import grade_submission, prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.descriptions import description, obfuscated_description
from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.console.cli.program import run
from mlebench_console.foundation.problems import DataProblem, UsageProblem

ID = "harbour-tides"
OWN = Path(__file__).parent / "own"


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.OWN_VARIABLE, str(OWN))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Eight harbours with 25 noted hours each."""
    rows = [
        (number, f"H{number // 25}", number % 25, round(math.sin(number / 4) * 2, 3)) for number in range(200)
    ]
    (tmp_path / "raw").mkdir()
    table = pd.DataFrame(rows, columns=["id", "harbour", "hour", "height"])
    table.to_csv(tmp_path / "raw" / "tides.csv", index=False)
    return tmp_path / "raw"


def test_it_is_found_beside_those_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ID in registry.all_ids()
    assert registry.get(ID).available
    assert ID not in {member for members in registry.splits().values() for member in members}
    monkeypatch.delenv(registry.OWN_VARIABLE)
    assert ID not in registry.all_ids()
    with pytest.raises(UsageProblem, match="not known"):
        registry.get(ID)


@pytest.mark.parametrize("edition", EDITIONS)
def test_it_is_prepared_and_graded_in_every_edition(tmp_path: Path, raw: Path, edition: Edition) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, edition=edition)
    train, test = (pd.read_csv(prepared / "public" / name) for name in ("train.csv", "test.csv"))
    assert (len(train), len(test)) == (150, 50)
    assert list(test.columns) == ["id", "harbour", "hour"]
    assert bool(set(train["harbour"]) & set(test["harbour"])) == (edition == "v1")
    answers = pd.read_csv(prepared / "private" / "test.csv")
    submission = tmp_path / "submission.csv"
    answers.assign(height=answers["height"] + 0.1)[["id", "height"]][::-1].to_csv(submission, index=False)
    report = grade_submission(submission, ID, data_dir=tmp_path / "data", edition=edition)
    assert (report.score, report.medal, report.edition) == (0.1, "silver", edition)
    assert report.defects == registry.get(ID).defects_in(edition)


def test_a_bad_submission_is_refused_with_a_reason(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    table = pd.read_csv(prepared / "public" / "sample_submission.csv")
    table.assign(height="high").to_csv(tmp_path / "text.csv", index=False)
    report = grade_submission(tmp_path / "text.csv", ID, data_dir=tmp_path / "data")
    assert report.score is None
    assert "height" in report.message


def broken(folder: Path, before: str, after: str) -> Path:
    """A copy of the competition with something else in its task."""
    shutil.copytree(OWN / ID, folder / ID)
    path = folder / ID / "task.py"
    path.write_text(path.read_text().replace(before, after, 1))
    return path


def test_a_fault_of_prepare_is_told_with_its_line_as_the_authors(
    tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = broken(tmp_path / "faulty", 'table["harbour"] if job.corrected else None', 'table["port"]')
    monkeypatch.setenv(registry.OWN_VARIABLE, str(path.parent.parent))
    with pytest.raises(DataProblem, match=rf"KeyError: 'port' \(task\.py, line 11\)\nCorrect {path}, or"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)


def test_a_fault_of_grade_is_told_with_its_line_as_the_authors(
    tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = broken(tmp_path / "faulty", 'case.answers["height"]', 'case.answers["depth"]')
    monkeypatch.setenv(registry.OWN_VARIABLE, str(path.parent.parent))
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    with pytest.raises(DataProblem, match=rf"KeyError: 'depth' \(task\.py, line 19\)\nCorrect {path}; "):
        grade_submission(prepared / "public" / "sample_submission.csv", ID, data_dir=tmp_path / "data")


def test_raw_data_that_do_not_suit_it_are_told_without_a_download(tmp_path: Path, raw: Path) -> None:
    (raw / "tides.csv").write_text("id,height\n1,2\n")
    with pytest.raises(
        DataProblem, match=r"no column harbour, hour\nGive it the data that .*task\.py expects, or"
    ):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)


def test_a_grader_that_fails_with_one_submission_shows_its_operator_where(
    tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = broken(
        tmp_path / "faulty",
        'checks.numbers(case.submission, "height")',
        'case.submission["height"].apply(abs)',
    )
    monkeypatch.setenv(registry.OWN_VARIABLE, str(path.parent.parent))
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    table = pd.read_csv(prepared / "public" / "sample_submission.csv")
    table.assign(height="high").to_csv(tmp_path / "text.csv", index=False)
    assert run([f"--data-dir={tmp_path / 'data'}", "grade-sample", str(tmp_path / "text.csv"), ID]) == 0
    told = capsys.readouterr().out
    assert "valid        no: The grader fails with this submission" in told
    assert f'grader         File "{path}", line 19, in grade' in told


def test_a_task_that_cant_be_imported_is_told_as_its_authors_fault(
    tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = broken(tmp_path / "faulty", "def grade(", "def grade[")
    monkeypatch.setenv(registry.OWN_VARIABLE, str(path.parent.parent))
    with pytest.raises(
        DataProblem, match=rf"^{path} can't be imported: SyntaxError: .*line 15\)\nCorrect it; "
    ):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)


def test_one_whose_facts_are_wrong_hides_no_other_from_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = broken(tmp_path / "faulty", "x", "x").with_name("competition.toml")
    path.write_text(path.read_text().replace('direction = "lower"', 'direction = "up"'))
    monkeypatch.setenv(registry.OWN_VARIABLE, str(path.parent.parent))
    assert run(["competitions", "list"]) == 3
    told = capsys.readouterr()
    assert "spaceship-titanic" in told.out
    assert told.err.strip() == f"{path} cannot be used: metric.direction is not one of higher, lower"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("no id",), "'no id' is not an id: it must be made of letters, digits and single dashes"),
        (("spaceship-titanic",), "there is a competition 'spaceship-titanic' already"),
        (
            ("harbours", "--cut-offs", "1,2"),
            "'1,2' is not four numbers with commas: GOLD,SILVER,BRONZE,MEDIAN",
        ),
    ],
)
def test_what_no_competition_can_begin_with_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], problem: str
) -> None:
    assert run(["competitions", "new", *words, "--to", str(tmp_path / "own")]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "own").exists()


def test_commands_know_it() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "mlebench_console.console", "competitions", "show", ID],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert "Harbour Tides" in shown.stdout


def test_it_has_a_description_for_each_edition_and_an_obfuscated_one() -> None:
    competition = registry.get(ID)
    assert "Harbours are in both tables" in description(competition, "v1")
    assert "Harbours are in both tables" not in description(competition, "corrected")
    assert "as an office noted them" in obfuscated_description(competition, "v1")


def test_an_id_of_the_benchmark_cannot_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spaceship-titanic").mkdir()
    (tmp_path / "spaceship-titanic" / "competition.toml").write_text("")
    monkeypatch.setenv(registry.OWN_VARIABLE, f"{OWN}{os.pathsep}{tmp_path}")
    with pytest.raises(UsageProblem, match="Two competitions have the id 'spaceship-titanic'"):
        registry.all_ids()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.OWN_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(UsageProblem, match=r"nowhere: the folder does not exist"):
        registry.get(ID)
