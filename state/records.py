"""What the state holds, as frozen dataclasses: the only form in which it leaves this package."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from foundation.hardware import Hardware
from state.lifecycle import ENDED, LIVE, FailureClass, Outcome, RunState, SweepState


class RequestState(StrEnum):
    """What became of a request that a console or a command filed."""

    FILED = "filed"
    DONE = "done"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


# The runtime of runs that were made elsewhere, under unknown conditions.
IMPORTED = "imported"
# The placement of runs on the engine's own host.
HERE = "here"


@dataclass(frozen=True)
class SweepSpec:
    """What an operator asked for: it is kept with the sweep as it was and never changed."""

    agent_id: str
    agents_dir: str
    competitions: tuple[str, ...]
    seeds: int
    time_limit_seconds: float
    edition: str = "v1"
    runtime: str = "process"
    network: str = "none"
    cpus: float = 1.0
    memory_bytes: int | None = None
    gpus: int = 0
    grace_seconds: float = 30.0
    grade_every_seconds: float = 60.0
    data_dir: str = ""
    prepare_missing: bool = False
    raw_dir: str = ""
    demo: bool = False
    allowed_hosts: tuple[str, ...] = ()
    shm_bytes: int | None = None
    container_runtime: str = ""
    container_options: tuple[str, ...] = ()
    keep_containers: bool = False
    runs_per_gpu: int = 1
    idle_limit_seconds: float | None = None
    disk_limit_bytes: int | None = None
    retries: int = 0
    start_ramp_seconds: float = 0.0
    obfuscated: bool = False
    gateway: tuple[str, ...] = ()
    model_grants: tuple[str, ...] = ()
    budget_calls: int | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    record_calls: bool = False
    replay_of: int | None = None
    over_budget: str = "result"
    placement: str = HERE


@dataclass(frozen=True)
class Tag:
    """A word on a run or a sweep by which it is found again, and who put it there and when."""

    name: str
    by: str
    at: float


@dataclass(frozen=True)
class Sweep:
    """One agent on some competitions, some seeds each.

    Attributes:
        note: what it is for, or what people should know of it.
        noted_by: who wrote the note last; empty where it was launched with it.
    """

    id: str
    name: str
    state: SweepState
    spec: SweepSpec
    agent_version: str
    concurrency: int
    priority: int
    created_at: float
    note: str
    noted_by: str = ""
    noted_at: float | None = None
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True)
class Run:
    """One (competition, seed) of a sweep, with the standing of its latest attempt.

    `outcome` is set when the run has finished; `standing`, `score` and `valid` follow the last
    graded submission while it is live and are final with the outcome.

    Attributes:
        suspected: what of the infrastructure may have ended its agent, by words in its log alone; empty for nothing.
        grading_problem: why its newest submission can't be graded at present, which says nothing about the submission;
            empty where it can.
        grading_fails_since: when that began.
        grading_retry_at: when it is graded again.
        excused: whether its failure counts for nothing until it is launched again for free, as its sweep was to take
            the end of a budget that runs share.
        note: what people should know of it, with `noted_by` and `noted_at`.
        demo: whether it is on the demo's synthetic data, so that it is no result.
        cause: its failure without what differs from run to run (`state.causes`); empty where it has not failed.
    """

    id: int
    sweep_id: str
    competition_id: str
    seed: int
    state: RunState
    outcome: Outcome | None
    failure_class: FailureClass | None
    failure_text: str
    standing: Outcome | None
    score: float | None
    valid: bool | None
    attempts: int
    rerolls: int
    queued_at: float
    started_at: float | None
    ended_at: float | None
    last_activity_at: float | None
    submissions: int
    position: int
    suspected: str = ""
    grading_problem: str = ""
    grading_fails_since: float | None = None
    grading_retry_at: float | None = None
    excused: bool = False
    note: str = ""
    noted_by: str = ""
    noted_at: float | None = None
    tags: tuple[Tag, ...] = ()
    demo: bool = False
    cause: str = ""

    @property
    def is_live(self) -> bool:
        """Whether something is being done for it right now."""
        return self.state in LIVE

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it unless it is relaunched."""
        return self.state in ENDED


@dataclass(frozen=True)
class Attempt:
    """One launch of a run, kept for ever.

    Attributes:
        number: counts the attempts of its run.
        token: names it and nothing else ever, in its directory, its order and its containers.
        image: the digest of what its agent ran in.
        suspected: as that of its run.
        recipe: what that image was built from: hashes of its files and of those of its mlebench-env; empty: unknown.
        not_held: the limits that nothing held where it ran, in words; empty when all were held.
        placement: where it was launched: `here`, or by which batch system.
        job: the number by which that knows it; empty where there is none.
        node: the host that it runs on; empty for the engine's own, or while none is known.
        waits_for: why that does not run it yet, or not at the moment, in its own word; empty where it does.
        starts_at: when it may start, by that system's reckoning; None where nobody knows.
        job_priority: by which that chooses among those that wait; higher goes first.
    """

    id: int
    run_id: int
    number: int
    token: str
    directory: str
    runtime: str
    isolated: bool | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    exit_code: int | None
    exit_signal: int | None
    exit_reason: str
    outcome: Outcome | None
    failure_class: FailureClass | None
    failure_text: str
    evidence: str
    classified_by: str
    reroll: bool
    image: str
    hardware: Hardware | None
    suspected: str = ""
    not_held: str = ""
    recipe: str = ""
    placement: str = HERE
    job: str = ""
    node: str = ""
    waits_for: str = ""
    starts_at: float | None = None
    job_priority: int | None = None


@dataclass(frozen=True)
class Submission:
    """A snapshot of what an agent had submitted at some moment, with its grade once there is one."""

    id: int
    attempt_id: int
    sequence: int
    taken_at: float
    elapsed_seconds: float
    sha256: str
    bytes: int
    path: str
    final: bool
    graded_at: float | None
    edition: str | None
    score: float | None
    valid: bool | None
    standing: Outcome | None
    message: str | None


@dataclass(frozen=True)
class Grade:
    """The grade of one submission; `report` is MLE-bench's report of it."""

    submission_id: int
    graded_at: float
    edition: str
    score: float | None
    valid: bool
    standing: Outcome
    message: str
    report: dict[str, Any]


@dataclass(frozen=True)
class Event:
    """Something that happened, in order and for ever."""

    id: int
    at: float
    kind: str
    text: str
    sweep_id: str | None
    run_id: int | None
    attempt_id: int | None
    competition_id: str | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """Something that a console or a command wants the engine to do, with the answer once there is one.

    Attributes:
        not_before: when it is done at the earliest; until then it can be withdrawn. None: at once.
    """

    id: int
    filed_at: float
    author: str
    kind: str
    arguments: dict[str, Any]
    state: RequestState
    answer: str
    answered_at: float | None
    not_before: float | None = None


@dataclass(frozen=True)
class SweepCounts:
    """How many of a sweep's runs are in which state.

    Attributes:
        retrying: of the failed ones, those that will be queued again.
        demo: how many are on the demo's synthetic data.
    """

    total: int = 0
    queued: int = 0
    live: int = 0
    finished: int = 0
    failed: int = 0
    stopped: int = 0
    medals: int = 0
    infrastructure: int = 0
    retrying: int = 0
    demo: int = 0


@dataclass(frozen=True)
class Acknowledgement:
    """That somebody knows of something that needs a person, named by its key, and why it is out of the way.

    Attributes:
        text: what it was, in words.
        until: when it is shown again, whatever happens; None: as soon as there is something newer than `at`.
    """

    key: str
    text: str
    author: str
    at: float
    reason: str
    until: float | None = None

    def hides(self, newest: float, now: float) -> bool:
        """Return whether what happened last at some moment is still out of the way."""
        return newest <= self.at if self.until is None else now < self.until


@dataclass(frozen=True)
class Experiment:
    """A leaderboard row in the making: the sweeps that belong to it."""

    id: str
    note: str
    created_at: float
    sweep_ids: tuple[str, ...]


@dataclass(frozen=True)
class UsageSample:
    """What one attempt used at one moment; None where it could not be measured.

    Attributes:
        gpu_percent: how busy its GPUs were, on average; others may share them.
        gpu_memory_bytes: what is taken of the memory of its GPUs together.
        network_bytes: what has gone in and out of its own network since it began.
    """

    attempt_id: int
    at: float
    cpu_percent: float | None
    memory_bytes: int | None
    disk_bytes: int | None
    processes: int | None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None
    network_bytes: int | None = None


class DatasetState(StrEnum):
    """How far a competition's data are.

    `refused` waits for somebody to accept the rules on Kaggle, `unavailable` is no longer offered there.
    """

    ABSENT = "absent"
    WAITING = "waiting"
    WORKING = "working"
    PREPARED = "prepared"
    FAILED = "failed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


class StepState(StrEnum):
    """How far one step of preparing a dataset is."""

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class VerificationKind(StrEnum):
    """How a prepared dataset is verified: by names, sizes and tables, by every file, or after writing its manifest."""

    QUICK = "quick"
    DEEP = "deep"
    RECORD = "record"


@dataclass(frozen=True)
class Dataset:
    """One competition's data in one edition.

    Attributes:
        priority: of those that are requested the higher ones come first.
        verification: how it was to be verified the last time; empty if it never was.
        failures: how often in a row it has failed for a reason of its own that may be over the next time.
        failing_since: since when it has failed, or could not reach Kaggle.
        retry_at: when it is tried again; None: as soon as there is room for it.
        demo: whether it is made, or is to be made, of the demo's synthetic data.
    """

    competition_id: str
    edition: str
    state: DatasetState
    problem: str
    source: str
    bytes_on_disk: int | None
    requested_at: float | None
    prepared_at: float | None
    updated_at: float
    priority: int = 0
    verification: str = ""
    failures: int = 0
    failing_since: float | None = None
    retry_at: float | None = None
    demo: bool = False


@dataclass(frozen=True)
class KaggleState:
    """Whether Kaggle can be reached, as far as it was asked.

    Attributes:
        unreachable_since: None: it can be reached.
        failures: how often it has been asked in vain since then.
        retry_at: when it is asked again.
        problem: why it can't be reached.
        accepted_at: when it last accepted our credentials.
    """

    unreachable_since: float | None = None
    failures: int = 0
    retry_at: float | None = None
    problem: str = ""
    accepted_at: float | None = None


@dataclass(frozen=True)
class DatasetStep:
    """One step of preparing a dataset, with what is done of how much."""

    competition_id: str
    edition: str
    position: int
    name: str
    state: StepState
    done: int
    total: int | None
    unit: str
    note: str
    started_at: float | None
    ended_at: float | None
