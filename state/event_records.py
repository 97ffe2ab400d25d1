"""The record of an event, the kinds of events, and the data of those with which programs compute.

Programs decide by an event's kind and compute with its data; its text is for people. Reading and writing is in
`state.events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, dataclass_transform

from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.state.lifecycle import MEDALS, FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import DatasetState


class EventSeverity(StrEnum):
    """How much an event matters to an operator."""

    ERROR = "error"
    WARNING = "warning"
    GOOD = "good"
    NOTE = "note"


class EventKind(StrEnum):
    """What happened, as `subject.what`.

    Attributes:
        severity: of all events of this kind, but for `run.finished`, where the outcome decides.
        is_routine: whether it only tells how work goes on, not that something came of it.
    """

    severity: EventSeverity
    is_routine: bool

    def __new__(
        cls, code: str, severity: EventSeverity = EventSeverity.NOTE, is_routine: bool = False
    ) -> Self:
        """Make a member of its code and what is true of all events of the kind."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.severity = severity
        member.is_routine = is_routine
        return member

    ENGINE_STARTED = "engine.started"
    SAMPLES_DAMAGED = "samples.damaged", EventSeverity.ERROR

    KAGGLE_UNREACHABLE = "kaggle.unreachable", EventSeverity.ERROR
    KAGGLE_ANSWERS = "kaggle.answers", EventSeverity.GOOD
    PROVIDER_OUTAGE = "provider.outage", EventSeverity.ERROR
    PROVIDER_WORKS = "provider.works", EventSeverity.GOOD

    SWEEP_CREATED = "sweep.created"
    SWEEP_ACTIVE = "sweep.active"
    SWEEP_PAUSED = "sweep.paused", EventSeverity.WARNING
    SWEEP_STOPPED = "sweep.stopped", EventSeverity.WARNING
    SWEEP_CONCURRENCY = "sweep.concurrency"
    SWEEP_PRIORITY = "sweep.priority"
    SWEEP_ANNOTATED = "sweep.annotated"
    SWEEP_REMOVED = "sweep.removed"
    SWEEP_REMAINS = "sweep.remains", EventSeverity.WARNING
    SWEEP_BUDGET = "sweep.budget"
    SWEEP_BUDGET_WARNING = "sweep.budget_warning", EventSeverity.WARNING
    SWEEP_BUDGET_USED_UP = "sweep.budget_used_up", EventSeverity.ERROR

    EXPERIMENT_ASSIGNED = "experiment.assigned"
    EXPERIMENT_BUDGET = "experiment.budget"
    EXPERIMENT_BUDGET_WARNING = "experiment.budget_warning", EventSeverity.WARNING
    EXPERIMENT_BUDGET_USED_UP = "experiment.budget_used_up", EventSeverity.ERROR

    RUN_QUEUED = "run.queued", EventSeverity.NOTE, True
    RUN_STARTING = "run.starting", EventSeverity.NOTE, True
    RUN_RUNNING = "run.running", EventSeverity.NOTE, True
    RUN_COLLECTING = "run.collecting", EventSeverity.NOTE, True
    RUN_GRADING = "run.grading", EventSeverity.NOTE, True
    RUN_FINISHED = "run.finished"
    RUN_FAILED = "run.failed", EventSeverity.ERROR
    RUN_STOPPED = "run.stopped", EventSeverity.WARNING
    RUN_STOP_REQUESTED = "run.stop_requested"
    RUN_CLASSIFIED = "run.classified"
    RUN_REGRADE_REQUESTED = "run.regrade_requested"
    RUN_ANNOTATED = "run.annotated"
    RUN_FOREIGN = "run.foreign", EventSeverity.ERROR
    RUN_STAGED = "run.staged", EventSeverity.NOTE, True
    RUN_SERVICE = "run.service", EventSeverity.WARNING
    RUN_UNSEARCHED = "run.unsearched", EventSeverity.WARNING
    RUN_UNMEASURED = "run.unmeasured", EventSeverity.WARNING
    RUN_UNREMOVED = "run.unremoved", EventSeverity.WARNING
    RUN_CODE_NOT_KEPT = "run.code_not_kept", EventSeverity.WARNING
    RUN_PROVIDER = "run.provider", EventSeverity.WARNING
    RUN_BUDGET = "run.budget", EventSeverity.WARNING
    RUN_BUDGET_USED_UP = "run.budget_used_up", EventSeverity.WARNING
    RUN_SHARED_BUDGET_USED_UP = "run.shared_budget_used_up", EventSeverity.WARNING

    SUBMISSION_GRADED = "submission.graded"
    SUBMISSION_REFUSED = "submission.refused", EventSeverity.WARNING
    GRADING_FAILED = "grading.failed", EventSeverity.ERROR
    GRADING_WORKS = "grading.works", EventSeverity.GOOD
    INTEGRITY_REVIEWED = "integrity.reviewed"

    CAUSE_ACKNOWLEDGED = "cause.acknowledged"
    CAUSE_SNOOZED = "cause.snoozed"
    CAUSE_TAKEN_BACK = "cause.taken_back"

    DATASET_REQUESTED = "dataset.requested", EventSeverity.NOTE, True
    DATASET_ABSENT = "dataset.absent"
    DATASET_WAITING = "dataset.waiting"
    DATASET_WORKING = "dataset.working", EventSeverity.NOTE, True
    DATASET_PREPARED = "dataset.prepared", EventSeverity.GOOD
    DATASET_FOUND = "dataset.found"
    DATASET_FAILED = "dataset.failed", EventSeverity.ERROR
    DATASET_REFUSED = "dataset.refused", EventSeverity.WARNING
    DATASET_UNAVAILABLE = "dataset.unavailable", EventSeverity.WARNING
    DATASET_VERIFIED = "dataset.verified", EventSeverity.GOOD
    DATASET_PRUNED = "dataset.pruned"
    DATASET_LEFTOVER = "dataset.leftover", EventSeverity.WARNING

    @classmethod
    def of_run(cls, state: RunState) -> EventKind:
        """Return the kind of event with which a run gets into a state."""
        return cls(f"run.{state}")

    @classmethod
    def of_sweep(cls, state: SweepState) -> EventKind:
        """Return the kind of event with which a sweep gets into a state."""
        return cls(f"sweep.{state}")

    @classmethod
    def of_dataset(cls, state: DatasetState) -> EventKind:
        """Return the kind of event with which a dataset gets into a state."""
        return cls(f"dataset.{state}")


# The last event of an attempt's beginning, or of its end, which tells the result, and the events before it.
STEPS: Mapping[str, frozenset[EventKind]] = {
    EventKind.RUN_RUNNING: frozenset({EventKind.RUN_STARTING}),
    **dict.fromkeys(
        (EventKind.RUN_FINISHED, EventKind.RUN_FAILED, EventKind.RUN_STOPPED),
        frozenset({EventKind.RUN_COLLECTING, EventKind.RUN_GRADING, EventKind.SUBMISSION_GRADED}),
    ),
}


# The data of each kind that has any.
DATA: dict[EventKind, type[EventData]] = {}


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class EventData:
    """The data of an event, a record for each kind (or few) that has any."""

    def __init_subclass__(cls, kinds: Iterable[EventKind]) -> None:
        """Make a subclass a record, and register it for the kinds of events whose data it is."""
        super().__init_subclass__()
        dataclass(frozen=True)(cls)
        DATA.update(dict.fromkeys(kinds, cls))


class RunQueued(EventData, kinds=(EventKind.RUN_QUEUED,)):
    """A run was queued once more."""

    by: str
    is_reroll: bool


class AttemptStarting(EventData, kinds=(EventKind.RUN_STARTING,)):
    """An attempt is being started."""

    number: int


class AttemptRunning(EventData, kinds=(EventKind.RUN_RUNNING,)):
    """An attempt's agent was started; `unenforced` are the codes of the limits that are not enforced."""

    number: int
    isolated: bool
    unenforced: tuple[str, ...] = ()


class AgentEnded(EventData, kinds=(EventKind.RUN_COLLECTING,)):
    """An attempt's agent has ended."""

    how: EndReason
    exit_code: int | None
    signal: int | None = None

    @property
    def is_usual(self) -> bool:
        """Whether the agent ended by itself and without an error, which nobody has to read."""
        return self.how is EndReason.EXITED and self.exit_code == 0


class RunFinished(EventData, kinds=(EventKind.RUN_FINISHED,)):
    """A run has its outcome, and the score of its final submission if it has one."""

    outcome: Outcome
    score: float | None = None

    @property
    def severity(self) -> EventSeverity:
        """Good for a medal, a warning for what has no score."""
        if self.outcome in (Outcome.INVALID, Outcome.NO_SUBMISSION):
            return EventSeverity.WARNING
        return EventSeverity.GOOD if self.outcome in MEDALS else EventSeverity.NOTE


class RunFailed(EventData, kinds=(EventKind.RUN_FAILED,)):
    """A run has failed.

    Attributes:
        failure_text: why, without its class.
        problem: what ended it that is not its own doing; None for none, or where its text alone says it.
        suspected: such a problem that is only suspected; None for none.
        cause: the key of the group of failures with the same cause.
    """

    failure_class: FailureClass
    failure_text: str
    cause: str
    problem: ProblemCode | None = None
    suspected: ProblemCode | None = None


class RunStopped(EventData, kinds=(EventKind.RUN_STOPPED,)):
    """A run was stopped."""

    by: str


class SubmissionGraded(EventData, kinds=(EventKind.SUBMISSION_GRADED,)):
    """A submission was graded; `before` is the run's standing until then."""

    score: float | None
    outcome: Outcome
    before: Outcome | None = None


class GradingFailed(EventData, kinds=(EventKind.GRADING_FAILED,)):
    """A submission can't be graded; `cause` is the key of the group of runs with the same problem."""

    problem: str
    cause: str


class CauseReviewed(
    EventData, kinds=(EventKind.CAUSE_ACKNOWLEDGED, EventKind.CAUSE_SNOOZED, EventKind.CAUSE_TAKEN_BACK)
):
    """A person has acknowledged what needs one, or taken that back; `cause` is its key."""

    cause: str


class OutageChanged(EventData, kinds=(EventKind.PROVIDER_OUTAGE, EventKind.PROVIDER_WORKS)):
    """A provider's outage has begun or is over."""

    outage: int
    provider: str


class ExperimentBudget(
    EventData,
    kinds=(
        EventKind.EXPERIMENT_BUDGET,
        EventKind.EXPERIMENT_BUDGET_WARNING,
        EventKind.EXPERIMENT_BUDGET_USED_UP,
    ),
):
    """The budget of an experiment was set, or much of it is used."""

    experiment: str


class FilesRemain(EventData, kinds=(EventKind.SWEEP_REMAINS,)):
    """Files of a removed sweep could not be removed; `folder` is their folder's name."""

    folder: str


class DatasetChanged(
    EventData,
    kinds=(*map(EventKind.of_dataset, DatasetState), EventKind.DATASET_REQUESTED, EventKind.DATASET_FOUND),
):
    """A dataset has got into a state.

    Attributes:
        problem: the class of the problem that brought it there, if any.
    """

    edition: str
    state: DatasetState
    problem: str = ""


class DatasetPruned(EventData, kinds=(EventKind.DATASET_PRUNED,)):
    """Parts of a dataset were removed from the disk, or could not be."""

    bytes: int = 0
    problem: str = ""


class DatasetVerified(EventData, kinds=(EventKind.DATASET_VERIFIED,)):
    """A prepared dataset was compared with what is known of it, or could not be.

    Attributes:
        problem: why it could not be compared.
        differs: the differences, in words.
        sums: of its tables, each with the known and the found one.
        files: how many files its manifest lists; None without one.
        missing, changed, unlisted: the names of files, at most so many as were passed on.
        deep: whether the content of each file was compared.
        demo: whether it is the demo's synthetic data.
    """

    edition: str
    problem: str = ""
    differs: str = ""
    sums: tuple[Mapping[str, Any], ...] = ()
    files: int | None = None
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    deep: bool = False
    demo: bool = False


@dataclass(frozen=True)
class Event:
    """An entry of the log of events.

    Attributes:
        kind: an `EventKind`, or the kind of another version of this program, as it was written.
        text: what happened, for people.
        times: how often, where repetitions are counted and the others of them are not listed.
        detail: the data of its kind; None where the kind has none, or this version can't read them.
    """

    id: int
    at: float
    kind: str
    text: str
    sweep_id: str | None
    run_id: int | None
    attempt_id: int | None
    competition_id: str | None
    times: int = 1
    detail: EventData | None = None

    @property
    def severity(self) -> EventSeverity:
        """Its severity, from its kind, and of a finished run from the outcome."""
        if isinstance(self.detail, RunFinished):
            return self.detail.severity
        return self.kind.severity if isinstance(self.kind, EventKind) else EventSeverity.NOTE

    @property
    def is_routine(self) -> bool:
        """Whether it only tells how work goes on."""
        return isinstance(self.kind, EventKind) and self.kind.is_routine

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its sweep and competition, by which the texts of equal events may differ."""
        return tuple(filter(None, (self.sweep_id, self.competition_id)))

    @property
    def subject(self) -> str:
        """The first part of its kind, such as `dataset`."""
        return self.kind.partition(".")[0]
