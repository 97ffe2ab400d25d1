"""Run groups that MLE-bench left are read as it reads them, and nothing in them is trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mlebench_console.engine.rungroups import (
    MAPPING_NAME,
    SubmissionLine,
    competition_of,
    copy_tree,
    find_groups,
    folders_without_metadata,
    read_group,
    read_mapping,
    read_submissions,
    submissions_of,
    write_mapping,
    write_submissions,
)
from mlebench_console.environment.container.trees import TreeEntry, open_file
from mlebench_console.foundation.problems import DataProblem

RUN = "leaf-classification_11111111-2222-4333-8444-555555555555"


def make_group(runs_dir: Path, name: str, runs: dict[str, object]) -> Path:
    folder = runs_dir / name
    folder.mkdir(parents=True)
    metadata = {"run_group": name, "created_at": "2024-10-08T00-00-00-GMT", "runs": runs}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


def test_a_group_names_its_runs_and_their_competitions(tmp_path: Path) -> None:
    folder = make_group(tmp_path, "g", {RUN: {"success": True}, "a-b_1": {"success": False}, "c": {}})
    group = read_group(folder)
    assert group.run_ids == (RUN, "a-b_1", "c")
    assert [competition_of(run_id) for run_id in group.run_ids] == ["leaf-classification", "a-b", "c"]
    assert read_group(folder / "metadata.json") == group


def test_groups_are_found_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("2024-10-08T02-00-00-GMT_run-group_b", "2024-10-08T01-00-00-GMT_run-group_a"):
        make_group(tmp_path, name, {})
    assert [group.name[-1] for group in find_groups(tmp_path)] == ["a", "b"]
    with pytest.raises(DataProblem, match="has no run group"):
        find_groups(tmp_path / "none")


def test_folders_without_metadata_are_called_by_name(tmp_path: Path) -> None:
    for name in ("g", "h", ".hidden"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataProblem, match=r"has no run group: there is no metadata\.json in g, h"):
        find_groups(tmp_path)
    make_group(tmp_path, "i", {})
    assert folders_without_metadata(tmp_path) == ("g", "h")


@pytest.mark.parametrize("name", ["metadata.json", "submission.jsonl", MAPPING_NAME])
def test_a_file_that_git_lfs_has_not_fetched_is_called_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4096\n")
    read = {"metadata.json": read_group, "submission.jsonl": read_submissions, MAPPING_NAME: read_mapping}
    with pytest.raises(DataProblem, match=f"{name} is a Git LFS pointer"):
        read[name](path)


@pytest.mark.parametrize("text", ["{", "[]", '{"runs": []}', '{"runs": {"../x_1": {}}}'])
def test_broken_metadata_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(DataProblem, match=r"metadata\.json"):
        read_group(tmp_path)


def test_what_a_run_left_is_listed_and_the_rest_is_null(tmp_path: Path) -> None:
    folder = make_group(tmp_path, "g", {RUN: {"success": True}, "spaceship-titanic_2": {"success": True}})
    for name in ("submission/submission.csv", "logs/agent.log", "code/other.py"):
        path = folder / RUN / name
        path.parent.mkdir(parents=True)
        path.touch()
    lines = submissions_of(read_group(folder), code="code/other.py")
    assert lines == (
        SubmissionLine(
            "leaf-classification",
            str(folder / RUN / "submission/submission.csv"),
            str(folder / RUN / "logs/agent.log"),
            str(folder / RUN / "code/other.py"),
        ),
        SubmissionLine("spaceship-titanic", None),
    )
    write_submissions(tmp_path / "new" / "submission.jsonl", lines)
    assert tuple(read_submissions(tmp_path / "new" / "submission.jsonl")) == lines


@pytest.mark.parametrize("linked", ["submission", "submission/submission.csv"])
def test_a_link_that_an_agent_left_is_no_submission(tmp_path: Path, linked: str) -> None:
    folder = make_group(tmp_path, "g", {RUN: {"success": True}})
    answers = tmp_path / "answers"
    answers.mkdir()
    (answers / "submission.csv").write_text("secret")
    link = folder / RUN / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(answers if linked == "submission" else answers / "submission.csv")
    assert submissions_of(read_group(folder))[0].submission_path is None


@pytest.mark.parametrize("log", ["/etc/passwd", "../../secret"])
def test_a_path_that_leads_out_of_a_run_is_refused(tmp_path: Path, log: str) -> None:
    folder = make_group(tmp_path, "g", {RUN: {}})
    with pytest.raises(DataProblem, match="is outside"):
        submissions_of(read_group(folder), log=log)


def test_the_mapping_of_experiments_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / MAPPING_NAME
    write_mapping(path, [("o1", "g2"), ("4o", "g1"), ("o1", "g3"), ("o1", "g2")])
    assert path.read_text().splitlines()[0] == "experiment_id,run_group"
    assert read_mapping(path) == {"o1": ("g2", "g3"), "4o": ("g1",)}
    path.write_text("experiment,group\n")
    with pytest.raises(DataProblem, match="no column experiment_id, run_group"):
        read_mapping(path)


def test_a_tree_is_copied_without_links_pipes_and_what_is_too_deep(tmp_path: Path) -> None:
    tree = tmp_path / "logs"
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "er" / "agent.log").write_text("log")
    (tree / "link").symlink_to("/etc/hostname")
    (tree / "linked").symlink_to("/etc", target_is_directory=True)
    os.mkfifo(tree / "pipe")
    long = tree.joinpath(*("d" * 200 for _ in range(6)))
    long.mkdir(parents=True)
    (long / "lost").touch()
    copy_tree(tree, tmp_path / "copy")
    copied = [path for path in (tmp_path / "copy").rglob("*") if not path.is_dir()]
    assert copied == [tmp_path / "copy" / "deep" / "er" / "agent.log"]
    copy_tree(tmp_path / "none", tmp_path / "copy2")
    assert not (tmp_path / "copy2").exists()


def test_a_link_that_is_put_in_a_folders_place_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "private"
    secret.mkdir()
    (secret / "train.py").write_text("answers")
    code = tmp_path / "code" / "inside"
    code.mkdir(parents=True)
    (code / "train.py").write_text("code")

    def swap(entry: TreeEntry) -> int:
        code.rename(tmp_path / "aside")
        code.symlink_to(secret, target_is_directory=True)
        return open_file(entry)

    monkeypatch.setattr("mlebench_console.engine.rungroups.open_file", swap)
    copy_tree(tmp_path / "code", tmp_path / "copy")
    assert (tmp_path / "copy" / "inside" / "train.py").read_text() == "code"
