from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from contextlib import chdir, suppress
from pathlib import Path

import pyte
import pytest

from mlebench_console.competitions.registry import OWN_VARIABLE
from mlebench_console.console.views.datasets import board_of_disk
from mlebench_console.engine.places import Places
from mlebench_console.state.records import DatasetState
from tests.conformance.trees import Vector
from tests.console.cli.conftest import Cli
from tests.report_fields import REPORT_FIELDS


def submission(vector: Vector, name: str) -> Path:
    return vector.folder / "submissions" / name


def test_a_prepared_dataset_is_listed_and_not_prepared_twice(cli: Cli, prepared: Vector) -> None:
    listed = cli("datasets", "list", "--split", "low", "--json").document()
    assert [one["competition_id"] for one in listed if one["state"] == "prepared"] == [prepared.id]
    (again,) = cli("prepare", "-c", prepared.id, "--json").document()
    assert again["state"] == "was prepared"


def test_own_facts_that_can_not_be_read_spoil_only_their_own_row(
    cli: Cli, prepared: Vector, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own" / "torn").mkdir(parents=True)
    (tmp_path / "own" / "torn" / "competition.toml").write_text('id = "torn')
    monkeypatch.setenv(OWN_VARIABLE, str(tmp_path / "own"))
    listed = {one["competition_id"]: one for one in cli("datasets", "list", "--json").document()}
    assert listed[prepared.id]["state"] == "prepared"
    assert listed["torn"]["state"] == "absent"
    assert "torn/competition.toml cannot be read" in listed["torn"]["problem"]
    rows = {row.competition_id: row for row in board_of_disk(places.data_dir).rows}
    assert rows[prepared.id].state is DatasetState.PREPARED
    assert "torn/competition.toml cannot be read" in rows["torn"].problem
    mirrored = cli("datasets", "mirror", tmp_path / "mirror")
    assert mirrored.code == 0
    assert "torn/competition.toml cannot be read" in mirrored.err


def test_one_failure_stops_none_of_the_others(cli: Cli, prepared: Vector, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text(f"leaf-classification\n{prepared.id}\n")
    done = cli("prepare", "--list", names)
    assert done.code == 3
    assert "1 of 2 prepared" in done.out
    assert "leaf-classification: there are no raw data" in done.err


def test_a_grade_names_score_and_medal(cli: Cli, prepared: Vector) -> None:
    graded = cli("grade-sample", submission(prepared, "perfect.csv"), prepared.id)
    assert graded.code == 0
    assert "gold" in graded.out
    report = cli("grade-sample", submission(prepared, "noisy.csv"), prepared.id, "--json").document()
    assert list(report)[: len(REPORT_FIELDS)] == REPORT_FIELDS
    assert report["score"] == pytest.approx(0.31770)
    assert report["valid_submission"]


def test_the_data_directory_can_be_named_after_the_command_as_in_mle_bench(
    cli: Cli, prepared: Vector, places: Places, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    places.data_dir.rename(elsewhere)
    path = submission(prepared, "perfect.csv")
    assert cli("grade-sample", path, prepared.id).code == 3
    assert cli("grade-sample", path, prepared.id, "--data-dir", elsewhere).code == 0


def test_an_invalid_submission_is_a_result_and_says_why(cli: Cli, prepared: Vector) -> None:
    graded = cli("grade-sample", submission(prepared, "extra_column.csv"), prepared.id)
    assert graded.code == 0
    assert "valid        no: " in graded.out


def test_a_grade_tells_which_teams_it_beats_where_the_whole_leaderboard_is_known(
    cli: Cli, prepared: Vector, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = submission(prepared, "noisy.csv")
    assert "rank" not in cli("grade-sample", path, prepared.id).out
    monkeypatch.setattr(
        "mlebench_console.competitions.leaderboards.scores_of", lambda _: (0.1, 0.2, 0.4, 0.5)
    )
    assert (
        "rank         better than 50.0 % of the teams on Kaggle\n"
        in cli("grade-sample", path, prepared.id).out
    )
    assert cli("grade-sample", path, prepared.id, "--json").document()["percentile"] == 50.0


@pytest.mark.parametrize("name", ["None", "missing.csv", "submission.txt", "folder.csv", "a.txt/b.csv"])
def test_a_submission_that_is_not_there_is_a_result_as_in_mle_bench(
    cli: Cli, prepared: Vector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for other in ("submission.txt", "a.txt"):
        Path(other).write_text("id\n")
    Path("folder.csv").mkdir()
    report = cli("grade-sample", name, prepared.id, "--json").document()
    told = [report[key] for key in ("submission_exists", "valid_submission", "score", "submission_path")]
    assert told == [False, False, None, name]


def test_validate_tells_the_form_and_never_the_score(cli: Cli, prepared: Vector) -> None:
    valid = cli("validate", submission(prepared, "noisy.csv"), prepared.id)
    assert (valid.code, valid.out) == (0, "valid\n")
    assert set(cli("validate", submission(prepared, "noisy.csv"), prepared.id, "--json").document()) == {
        "competition_id",
        "valid",
        "message",
    }
    invalid = cli("validate", submission(prepared, "extra_column.csv"), prepared.id)
    assert invalid.code == 1
    assert invalid.out.startswith("not valid: ")


def test_many_submissions_become_one_report_and_none_stops_another(
    cli: Cli, prepared: Vector, tmp_path: Path
) -> None:
    lines = [
        {"competition_id": prepared.id, "submission_path": str(submission(prepared, "perfect.csv"))},
        {"competition_id": prepared.id, "submission_path": str(submission(prepared, "extra_column.csv"))},
        {"competition_id": prepared.id, "submission_path": None},
        {
            "competition_id": "leaf-classification",
            "submission_path": str(submission(prepared, "perfect.csv")),
        },
    ]
    listed = tmp_path / "submission.jsonl"
    listed.write_text("# a comment\n\n" + "\n".join(json.dumps(line) for line in lines) + "\n")
    done = cli("grade", "--submission", listed, "--output-dir", tmp_path / "out")
    assert done.code == 3
    assert "\nleaf-classification is not prepared" in done.err
    (path,) = (tmp_path / "out").glob("*-GMT_grading_report.json")
    report = json.loads(path.read_text())
    counts = ("total_runs", "total_runs_with_submissions", "total_valid_submissions", "total_gold_medals")
    assert [report[count] for count in counts] == [4, 3, 1, 1]
    reports = report["competition_reports"]
    assert all(list(one)[: len(REPORT_FIELDS)] == REPORT_FIELDS for one in reports)
    assert [one["outcome"] for one in reports] == ["scored", "rejected", "no_file", "not_prepared"]
    assert "1 rejected, 1 no file, 1 not prepared" in done.out


def test_a_run_groups_submissions_are_listed_and_graded(cli: Cli, prepared: Vector, tmp_path: Path) -> None:
    group = tmp_path / "2026-01-02T03-04-05-UTC_run-group_dummy"
    handed_in, left_none = f"{prepared.id}_1", f"{prepared.id}_2"
    (group / handed_in / "submission").mkdir(parents=True)
    (group / left_none).mkdir()
    perfect = submission(prepared, "perfect.csv").read_bytes()
    (group / handed_in / "submission" / "submission.csv").write_bytes(perfect)
    runs = {handed_in: {"success": True}, left_none: {"success": False}}
    (group / "metadata.json").write_text(
        json.dumps({"run_group": group.name, "created_at": "", "runs": runs})
    )
    listed = group / "submission.jsonl"
    made = cli("make-submission", "--metadata", group / "metadata.json", "--output", listed)
    with chdir(tmp_path):
        cli("make-submission", "--metadata", group)
    assert (tmp_path / "submission.jsonl").read_bytes() == listed.read_bytes()
    assert made.out == f"2 runs, 1 with a submission, in {listed}\n"
    report = cli("grade", "--submission", listed, "--output-dir", group, "--json").document()
    assert (report["total_runs"], report["total_gold_medals"]) == (2, 1)
    assert Path(report["report_path"]).parent == group


def test_a_line_with_an_unknown_competition_is_refused_before_any_work(cli: Cli, tmp_path: Path) -> None:
    listed = tmp_path / "submission.jsonl"
    listed.write_text('{"competition_id": "leaf-clasification", "submission_path": null}\n')
    done = cli("grade", "--submission", listed, "--output-dir", tmp_path / "out")
    assert done.code == 2
    assert "Did you mean leaf-classification" in done.err
    assert not (tmp_path / "out").exists()


def test_verifying_draws_a_bar_in_a_terminal_and_leaves_only_the_verdicts(
    cli: Cli, prepared: Vector, places: Places
) -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 300, 0, 0))
    flags = [f"--state-dir={places.state_dir}", f"--data-dir={places.data_dir}"]
    verifying = subprocess.Popen(
        [sys.executable, "-m", "mlebench_console.console", *flags, "datasets", "verify"],
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color"},
    )
    os.close(theirs)
    sent = b""
    with suppress(OSError):  # so ends a terminal of which nobody holds the other side
        while part := os.read(ours, 65536):
            sent += part
    os.close(ours)
    assert verifying.wait() == 3  # generated data are not the real ones
    assert "█".encode() in sent and b"0 of 1 done" in sent
    screen = pyte.Screen(300, 30)
    pyte.ByteStream(screen).feed(sent)
    (left,) = (line.rstrip() for line in screen.display if line.strip())
    assert left.startswith(f"{prepared.id}: unlike the known checksum: public/")
    piped = cli("datasets", "verify")
    assert (piped.out, piped.err) == ("", f"{left}\n")


def test_commands_make_a_mirror_and_an_archive_import_them_elsewhere_and_verify_them_deep(
    cli: Cli, prepared: Vector, places: Places, tmp_path: Path
) -> None:
    for made in (("mirror", tmp_path / "lab"), ("export", tmp_path / "lab.tar")):
        assert cli("datasets", *made).code == 0
    key = {"competition_id": prepared.id, "edition": "v1"}
    assert cli("datasets", "mirror", tmp_path / "lab", "--json").document()["mirrored"] == [
        {**key, "copied": False}
    ]
    there = ("--data-dir", tmp_path / "there")
    absent = cli("datasets", "import", tmp_path / "lab", "-c", "leaf-classification", *there)
    assert absent.code == 3 and f"it holds {prepared.id}" in absent.err
    (taken,) = cli("datasets", "import", tmp_path / "lab.tar", "--json", *there).document()
    assert taken == {**key, "state": "prepared", "problem": ""}
    (again,) = cli("datasets", "import", tmp_path / "lab", "--json", *there).document()
    assert again["state"] == "was there"
    folder = tmp_path / "there" / prepared.id / "prepared"
    (found,) = json.loads(cli("datasets", "verify", "--deep", "--json", *there).out)
    assert (found["missing"], found["changed"], found["unlisted"], found["deep"]) == ([], [], [], True)
    assert found["files"] == len((folder / "manifest.jsonl").read_text().splitlines()) - 1
    (folder / "public" / "description.md").unlink()
    (found,) = json.loads(cli("datasets", "verify", "--json", *there).out)
    assert found["missing"] == ["public/description.md"]


def test_what_is_prepared_already_is_compared_with_its_manifest_and_with_the_flags(
    cli: Cli, prepared: Vector, places: Places, tmp_path: Path
) -> None:
    def again(*flags: object) -> tuple[int, str]:
        done = cli("prepare", "-c", prepared.id, "--json", *flags)
        (one,) = json.loads(done.out)
        assert one["state"] == "was prepared"
        return done.code, one["problem"]

    assert again() == again("--descriptions", "ours") == (0, "")
    assert again("--descriptions", "obfuscated") == (3, "its descriptions are ours, not obfuscated")
    assert again("--keep-raw") == (3, "its raw data were not kept")
    public = places.data_dir / prepared.id / "prepared" / "public"
    table = next(public.glob("*.csv"))
    content = table.read_bytes()
    table.write_bytes(content[:-1] + b"x")
    assert again() == (0, "")
    assert f"changed since it was prepared: public/{table.name}" in again("--verify")[1]
    table.write_bytes(content)
    (public / "description.md").write_text("Another tool's.\n")
    assert again() == (3, "changed since it was prepared: public/description.md")
