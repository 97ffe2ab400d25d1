"""Requests to the engine: the arguments of each kind, and how it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mlebench_console.foundation.amounts import Budget
from mlebench_console.foundation.fields import FieldError, read_fields
from mlebench_console.foundation.problems import Problem, UsageProblem
from mlebench_console.state.records import VerificationKind
from mlebench_console.state.usage.budgets import BudgetScope


@dataclass(frozen=True, kw_only=True)
class OneSweep:
    """Arguments of `sweep.pause`, `sweep.resume` and `sweep.stop`."""

    sweep_id: str


@dataclass(frozen=True, kw_only=True)
class SetSweep(OneSweep):
    """Arguments of `sweep.concurrency` and `sweep.priority`."""

    value: int


@dataclass(frozen=True, kw_only=True)
class RemoveSweep(OneSweep):
    """Arguments of `sweep.remove`."""

    with_results: bool = False


@dataclass(frozen=True, kw_only=True)
class ImportSweep:
    """Arguments of `sweep.import`.

    Attributes:
        place: where the run groups were copied to.
        time_limit_seconds: that their runs had, if it is known.
    """

    place: str
    name: str
    agent_id: str
    edition: str = "v1"
    time_limit_seconds: float | None = None
    experiment: str = ""


@dataclass(frozen=True, kw_only=True)
class AssignExperiment(OneSweep):
    """Arguments of `experiment.assign`."""

    experiment_id: str


@dataclass(frozen=True, kw_only=True)
class SetBudget(Budget):
    """Arguments of `budget.set`: an omitted limit stays, 0 removes it.

    Attributes:
        name: of the sweep or the experiment whose runs share the budget.
    """

    scope: BudgetScope
    name: str


@dataclass(frozen=True)
class ShownRun:
    """A run as the operator saw it when deciding.

    Attributes:
        attempt: the number of its latest attempt; 0 before its first one.
        reroll: whether the operator was warned that a relaunch re-rolls its seed.
    """

    id: int
    attempt: int
    reroll: bool = False


@dataclass(frozen=True, kw_only=True)
class SomeRuns:
    """Arguments of `run.relaunch`, `run.stop` and `run.regrade`; refused if one of the runs has changed since."""

    runs: tuple[ShownRun, ...]


@dataclass(frozen=True, kw_only=True)
class ClassifyRuns(SomeRuns):
    """Arguments of `run.classify`; `class_` is `class` in a request."""

    class_: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Annotate:
    """What `run.annotate` and `sweep.annotate` change.

    Attributes:
        note: the new note; empty removes it, None keeps the old one.
        add: tags to add.
        remove: tags to remove.
    """

    note: str | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AnnotateRuns(Annotate):
    """Arguments of `run.annotate`."""

    run_ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class AnnotateSweep(Annotate):
    """Arguments of `sweep.annotate`."""

    sweep_id: str


@dataclass(frozen=True, kw_only=True)
class SomeDatasets:
    """Arguments of `dataset.stop`."""

    competition_ids: tuple[str, ...]
    edition: str = "v1"


@dataclass(frozen=True, kw_only=True)
class VerifyDatasets(SomeDatasets):
    """Arguments of `dataset.verify`."""

    kind: VerificationKind = VerificationKind.QUICK


@dataclass(frozen=True, kw_only=True)
class PrioritizeDatasets(SomeDatasets):
    """Arguments of `dataset.priority`."""

    value: int


@dataclass(frozen=True, kw_only=True)
class PrepareDatasets(SomeDatasets):
    """Arguments of `dataset.prepare`.

    Attributes:
        raw_dir: an extracted Kaggle folder; empty: data from the data directory or Kaggle are used.
        mirror: where prepared datasets are copied from; empty: they are prepared here.
        again: prepare datasets again that are prepared.
        priority: higher priorities are prepared first.
        jobs: how many datasets are prepared at once from now on.
        keep_going: whether to continue with the others if one can't be started; by default if there are others.
        canary: put a file with a unique id into each of them, by which copies can be recognised elsewhere.
    """

    raw_dir: str = ""
    mirror: str = ""
    again: bool = False
    skip_verification: bool = False
    keep_raw: bool = False
    discard_zip: bool = False
    descriptions: str | None = None
    jobs: int | None = None
    priority: int = 0
    keep_going: bool | None = None
    canary: bool = False


@dataclass(frozen=True, kw_only=True)
class PruneDatasets(SomeDatasets):
    """Arguments of `dataset.prune`.

    Attributes:
        keep_going: continue with the others if one can't be pruned, with an event that says why.
    """

    parts: tuple[str, ...]
    keep_going: bool = False


@dataclass(frozen=True, kw_only=True)
class BuildImages:
    """Arguments of `image.build`.

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


@dataclass(frozen=True)
class LookedAt:
    """An attempt whose directory has new results of a layer of detectors."""

    attempt_id: int
    layer: str


@dataclass(frozen=True, kw_only=True)
class RecordIntegrity:
    """Arguments of `integrity.record`."""

    looked_at: tuple[LookedAt, ...]


@dataclass(frozen=True, kw_only=True)
class ReviewFinding:
    """Arguments of `integrity.review`.

    Attributes:
        finding: its key.
        cleared: whether the finding is cleared; otherwise it is confirmed.
    """

    run_id: int
    finding: str
    cleared: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class OneCause:
    """Arguments of `cause.take_back`.

    Attributes:
        key: of a group of runs with one cause, or of something else that needs a person.
    """

    key: str


@dataclass(frozen=True, kw_only=True)
class AcknowledgeCause(OneCause):
    """Arguments of `cause.acknowledge`.

    Attributes:
        reason: why nobody needs to act now.
        text: a description, for causes that no run has now.
        seconds: for how long it is hidden, whatever happens; None: until a new run joins it.
    """

    reason: str
    text: str = ""
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class NoArguments:
    """Arguments of `image.stop`."""


# The arguments of `sweep.launch` are an `engine.options.sweep.Launch`.
_ARGUMENTS: dict[str, type[Any]] = {
    "sweep.pause": OneSweep,
    "sweep.resume": OneSweep,
    "sweep.stop": OneSweep,
    "sweep.concurrency": SetSweep,
    "sweep.priority": SetSweep,
    "sweep.remove": RemoveSweep,
    "sweep.import": ImportSweep,
    "experiment.assign": AssignExperiment,
    "budget.set": SetBudget,
    "run.relaunch": SomeRuns,
    "run.stop": SomeRuns,
    "run.classify": ClassifyRuns,
    "run.regrade": SomeRuns,
    "run.annotate": AnnotateRuns,
    "sweep.annotate": AnnotateSweep,
    "dataset.prepare": PrepareDatasets,
    "dataset.stop": SomeDatasets,
    "dataset.verify": VerifyDatasets,
    "dataset.priority": PrioritizeDatasets,
    "dataset.prune": PruneDatasets,
    "image.build": BuildImages,
    "image.stop": NoArguments,
    "integrity.record": RecordIntegrity,
    "integrity.review": ReviewFinding,
    "cause.acknowledge": AcknowledgeCause,
    "cause.take_back": OneCause,
}


def read_arguments(kind: str, values: Mapping[str, Any]) -> Any:
    """Read the arguments of a request of a known kind.

    Raises:
        UsageProblem: one is not known, missing or of the wrong type.
    """
    try:
        if kind == "sweep.launch":
            from mlebench_console.engine.options.sweep import Launch

            return Launch.from_arguments(values)
        return read_fields(_ARGUMENTS[kind], values)
    except FieldError as error:
        if error.expected:
            raise UsageProblem(f"'{error.name}' of {kind} is not {error.expected}") from error
        problem = (
            f"{kind} needs '{error.name}'" if error.is_missing else f"{kind} has no argument '{error.name}'"
        )
        raise UsageProblem(problem) from error


@dataclass(frozen=True)
class Answer:
    """The answer to a request that was done.

    Attributes:
        text: one sentence for people.
        sweep_id: the sweep that was launched or changed, where there is one.
    """

    text: str
    sweep_id: str | None = None

    def to_text(self) -> str:
        """Return the answer as text for the state."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Answer:
        """Read back what `to_text` wrote."""
        return cls(**json.loads(text))


class RefusedRequest(UsageProblem):
    """The engine refuses a request, with the reason."""

    @staticmethod
    def to_text(problem: Problem) -> str:
        """Return a refusal as text for the state."""
        return json.dumps({"what": problem.what, "why": problem.why, "next_step": problem.next_step})

    @classmethod
    def from_text(cls, text: str) -> RefusedRequest:
        """Read back what `to_text` wrote."""
        return cls(**json.loads(text))
