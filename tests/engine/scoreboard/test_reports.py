"""Reports of MLE-bench, tables of outcomes and names lead to evidence; what can't be meant is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.rungroups import MAPPING_NAME, METADATA, write_mapping
from mlebench_console.engine.scoreboard.aggregation import (
    by_category,
    measures_on,
    row_of,
)
from mlebench_console.engine.scoreboard.export import RowFormat, disclose, row_text, trials_frame
from mlebench_console.engine.scoreboard.model import REPORTED, Measure
from mlebench_console.engine.scoreboard.reports import (
    About,
    import_names,
    import_reports,
    imported_evidence,
    load_evidence,
    remove_import,
)
from mlebench_console.foundation.problems import DataProblem, UsageProblem

OPERAND = Path(__file__).parent / "operand_row.csv"
LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4096\n"
LEAF, SPOOKY = "leaf-classification", "spooky-author-identification"


def report(competition_id: str, medal: str = "", **fields: Any) -> dict[str, Any]:
    flags = {f"{kind}_medal": kind == medal for kind in ("gold", "silver", "bronze")}
    return {
        "competition_id": competition_id,
        "score": 0.5,
        **flags,
        "any_medal": bool(medal),
        "above_median": bool(medal),
        "submission_exists": True,
        "valid_submission": True,
        "created_at": "2024-10-08T12:00:00",
        "submission_path": "x",
    } | fields


def write_report(runs_dir: Path, group: str, *reports: dict[str, Any], stamp: str = "2024-10-08") -> Path:
    path = runs_dir / group / f"{stamp}_grading_report.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"competition_reports": list(reports)}))
    return path


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """Two experiments; the first has two groups."""
    folder = tmp_path / "runs"
    write_report(folder, "2_b", report(SPOOKY), report(LEAF, "gold"))
    write_report(folder, "1_a", report(SPOOKY), report(LEAF))
    write_report(folder, "3_c", report(LEAF, "bronze"))
    write_mapping(folder / MAPPING_NAME, [("one", "2_b"), ("one", "1_a"), ("two", "3_c"), ("none", "4_d")])
    return folder


def test_an_experiments_reports_count_in_the_order_of_their_paths(runs_dir: Path) -> None:
    found = load_evidence([runs_dir], experiment_id="one")
    leaf = [trial.has(Measure.GOLD) for trial in found.trials if trial.competition_id == LEAF]
    assert leaf == [False, True]
    assert row_of(found).own is not None
    assert str(measures_on(found, [LEAF, SPOOKY])[Measure.ANY_MEDAL]) == "25.00 ± 25.00"


@pytest.mark.parametrize("name", ["2024-10-07_grading_report.json", "grading_report_old.json"])
def test_two_reports_in_a_run_group_are_refused_by_name_as_in_mle_bench(runs_dir: Path, name: str) -> None:
    (runs_dir / "1_a" / name).write_text("{}")
    with pytest.raises(DataProblem, match=rf"1_a has 2 grading reports: .*{name}"):
        load_evidence([runs_dir], experiment_id="one")
    with pytest.raises(DataProblem, match="1_a has 2 grading reports"):
        load_evidence([runs_dir / "1_a"])
    assert load_evidence([runs_dir / "1_a" / "2024-10-08_grading_report.json"]).competitions


def test_reports_count_in_the_order_of_their_paths_as_text_as_in_mle_bench(tmp_path: Path) -> None:
    """Path by path `a` comes before `a-b`; as text `a-b/` comes before `a/`, and padding shows the difference."""
    first = write_report(tmp_path, "a-b", report(LEAF, "gold"))
    second = write_report(tmp_path, "a", report(LEAF))
    found = load_evidence([second, first])
    assert [trial.has(Measure.GOLD) for trial in found.trials] == [True, False]


def test_which_experiment_is_asked_for_by_name(runs_dir: Path) -> None:
    with pytest.raises(UsageProblem, match="several experiments"):
        load_evidence([runs_dir])
    with pytest.raises(UsageProblem, match="no experiment 'three'"):
        load_evidence([runs_dir], experiment_id="three")
    with pytest.raises(DataProblem, match="none of the 1 run groups of none has a grading report: 4_d"):
        load_evidence([runs_dir], experiment_id="none")


def test_a_run_group_of_an_experiment_without_a_report_is_left_out_and_named(runs_dir: Path) -> None:
    write_mapping(runs_dir / MAPPING_NAME, [("one", "2_b"), ("one", "1_a"), ("one", "4_d")])
    with_it = load_evidence([runs_dir], experiment_id="one")
    assert with_it.trials
    assert with_it.note == f"{REPORTED}; left out, run groups without a grading report: 4_d"


def test_reports_can_be_named_one_by_one_and_metadata_among_them_is_passed_over(runs_dir: Path) -> None:
    metadata = runs_dir / "3_c" / "metadata.json"
    metadata.write_text("{}")
    found = load_evidence([metadata, *(runs_dir / "3_c").glob("*report.json"), runs_dir / "2_b"])
    assert [trial.competition_id for trial in found.trials] == [LEAF, SPOOKY, LEAF]


def test_run_groups_of_a_folder_that_have_no_report_are_named(runs_dir: Path) -> None:
    (runs_dir / MAPPING_NAME).unlink()
    assert load_evidence([runs_dir]).note == REPORTED
    for group in ("3_c", "4_d", "5_e"):
        (runs_dir / group).mkdir(exist_ok=True)
        (runs_dir / group / METADATA).write_text("{}")
    (runs_dir / "notes").mkdir()  # no run group
    found = load_evidence([runs_dir])
    assert len(found.trials) == 5
    assert found.note == f"{REPORTED}; left out, run groups without a grading report: 4_d, 5_e"
    assert load_evidence([runs_dir / "3_c"]).note == REPORTED


def test_reports_of_two_editions_make_no_row_and_it_is_said_why(tmp_path: Path) -> None:
    write_report(tmp_path, "a", report(LEAF, "gold"))
    write_report(tmp_path, "b", report(LEAF, "gold", edition="corrected"))
    found = load_evidence([tmp_path / "a", tmp_path / "b"])
    assert found.conflict == "mixed editions: corrected, v1"
    row = row_of(found)
    assert row.own is not None
    assert row.own.cell is None
    with pytest.raises(UsageProblem, match="mixed editions: corrected, v1"):
        measures_on(found, [LEAF])


def test_what_no_competition_of_ours_is_left_out_and_told(tmp_path: Path) -> None:
    path = write_report(tmp_path, "a", report(LEAF, "gold"), report("titanic"))
    found = load_evidence([path])
    assert found.competitions == (LEAF,)
    assert "titanic" in found.note


@pytest.mark.parametrize("text", ["", "[]", '{"competition_reports": 5}', '{"competition_reports": [{}]}'])
def test_what_is_no_report_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x_grading_report.json"
    path.write_text(text)
    with pytest.raises(DataProblem, match="x_grading_report"):
        load_evidence([path])


@pytest.mark.parametrize("name", ["x_grading_report.json", "outcomes.csv"])
def test_a_report_that_git_lfs_has_not_fetched_is_called_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(LFS_POINTER)
    with pytest.raises(DataProblem, match=f"{name} is a Git LFS pointer") as caught:
        load_evidence([path])
    assert f"git -C {tmp_path} lfs pull" in caught.value.next_step


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("competition_id,seed\n", "no column gold_medal"),
        ("competition_id,seed,gold_medal,silver_medal,bronze_medal\nx,one,1,0,0\n", "row 1"),
    ],
)
def test_a_broken_table_of_outcomes_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "outcomes.csv"
    path.write_text(text)
    with pytest.raises(DataProblem, match=said):
        load_evidence([path])


def test_nothing_that_can_be_meant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no experiment, import or file 'mine'"):
        load_evidence(["mine"], state_dir=tmp_path)
    with pytest.raises(DataProblem, match="has no grading report"):
        load_evidence([tmp_path])


def test_an_import_stands_on_the_scoreboard_until_it_is_removed(tmp_path: Path) -> None:
    about = About("operand", agent="Operand ensemble", llms="gpt-5", hours=24)
    import_reports(tmp_path, [OPERAND], about)
    (found,) = imported_evidence(tmp_path)
    row = row_of(found, pad_missing=True)
    assert (row.table, row.agent, row.llms, row.hours) == ("imported", "Operand ensemble", "gpt-5", 24)
    assert str(row.columns["all"].cell) == "39.56 ± 0.44"
    assert load_evidence(["operand"], state_dir=tmp_path) == imported_evidence(tmp_path)[0]
    with pytest.raises(UsageProblem, match="already"):
        import_reports(tmp_path, [OPERAND], about)
    import_reports(tmp_path, [OPERAND], about, replace=True)
    remove_import(tmp_path, "operand")
    assert import_names(tmp_path) == ()
    with pytest.raises(UsageProblem):
        remove_import(tmp_path, "operand")


def test_imported_reports_keep_their_order_whatever_they_are_called(tmp_path: Path) -> None:
    first = write_report(tmp_path, "1", report(LEAF, "gold"), stamp="z")
    second = write_report(tmp_path, "2", report(LEAF), stamp="a")
    import_reports(tmp_path / "state", [second, first], About("x"))
    (found,) = imported_evidence(tmp_path / "state")
    assert [trial.has(Measure.GOLD) for trial in found.trials] == [True, False]


@pytest.mark.parametrize("name", ["../x", ".hidden", "", "a/b", "x" * 101])
def test_a_name_that_is_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageProblem, match="is not a valid name"):
        import_reports(tmp_path, [OPERAND], About(name))


def test_a_broken_import_is_not_kept(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    with pytest.raises(DataProblem):
        import_reports(tmp_path, [bad], About("bad"))
    assert import_names(tmp_path) == ()


def test_a_row_is_taken_apart_by_split_category_and_competition() -> None:
    found = load_evidence([OPERAND])
    splits = row_of(found, pad_missing=True).columns
    assert str(splits["all"].measures[Measure.ANY_MEDAL]) == "39.56 ± 0.44"
    assert (splits["all"].covered, splits["all"].of) == (53, 75)
    assert {name: bool(standing.measures) for name, standing in row_of(found).columns.items()} == {
        "low": True,
        "medium": False,
        "high": False,
        "all": False,
    }
    categories = by_category(found, pad_missing=True)
    assert str(categories["Seq->Seq"].measures[Measure.ANY_MEDAL]) == "100.00 ± 0.00"
    assert sum(standing.covered for standing in categories.values()) == 53
    name = "aptos2019-blindness-detection"
    assert [trial.score for trial in found.by_competition[name]] == [0.84804, 0.9039, 0.83737]
    assert measures_on(found, [name])[Measure.ABOVE_MEDIAN].mean == pytest.approx(100 / 3)


def test_a_reported_score_without_a_submission_is_marked_and_is_in_no_own_row(tmp_path: Path) -> None:
    reported = {"competition_id": SPOOKY, "score": 99.9, "gold_medal": True, "submission_exists": False}
    (tmp_path / "report.json").write_text(json.dumps({"competition_reports": [reported]}))
    evidence = import_reports(tmp_path / "state", [tmp_path / "report.json"], About("bold"))
    row = row_of(evidence)
    assert row.table == "imported"
    assert REPORTED in row.note
    for form in RowFormat:
        assert REPORTED in row_text(row, disclose(evidence, row), form).lower()
    assert list(trials_frame(evidence)["note"]) == [REPORTED]
