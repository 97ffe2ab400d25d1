"""The records of the state as frozen dataclasses, the only form in which other packages get them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from mlebench_console.foundation.conditions import HERE, RunConditions
from mlebench_console.foundation.fields import flat
from mlebench_console.foundation.measurements import Hardware
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode, ProblemSubject
from mlebench_console.foundation.problems import ProblemRecord
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import ENDED, LIVE, FailureClass, Outcome, RunState, SweepState


class RequestState(StrEnum):
    """The state of a request that a console or a command filed."""

    FILED = "filed"
    DONE = "done"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


# The runtime of imported runs, whose conditions are unknown.
IMPORTED = "imported"


@dataclass(frozen=True)
class SweepSpec:
    """The specification of a sweep as the operator launched it, which never changes.

    Attributes:
        conditions: of each of its runs.
        raw_dir: raw data to prepare missing datasets from; empty: those of the data directory or Kaggle.
        demo: whether missing datasets are prepared from synthetic data.
        retries: how often a run is started again after the infrastructure failed.
        over_budget: what counts when a run fails because a shared budget is used up: `result` or `relaunch`.
    """

    agent_id: str
    agents_dir: str
    competitions: tuple[str, ...]
    seeds: int
    conditions: RunConditions
    data_dir: str = ""
    prepare_missing: bool = False
    raw_dir: str = ""
    demo: bool = False
    retries: int = 0
    start_ramp_seconds: float = 0.0
    over_budget: str = "result"

    @property
    def extent(self) -> str:
        """Its competitions and seeds in words."""
        return f"{plural(len(self.competitions), 'competition')} x {plural(self.seeds, 'seed')}"


@dataclass(frozen=True)
class Tag:
    """A tag of a run or a sweep, with its author and time."""

    name: str
    by: str
    at: float


@dataclass(frozen=True)
class Sweep:
    """A sweep: one agent on some competitions, with some seeds each.

    Attributes:
        note: its purpose, or other remarks.
        noted_by: the note's last author; empty where it was launched with the note.
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

    @property
    def conditions(self) -> RunConditions:
        """The conditions of each of its runs."""
        return self.spec.conditions

    def document(self) -> dict[str, Any]:
        """Return it as a JSON object, whose `spec` has all conditions of the runs by their flat names."""
        return asdict(self) | {"spec": flat(self.spec)}


@dataclass(frozen=True)
class Run:
    """One (competition, seed) of a sweep, with the standing of its latest attempt.

    `outcome` is set when the run has finished; `standing`, `score` and `valid` follow the last
    graded submission while it is live and are final with the outcome.

    Attributes:
        problem: what ended it that is not its own doing; None for none, or where its text alone says it.
        suspected: a problem that only words in the agent's log, or its model calls, suggest; None for none.
        grading_problem: why its newest submission can't be graded now, which is not the submission's fault;
            empty where it can.
        grading_fails_since: when that began.
        grading_retry_at: when grading is tried again.
        excused: whether its failure does not count until it is relaunched for free, which its sweep specifies for
            the end of a shared budget.
        note: remarks, with `noted_by` and `noted_at`.
        demo: whether it is on the demo's synthetic data, so that it is not a result.
        cause: by what its failure is grouped with others (`state.causes`); empty if it has not failed.
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
    problem: ProblemCode | None = None
    suspected: ProblemCode | None = None
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
        """Whether it is being worked on."""
        return self.state in LIVE

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it unless it is relaunched."""
        return self.state in ENDED


class OwnReason(StrEnum):
    """Our own reasons for which an attempt of a batch system does not run; others are the batch system's codes.

    Attributes:
        IMAGE: an image of its dataset is being made.
        TO_SUBMIT: it is submitted as soon as the rate of its profile allows.
        SUBMIT_LIMIT: the batch system takes no more jobs of this user now.
        NO_NODE: the batch system knows no node for it, perhaps only while nodes are down.
        AWAY: the batch system does not answer.
        STAGING: its job copies its dataset to the node.
    """

    IMAGE = "image"
    TO_SUBMIT = "to_submit"
    SUBMIT_LIMIT = "submit_limit"
    NO_NODE = "no_node"
    AWAY = "away"
    STAGING = "staging"


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """What is known of an attempt's job in a batch system; all empty for one on the engine's own host.

    Attributes:
        job: its number; empty without one.
        node: its host; empty while it is unknown.
        waits_for: the code of why it does not run now, the batch system's or an `OwnReason`; empty where it does.
        starts_at: the batch system's estimate of its start; None where unknown.
        job_priority: its priority among waiting jobs; higher goes first.
        staged_bytes, to_stage_bytes: of its dataset, while that is being copied to its node.
    """

    job: str = ""
    node: str = ""
    waits_for: str = ""
    starts_at: float | None = None
    job_priority: int | None = None
    staged_bytes: int | None = None
    to_stage_bytes: int | None = None


# Named once, because the facts of thousands of jobs are compared at a time.
_OF_JOBS = tuple(field.name for field in fields(JobFacts))


@dataclass(frozen=True)
class Attempt(JobFacts):
    """One launch of a run, which is never removed while its sweep exists.

    Attributes:
        number: its number among the attempts of its run, from 1.
        token: its permanently unique id, in the names of its directory, its order and its containers.
        image: the digest of its agent's image.
        problem, suspected: as for its run.
        problem_subject: the devices, folder or provider that the problem is about; None where that is unknown.
        recipe: the hashes of the files from which its image and that's mlebench-env were built; empty: unknown.
        unenforced: the codes of the limits that nothing enforced where it ran.
        placement: where it was launched: `here`, or the name of a batch system's profile.
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
    exit_reason: EndReason | None
    outcome: Outcome | None
    failure_class: FailureClass | None
    failure_text: str
    evidence: str
    classified_by: str
    reroll: bool
    image: str
    hardware: Hardware | None
    problem: ProblemCode | None = None
    problem_subject: ProblemSubject | None = None
    suspected: ProblemCode | None = None
    unenforced: tuple[str, ...] = ()
    recipe: str = ""
    placement: str = HERE

    @property
    def is_waiting(self) -> bool:
        """Whether it is live, and its batch system does not run it yet, or has suspended it, or copies its data."""
        return bool(self.waits_for) and self.ended_at is None

    @property
    def is_in_queue(self) -> bool:
        """Whether it waits before its job has begun, or while it is suspended, rather than for its data."""
        return self.is_waiting and self.waits_for != OwnReason.STAGING

    @property
    def job_facts(self) -> JobFacts:
        """What is known of its job alone."""
        return JobFacts(**{name: getattr(self, name) for name in _OF_JOBS})


@dataclass(frozen=True)
class Submission:
    """A snapshot of an agent's submission, with its grade once there is one."""

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
    """The grade of one submission."""

    submission_id: int
    graded_at: float
    edition: str
    score: float | None
    valid: bool
    standing: Outcome
    message: str


@dataclass(frozen=True)
class FiledRequest:
    """A request of a console or a command to the engine, with the answer once there is one.

    Attributes:
        kind: the name of the request's class in `engine.requests`.
        text: what it does, such as `stopping 3 runs`.
        answer: the engine's, the texts of its refusal, or who withdrew it.
        not_before: the earliest time of its execution, until which it can be withdrawn; None: at once.
    """

    id: int
    filed_at: float
    author: str
    kind: str
    arguments: dict[str, Any]
    text: str
    state: RequestState
    answer: dict[str, Any]
    not_before: float | None = None


@dataclass(frozen=True)
class SweepCounts:
    """The numbers of a sweep's runs by state.

    Attributes:
        retrying: failed runs that will be queued again.
        demo: runs on the demo's synthetic data.
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
    """A person's acknowledgement of something that needs a person, with the reason.

    Attributes:
        text: what needed a person, in words.
        until: when it is shown again in any case; None: as soon as it recurs after `at`.
    """

    key: str
    text: str
    author: str
    at: float
    reason: str
    until: float | None = None

    def document(self) -> dict[str, Any]:
        """Return it as a part of JSON documents."""
        return {"by": self.author, "at": self.at, "reason": self.reason, "until": self.until}

    def hides(self, newest: float, now: float) -> bool:
        """Return whether something that occurred last at `newest` is still hidden."""
        return newest <= self.at if self.until is None else now < self.until


@dataclass(frozen=True)
class Experiment:
    """The sweeps that together make a leaderboard row."""

    id: str
    created_at: float
    sweep_ids: tuple[str, ...]


class DatasetState(StrEnum):
    """The state of a competition's data.

    `refused`: a person must accept the rules on Kaggle; `unavailable`: no longer offered there.
    """

    ABSENT = "absent"
    WAITING = "waiting"
    WORKING = "working"
    PREPARED = "prepared"
    FAILED = "failed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"

    @property
    def is_busy(self) -> bool:
        """Whether it is being prepared, or waits for that."""
        return self in (DatasetState.WAITING, DatasetState.WORKING)


class StepState(StrEnum):
    """The state of one step of preparing a dataset."""

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
class PreparationOptions:
    """How a dataset is prepared, as it was requested; kept, so that a restart continues in the same way.

    Attributes:
        source: of its raw data: `demo`, an extracted Kaggle folder or its zip, or a folder of such; empty: the data
            directory or Kaggle.
        verify: compare with the known checksums; None: if they apply, that is, for Kaggle's own zip.
        keep_raw: leave the extracted files in `raw/`.
        discard_zip: remove the zip when the dataset is prepared.
        descriptions: the description beside the data: `ours`, `obfuscated`, `kaggle`, or a folder; empty: ours.
        mirror: where the prepared dataset is copied from; empty: it is prepared here.
    """

    source: str = ""
    verify: bool | None = None
    keep_raw: bool = False
    discard_zip: bool = False
    descriptions: str = ""
    mirror: str = ""


@dataclass(frozen=True)
class Dataset:
    """One competition's data in one edition.

    Attributes:
        priority: among requested ones; higher goes first.
        problem_record: its problem, or what it waits for; None if there is none.
        verification: the kind of its last verification; empty if there was none.
        failures: how often in a row it has failed for a temporary reason of its own.
        failing_since: since when it has been failing, or could not reach Kaggle.
        retry_at: when it is tried again; None: as soon as a worker is free.
        demo: whether it is, or will be, made of the demo's synthetic data.
    """

    competition_id: str
    edition: str
    state: DatasetState
    options: PreparationOptions = field(default_factory=PreparationOptions)
    bytes_on_disk: int | None = None
    requested_at: float | None = None
    prepared_at: float | None = None
    updated_at: float = 0.0
    problem_record: ProblemRecord | None = None
    priority: int = 0
    verification: str = ""
    failures: int = 0
    failing_since: float | None = None
    retry_at: float | None = None
    demo: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Its competition and edition, which identify it."""
        return self.competition_id, self.edition

    @property
    def problem_code(self) -> str:
        """The class of its problem, or of what it waits for; empty if there is none."""
        return "" if self.problem_record is None else self.problem_record.code

    @property
    def problem_text(self) -> str:
        """Its problem, or what it waits for, in one line; empty if there is none."""
        return "" if self.problem_record is None else self.problem_record.in_one_line()


@dataclass(frozen=True)
class KaggleState:
    """Whether Kaggle can be reached, by the last requests.

    Attributes:
        unreachable_since: None if it can be reached.
        failures: the number of failed requests since then.
        retry_at: when the next request is made.
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
    """One step of preparing a dataset, with its progress."""

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
