"""Our own runs, exported as a run group, graded by `grade` and imported again, have one and the same grades."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.control import RefusedRequest
from mlebench_console.engine.grading.batch import grade_many
from mlebench_console.engine.requests import ImportSweep, RelaunchRuns
from mlebench_console.engine.rungroups import find_groups, read_submissions, submissions_of, write_submissions
from mlebench_console.engine.scoreboard.export import write_runs
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.engine.sweeps.imports import ARRIVING, agent_of_group, staged
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import database
from mlebench_console.state.lifecycle import Outcome, RunState
from mlebench_console.state.records import IMPORTED
from tests.engine.harness import COMPETITION, SUBMIT, Harness, eventually, shown

AS_THE_SEED_SAYS = (
    f'if [ "$SEED" = 1 ]; then {SUBMIT}; elif [ "$SEED" = 2 ]; then'
    """ sed '2,$s/False/True/' "$DATA_DIR/sample_submission.csv" > "$SUBMISSION_DIR/submission.csv";"""
    ' elif [ "$SEED" = 3 ]; then echo nonsense > "$SUBMISSION_DIR/submission.csv"; fi; echo code > "$CODE_DIR/train.py"'
)


def exported(harness: Harness, sweep_id: str, folder: Path) -> None:
    state = database.open_for_reading(harness.places.state_dir)
    try:
        evidence = find_evidence(state, sweep_id)
        write_runs(folder, evidence, pad_missing=False, now=1e9, with_files=True)
    finally:
        state.close()


def test_export_grade_and_import_agree(harness: Harness, tmp_path: Path) -> None:
    harness.agent("seeded", AS_THE_SEED_SAYS)
    harness.start()
    sweep_id = harness.launch("seeded", seeds=4, runtime="plain")
    own = {run.seed: (run.outcome, run.score) for run in harness.ended()}
    assert [own[seed][0] for seed in (3, 4)] == [Outcome.INVALID, Outcome.NO_SUBMISSION]
    assert own[1][1] != own[2][1]

    groups = tmp_path / "runs"
    exported(harness, sweep_id, groups)
    lines = [line for group in find_groups(groups) for line in submissions_of(group)]
    write_submissions(tmp_path / "submission.jsonl", lines)
    reports = grade_many(read_submissions(tmp_path / "submission.jsonl"), data_dir=harness.places.data_dir)
    assert [report.score for report in reports] == [own[seed][1] for seed in (1, 2, 3, 4)]

    with staged(harness.places, groups) as (place, found):
        assert [(run.competition_id, run.seed) for run in found] == [(COMPETITION, seed) for seed in own]
        harness.ask(ImportSweep(place=place, name="again", agent_id=agent_of_group(groups)))
    eventually(lambda: all(run.has_ended for run in harness.runs()))
    imported = [run for run in harness.runs() if run.sweep_id == "again"]
    assert {run.seed: (run.outcome, run.score) for run in imported} == own
    assert all(run.state is RunState.FINISHED for run in imported)
    assert [harness.attempts(run)[0].runtime for run in imported] == [IMPORTED] * 4
    assert (harness.folder(imported[0]) / "code" / "train.py").read_text() == "code\n"
    assert not list((harness.places.state_dir / ARRIVING).iterdir())
    with pytest.raises(RefusedRequest, match="it was imported"):
        harness.ask(RelaunchRuns(runs=shown(imported[0])))


def test_what_can_not_be_graded_is_not_imported_and_leaves_nothing(harness: Harness, tmp_path: Path) -> None:
    run_id = "leaf-classification_11111111-2222-4333-8444-555555555555"
    folder = tmp_path / "2024-10-08T01-00-00-GMT_run-group_aide" / run_id / "submission"
    folder.mkdir(parents=True)
    (folder / "submission.csv").write_text("id\n")
    metadata = {"run_group": "g", "created_at": "", "runs": {run_id: {"success": True}}}
    (folder.parent.parent / "metadata.json").write_text(json.dumps(metadata))
    harness.start()
    with (
        pytest.raises(RefusedRequest, match="leaf-classification is not prepared"),
        staged(harness.places, folder.parent.parent) as (place, _),
    ):
        harness.ask(ImportSweep(place=place, name="again", agent_id="aide"))
    assert harness.runs() == []
    assert not list((harness.places.state_dir / ARRIVING).iterdir())
    with pytest.raises(DataProblem, match="has no run group"), staged(harness.places, tmp_path / "none"):
        pass


def test_a_submission_that_git_lfs_has_not_fetched_is_not_taken_for_what_the_agent_left(
    harness: Harness, tmp_path: Path
) -> None:
    folder = tmp_path / "g" / f"{COMPETITION}_1" / "submission"
    folder.mkdir(parents=True)
    (folder / "submission.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\n")
    (tmp_path / "g" / "metadata.json").write_text(json.dumps({"runs": {f"{COMPETITION}_1": {}}}))
    with (
        pytest.raises(DataProblem, match=f"{folder}/submission.csv is a Git LFS pointer"),
        staged(harness.places, tmp_path / "g"),
    ):
        pass
    assert not list((harness.places.state_dir / ARRIVING).iterdir())


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system than the state's."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def test_what_is_imported_comes_to_where_runs_lie_also_on_another_file_system(
    harness: Harness, tmp_path: Path, elsewhere: Path
) -> None:
    config = harness.places.config_file
    config.write_text(
        f'{config.read_text() if config.exists() else ""}\n[places]\nruns_dir = "{elsewhere}"\n'
    )
    (harness.places.state_dir / ARRIVING).mkdir(parents=True)  # as earlier versions have left it
    code = tmp_path / "g" / f"{COMPETITION}_1" / "code"
    code.mkdir(parents=True)
    (code / "train.py").write_text("code\n")
    (tmp_path / "g" / "metadata.json").write_text(json.dumps({"runs": {f"{COMPETITION}_1": {}}}))
    with staged(harness.places, tmp_path / "g") as (place, _):
        harness.start()
        harness.ask(ImportSweep(place=place, name="again", agent_id="aide"))
    (run,) = harness.runs()
    eventually(lambda: (harness.folder(run) / "code" / "train.py").exists())
    assert harness.folder(run).resolve().is_relative_to(elsewhere)
    assert not list((harness.places.state_dir / ARRIVING).iterdir())
    assert not list(harness.places.state_dir.glob("*import*lock"))


def test_an_import_that_was_killed_while_it_copied_leaves_nothing(harness: Harness) -> None:
    left = harness.places.state_dir / ARRIVING / "abc"
    (left / "runs").mkdir(parents=True)
    harness.start()
    eventually(lambda: not left.exists())
