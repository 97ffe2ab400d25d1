from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import ProblemRecord, StateProblem, UsageProblem
from mlebench_console.state import datasets, events, experiments, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.datasets import Progress
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import Attempt, DatasetState, Grade, PreparationOptions, StepState
from mlebench_console.state.submissions import Snapshot
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage.samples import Samples
from tests.state.worlds import create_sweep


def _run(database: Database) -> Attempt:
    attempt = transitions.launch(database, 1, directory="d1", runtime="process", now=2)
    transitions.started(database, attempt.id, isolated=False, at=3, now=3)
    return attempt


def test_the_first_seed_of_every_competition_comes_before_any_second_seed(swept: Database) -> None:
    queued = runs.of_sweep(swept, "dummy-1")
    assert [(run.competition_id, run.seed) for run in queued] == [
        ("alpha", 1),
        ("beta", 1),
        ("alpha", 2),
        ("beta", 2),
    ]


def test_a_sweep_is_found_by_an_unambiguous_beginning(swept: Database) -> None:
    create_sweep(swept, "dummy-2")
    create_sweep(swept, "other-1")
    assert sweeps.get(swept, "oth").id == "other-1"
    with pytest.raises(UsageProblem, match="could be several"):
        sweeps.get(swept, "dum")
    with pytest.raises(UsageProblem, match="no sweep 'x'"):
        sweeps.get(swept, "x")


def test_a_name_is_given_to_one_sweep_only(swept: Database) -> None:
    with pytest.raises(UsageProblem, match="already a sweep"):
        create_sweep(swept)
    assert len(runs.of_all_sweeps(swept)) == 4


def test_a_paused_sweep_says_so_once(swept: Database) -> None:
    sweeps.set_state(swept, "dummy-1", SweepState.PAUSED, now=2)
    sweeps.set_state(swept, "dummy-1", SweepState.PAUSED, now=3)
    assert sweeps.get(swept, "dummy-1").state is SweepState.PAUSED
    assert len(swept.rows("SELECT 1 FROM events WHERE kind = 'sweep.paused'")) == 1


def test_an_older_attempt_can_no_longer_change_its_run(swept: Database) -> None:
    first = _run(swept)
    transitions.failed(swept, first.id, Failure(FailureClass.INFRASTRUCTURE, "gpu lost"), now=4)
    transitions.requeued(swept, 1, by="test", now=5)
    transitions.launch(swept, 1, directory="d2", runtime="process", now=6)
    with pytest.raises(StateProblem, match="not the latest"):
        transitions.agent_ended(swept, first.id, EndReason.EXITED, exit_code=0, at=7, now=7)
    assert runs.get(swept, 1).state is RunState.STARTING


def test_relaunching_an_infrastructure_failure_is_no_reroll_but_a_crash_is(swept: Database) -> None:
    attempt = _run(swept)
    transitions.failed(swept, attempt.id, Failure(FailureClass.INFRASTRUCTURE, "gpu lost"), now=4)
    assert not transitions.is_reroll(runs.get(swept, 1))
    transitions.requeued(swept, 1, by="test", now=5)
    assert runs.get(swept, 1).rerolls == 0
    again = transitions.launch(swept, 1, directory="d2", runtime="process", now=6)
    transitions.failed(swept, again.id, Failure(FailureClass.CRASH, "boom"), now=7)
    transitions.requeued(swept, 1, by="test", now=8)
    assert runs.get(swept, 1).rerolls == 1
    assert transitions.launch(swept, 1, directory="d3", runtime="process", now=9).reroll


def test_a_reroll_that_is_stopped_before_it_starts_is_not_counted_again(swept: Database) -> None:
    attempt = _run(swept)
    transitions.failed(swept, attempt.id, Failure(FailureClass.CRASH, "boom"), now=4)
    transitions.requeued(swept, 1, by="test", now=5)
    transitions.stopped(swept, 1, by="test", now=6)
    assert not transitions.is_reroll(runs.get(swept, 1))
    transitions.requeued(swept, 1, by="test", now=7)
    assert runs.get(swept, 1).rerolls == 1
    again = transitions.launch(swept, 1, directory="d2", runtime="process", now=8)
    transitions.stopped(swept, 1, by="test", now=9)
    assert again.reroll and transitions.is_reroll(runs.get(swept, 1))


def test_a_failure_class_can_be_corrected_by_hand_and_keeps_its_evidence(swept: Database) -> None:
    attempt = _run(swept)
    transitions.failed(swept, attempt.id, Failure(FailureClass.CRASH, "exit 1", "last lines"), now=4)
    transitions.classified(swept, 1, FailureClass.INFRASTRUCTURE, note="host rebooted", by="ann", now=5)
    corrected = runs.attempts(swept, 1)[0]
    assert (corrected.failure_class, corrected.failure_text) == (FailureClass.INFRASTRUCTURE, "host rebooted")
    assert (corrected.evidence, corrected.classified_by) == ("last lines", "ann")
    with pytest.raises(StateProblem, match="not failed"):
        transitions.classified(swept, 2, FailureClass.CRASH, note="", by="ann", now=6)


def test_only_the_newest_snapshot_of_a_live_run_waits_for_its_grade(swept: Database) -> None:
    attempt = _run(swept)
    for sequence in (1, 2):
        submissions.add(swept, attempt.id, Snapshot(sequence, 4, 1, f"{sequence}", 10, f"{sequence}.csv"))
    assert [found.sequence for found in submissions.ungraded(swept)] == [2]
    assert runs.get(swept, 1).submissions == 2


def test_a_late_grade_of_an_earlier_snapshot_does_not_change_where_the_run_stands(swept: Database) -> None:
    attempt = _run(swept)
    for sequence in (1, 2):
        submissions.add(swept, attempt.id, Snapshot(sequence, 4, 1, f"{sequence}", 10, f"{sequence}.csv"))
    first, second = submissions.of_attempt(swept, attempt.id)
    submissions.add_grade(swept, Grade(second.id, 5, "v1", 0.9, True, Outcome.GOLD, "valid"), now=5)
    submissions.add_grade(swept, Grade(first.id, 6, "v1", 0.1, True, Outcome.BELOW_MEDIAN, "valid"), now=6)
    run = runs.get(swept, 1)
    assert (run.standing, run.score, run.valid) == (Outcome.GOLD, 0.9, True)


def test_whether_an_attempt_has_an_event_is_known_without_those_of_all_others(swept: Database) -> None:
    attempt = _run(swept)

    def steps() -> int:
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        swept._connection.set_progress_handler(count, 1)
        assert not events.has(swept, attempt, EventKind.RUN_FOREIGN)
        assert events.has(swept, attempt, EventKind.RUN_STARTING)
        swept._connection.set_progress_handler(None, 1)
        return counted

    few = steps()
    with swept.transaction():
        for _ in range(2000):
            events.append(swept, 1.0, EventKind.ENGINE_STARTED, "of no run")
    assert steps() == few
    assert not events.has(swept, attempt, EventKind.ENGINE_STARTED)


def test_a_dataset_that_is_asked_for_again_starts_with_fresh_steps(database: Database) -> None:
    steps = ("download", "prepare")
    datasets.request(database, "alpha", "v1", steps=steps, options=PreparationOptions(), now=1)
    datasets.set_step(database, "alpha", "v1", "download", Progress(StepState.WORKING, 5, 10, "bytes"), now=2)
    datasets.set_step(database, "alpha", "v1", "download", Progress(StepState.DONE, 10, 10, "bytes"), now=3)
    download = datasets.steps(database, "alpha", "v1")[0]
    assert (download.started_at, download.ended_at, download.done) == (2, 3, 10)
    datasets.set_state(
        database, "alpha", "v1", DatasetState.FAILED, problem=ProblemRecord("data", "403"), now=4
    )
    datasets.request(database, "alpha", "v1", steps=steps, options=PreparationOptions(), now=5)
    found = datasets.find(database, "alpha", "v1")
    assert found is not None
    assert (found.state, found.problem_text) == (DatasetState.WAITING, "")
    assert {step.state for step in datasets.all_steps(database)} == {StepState.WAITING}


def test_editions_of_a_dataset_are_kept_apart(database: Database) -> None:
    datasets.set_state(database, "alpha", "v1", DatasetState.PREPARED, now=1, bytes_on_disk=10)
    datasets.set_state(
        database, "alpha", "corrected", DatasetState.FAILED, now=2, problem=ProblemRecord("data", "excluded")
    )
    assert [(found.edition, found.state) for found in datasets.all_datasets(database)] == [
        ("corrected", DatasetState.FAILED),
        ("v1", DatasetState.PREPARED),
    ]
    assert [found.edition for found in datasets.in_state(database, DatasetState.PREPARED)] == ["v1"]


def test_an_experiment_gathers_sweeps_in_the_order_of_assignment(swept: Database) -> None:
    create_sweep(swept, "dummy-2")
    for sweep in ("dummy-2", "dummy-1", "dummy-2"):
        experiments.assign(swept, "row", sweep, now=3)
    assert [found.sweep_ids for found in experiments.all_experiments(swept)] == [("dummy-2", "dummy-1")]


def test_samples_are_kept_once_and_read_back_in_order(tmp_path: Path) -> None:
    samples = Samples(tmp_path, writable=True)
    batch = [UsageSample(at, 50.0, 1000, None, 3) for at in (2.0, 1.0, 3.0)]
    samples.add(1, batch)
    samples.add(1, batch)
    reader = Samples(tmp_path, writable=False)
    assert [sample.at for sample in reader.of_attempt(1, since=1.0)] == [2.0, 3.0]
    assert reader.latest()[1].at == 3.0
    reader.close()
    samples.close()
