"""The conditions of a run: options build them, the state keeps them, an order passes them on, rows disclose them.

The budgets among them limit what its model calls use, in calls, tokens and US dollars.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# The placement of runs on the engine's own host.
HERE = "here"
# The used share of a budget from which people are warned.
MOST_OF_BUDGET = 0.8
_UNITS = {"calls": "calls", "tokens": "tokens", "usd": "USD"}


@dataclass(frozen=True)
class Amounts:
    """What some model calls used.

    Attributes:
        tokens: those of prompts and of answers.
    """

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        """Return the sum of both."""
        return Amounts(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def fits(self, within: Budget) -> bool:
        """Return whether no limit of a budget is exceeded."""
        return not within.exceeded_by(self).is_limited

    def share_of(self, budget: Budget) -> float:
        """Return the used share of a budget, of the unit that is nearest to its limit; 0 without a limit."""
        return max(
            (getattr(self, unit) / limit for unit, limit in budget.limits.items() if limit), default=0.0
        )


@dataclass(frozen=True)
class Budget:
    """Limits of what model calls may use; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None

    @property
    def limits(self) -> dict[str, float]:
        """The limits that there are, by the names of the fields."""
        return {unit: limit for unit in _UNITS if (limit := getattr(self, unit)) is not None}

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return bool(self.limits)

    def exceeded_by(self, amounts: Amounts) -> Budget:
        """Return those of the limits that some amounts exceed."""
        return _of({unit: limit for unit, limit in self.limits.items() if getattr(amounts, unit) > limit})

    def changed_by(self, limits: Budget) -> Budget:
        """Return a budget with the limits of another one where it has some; one of 0 removes the limit."""
        return _of({unit: limit for unit, limit in {**self.limits, **limits.limits}.items() if limit})

    def in_words(self, used: Amounts | None = None) -> str:
        """Return the limits in words, each with what is used of it where that is given: `3 of 5 calls`."""
        parts = []
        for unit, limit in self.limits.items():
            written = dollars if unit == "usd" else "{:,}".format
            spent = "" if used is None else f"{written(getattr(used, unit))} of "
            parts.append(f"{spent}{written(limit)} {_UNITS[unit]}")
        return ", ".join(parts) or "no limit"


def _of(limits: dict[str, float]) -> Budget:
    return Budget(**limits)  # type: ignore[arg-type]  # each value was one of the same field


def dollars(amount: float) -> str:
    """Format an amount of US dollars, with cents or, below a dollar, with hundredths of cents."""
    return f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.4f}"


@dataclass(frozen=True)
class Resources:
    """What a run gets of a host.

    Attributes:
        memory_bytes: None for no limit.
        shm_bytes: its shared memory; None for the runtime's default.
        gpus: how many devices; -1 for all of the host.
        runs_per_gpu: how many runs share a device.
    """

    cpus: float = 1.0
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    gpus: int = 0
    runs_per_gpu: int = 1

    @property
    def gpu_share(self) -> float:
        """The share of each of its devices that it takes."""
        return 1 / self.runs_per_gpu


@dataclass(frozen=True)
class ModelTerms:
    """Which models a run may call through its gateway, and how much.

    Attributes:
        gateway: the providers by name; none without a gateway.
        grants: what providers may do for the agent besides answering.
        budget: the limits of the run's own calls.
        record_calls: whether requests and answers are recorded.
    """

    gateway: tuple[str, ...] = ()
    grants: tuple[str, ...] = field(default=(), metadata={"flat": "model_grants"})
    budget: Budget = field(default=Budget(), metadata={"flat": "budget_"})
    record_calls: bool = False


@dataclass(frozen=True)
class RunConditions:
    """The conditions under which an agent works on a competition.

    Attributes:
        edition: of the dataset.
        obfuscated: whether descriptions and instructions hide the competition's name.
        time_limit_seconds: 0 where it is unknown, of imported runs.
        grace_seconds: how long the agent has to end after it is asked to.
        idle_limit_seconds: how long the run may be inactive before it is ended; None for no limit.
        disk_limit_bytes: the disk usage beyond which the run is ended; None for no limit.
        grade_every_seconds: how often submissions are checked.
        runtime: what the agent is started by; in an order, as its placement has decided.
        placement: `here`, or the name of a batch system's profile.
        network: `none`, `models` (only to `allowed_hosts`, through a proxy) or `open`.
        container_runtime: the daemon's runtime for containers; empty for its default.
        container_options: further options of the agent's container, each the daemon client's name for it and a
            JSON value, such as `cpuset_cpus="0-3"`.
        keep_containers: whether the agent's container is kept after the run.
    """

    time_limit_seconds: float
    edition: str = "v1"
    obfuscated: bool = False
    resources: Resources = Resources()
    models: ModelTerms = ModelTerms()
    network: str = "none"
    allowed_hosts: tuple[str, ...] = ()
    runtime: str = "process"
    placement: str = HERE
    grace_seconds: float = 30.0
    idle_limit_seconds: float | None = None
    disk_limit_bytes: int | None = None
    grade_every_seconds: float = 60.0
    container_runtime: str = ""
    container_options: tuple[str, ...] = ()
    keep_containers: bool = False
