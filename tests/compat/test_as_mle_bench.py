"""The wheel has every public name of MLE-bench's modules, and its command's exit codes, as observed there."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from mlebench import metrics, utils
from mlebench.competitions import utils as graders
from mlebench.data import file_cache, generate_checksums, is_valid_prepare_fn
from mlebench.grade_helpers import Grader, InvalidSubmissionError
from mlebench.registry import registry
from mlebench_console import prepare_competition
from tests.conformance.trees import VECTORS, Vector

NAMES: dict[str, dict[str, list[str] | None]] = json.loads(
    Path(__file__).with_name("public_names.json").read_text()
)
SPOOKY = Vector(VECTORS / "spooky-author-identification")
SUBMISSIONS = SPOOKY.folder / "submissions"
# Names that nobody can use from outside: its cache on the disk of the working directory.
LEFT_OUT = {"data.cache"}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    raw = SPOOKY.unpack_raw(tmp_path_factory.mktemp("raw") / SPOOKY.id)
    prepare_competition(SPOOKY.id, data_dir=folder, raw=raw, parameters=SPOOKY.parameters)
    return folder


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in NAMES.items() for name in names]
)
def test_every_public_name_is_there_with_its_arguments(module: str, name: str) -> None:
    if f"{module}.{name}" in LEFT_OUT:
        return
    owner, _, inner = name.partition(".")
    found = getattr(importlib.import_module(f"mlebench.{module}"), owner)
    if inner and inner in getattr(found, "__dataclass_fields__", {}):
        return
    found = getattr(found, inner) if inner else found
    wanted = NAMES[module][name]
    if wanted is not None:
        parameters = inspect.signature(found).parameters.values()
        signs: dict[object, str] = {
            inspect.Parameter.VAR_POSITIONAL: "*",
            inspect.Parameter.VAR_KEYWORD: "**",
        }
        given = [signs.get(each.kind, "") + each.name for each in parameters if each.name != "self"]
        assert given == wanted


@pytest.mark.parametrize(
    ("code", "typed"),
    [
        (0, ""),
        (0, "-h"),
        (2, "prepare"),
        (0, "prepare -h"),
        (1, "prepare -c nope"),
        (2, "prepare -c "),
        (1, "prepare --list T/none.txt"),
        (1, "prepare --list T/ids.txt"),
        (2, "prepare --bogus"),
        (2, "grade"),
        (2, "grade --submission T/list.jsonl"),
        (0, "grade --submission T/list.jsonl --output-dir T/out --data-dir D"),
        (1, "grade --submission T/none.jsonl --output-dir T/out --data-dir D"),
        (1, "grade --submission T/unknown.jsonl --output-dir T/out --data-dir D"),
        (1, "grade --submission T/nokey.jsonl --output-dir T/out --data-dir D"),
        (1, "grade --submission T/bad.jsonl --output-dir T/out --data-dir D"),
        (0, "grade --submission T/empty.jsonl --output-dir T/out --data-dir D"),
        (0, "grade --submission T/comment.jsonl --output-dir T/out --data-dir D"),
        (0, "grade --submission T/gone.jsonl --output-dir T/out --data-dir D"),
        (1, "grade --submission T/list.jsonl --output-dir T/out --data-dir T/nodata"),
        (1, "grade --submission T/list.jsonl --output-dir T/list.jsonl --data-dir D"),
        (1, "grade --submission T/list.jsonl --output-dir T/a/b/c --data-dir D"),
        (2, "grade-sample"),
        (2, "grade-sample V/submissions/perfect.csv"),
        (0, "grade-sample V/submissions/perfect.csv spooky-author-identification --data-dir D"),
        (0, "grade-sample V/submissions/extra_column.csv spooky-author-identification --data-dir D"),
        (0, "grade-sample T/gone.csv spooky-author-identification --data-dir D"),
        (0, "grade-sample T spooky-author-identification --data-dir D"),
        (1, "grade-sample V/submissions/perfect.csv nope --data-dir D"),
        (1, "grade-sample V/submissions/perfect.csv spooky-author-identification --data-dir T/nodata"),
        (2, "grade-sample V/submissions/perfect.csv spooky-author-identification more"),
        (0, "dev"),
        (0, "dev -h"),
        (2, "dev download-leaderboard"),
        (1, "dev download-leaderboard -c nope"),
        (0, "dev download-leaderboard -c spooky-author-identification"),
        (2, "dev nothing"),
        (2, "nothing"),
        (2, "--bogus"),
    ],
)
def test_each_command_line_ends_as_mle_benchs_and_only_help_goes_to_standard_output(
    code: int, typed: str, data_dir: Path, tmp_path: Path
) -> None:
    """T is a folder of lists, V the vectors' folder, D the datasets'."""
    perfect = str(SUBMISSIONS / "perfect.csv")
    lists = {
        "list": json.dumps({"competition_id": SPOOKY.id, "submission_path": perfect}),
        "unknown": json.dumps({"competition_id": "nope", "submission_path": perfect}),
        "nokey": json.dumps({"submission_path": perfect}),
        "gone": json.dumps({"competition_id": SPOOKY.id, "submission_path": str(tmp_path / "gone.csv")}),
        "bad": "{not json",
        "empty": "",
        "comment": "# x",
    }
    for name, text in lists.items():
        (tmp_path / f"{name}.jsonl").write_text(f"{text}\n" if text else "")
    (tmp_path / "ids.txt").write_text("nope\n")
    places = {"T": str(tmp_path), "V": str(SPOOKY.folder), "D": str(data_dir)}
    words = [
        "/".join([places.get(word.split("/")[0], word.split("/")[0]), *word.split("/")[1:]])
        for word in typed.split()
    ]
    if typed == "prepare -c ":
        words = ["prepare", "-c", ""]
    ended = subprocess.run(
        [sys.executable, "-m", "mlebench.cli", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(utils.__file__).parents[1])},
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    assert bool(ended.stdout) == ("-h" in words)


def test_a_grader_of_another_competition_is_made_of_its_configuration(tmp_path: Path) -> None:
    grader = Grader.from_dict({"name": "share", "grade_fn": "tests.compat.test_as_mle_bench:share_of_ones"})
    table = pd.DataFrame({"y": [1, 0, 1]})
    assert grader(table, table) == 0.66667
    assert grader(table[:0], table) is None
    leaderboard = pd.DataFrame({"score": [1.0 - number / 100 for number in range(100)]})
    assert grader.rank_score(0.995, leaderboard)["gold_medal"]
    assert not grader.is_lower_better(leaderboard)


def share_of_ones(submission: pd.DataFrame, _answers: pd.DataFrame) -> float:
    if submission.empty:
        raise InvalidSubmissionError("it is empty")
    return float(submission["y"].mean())


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "two marks"])
def test_a_table_is_graded_as_its_file_is(data_dir: Path, tmp_path: Path, kind: str) -> None:
    competition = registry.set_data_dir(data_dir).get_competition(SPOOKY.id)
    answers = utils.load_answers(competition.answers)
    path = tmp_path / ("s.csv.gz" if kind == "csv.gz" else "s.csv")
    table = pd.read_csv(SUBMISSIONS / "noisy.csv")
    table.to_csv(path, index=False)
    if kind == "two marks":
        path.write_bytes(b"\xef\xbb\xbf" * 2 + path.read_bytes())
    score = competition.grader(utils.read_csv(path), answers)
    assert (score is None) == (kind == "two marks")  # its first column has a mark in its name


def test_helpers_do_what_mle_benchs_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLEBENCH_RUNS_DIR", raising=False)
    run = utils.create_run_dir("spooky", "dummy", "group")
    assert run.parent == tmp_path / "runs" / "group"
    assert run.name.startswith("spooky_")
    (run / "a.csv").write_text("x\n1\n")
    utils.compress(run, tmp_path / "packed.zip")
    utils.extract(tmp_path / "packed.zip", tmp_path / "out")
    assert generate_checksums(tmp_path / "out") == generate_checksums(run)
    assert is_valid_prepare_fn(registry.get_competition(SPOOKY.id).prepare_fn)
    assert (
        registry.get_splits_dir() / "low.txt"
    ).read_text().splitlines() == registry.get_lite_competition_ids()
    assert metrics.mean_average_precision_at_k([{1, 2}, {3}], [[1, 9, 2], [4]], 3) == pytest.approx(
        (1 + 2 / 3) / 2 / 2
    )
    mask = graders.rle_decode("2 3 9 1", height=4, width=3)
    assert graders.rle_encode(mask) == [2, 3, 9, 1]
    calls: list[Path] = []

    @file_cache
    def size(fpath: Path) -> int:
        calls.append(fpath)
        return fpath.stat().st_size

    assert size(run / "a.csv") == size(run / "a.csv") == 4
    assert len(calls) == 1
    assert utils.read_csv(run / "a.csv", dtype=str)["x"].tolist() == ["1"]
