"""The stand-in for MLE-bench answers the calls of those who call MLE-bench, written anew from what they call."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mlebench import cli
from mlebench.data import (
    download_and_prepare_dataset,
    ensure_leaderboard_exists,
    get_leaderboard,
    is_dataset_prepared,
)
from mlebench.grade import aggregate_reports, grade_csv, validate_submission
from mlebench.grade_helpers import CompetitionReport
from mlebench.registry import Competition, registry
from mlebench.utils import load_answers, read_csv
from mlebench_console import grade_submission, prepare_competition
from tests.conformance.trees import VECTORS, Vector
from tests.report_fields import REPORT_FIELDS

ROOT = Path(__file__).parents[2]
SPOOKY = Vector(VECTORS / "spooky-author-identification")
PERFECT, NOISY, REFUSED = (
    SPOOKY.folder / "submissions" / f"{name}.csv" for name in ("perfect", "noisy", "extra_column")
)
Told = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    raw = SPOOKY.unpack_raw(tmp_path_factory.mktemp("raw") / SPOOKY.id)
    prepare_competition(SPOOKY.id, data_dir=folder, raw=raw, parameters=SPOOKY.parameters)
    return folder


@pytest.fixture
def competition(data_dir: Path) -> Competition:
    return registry.set_data_dir(data_dir).get_competition(SPOOKY.id)


@pytest.fixture
def mlebench(data_dir: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> Told:
    """Run the command `mlebench`, and return its exit code and all that it told."""
    caplog.set_level(logging.INFO)

    def run(*arguments: str | Path) -> tuple[int, str]:
        caplog.clear()
        code = cli.main([*map(str, arguments), "--data-dir", str(data_dir)])
        captured = capsys.readouterr()
        return code, "\n".join([*caplog.messages, captured.err, captured.out])

    return run


def report_in(text: str) -> dict[str, Any]:
    """The report in what `mlebench grade-sample` told, found as RD-Agent finds it."""
    match = re.search(r"\{.*\}", text, re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(match.group(0))
    return found


def evaluated(submission: Path, competition: Competition) -> dict[str, Any]:
    """The report on a submission, made from its parts as AIRA-dojo makes it."""
    assert is_dataset_prepared(competition, grading_only=True)
    score = None
    exists = submission.is_file() and submission.suffix.lower() == ".csv"
    if exists:
        score = competition.grader(read_csv(submission), load_answers(competition.answers))
    leaderboard = get_leaderboard(competition)
    rank = competition.grader.rank_score(score, leaderboard)
    return CompetitionReport(
        competition_id=competition.id,
        score=score,
        any_medal=rank["gold_medal"] or rank["silver_medal"] or rank["bronze_medal"],
        submission_exists=exists,
        valid_submission=score is not None,
        is_lower_better=competition.grader.is_lower_better(leaderboard),
        created_at=datetime.now(),
        submission_path=str(submission),
        **rank,
    ).to_dict()


@pytest.mark.parametrize("submission", [PERFECT, NOISY, REFUSED, Path("missing.csv"), Path("None")])
def test_a_submission_is_graded_alike_by_the_command_the_function_and_their_parts(
    mlebench: Told, competition: Competition, submission: Path
) -> None:
    code, told = mlebench("grade-sample", submission, SPOOKY.id)
    report = report_in(told)
    own = grade_submission(submission, SPOOKY.id, data_dir=competition.raw_dir.parent.parent).to_dict()
    assert code == 0
    assert list(report) == REPORT_FIELDS
    by_function = grade_csv(submission, competition).to_dict()
    by_parts = evaluated(submission, competition)
    for other in (own, by_function, by_parts):
        assert report | {"created_at": ""} == other | {"created_at": ""}
    assert ("Invalid submission" in told) == (report["score"] is None)
    assert CompetitionReport.from_dict(report | {"edition": "v1"}).to_dict() == report


def test_a_list_is_graded_into_a_report_that_aggregates_as_in_mle_bench(
    mlebench: Told, competition: Competition, tmp_path: Path
) -> None:
    paths = (str(PERFECT), str(REFUSED), None)
    lines = [{"competition_id": SPOOKY.id, "submission_path": path} for path in paths]
    listed = tmp_path / "submission.jsonl"
    listed.write_text("// theirs\n" + "\n".join(map(json.dumps, lines)))
    code, told = mlebench("grade", "--submission", listed, "--output-dir", tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*_grading_report.json")
    written = json.loads(path.read_text())
    again = aggregate_reports([CompetitionReport.from_dict(one) for one in written["competition_reports"]])
    counts = {key: value for key, value in written.items() if key != "competition_reports"}
    assert code == 0 and str(path) in told
    assert {key: value for key, value in again.items() if key != "competition_reports"} == counts
    assert (counts["total_runs"], counts["total_gold_medals"], counts["total_valid_submissions"]) == (3, 1, 1)


def test_the_form_of_a_submission_is_checked_as_rd_agent_asks_for_it(
    competition: Competition, tmp_path: Path
) -> None:
    assert validate_submission(NOISY, competition) == (True, "Submission is valid.")
    valid, message = validate_submission(REFUSED, competition)
    assert not valid and message.startswith("Submission invalid! The attempt to grade")
    assert "does not exist" in validate_submission(tmp_path / "none.csv", competition)[1]
    text = tmp_path / "submission.txt"
    text.touch()
    assert "must be a CSV" in validate_submission(text, competition)[1]


def test_a_dataset_that_is_not_prepared_is_refused_in_mle_benchs_words(
    mlebench: Told, data_dir: Path
) -> None:
    other = registry.set_data_dir(data_dir).get_competition("leaf-classification")
    assert not is_dataset_prepared(other) and not is_dataset_prepared(other, grading_only=True)
    with pytest.raises(ValueError, match="mlebench prepare -c leaf-classification"):
        grade_csv(PERFECT, other)
    code, told = mlebench("grade-sample", PERFECT, "leaf-classification")
    assert code == 1 and "is not prepared" in told
    code, told = mlebench("grade-sample", PERFECT, "leaf-clasification")
    assert code == 1 and "Did you mean leaf-classification" in told


def test_the_registry_lists_all_competitions_and_lite(competition: Competition, data_dir: Path) -> None:
    assert len(registry.list_competition_ids()) == 82
    assert len(registry.get_lite_competition_ids()) == 22
    assert registry.set_data_dir(data_dir).get_data_dir() == data_dir != registry.get_data_dir()
    for path in (competition.answers, competition.gold_submission, competition.sample_submission):
        assert path.is_file()
    assert competition.public_dir.is_dir() and competition.description.startswith("# ")


def test_raw_data_are_prepared_by_the_function_of_the_competition(
    competition: Competition, tmp_path: Path
) -> None:
    raw, public, private = SPOOKY.unpack_raw(tmp_path / "raw"), tmp_path / "public", tmp_path / "private"
    public.mkdir()
    private.mkdir()
    assert competition.prepare_fn(raw=raw, public=public, private=private) == public  # type: ignore[call-arg]  # as MLE-bench calls it
    for own, theirs in (
        (private / "test.csv", competition.answers),
        (public / "train.csv", competition.public_dir / "train.csv"),
    ):
        assert own.read_bytes() == theirs.read_bytes()


def test_without_a_whole_leaderboard_it_is_empty_and_nothing_is_downloaded(
    competition: Competition, mlebench: Told, tmp_path: Path
) -> None:
    assert ensure_leaderboard_exists(competition) == competition.leaderboard
    assert list(pd.read_csv(competition.leaderboard).columns) == ["score"]
    assert get_leaderboard(competition).empty
    assert cli.main(["dev", "download-leaderboard", "-c", SPOOKY.id]) == 0
    whole = tmp_path / "leaderboard.csv"
    whole.write_text("score\n0.1\n0.3\n")
    known = Competition(**(vars(competition) | {"leaderboard": whole}))
    assert list(get_leaderboard(known)["score"]) == [0.1, 0.3]


class Console:
    """Stands in for the console's command line: notes what is asked of it, and returns codes in turn."""

    def __init__(self, codes: list[int]) -> None:
        self.ran: list[list[str]] = []
        self._codes = codes

    def __call__(self, arguments: Sequence[str]) -> int:
        self.ran.append(list(arguments))
        return self._codes.pop(0)


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["-c", "x", "--keep-raw"], ["-c", "x", "--data-dir", "D", "--keep-raw"]),
        (["--lite", "--all", "--skip-verification"], ["--lite", "--data-dir", "D", "--skip-verification"]),
        (["--list", "ids.txt"], ["--list", "ids.txt", "--data-dir", "D"]),
    ],
)
def test_preparing_is_left_to_the_console(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], asked: list[str]
) -> None:
    console = Console(codes=[7])
    monkeypatch.setattr("mlebench_console.console.cli.program.run", console)
    assert cli.main(["prepare", *arguments, "--data-dir", "D"]) == 1  # whatever the reason
    assert console.ran == [["prepare", *asked]]


def test_preparing_by_function_says_where_and_fails_by_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, competition: Competition, data_dir: Path
) -> None:
    console = Console(codes=[0, 1])
    monkeypatch.setattr("mlebench_console.console.cli.program.run", console)
    download_and_prepare_dataset(competition, keep_raw=False, skip_verification=True)
    assert console.ran == [["prepare", "-c", SPOOKY.id, "--data-dir", str(data_dir), "--skip-verification"]]
    with pytest.raises(RuntimeError, match="exit code 1"):
        download_and_prepare_dataset(competition)


@pytest.mark.parametrize("arguments", [["prepare"], ["dev", "download-leaderboard"], ["grade"], ["nothing"]])
def test_wrong_usage_has_mle_benchs_exit_code(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    assert cli.main([]) == 0


def test_the_wheel_is_of_the_version_that_it_calls() -> None:
    own = tomllib.loads((ROOT / "compat" / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (own["version"], own["dependencies"]) == (version, [f"mlebench-console=={version}"])


def test_the_wheel_holds_command_and_module_and_refuses_to_stand_beside_the_real_one(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "compat", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("mlebench_compat-*.whl")
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
        (entry,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "mlebench = mlebench.cli:main" in archive.read(entry).decode()
    program = "import sys; sys.path.insert(0, sys.argv[1]); from mlebench.cli import main; sys.exit(main(sys.argv[2:]))"
    command = [sys.executable, "-P", "-c", program, str(target), "grade-sample", "None", SPOOKY.id]
    asked = subprocess.run(
        [*command, "--data-dir", str(tmp_path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert (asked.returncode, asked.stdout) == (1, "")
    assert f"Please run `mlebench prepare -c {SPOOKY.id}`" in asked.stderr
    real = target / "mlebench-1.0.dist-info"
    real.mkdir()
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: mlebench\nVersion: 1.0\n")
    refused = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert refused.returncode == 1
    assert "stands in for MLE-bench, and mlebench 1.0 is installed here too" in refused.stderr
