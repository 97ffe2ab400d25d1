"""Requests: all that consoles and commands can ask of the engine, and how it answers.

Each kind is a class, whose fields are the arguments. `engine.supervisor.requests` finds the handler by the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, dataclass_transform

from mlebench_console.competitions.model import Edition
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.fields import FieldError, read_fields
from mlebench_console.foundation.problems import ProblemRecord, UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import requests
from mlebench_console.state.annotations import Annotation
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import Layer
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import PreparationOptions, SweepSpec, VerificationKind
from mlebench_console.state.usage.budgets import BudgetScope

_KINDS: dict[str, type[Request]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Request:
    """A request for a change; `kind` names its class in the state, and its fields are the arguments.

    Attributes:
        can_be_undone: whether consoles let it wait for some seconds, in which it can be withdrawn.
    """

    kind: ClassVar[str] = ""
    can_be_undone: ClassVar[bool] = False

    def __init_subclass__(cls, kind: str = "") -> None:
        """Make a subclass a record, and register it by its kind; one without a kind holds what its subclasses share."""
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)
        if kind:
            cls.kind = kind
            _KINDS[kind] = cls

    def in_words(self) -> str:
        """Describe what it does, such as `stopping 3 runs`."""
        return self.kind


def read_request(kind: str, arguments: Mapping[str, Any]) -> Request:
    """Read a request of any version of this program.

    Raises:
        UsageProblem: its kind or one of its arguments is not known here, or an argument is missing or not valid.
    """
    if kind not in _KINDS:
        raise UsageProblem(
            f"this engine knows no request '{kind}'",
            "another version of mlebench-console has filed it",
            "Restart the engine: mlebench-console engine stop, then mlebench-console engine start.",
        )
    try:
        return read_fields(_KINDS[kind], arguments)
    except FieldError as error:
        if error.expected:
            raise UsageProblem(f"'{error.name}' of {kind} is not {error.expected}") from error
        problem = (
            f"{kind} needs '{error.name}'" if error.is_missing else f"{kind} has no argument '{error.name}'"
        )
        raise UsageProblem(problem) from error


def file_request(
    database: Database, request: Request, *, author: str, now: float, not_before: float | None = None
) -> int:
    """File a request, as `state.requests.file`."""
    return requests.file(
        database,
        request.kind,
        asdict(request),
        text=request.in_words(),
        author=author,
        now=now,
        not_before=not_before,
    )


@dataclass(frozen=True)
class Answer:
    """The answer to a request that was done.

    Attributes:
        text: one sentence for people.
        sweep_id: the sweep that was launched or changed, where there is one.
    """

    text: str
    sweep_id: str | None = None


class RefusedRequest(UsageProblem):
    """The engine refuses a request, with the reason."""

    @classmethod
    def because(cls, record: ProblemRecord) -> RefusedRequest:
        """Return the refusal for the problem that the engine met."""
        return cls(record.what, record.why, record.next_step, subject=record.subject)


Handler = Callable[[Any, str], Answer | None]
"""Takes a request and its author; returns None, without changing anything, if it must be called again later."""
Handlers = Mapping[type[Request], Handler]


# Sweeps


class LaunchSweep(Request, kind="sweep.launch"):
    """Launch a sweep.

    Attributes:
        name: the sweep's; empty: made from the agent's.
        concurrency: how many of its runs may be live at once.
        priority: higher goes first.
        experiment: the leaderboard row it belongs to; empty for none.
        sweep_budget: the limits for the model calls of all its runs together.
    """

    spec: SweepSpec
    name: str = ""
    concurrency: int = 1
    priority: int = 0
    experiment: str = ""
    note: str = ""
    sweep_budget: Budget = field(default=Budget(), metadata={"flat": "sweep_budget_"})

    @property
    def run_count(self) -> int:
        """How many runs it has."""
        return len(self.spec.competitions) * self.spec.seeds


class ImportSweep(Request, kind="sweep.import"):
    """Make a sweep of copied run groups.

    Attributes:
        place: where the run groups were copied to.
        time_limit_seconds: that their runs had, if it is known.
    """

    place: str
    name: str
    agent_id: str
    edition: Edition = "v1"
    time_limit_seconds: float | None = None
    experiment: str = ""


class SweepRequest(Request):
    """A request about an existing sweep."""

    sweep_id: str


class PauseSweep(SweepRequest, kind="sweep.pause"):
    """Start no more runs of a sweep; live ones continue."""


class ResumeSweep(SweepRequest, kind="sweep.resume"):
    """Start runs of a paused sweep again."""


class StopSweep(SweepRequest, kind="sweep.stop"):
    """End the live runs of a sweep, and start no more."""

    can_be_undone = True

    def in_words(self) -> str:
        """Describe what it does."""
        return f"stopping {self.sweep_id}"


class SetConcurrency(SweepRequest, kind="sweep.concurrency"):
    """Set how many runs of a sweep may be live at once."""

    value: int


class SetPriority(SweepRequest, kind="sweep.priority"):
    """Set the priority of a sweep; higher goes first."""

    value: int


class RemoveSweep(SweepRequest, kind="sweep.remove"):
    """Remove a sweep with its files; with results, or a part in an experiment, only `with_results`."""

    with_results: bool = False


class AnnotateSweep(SweepRequest, kind="sweep.annotate"):
    """Change the note and tags of a sweep."""

    change: Annotation


class AssignExperiment(SweepRequest, kind="experiment.assign"):
    """Make a sweep part of an experiment."""

    experiment_id: str


class SetBudget(Request, kind="budget.set"):
    """Change a shared budget: an omitted limit stays, 0 removes it.

    Attributes:
        name: of the sweep or the experiment whose runs share the budget.
    """

    scope: BudgetScope
    name: str
    limits: Budget


# Runs


@dataclass(frozen=True)
class ChosenRun:
    """A run as the operator saw it when deciding.

    Attributes:
        attempt: the number of its latest attempt; 0 before its first one.
        reroll: whether the operator was warned that a relaunch re-rolls its seed.
    """

    id: int
    attempt: int
    reroll: bool = False


class RunsRequest(Request):
    """A request about runs, refused if one of them has had another attempt since the operator saw it."""

    runs: tuple[ChosenRun, ...]


class RelaunchRuns(RunsRequest, kind="run.relaunch"):
    """Queue ended runs again."""

    can_be_undone = True

    def in_words(self) -> str:
        """Describe what it does."""
        return f"relaunching {plural(len(self.runs), 'run')}"


class StopRuns(RunsRequest, kind="run.stop"):
    """End live runs, and never start queued ones."""

    can_be_undone = True

    def in_words(self) -> str:
        """Describe what it does."""
        return f"stopping {plural(len(self.runs), 'run')}"


class RegradeRuns(RunsRequest, kind="run.regrade"):
    """Retry the failed grading of runs at once."""


class ClassifyRuns(RunsRequest, kind="run.classify"):
    """Correct the failure class of failed runs."""

    failure_class: FailureClass
    note: str = ""


class AnnotateRuns(Request, kind="run.annotate"):
    """Change the notes and tags of runs."""

    run_ids: tuple[int, ...]
    change: Annotation


# Datasets


class DatasetsRequest(Request):
    """A request about datasets."""

    competition_ids: tuple[str, ...]
    edition: Edition = "v1"


class PrepareDatasets(DatasetsRequest, kind="dataset.prepare"):
    """Download and prepare datasets.

    Attributes:
        options: of all of them; the source may be a folder with a folder or zip for each.
        again: prepare datasets again that are prepared.
        priority: higher priorities are prepared first.
        jobs: how many datasets are prepared at once from now on.
        keep_going: whether to continue with the others if one can't be started; by default if there are others.
    """

    options: PreparationOptions = field(default_factory=PreparationOptions)
    again: bool = False
    jobs: int | None = None
    priority: int = 0
    keep_going: bool | None = None


class StopDatasets(DatasetsRequest, kind="dataset.stop"):
    """Stop preparing or verifying datasets."""


class VerifyDatasets(DatasetsRequest, kind="dataset.verify"):
    """Compare prepared datasets with their manifests."""

    verification: VerificationKind = VerificationKind.QUICK


class PrioritizeDatasets(DatasetsRequest, kind="dataset.priority"):
    """Set the priority of waiting datasets."""

    value: int


class PruneDatasets(DatasetsRequest, kind="dataset.prune"):
    """Remove parts of datasets from the disk.

    Attributes:
        keep_going: continue with the others if one can't be pruned, with an event that says why.
    """

    parts: tuple[str, ...]
    keep_going: bool = False


# Images


class BuildImages(Request, kind="image.build"):
    """Build images.

    Attributes:
        names: of the images; empty: all known images.
        agents_dir: an agents folder in MLE-bench's format; empty: only our own agents.
        base_image: replaces the Dockerfile's base image; empty: not replaced.
        heavy: install the large machine learning packages into the agents' environment.
        certificates: replace the system's while packages are installed; empty: not replaced.
        pip_configuration: a pip.conf to use while packages are installed; empty: none.
        fresh: don't use the cache of earlier builds.
    """

    names: tuple[str, ...] = ()
    agents_dir: str = ""
    base_image: str = ""
    heavy: bool = False
    certificates: str = ""
    pip_configuration: str = ""
    fresh: bool = False


class StopBuild(Request, kind="image.stop"):
    """Stop the running build of images."""


# Findings about integrity, and causes that were acknowledged


@dataclass(frozen=True)
class NewResults:
    """An attempt whose directory has new results of a layer of detectors."""

    attempt_id: int
    layer: Layer


class RecordIntegrity(Request, kind="integrity.record"):
    """Take the results of detectors into the state."""

    results: tuple[NewResults, ...]


class ReviewFinding(Request, kind="integrity.review"):
    """Record a person's review of a finding.

    Attributes:
        finding: its key.
        cleared: whether the finding is cleared; otherwise it is confirmed.
    """

    run_id: int
    finding: str
    cleared: bool
    reason: str


class AcknowledgeCause(Request, kind="cause.acknowledge"):
    """Hide something that needs a person.

    Attributes:
        key: of a group of runs with one cause, or of something else that needs a person.
        reason: why nobody needs to act now.
        text: a description, for causes that no run has now.
        seconds: for how long it is hidden, whatever happens; None: until a new run joins it.
    """

    key: str
    reason: str
    text: str = ""
    seconds: float | None = None


class WithdrawAcknowledgement(Request, kind="cause.take_back"):
    """Show again what was acknowledged."""

    key: str
