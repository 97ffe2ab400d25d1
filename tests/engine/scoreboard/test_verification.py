"""Audit trails, and bundles that a sceptic can check: what was changed is named, what can't be checked is told."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.competitions.grader import grade
from mlebench_console.engine.grading.grader import report_on, request_for
from mlebench_console.engine.grading.report import standing_of
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.audit import DifferenceKind, audit_of
from mlebench_console.engine.scoreboard.export import (
    AUDIT,
    MANIFEST,
    RUNS,
    _checksums,
    snapshot_path,
    write_bundle,
)
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.engine.scoreboard.verification import BundleVerification, verify
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import runs, submissions, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import Grade, Run
from mlebench_console.state.submissions import Snapshot
from tests.engine.harness import COMPETITION
from tests.engine.scoreboard.worlds import SPEC, fail, sweep


def finish_graded(state: Database, run: Run, data_dir: Path) -> Path:
    """Let a run hand in the sample submission and be graded with it; returns the snapshot."""
    directory = f"runs/{run.id}"
    folder = state.path.parent / directory
    (folder / "snapshots").mkdir(parents=True)
    for name in (protocol.ORDER, protocol.EVENTS, protocol.EXIT):
        (folder / name).write_text(f"{name} of {run.id}")
    path = folder / "snapshots/1.csv"
    shutil.copyfile(data_dir / COMPETITION / "prepared/public/sample_submission.csv", path)
    path.write_bytes(path.read_bytes() + b"\n" * run.seed)
    attempt = transitions.launch(state, run.id, directory=directory, runtime="process", now=2.0)
    transitions.started(state, attempt.id, isolated=True, at=2.0, now=2.0)
    transitions.agent_ended(state, attempt.id, EndReason.EXITED, exit_code=0, at=3.0, now=3.0)
    transitions.collected(state, attempt.id, now=3.0)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    snapshot = Snapshot(1, 2.5, 0.5, sha256, path.stat().st_size, f"{directory}/snapshots/1.csv")
    submissions.add(state, attempt.id, snapshot)
    with state.transaction():
        submissions.set_final(state, attempt.id, 1)
    request = request_for(path, COMPETITION, data_dir=data_dir)
    report = report_on(request, grade(request))
    number = submissions.of_attempt(state, attempt.id)[0].id
    standing = standing_of(report)
    made = Grade(number, 3.0, "v1", report.score, report.valid_submission, standing, "")
    submissions.add_grade(state, made, now=3.0)
    transitions.finished(state, attempt.id, standing, now=4.0)
    return path


@pytest.fixture
def finished(state: Database, prepared_data: Path) -> list[Run]:
    """Two graded runs, and one that was lost."""
    spec = replace(SPEC, competitions=(COMPETITION,), seeds=3, data_dir=str(prepared_data))
    first, second, lost = sweep(state, "mine", spec)
    finish_graded(state, first, prepared_data)
    finish_graded(state, second, prepared_data)
    fail(state, lost, FailureClass.INFRASTRUCTURE)
    return [runs.get(state, run.id) for run in (first, second, lost)]


@pytest.fixture
def folder(state: Database, finished: list[Run], tmp_path: Path) -> Path:
    assert len(finished) == 3
    evidence = find_evidence(state, "mine")
    made = write_bundle(tmp_path / "bundle", evidence, row_of(evidence), now=1e9, state_dir=state.path.parent)
    return made.parent


def told(found: BundleVerification) -> list[str]:
    return [one.text for one in found.differences]


def sign(folder: Path) -> None:
    """Write the manifest anew, as somebody does who wants nobody to notice a change."""
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"files": _checksums(folder)}))


def test_an_audit_tells_what_led_to_an_outcome_and_is_the_same_each_time(
    state: Database, finished: list[Run]
) -> None:
    found = audit_of(state, finished[0].id)
    assert found.differences() == ()
    assert found.to_dict() == audit_of(state, finished[0].id).to_dict()
    assert found.final is not None
    assert found.final.file_sha256 == found.final.submission.sha256
    (attempt,) = found.attempts
    assert attempt.files[protocol.EXIT] == hashlib.sha256(b"exit.json of 1").hexdigest()
    assert len(found.dataset.answers_sha256) == 64
    assert [event.kind for event in found.events][-1] == "run.finished"
    text = json.dumps(found.to_dict())
    assert str(state.path.parent) not in text


def test_an_audit_names_a_submission_that_is_not_what_was_handed_in_and_files_that_are_gone(
    state: Database, finished: list[Run]
) -> None:
    place = state.path.parent / "runs/1"
    (place / "snapshots/1.csv").write_text("changed")
    (place / protocol.EXIT).unlink()
    missing, changed = audit_of(state, finished[0].id).differences()
    assert (missing.kind, missing.file) == (DifferenceKind.FILE_MISSING, protocol.EXIT)
    assert missing.text == "attempt 1 has no exit.json"
    assert (changed.kind, changed.field) == (DifferenceKind.FILE_CHANGED, "sha256")
    assert changed.text == "submission 1 of attempt 1 is not the file that was submitted"
    assert changed.ours == hashlib.sha256(b"changed").hexdigest() != changed.theirs


def test_a_bundle_as_it_was_written_is_verified_with_every_score_computed_anew(
    folder: Path, prepared_data: Path
) -> None:
    found = verify(folder, prepared_data, at_once=2)
    assert (found.scores, found.unchecked, found.differences) == (2, (), ())
    assert not [path for path in folder.rglob("*") if "private" in str(path)]


def test_a_score_that_does_not_follow_from_its_submission_is_named_however_well_it_is_signed(
    folder: Path, prepared_data: Path
) -> None:
    path = sorted((folder / AUDIT).glob("*.json"))[0]
    audit = json.loads(path.read_text())
    for record in (audit["run"], audit["attempts"][0]["submissions"][0]["submission"]):
        record |= {"score": 0.99, "standing": "gold"}
    audit["run"]["outcome"] = "gold"
    path.write_text(json.dumps(audit))
    sign(folder)
    differences = verify(folder, prepared_data).differences
    (score,) = (one for one in differences if one.kind is DifferenceKind.SCORE)
    assert (score.run, score.field, score.theirs) == ("mine/spaceship-titanic/1", "score", (0.99, "gold"))
    assert any("does not follow from its audited runs" in one.text for one in differences)


def test_a_row_that_does_not_follow_from_its_reports_is_named(folder: Path, prepared_data: Path) -> None:
    row = json.loads((folder / "row.json").read_text())
    row["columns"]["own"]["measures"]["any_medal"]["mean"] += 1
    (folder / "row.json").write_text(json.dumps(row))
    assert "row.json is missing, changed or not listed" in told(verify(folder, prepared_data))
    sign(folder)
    found = verify(folder, prepared_data)
    assert "the row's column 'own' does not follow from its reports" in told(found)
    assert {(one.kind, one.file, one.field) for one in found.differences} == {
        (DifferenceKind.ROW, "row.json", "own")
    }


def test_what_can_not_be_checked_is_told_with_the_reason(folder: Path, tmp_path: Path) -> None:
    found = verify(folder, tmp_path / "nothing")
    assert (found.scores, found.differences) == (0, ())
    assert {why for _, why in found.unchecked} == {
        f"{COMPETITION} is not prepared on this machine in edition v1"
    }
    for path in (folder / Path(snapshot_path("x")).parent).iterdir():
        path.unlink()
    sign(folder)
    assert {why for _, why in verify(folder, tmp_path).unchecked} == {"its submission is not in the bundle"}
    shutil.rmtree(folder / AUDIT)
    sign(folder)
    assert verify(folder, tmp_path).unchecked[0][0] == "scores"
    shutil.rmtree(folder / RUNS)
    (folder / MANIFEST).unlink()
    with pytest.raises(DataProblem, match="is not a bundle"):
        verify(folder, tmp_path)
