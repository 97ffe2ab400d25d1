"""Why a run does not start yet, and when it may: of a queued run, and of a failed one that will be retried.

The rules are those by which `engine.supervisor.starting` starts runs; what only the engine's process knows, such as
which GPUs it has leased, is derived from the live runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.runs.budgets import standings
from mlebench_console.engine.runs.scheduling import wait_seconds
from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, expected_start
from mlebench_console.state import datasets, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import RunState, SweepState
from mlebench_console.state.records import HERE, Dataset, DatasetState, Run, Sweep
from mlebench_console.state.usage import budgets, outages

_TOLERANCE = 1e-9


class HoldKind(StrEnum):
    """What keeps a run from starting; the first ones last until a person acts."""

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

    @property
    def needs_person(self) -> bool:
        """Whether it lasts until a person acts."""
        return self in (HoldKind.ENGINE, HoldKind.PAUSED, HoldKind.DATASET, HoldKind.BUDGET)

    @property
    def ends_with_runs(self) -> bool:
        """Whether it is over when enough other runs have ended."""
        return self in (HoldKind.SLOTS, HoldKind.HOST, HoldKind.ORDER)


@dataclass(frozen=True)
class Hold:
    """One reason why a run does not start yet."""

    kind: HoldKind
    text: str


@dataclass(frozen=True)
class Waiting:
    """What a queued run waits for, as far as the state tells.

    Attributes:
        ahead: how many queued runs of its sweep go first.
        live: how many runs of its sweep have slots.
        cpus: what live runs of all sweeps take of this host; likewise memory and GPUs.
        dataset: its dataset; None if that was never requested.
        unreachable: the model providers that it needs and that can't be reached.
        full_budgets: the shared budgets without room for another run.
        last_start: when the newest run of its sweep was launched; None before the first.
        now: when this was read.
        starts: when a slot becomes free for it; None where that is not known.
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
    starts: ExpectedEnd | None = None

    def holds(self, engine: EngineStatus | None) -> list[Hold]:
        """Return why it does not start yet, the most lasting reason first; empty if it starts in a moment."""
        return sorted(self._holds(engine), key=lambda hold: list(HoldKind).index(hold.kind))

    def _holds(self, engine: EngineStatus | None) -> Iterator[Hold]:
        spec, dataset = self.sweep.spec, self.dataset
        if engine is None or not engine.running:
            yield Hold(HoldKind.ENGINE, "the engine is down")
        if self.sweep.state is not SweepState.ACTIVE:
            yield Hold(HoldKind.PAUSED, f"its sweep is {self.sweep.state}")
        if dataset is None or dataset.state is DatasetState.ABSENT:
            yield Hold(HoldKind.DATASET, "its dataset is not prepared")
        elif dataset.state.is_busy:
            problem = f": {dataset.problem}" if dataset.problem else ""
            yield Hold(HoldKind.PREPARING, f"its dataset is being prepared{problem}")
        elif dataset.state is not DatasetState.PREPARED:
            yield Hold(HoldKind.DATASET, f"its dataset is {dataset.state}: {dataset.problem}")
        for budget in self.full_budgets:
            yield Hold(HoldKind.BUDGET, f"the budget of {budget} has no room for another run")
        for provider in self.unreachable:
            yield Hold(HoldKind.PROVIDER, f"{provider} can't be reached")
        if self.live >= self.sweep.concurrency:
            told = f"all {self.sweep.concurrency:,} slots of its sweep are taken"
            yield Hold(HoldKind.SLOTS, told if self.sweep.concurrency > 1 else "its sweep runs one at a time")
        elif spec.placement == HERE and engine is not None:
            yield from self._of_host(engine)
        if self.last_start is not None and 0 <= self.now - self.last_start < spec.start_ramp_seconds:
            left = spec.start_ramp_seconds - (self.now - self.last_start)
            yield Hold(
                HoldKind.RAMP,
                f"runs of its sweep start {spec.start_ramp_seconds:g} s apart, {left:.0f} s left",
            )
        if self.ahead:
            told = "1 run goes first" if self.ahead == 1 else f"{self.ahead:,} runs go first"
            yield Hold(HoldKind.ORDER, told)

    def _of_host(self, engine: EngineStatus) -> Iterator[Hold]:
        """Yield what this host lacks for it."""
        spec = self.sweep.spec
        if engine.slots is not None and self.cpus + spec.cpus > engine.slots + _TOLERANCE:
            yield Hold(HoldKind.HOST, f"{self.cpus:g} of {engine.slots:g} processors are taken")
        memory = engine.memory_for_runs
        if spec.memory_bytes and memory is not None and self.memory_bytes + spec.memory_bytes > memory:
            share = f"{self.memory_bytes / 1e9:.0f} of {memory / 1e9:.0f} GB of memory"
            yield Hold(HoldKind.HOST, f"{share} are taken")
        if spec.gpus and engine.gpus is not None:
            wanted = engine.gpus if spec.gpus < 0 else spec.gpus / spec.runs_per_gpu
            if not engine.gpus or self.gpus + wanted > engine.gpus + _TOLERANCE:
                taken = (
                    f"{self.gpus:g} of {engine.gpus} GPUs are taken" if engine.gpus else "the host has no GPU"
                )
                yield Hold(HoldKind.HOST, taken)


def waiting_of(
    database: Database, run: Run, sweep: Sweep, now: float, members: Sequence[Run] | None = None
) -> Waiting | None:
    """Read what a run waits for; None if it is not queued. `members` are the runs of its sweep, if they are known."""
    if run.state is not RunState.QUEUED:
        return None
    members = runs.of_sweep(database, sweep.id) if members is None else members
    held = runs.occupying_counts(database)
    of_host = [
        (each.spec, held.get(each.id, 0))
        for each in sweeps.with_work(database)
        if each.spec.placement == HERE and held.get(each.id)
    ]
    live = held.get(sweep.id, 0)
    # Where this host is full before the sweep's concurrency is reached, the sweep has the slots that it has now.
    slots = max(1, live) if sweep.spec.placement == HERE else sweep.concurrency
    away = outages.unreachable(database)
    shared = budgets.of_sweep(database, sweep.id)
    return Waiting(
        run,
        sweep,
        ahead=sum(other.state is RunState.QUEUED and other.position < run.position for other in members),
        live=live,
        cpus=sum(spec.cpus * count for spec, count in of_host),
        memory_bytes=sum((spec.memory_bytes or 0) * count for spec, count in of_host),
        gpus=sum(max(0, spec.gpus) / spec.runs_per_gpu * count for spec, count in of_host),
        dataset=datasets.find(database, run.competition_id, sweep.spec.edition),
        unreachable=tuple(sorted(away.intersection(sweep.spec.gateway))),
        full_budgets=tuple(
            f"{one.budget.scope} {one.budget.name}" for one in standings(database, shared) if not one.has_room
        ),
        last_start=runs.last_launch(database, sweep.id) if sweep.spec.start_ramp_seconds else None,
        now=now,
        starts=expected_start(
            members,
            run.id,
            concurrency=slots,
            limit_seconds=sweep.spec.time_limit_seconds,
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
    return found.ended_at + wait_seconds(found.failures)
