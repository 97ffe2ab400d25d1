"""An action says what it applies to, what is asked first and which requests are filed; nothing is drawn or filed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.console.actions import dataset as dataset_actions
from mlebench_console.console.actions import run as run_actions
from mlebench_console.console.actions.action import Action, Affected, NotApplicable, Question
from mlebench_console.console.nouns.dataset import DatasetRow
from mlebench_console.console.roles import Drawing
from mlebench_console.console.screens.dialogs import question_block
from mlebench_console.console.tui.widgets.blocks import laid_out
from mlebench_console.engine.requests import (
    AnnotateSweep,
    ChosenRun,
    ClassifyRuns,
    LaunchSweep,
    NewResults,
    PrepareDatasets,
    PruneDatasets,
    RecordIntegrity,
    RelaunchRuns,
    Request,
    RunsRequest,
    SetBudget,
    SetPriority,
    StopBuild,
    StopDatasets,
    VerifyDatasets,
    file_request,
    read_request,
)
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import database, requests
from mlebench_console.state.annotations import Annotation
from mlebench_console.state.integrity import Layer
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import Dataset, DatasetState, Run, VerificationKind
from mlebench_console.state.usage.budgets import BudgetScope
from tests.conditions import spec_of

QUEUED = Run(
    id=1, sweep_id="s", competition_id="leaf-classification", seed=2, state=RunState.QUEUED, outcome=None,
    failure_class=None, failure_text="", standing=None, score=None, valid=None, attempts=0, rerolls=0,
    queued_at=0.0, started_at=None, ended_at=None, last_activity_at=None, submissions=0, position=0,
)  # fmt: skip
RUNNING = replace(QUEUED, id=2, state=RunState.RUNNING, attempts=1, last_activity_at=1.0)
GRADING = replace(QUEUED, id=3, state=RunState.GRADING, attempts=1, last_activity_at=1.0)
LOST = replace(
    QUEUED,
    id=4,
    state=RunState.FAILED,
    failure_class=FailureClass.INFRASTRUCTURE,
    attempts=1,
    last_activity_at=1.0,
)
CRASHED = replace(
    QUEUED, id=5, state=RunState.FAILED, failure_class=FailureClass.CRASH, attempts=1, last_activity_at=1.0
)
FINISHED = replace(
    QUEUED, id=6, state=RunState.FINISHED, outcome=Outcome.NO_SUBMISSION, attempts=1, last_activity_at=1.0
)
ALL = (QUEUED, RUNNING, GRADING, LOST, CRASHED, FINISHED)


def run_ids(action: Action) -> list[int]:
    (request,) = action.requests
    assert isinstance(request, RunsRequest)
    return [run.id for run in request.runs]


def test_only_runs_that_have_ended_are_relaunched_and_a_re_roll_warns() -> None:
    action = run_actions.relaunch(ALL)
    assert (action.requests[0].kind, run_ids(action)) == ("run.relaunch", [4, 5, 6])
    assert action.question is not None and action.question.warns
    free, rerolled = action.question.affected
    assert not free.is_warning and len(free.items) == 1
    assert "leaf-classification seed 2, no submission" in rerolled.in_words()
    lost = run_actions.relaunch([LOST], limits={LOST.sweep_id: 24 * 3600.0})
    assert lost.question is not None and not lost.question.warns and lost.free_part is None
    assert [part.note for part in lost.question.affected][1:] == ["It takes up to 24h."]
    # Of a mixed choice, what is free can be had alone.
    assert action.free_part is not None and run_ids(action.free_part) == [4]


def test_a_question_names_the_sweeps_of_runs_of_several_and_says_what_they_have_in_common_once() -> None:
    other = replace(LOST, id=7, sweep_id="other")
    assert run_actions.relaunch([LOST, other]).question == Question(
        "Relaunch 2 runs?",
        "yes, relaunch",
        (
            Affected(
                "2 runs lost to infrastructure",
                (
                    (LOST.competition_id, f"seed {LOST.seed}, {LOST.sweep_id}"),
                    (LOST.competition_id, "seed 2, other"),
                ),
                "Free: launching again changes no statistics.",
            ),
        ),
    )
    never = replace(LOST, id=8, state=RunState.STOPPED, failure_class=None, last_activity_at=None)
    for chosen, heading in (
        ([never], "1 run never started"),
        ([LOST, never], "2 runs lost to infrastructure or never started"),
    ):
        asked = run_actions.relaunch(chosen).question
        assert asked is not None and asked.affected[0].heading == heading


def test_only_queued_and_live_runs_are_stopped() -> None:
    action = run_actions.stop(ALL)
    assert (action.requests[0].kind, run_ids(action)) == ("run.stop", [1, 2])
    assert action.question is not None and action.question.affected[0].heading == "1 running, 1 queued"
    asked = run_actions.stop([replace(RUNNING, started_at=1.0)], now=18.0).question
    assert asked is not None and asked.affected[0].items[0][1] == "seed 2, running 17s"


def test_only_runs_whose_grading_has_failed_are_graded_again() -> None:
    waiting = replace(GRADING, grading_problem="its grader was killed")
    action = run_actions.regrade([*ALL, waiting])
    assert action.question is None
    assert (action.requests[0].kind, run_ids(action)) == ("run.regrade", [3])
    with pytest.raises(NotApplicable, match="run 6 can't be graded again"):
        run_actions.regrade([FINISHED], all_or_none=True)


def test_only_failed_runs_are_classified() -> None:
    question, failed = run_actions.classify_question(ALL)
    assert failed == (LOST, CRASHED) and "2 runs" in question.title
    action = run_actions.classify(failed, FailureClass.DISK, "full")
    assert run_ids(action) == [4, 5]
    (request,) = action.requests
    assert isinstance(request, ClassifyRuns)
    assert (request.failure_class, request.note) == (FailureClass.DISK, "full")


def test_a_request_about_runs_names_the_attempts_that_were_shown() -> None:
    (request,) = run_actions.relaunch([LOST, CRASHED]).requests
    seen = (ChosenRun(4, attempt=1, reroll=False), ChosenRun(5, attempt=1, reroll=True))
    assert request == RelaunchRuns(runs=seen)


@pytest.mark.parametrize("plan", [run_actions.relaunch, run_actions.stop, run_actions.classify_question])
def test_what_applies_to_nothing_is_refused(plan: object) -> None:
    assert callable(plan)
    with pytest.raises(NotApplicable, match="only runs that"):
        plan([GRADING])


def test_named_runs_are_all_changed_or_none_is() -> None:
    with pytest.raises(NotApplicable, match="run 2 can't be relaunched: it is running"):
        run_actions.relaunch([LOST, RUNNING], all_or_none=True)
    with pytest.raises(NotApplicable, match="run 6 can't be stopped: it is finished"):
        run_actions.stop([RUNNING, FINISHED], all_or_none=True)
    with pytest.raises(NotApplicable, match="run 6 can't be classified"):
        run_actions.classify([FINISHED], FailureClass.CRASH, "")


def drawn(question: Question, width: int) -> list[str]:
    lines = laid_out([question_block(question, room=30)], Drawing(0.0, width=width))
    return ["".join(text for text, _role in line.pieces) for line in lines]


@pytest.mark.parametrize("width", [30, 66, 174])
def test_a_question_fits_the_screen_and_counts_what_it_does_not_list(width: int) -> None:
    many = [replace(LOST, id=number, competition_id="x" * 56) for number in range(20)]
    question = run_actions.relaunch(many).question
    assert question is not None
    lines = drawn(question, width)
    assert "  and 12 more" in lines
    assert len(lines) <= 30
    assert max(map(len, lines)) <= width


def test_a_question_keeps_names_readable_beside_long_details() -> None:
    run = replace(LOST, competition_id="leaf-classification", failure_class=FailureClass.CRASH)
    question = run_actions.relaunch([replace(run, suspected=ProblemCode.PROVIDER_AWAY)]).question
    assert question is not None
    lines = drawn(question, 66)
    assert lines[1].startswith("  leaf-classification  seed ")


@pytest.mark.parametrize(
    "request_",
    [
        LaunchSweep(spec=spec_of("dummy", "", ("leaf-classification",), 2, 60.0), name="s", priority=-1),
        SetPriority(sweep_id="s", value=-1),
        AnnotateSweep(sweep_id="s", change=Annotation(None, ("night",))),
        SetBudget(scope=BudgetScope.EXPERIMENT, name="row", limits=Budget(usd=2.5)),
        RelaunchRuns(runs=(ChosenRun(4, 1, reroll=True),)),
        ClassifyRuns(runs=(ChosenRun(4, 1),), failure_class=FailureClass.DISK),
        VerifyDatasets(competition_ids=("leaf-classification",), verification=VerificationKind.DEEP),
        RecordIntegrity(results=(NewResults(3, Layer.FACTS),)),
        StopBuild(),
    ],
    ids=lambda request: request.kind,
)
def test_the_engine_reads_the_request_that_was_filed(request_: Request, tmp_path: Path) -> None:
    state = database.open_for_writing(tmp_path)
    file_request(state, request_, author="me", now=1.0)
    (filed,) = requests.open_requests(state, now=2.0)
    state.close()
    assert read_request(filed.kind, filed.arguments) == request_


def row(competition_id: str, state: DatasetState, edition: str = "v1") -> DatasetRow:
    dataset = Dataset(competition_id, edition, state)
    return DatasetRow(competition_id, edition, dataset)


def test_datasets_are_asked_for_once_for_each_edition() -> None:
    chosen = [
        row("leaf-classification", DatasetState.ABSENT),
        row("leaf-classification", DatasetState.FAILED, "corrected"),
        row("dog-breed-identification", DatasetState.WAITING),
    ]
    assert dataset_actions.prepare(chosen).requests == (
        PrepareDatasets(competition_ids=("leaf-classification",)),
        PrepareDatasets(competition_ids=("leaf-classification",), edition="corrected"),
    )
    assert dataset_actions.stop(chosen).requests == (
        StopDatasets(competition_ids=("dog-breed-identification",)),
    )
    with pytest.raises(NotApplicable, match="none of these is prepared"):
        dataset_actions.verify(chosen)


def test_pruning_lists_what_lies_on_the_disk_largest_first_and_warns_of_prepared_data(tmp_path: Path) -> None:
    folder = tmp_path / "leaf-classification"
    (folder / "prepared" / "public").mkdir(parents=True)
    (folder / "prepared" / "public" / "train.csv").write_bytes(bytes(9_000_000))
    (folder / "leaf-classification.zip").write_bytes(bytes(2_000_000))
    assert registry.get("leaf-classification").id == folder.name
    chosen = [row("leaf-classification", DatasetState.PREPARED)]
    leftovers = dataset_actions.prune(chosen, tmp_path, everything=False)
    assert leftovers.requests == (PruneDatasets(competition_ids=("leaf-classification",), parts=("zip",)),)
    assert leftovers.question is not None and not leftovers.question.warns
    everything = dataset_actions.prune(chosen, tmp_path, everything=True)
    assert everything.question is not None and everything.question.warns
    assert [name.split()[0] for _id, name in everything.question.affected[0].items] == ["prepared", "zip"]
    with pytest.raises(NotApplicable, match="nothing to remove"):
        dataset_actions.prune([row("leaf-classification", DatasetState.WORKING)], tmp_path, everything=True)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("sweep.priority", {"sweep_id": "s", "value": 10**19}),
        ("sweep.concurrency", {"sweep_id": "s", "value": 10**19}),
        ("budget.set", {"scope": "sweep", "name": "s", "limits": {"usd": math.nan}}),
        ("budget.set", {"scope": "sweep", "name": "s", "limits": {"calls": 10**19}}),
        ("cause.acknowledge", {"key": "k", "reason": "r", "text": "t", "seconds": math.inf}),
    ],
)
def test_numbers_that_the_state_cannot_store_are_refused(kind: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageProblem, match="is not a number of at most 18 digits"):
        read_request(kind, arguments)
