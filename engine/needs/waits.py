"""Why a run does not run, each reason with its code and data: a queued run, one in a batch system, a failed one.

The rules for queued runs are those by which `engine.runs.starting` starts runs; what only the engine's process
knows, such as which GPUs it has leased, is derived from the live runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from mlebench_console.engine.runs.scheduling import RETRY_BACKOFF
from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, expected_start
from mlebench_console.foundation.conditions import HERE, Resources
from mlebench_console.foundation.text import plural
from mlebench_console.state import datasets, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import RunState, SweepState
from mlebench_console.state.records import Attempt, Dataset, DatasetState, OwnReason, Run, Sweep
from mlebench_console.state.usage import budgets, outages

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus

_TOLERANCE = 1e-9
_GIGABYTES = 1e8  # larger sizes are written in GB


class WaitKind(StrEnum):
    """What keeps a run from running; the first ones last until a person acts."""

    ENGINE = "engine"
    PAUSED = "paused"
    DATASET = "dataset"
    BUDGET = "budget"
    PREPARING = "preparing"
    PROVIDER = "provider"
    SLOTS = "slots"
    HOST = "host"
    RAMP = "ramp"
    ORDER = "order"
    JOB = "job"
    STAGING = "staging"

    @property
    def ends_with_runs(self) -> bool:
        """Whether it is over when enough other runs have ended."""
        return self in (WaitKind.SLOTS, WaitKind.HOST, WaitKind.ORDER)


_UNTIL_A_PERSON_ACTS = (WaitKind.ENGINE, WaitKind.PAUSED, WaitKind.DATASET, WaitKind.BUDGET)


@dataclass(frozen=True)
class Wait:
    """One reason why a run does not run.

    Attributes:
        text: for people.
        short: the same in a word or two, of a batch system's reason.
        subject: which provider, budget, or resource of the host.
        code: a batch system's own code or an `OwnReason`; of a dataset, the class of its problem.
        taken, of: how much of the subject is taken, or how many runs go first.
        until: when it is expected to be over; None if unknown.
        priority: among the batch system's waiting jobs; higher goes first.
        needs_person: whether it lasts until a person acts.
    """

    kind: WaitKind
    text: str
    short: str = ""
    subject: str = ""
    code: str = ""
    taken: float | None = None
    of: float | None = None
    until: float | None = None
    priority: int | None = None
    needs_person: bool = False


@dataclass(frozen=True)
class QueuedRun:
    """A queued run with what decides when it starts, as far as the state tells.

    Attributes:
        ahead: how many queued runs of its sweep go first.
        live: how many runs of its sweep have slots.
        cpus: what live runs of all sweeps take of this host; likewise memory and GPUs.
        dataset: its dataset; None if that was never requested.
        unreachable: the model providers that it needs and that can't be reached.
        full_budgets: the shared budgets without room for another run.
        last_start: when the newest run of its sweep was launched; None before the first.
        now: when this was read.
        free_at: when a slot becomes free for it; None where that is not known.
    """

    run: Run
    sweep: Sweep
    ahead: int = 0
    live: int = 0
    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: float = 0.0
    dataset: Dataset | None = None
    unreachable: tuple[str, ...] = ()
    full_budgets: tuple[str, ...] = ()
    last_start: float | None = None
    now: float = 0.0
    free_at: ExpectedEnd | None = None

    def waits(self, engine: EngineStatus | None) -> list[Wait]:
        """Return why it does not start yet, the most lasting reason first; empty if it starts in a moment."""
        return sorted(self._waits(engine), key=lambda wait: list(WaitKind).index(wait.kind))

    def starts(self, engine: EngineStatus | None) -> ExpectedEnd | None:
        """Return when it may start; None where that depends on more than the runs before it."""
        return self.free_at if all(wait.kind.ends_with_runs for wait in self.waits(engine)) else None

    def _waits(self, engine: EngineStatus | None) -> Iterator[Wait]:
        spec = self.sweep.spec
        if engine is None or not engine.running:
            yield _wait(WaitKind.ENGINE, "the engine is down")
        if self.sweep.state is not SweepState.ACTIVE:
            yield _wait(WaitKind.PAUSED, f"its sweep is {self.sweep.state}")
        if (wait := dataset_wait(self.dataset)) is not None:
            yield wait
        for budget in self.full_budgets:
            yield _wait(WaitKind.BUDGET, f"the budget of {budget} has no room for another run", budget)
        for provider in self.unreachable:
            yield _wait(WaitKind.PROVIDER, f"{provider} can't be reached", provider)
        slots = self.sweep.concurrency
        if self.live >= slots:
            text = (
                f"all {slots:,} slots of its sweep are taken" if slots > 1 else "its sweep runs one at a time"
            )
            yield _wait(WaitKind.SLOTS, text, "slots", self.live, slots)
        elif self.sweep.conditions.placement == HERE and engine is not None:
            yield from self._of_host(engine)
        since = None if self.last_start is None else self.now - self.last_start
        if self.last_start is not None and since is not None and 0 <= since < spec.start_ramp_seconds:
            left = spec.start_ramp_seconds - since
            text = f"runs of its sweep start {spec.start_ramp_seconds:g} s apart, {left:.0f} s left"
            yield Wait(WaitKind.RAMP, text, until=self.last_start + spec.start_ramp_seconds)
        if self.ahead:
            verb = "goes" if self.ahead == 1 else "go"
            yield _wait(WaitKind.ORDER, f"{plural(self.ahead, 'run')} {verb} first", taken=self.ahead)

    def _of_host(self, engine: EngineStatus) -> Iterator[Wait]:
        """Yield what this host lacks for it."""
        resources = self.sweep.conditions.resources
        if engine.slots is not None and self.cpus + resources.cpus > engine.slots + _TOLERANCE:
            text = f"{self.cpus:g} of {engine.slots:g} processors are taken"
            yield _wait(WaitKind.HOST, text, "processors", self.cpus, engine.slots)
        memory, needed = engine.memory_for_runs, resources.memory_bytes
        if needed and memory is not None and self.memory_bytes + needed > memory:
            text = f"{self.memory_bytes / 1e9:.0f} of {memory / 1e9:.0f} GB of memory are taken"
            yield _wait(WaitKind.HOST, text, "memory", self.memory_bytes, memory)
        limit, room = self.sweep.conditions.disk_limit_bytes, engine.disk_for_runs
        if limit and room is not None and limit > room:
            text = f"it may take {limit / 1e9:.1f} GB of disk, and {max(0, room) / 1e9:.1f} are left for runs"
            yield _wait(WaitKind.HOST, text, "disk")
        if resources.gpus and engine.gpus is not None:
            wanted = engine.gpus if resources.gpus < 0 else resources.gpus * resources.gpu_share
            if not engine.gpus or self.gpus + wanted > engine.gpus + _TOLERANCE:
                text = (
                    f"{self.gpus:g} of {engine.gpus} GPUs are taken" if engine.gpus else "the host has no GPU"
                )
                yield _wait(WaitKind.HOST, text, "GPUs", self.gpus, engine.gpus)


def never_fits(resources: Resources, engine: EngineStatus) -> str:
    """Return why the engine's host can never start a run with these resources; empty if it can, or if unknown."""
    if engine.slots is not None and resources.cpus > engine.slots + _TOLERANCE:
        return f"each takes {resources.cpus:g} processors, and this engine has {engine.slots:g}"
    memory, needed = engine.memory_for_runs, resources.memory_bytes or 0
    if memory is not None and needed > memory:
        return f"each takes {needed / 1e9:.0f} GB of memory, and this engine has {memory / 1e9:.0f} GB"
    if engine.gpus is not None and max(resources.gpus, min(1, -resources.gpus)) > engine.gpus:
        wanted = plural(resources.gpus, "GPU") if resources.gpus > 0 else "all GPUs"
        return f"each takes {wanted}, and this host has {engine.gpus or 'none'}"
    return ""


def _wait(
    kind: WaitKind, text: str, subject: str = "", taken: float | None = None, of: float | None = None
) -> Wait:
    return Wait(kind, text, subject=subject, taken=taken, of=of, needs_person=kind in _UNTIL_A_PERSON_ACTS)


def read_queued_run(
    database: Database, run: Run, sweep: Sweep, now: float, members: Sequence[Run] | None = None
) -> QueuedRun | None:
    """Read what a run waits for; None if it is not queued. `members` are the runs of its sweep, if they are known."""
    if run.state is not RunState.QUEUED:
        return None
    members = runs.of_sweep(database, sweep.id) if members is None else members
    held = runs.occupying_counts(database)
    of_host = [
        (each.conditions.resources, held.get(each.id, 0))
        for each in sweeps.with_work(database)
        if each.conditions.placement == HERE and held.get(each.id)
    ]
    live = held.get(sweep.id, 0)
    # Where this host is full before the sweep's concurrency is reached, the sweep has the slots that it has now.
    slots = max(1, live) if sweep.conditions.placement == HERE else sweep.concurrency
    away = outages.unreachable(database)
    return QueuedRun(
        run,
        sweep,
        ahead=sum(other.state is RunState.QUEUED and other.position < run.position for other in members),
        live=live,
        cpus=sum(each.cpus * count for each, count in of_host),
        memory_bytes=sum((each.memory_bytes or 0) * count for each, count in of_host),
        gpus=sum(max(0, each.gpus) * each.gpu_share * count for each, count in of_host),
        dataset=datasets.find(database, run.competition_id, sweep.conditions.edition),
        unreachable=tuple(sorted(away.intersection(sweep.conditions.models.gateway))),
        full_budgets=tuple(
            f"{one.scope} {one.name}" for one in budgets.all_budgets(database, sweep.id) if not one.has_room
        ),
        last_start=runs.last_launch(database, sweep.id) if sweep.spec.start_ramp_seconds else None,
        now=now,
        free_at=expected_start(
            members,
            run.id,
            concurrency=slots,
            limit_seconds=sweep.conditions.time_limit_seconds,
            now=now,
        )
        if sweep.state is SweepState.ACTIVE
        else None,
    )


def retry_at(database: Database, run: Run) -> float | None:
    """Return when the engine retries a failed run; None if it does not."""
    if run.state is not RunState.FAILED:
        return None
    found = next((each for each in runs.to_retry(database) if each.id == run.id), None)
    if found is None or found.ended_at is None:
        return None
    return found.ended_at + RETRY_BACKOFF.seconds(found.failures)


def dataset_wait(dataset: Dataset | None) -> Wait | None:
    """Return why runs wait for their dataset, which is None where it was never requested; None if it is prepared."""
    if dataset is None or dataset.state is DatasetState.ABSENT:
        return _wait(WaitKind.DATASET, "its dataset is not prepared")
    if dataset.state is DatasetState.PREPARED:
        return None
    kind = WaitKind.PREPARING if dataset.state.is_busy else WaitKind.DATASET
    state = "being prepared" if dataset.state.is_busy else dataset.state.value
    text = ": ".join(filter(None, (f"its dataset is {state}", dataset.problem_text)))
    return replace(_wait(kind, text), code=dataset.problem_code)


def _job(short: str, text: str, *, needs_person: bool = False) -> Wait:
    return Wait(WaitKind.JOB, text, short, needs_person=needs_person)


# Why Slurm does not run a job, by its code; other codes are shown as they are.
_REASONS = {
    "None": _job("waits", "Slurm has not looked at it yet"),
    "Priority": _job("Priority", "other jobs go first"),
    "Resources": _job("Resources", "it is next, when resources are free"),
    "Dependency": _job("Dependency", "an earlier job of this attempt is still there"),
    "BeginTime": _job("BeginTime", "Slurm begins it again in a moment"),
    "CONFIGURING": _job("node boots", "its node is being made ready"),
    "SUSPENDED": _job("suspended", "Slurm has suspended it for other jobs", needs_person=True),
    "STOPPED": _job("suspended", "Slurm has stopped it", needs_person=True),
    "JobHeldUser": _job("held", "you hold it: scontrol release", needs_person=True),
    "JobHeldAdmin": _job("held", "an administrator holds it", needs_person=True),
    "launch_failed_requeued_held": _job("held", "its node could not begin it", needs_person=True),
    "ReqNodeNotAvail": _job("no nodes", "nodes that it may use are away or reserved", needs_person=True),
    "PartitionDown": _job("no nodes", "its partition takes no jobs now", needs_person=True),
    "PartitionInactive": _job("no nodes", "its partition takes no jobs now", needs_person=True),
    "Licenses": _job("licences", "others use the licences that it needs"),
    "Reservation": _job("reserved", "its reservation has not begun"),
}
# What the codes of limits of accounts and qos begin with, of which there are dozens.
_LIMITS = ("QOS", "Assoc")
_LIMIT = _job("limit", "a limit of your account or qos is reached")
_OWN_REASONS: dict[str, Wait] = {
    OwnReason.IMAGE: _job("image", "an image of its dataset is being made, once for all its runs"),
    OwnReason.TO_SUBMIT: _job("to submit", "to be submitted: this engine submits it soon"),
    OwnReason.SUBMIT_LIMIT: _job("to submit", "to be submitted: Slurm takes no more of your jobs now"),
    OwnReason.NO_NODE: _job("to submit", "to be submitted again: Slurm has no node for it now"),
    OwnReason.AWAY: _job("to submit", "to be submitted when Slurm answers again"),
}
_HELD = frozenset({"JobHeldUser", "JobHeldAdmin", "launch_failed_requeued_held"})


def job_wait(attempt: Attempt) -> Wait | None:
    """Return why a live attempt's job does not run; None if it does, and for one on the engine's own host."""
    if not attempt.is_waiting:
        return None
    code = attempt.waits_for
    if code == OwnReason.STAGING:
        return _staging(attempt)
    own = _OWN_REASONS.get(code)
    reason = own or _REASONS.get(code) or (_LIMIT if code.startswith(_LIMITS) else _job(code, ""))
    text = reason.text if own or code == "None" else ": ".join(filter(None, (code, reason.text)))
    return replace(reason, text=text, code=code, until=attempt.starts_at, priority=attempt.job_priority)


def _staging(attempt: Attempt) -> Wait:
    """Return how far the copy of an attempt's dataset to its node is."""
    done, whole = attempt.staged_bytes, attempt.to_stage_bytes
    text = short = "staging"
    if done is not None and whole:
        unit, name = (1e9, "GB") if whole >= _GIGABYTES else (1e6, "MB")
        short = f"staging {100 * done // whole}%"
        text = f"{short}: {done / unit:.1f} of {whole / unit:.1f} {name}"
    return Wait(WaitKind.STAGING, text, short, code=attempt.waits_for, taken=done, of=whole)


def release_of_job(attempt: Attempt) -> str:
    """Return what a person can do so that a held job starts; empty for a job that is not held."""
    if not attempt.is_waiting or attempt.waits_for not in _HELD:
        return ""
    command = f"scontrol release {attempt.job}".rstrip()
    is_admins = attempt.waits_for == "JobHeldAdmin"
    return f"ask Slurm's administrators for '{command}'" if is_admins else f"type {command}"
