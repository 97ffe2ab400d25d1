"""The queue of requested datasets: starts worker jobs that check, download, prepare, verify and prune them.

A failed dataset does not stop others. Downloads and preparations have separate limits, because the former need the
network, the latter processors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import EDITIONS, edition_named
from mlebench_console.engine.claims import Claimed
from mlebench_console.engine.datasets.limits import Limits
from mlebench_console.engine.datasets.outage import Outage, is_due_for_kaggle
from mlebench_console.engine.datasets.plans import (
    by_priority,
    is_ready,
    next_stage,
    record_prepared,
)
from mlebench_console.engine.datasets.prepared.descriptions import KAGGLE
from mlebench_console.engine.datasets.prepared.workspace import leftovers_in
from mlebench_console.engine.datasets.records import DatasetRecords
from mlebench_console.engine.datasets.sources.access import CHECK_ACCESS, state_after
from mlebench_console.engine.datasets.sources.published import SourceFailure
from mlebench_console.engine.datasets.steps import CHECK, CHECKSUM, DOWNLOAD, PREPARE
from mlebench_console.engine.downloads import BACKOFF
from mlebench_console.engine.kaggle import (
    CredentialsRefused,
    KaggleFailure,
    KaggleUnreachable,
    NotAvailable,
    RulesNotAccepted,
    unreachable,
)
from mlebench_console.engine.layout import dataset_folder, is_demo
from mlebench_console.engine.space import DiskFull, free_bytes, growth
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.problems import DataProblem, Problem
from mlebench_console.foundation.text import gigabytes
from mlebench_console.foundation.workers import Ended, Progressed, WorkerPool
from mlebench_console.state import datasets
from mlebench_console.state.database import Database
from mlebench_console.state.records import Dataset, DatasetState, StepState, VerificationKind

_TASKS = "mlebench_console.engine.datasets.tasks"
FETCH = f"{_TASKS}:fetch_zip"
PREPARE_DATASET, VERIFY = f"{_TASKS}:prepare_dataset", f"{_TASKS}:verify_dataset"
PRUNE, SETTLE = f"{_TASKS}:prune_dataset", f"{_TASKS}:settle_dataset"
PRELOAD = ("pandas", _TASKS)

# How long to wait before each retry after a temporary failure; after the last retry the dataset stays failed.
_ROUNDS_AFTER_DEATH = (1.0, 5.0, 30.0, 300.0)
_ROUNDS_AFTER_FAILURE = (60.0, 600.0, 3600.0)
_ANSWERS = (RulesNotAccepted, NotAvailable, KaggleFailure, DiskFull)
_CHECKS_AT_ONCE = 4
_PROGRESS_SECONDS = 0.5
_RATE_SECONDS = 20.0
_CLAIMED_SECONDS = 10.0
_MORE_SPACE_BYTES = 1 << 20

Key = tuple[str, str]


@dataclass(frozen=True)
class Capacity:
    """How many jobs may run at once, and the limits for all of them."""

    downloads: int
    preparations: int
    limits: Limits = field(default_factory=Limits)


@dataclass
class _Work:
    """A running job.

    Attributes:
        asks: whether it sends requests to Kaggle.
        tries: whether it is the one that tries if Kaggle can be reached again.
        needs: bytes of the disk that it will still use, as far as known.
        loaded: bytes of a download at its last progress.
        has_answered: whether Kaggle has answered, as its progress shows.
    """

    dataset: Dataset
    stage: str
    free_before: int
    asks: bool
    tries: bool
    shared_disk: bool
    needs: int = 0
    loaded: int | None = None
    has_answered: bool = False
    step: str = ""
    reported_at: float = 0.0
    unreported: Progressed | None = None
    cancelled: bool = False


class DatasetQueue:
    """Starts jobs for datasets as capacity allows, and records their progress in the state."""

    def __init__(
        self,
        database: Database,
        pool: WorkerPool,
        clock: Clock,
        *,
        data_dir: Path,
        capacity: Capacity,
        patience: float,
    ) -> None:
        """Create it without starting jobs; datasets wait `patience` seconds for Kaggle while it can't be reached."""
        self._database = database
        self._pool = pool
        self._clock = clock
        self._data_dir = data_dir
        self._capacity = capacity
        self._patience = patience
        self._outage = Outage(database, clock)
        self.records = DatasetRecords(database, clock)
        self.verifications = Verifications(database, pool, self.records, clock, data_dir=data_dir)
        self._working: dict[int, _Work] = {}
        self._cleaning: dict[int, Callable[[Ended], None]] = {}
        self._blocked: dict[Key, Callable[[], bool]] = {}
        self._loaded: deque[tuple[float, int]] = deque()
        self._loading_since = 0.0

    @property
    def download_rate(self) -> float | None:
        """Bytes per second of all downloads together, over the last seconds; None: nothing has been downloaded."""
        now = self._clock.monotonic()
        while self._loaded and self._loaded[0][0] < now - _RATE_SECONDS:
            self._loaded.popleft()
        if not self._loaded:
            return None
        return sum(count for _, count in self._loaded) / max(
            1.0, min(_RATE_SECONDS, now - self._loading_since)
        )

    @property
    def working(self) -> int:
        """Count the datasets that are being worked on."""
        return len(self._working) + self.verifications.working

    def recover(self) -> None:
        """Queue the datasets again that an earlier engine was working on."""
        for dataset in datasets.in_state(self._database, DatasetState.WORKING):
            self.records.put_back(dataset)
        self.refresh()
        self.verifications.recover()
        self._settle()

    def step(self) -> None:
        """Start jobs as capacity allows, and record progress that was held back."""
        for work in self._working.values():
            if work.unreported is not None:
                self._take_progress(work, work.unreported)
        self.verifications.step(self._capacity.preparations)
        free = {
            CHECK: _CHECKS_AT_ONCE - self._in_stage(CHECK),
            DOWNLOAD: self._capacity.downloads - self._in_stage(DOWNLOAD),
            PREPARE: self._capacity.preparations - self._in_stage(PREPARE),
        }
        if max(free.values()) <= 0:
            return
        if self._in_stage(CHECK):
            # all checks come before downloads, so that the operator learns early which rules to accept
            free[DOWNLOAD] = 0
        waiting = datasets.in_state(self._database, DatasetState.WAITING)
        may_ask, tries = self._may_ask_kaggle(waiting)
        for dataset in by_priority(self._database, waiting):
            key = dataset.key
            if (key in self._blocked and self._blocked[key]()) or self._others_did_it(dataset):
                continue
            if not is_due_for_kaggle(dataset.retry_at, self._clock.now()):
                continue
            stage = self._next_stage(dataset)
            if stage is None:
                continue
            asks = _needs_kaggle(dataset, stage)
            if asks and not may_ask:
                continue
            if stage is CHECK:
                free[DOWNLOAD] = 0
            if free[stage] > 0 and not self._is_busy(dataset.competition_id):
                needed = self._bytes_to_wait_for(dataset, stage)
                if needed:
                    self.records.waits(dataset, _waits_for_space(needed))
                    continue
                free[stage] -= 1
                self._blocked.pop(key, None)
                self._start(dataset, stage, asks=asks, tries=asks and tries)
                may_ask = may_ask and not (asks and tries)

    def set_jobs(self, count: int) -> None:
        """Change how many jobs run at once, until the engine ends."""
        self._capacity = replace(self._capacity, downloads=count, preparations=count)

    def forget(self, competition_id: str, edition: str) -> None:
        """Forget why a dataset waited, because it was requested again."""
        self._blocked.pop((competition_id, edition), None)

    def stop(self, dataset: Dataset) -> None:
        """Stop working on a dataset, or remove it from the queue; downloaded data stay."""
        for number, work in self._working.items():
            if work.dataset.key == dataset.key:
                work.cancelled = True
                self._pool.cancel(number)
                return
        if self.verifications.knows(dataset):
            self.verifications.stop(dataset)
        else:
            self.records.stopped(dataset)

    def prune(self, competition_id: str, parts: tuple[str, ...]) -> None:
        """Remove parts of a competition's data from the disk."""
        wanted = {"competition_id": competition_id, "data_dir": str(self._data_dir), "parts": parts}
        self._cleaning[self._pool.start(PRUNE, wanted)] = partial(self.records.pruned, competition_id)

    def refresh(self) -> None:
        """Record which datasets are prepared on the disk, by any program, and which are gone."""
        known = {one.key: one for one in datasets.all_datasets(self._database)}
        for dataset in known.values():
            if dataset.state is DatasetState.PREPARED and self._is_gone(dataset):
                self.records.gone(dataset)
        now = self._clock.now()
        # Facts are read only of those that have a folder: reading all of them is a quarter of an engine's start.
        with_folder = [name for name in registry.all_ids() if _may_exist(self._data_dir / name)]
        for competition_id, edition in product(with_folder, EDITIONS):
            found = known.get((competition_id, edition))
            if found is not None and found.state.is_busy:
                continue
            try:
                if is_ready(competition_id, edition, self._data_dir):
                    record_prepared(self._database, competition_id, edition, self._data_dir, now=now)
            except DataProblem as problem:  # concerns this dataset only
                why = problem.record.without_subject()
                if found is None or (found.state, found.problem_record) != (DatasetState.FAILED, why):
                    state = DatasetState.FAILED
                    datasets.set_state(self._database, competition_id, edition, state, now=now, problem=why)

    def _settle(self) -> None:
        """Start jobs that clean up after killed preparations; queued datasets are cleaned up when they are prepared."""
        queued = {
            dataset.competition_id for dataset in datasets.in_state(self._database, DatasetState.WAITING)
        }
        for competition_id in sorted(leftovers_in(self._data_dir) & {*registry.all_ids()} - queued):
            wanted = {"competition_id": competition_id, "data_dir": str(self._data_dir)}
            self._cleaning[self._pool.start(SETTLE, wanted)] = partial(self.records.settled, competition_id)

    def take_event(self, news: Progressed | Ended) -> bool:
        """Process an event of a job; return False if the job is unknown. After an error it can be called again."""
        if news.number in self._cleaning:
            if isinstance(news, Ended):
                self._cleaning[news.number](news)
                del self._cleaning[news.number]
                self.refresh()
            return True
        if self.verifications.take_event(news):
            return True
        work = self._working.get(news.number)
        if work is None:
            return False
        if isinstance(news, Progressed):
            self._take_progress(work, news)
        else:
            with self._database.transaction():
                self._take_end(work, news)
            del self._working[news.number]
        return True

    def _may_ask_kaggle(self, waiting: Sequence[Dataset]) -> tuple[bool, bool]:
        """Return whether jobs may send requests to Kaggle now, and whether only one may, to try if it is reachable."""
        since = self._outage.state.unreachable_since
        if since is None:
            return True, False
        if self._clock.now() - since <= self._patience:
            return not any(work.tries for work in self._working.values()) and self._outage.may_try(), True
        why = f"{self._outage.state.problem}, for {self._patience / 3600:g} h"
        with self._database.transaction():
            self._fail_all_that_ask(waiting, unreachable(why))
            self._outage.forget()
        return False, False

    def _fail_all_that_ask(self, waiting: Sequence[Dataset], problem: Problem) -> None:
        """Fail all datasets that need Kaggle, without a request for each."""
        for dataset in waiting:
            stage = self._next_stage(dataset)
            if stage is not None and _needs_kaggle(dataset, stage):
                self.records.failed(dataset, stage, problem, DatasetState.FAILED)

    def _next_stage(self, dataset: Dataset) -> str | None:
        """Return the next stage of a dataset; None if its folder can't be read, in which case it has failed."""
        try:
            return next_stage(self._database, dataset, self._data_dir)
        except DataProblem as problem:
            self.records.failed(dataset, CHECK, problem, DatasetState.FAILED)
            return None

    def _bytes_to_wait_for(self, dataset: Dataset, stage: str) -> int:
        """Return how much disk space a stage waits for, as what is free is reserved for others; 0: it can start."""
        reserved = sum(work.needs for work in self._working.values())
        needs = self._needs(dataset, stage)
        free = free_bytes(self._data_dir) - self._capacity.limits.keep_free
        # A dataset that does not fit even alone is started, so that it fails with the space that it needs.
        if not self._working or reserved + needs <= free:
            return 0
        return needs

    def _needs(self, dataset: Dataset, stage: str) -> int:
        """Return how many bytes of the disk a stage will use, as far as that is known beforehand."""
        folder = dataset_folder(registry.get(dataset.competition_id), self._data_dir)
        if stage is DOWNLOAD:
            steps = datasets.steps(self._database, *dataset.key)
            total = next(
                (step.total for step in steps if step.name == DOWNLOAD and step.unit == "bytes"), None
            )
            return max(0, (total or 0) - folder.downloaded_bytes(registry.get(dataset.competition_id)))
        options = dataset.options
        if stage is PREPARE and not options.source:
            # kept raw data are extracted beside what is prepared from them
            return sum(growth(path.stat().st_size) for path in folder.zips()) * (1 + options.keep_raw)
        return 0

    def _in_stage(self, stage: str) -> int:
        return sum(work.stage is stage for work in self._working.values())

    def _is_busy(self, competition_id: str) -> bool:
        """Return whether either edition is being worked on: they share the raw data."""
        return any(work.dataset.competition_id == competition_id for work in self._working.values())

    def _is_ready(self, dataset: Dataset) -> bool:
        return is_ready(dataset.competition_id, edition_named(dataset.edition), self._data_dir)

    def _is_gone(self, dataset: Dataset) -> bool:
        """Return whether a dataset is no longer prepared; False if it can't be read, which `refresh` reports."""
        try:
            return not self._is_ready(dataset)
        except DataProblem:
            return False

    def _others_did_it(self, dataset: Dataset) -> bool:
        """Return whether another user has prepared it while we waited for their claim, and record that."""
        key = dataset.key
        if key not in self._blocked or self._next_stage(dataset) is None or not self._is_ready(dataset):
            return False
        del self._blocked[key]
        folder = dataset_folder(
            registry.get(dataset.competition_id), self._data_dir, edition_named(dataset.edition)
        )
        self.records.prepared(dataset, None, demo=is_demo(folder))
        return True

    def _start(self, dataset: Dataset, stage: str, *, asks: bool, tries: bool) -> None:
        with self._database.transaction():
            if tries:
                self._outage.tries()
            self.records.working(dataset)
        task = CHECK_ACCESS
        wanted: dict[str, object] = {"competition_id": dataset.competition_id}
        if stage is not CHECK:
            task = FETCH
            wanted |= {"data_dir": str(self._data_dir), "limits": self._capacity.limits.to_json()}
        if stage is PREPARE:
            task = PREPARE_DATASET
            wanted |= {"edition": edition_named(dataset.edition), "options": asdict(dataset.options)}
        for work in self._working.values():
            work.shared_disk = True
        free = free_bytes(self._data_dir)
        needs = self._needs(dataset, stage)
        work = _Work(dataset, stage, free, asks, tries, shared_disk=bool(self._working), needs=needs)
        self._working[self._pool.start(task, wanted)] = work

    def _take_progress(self, work: _Work, news: Progressed) -> None:
        if work.asks and not work.has_answered and news.step == DOWNLOAD and news.total:
            self._outage.answered(tried=work.tries)
            work.has_answered, work.tries = True, False
        now = self._clock.monotonic()
        if news.step == DOWNLOAD and news.total:
            work.needs = max(0, news.total - news.done)
            if work.loaded is not None and news.done > work.loaded:
                if not self._loaded:
                    self._loading_since = now
                self._loaded.append((now, news.done - work.loaded))
            work.loaded = news.done
        if news.step == work.step and now - work.reported_at < _PROGRESS_SECONDS:
            work.unreported = news  # each change is a disk write, and screens can't show more
            return
        work.unreported = None
        self.records.progress(work.dataset, work.step, news)
        work.step = news.step
        work.reported_at = now

    def _take_end(self, work: _Work, news: Ended) -> None:
        dataset = work.dataset
        self._note_kaggle(work, news)
        if work.cancelled:
            self.records.stopped(dataset)
        elif news.lost or news.signal:
            assert news.problem is not None
            self._try_again(work, news.problem, _ROUNDS_AFTER_DEATH)
        elif news.problem is not None:
            self._take_problem(work, news.problem)
        elif work.stage is CHECK:
            self.records.offered(dataset, news.value["bytes"])
        elif work.stage is DOWNLOAD:
            self.records.fetched(dataset)
        else:
            self.records.prepared(dataset, int(news.value["bytes_on_disk"]), demo=bool(news.value["demo"]))

    def _take_problem(self, work: _Work, problem: Problem) -> None:
        """Let a dataset wait, be retried or fail, by the problem that its job has raised."""
        match problem:
            case DiskFull() | Claimed():
                self._wait(work, problem)
            case KaggleFailure() | SourceFailure():
                self._try_again(work, problem, _ROUNDS_AFTER_FAILURE)
            case CredentialsRefused():
                self._refused(work, problem)
            case KaggleUnreachable():
                self._unreachable(work, problem)
            case _:
                self.records.failed(work.dataset, work.step or work.stage, problem, state_after(problem))

    def _note_kaggle(self, work: _Work, news: Ended) -> None:
        """Record what the end of a job says about Kaggle; a killed job says nothing."""
        if not work.asks or work.cancelled or news.lost or news.signal:
            return
        if news.problem is None or isinstance(news.problem, _ANSWERS):
            self._outage.answered(tried=work.tries)
        elif work.tries and isinstance(news.problem, Claimed | SourceFailure):
            self._outage.not_asked()

    def _try_again(self, work: _Work, problem: Problem, rounds: Sequence[float]) -> None:
        """Retry a dataset later, after all others; after the last retry it has failed."""
        dataset = work.dataset
        if dataset.failures < len(rounds):
            failures = dataset.failures + 1
            self.records.put_off(dataset, problem, rounds[dataset.failures], failures=failures)
        else:
            self.records.failed(dataset, work.step or work.stage, problem, DatasetState.FAILED)

    def _unreachable(self, work: _Work, problem: KaggleUnreachable) -> None:
        """Let a dataset wait for Kaggle, and fail it after the patience if Kaggle answers other datasets."""
        dataset, retry_after = work.dataset, problem.record.retry_after
        self._outage.failed(problem.why, retry_after, tried=work.tries)
        now = self._clock.now()
        failing_for = now - (now if dataset.failing_since is None else dataset.failing_since)
        if failing_for > self._patience:
            self.records.failed(dataset, work.stage, problem, DatasetState.FAILED)
        else:  # wait as long as it has been failing so far
            seconds = max(retry_after or 0.0, BACKOFF.seconds_after(failing_for))
            waiting = KaggleUnreachable(problem.what, problem.why)  # nobody has to do anything
            self.records.put_off(dataset, waiting, seconds, failures=dataset.failures)

    def _refused(self, work: _Work, problem: CredentialsRefused) -> None:
        """Wait for other credentials if Kaggle has accepted some since the request; otherwise fail all."""
        dataset = work.dataset
        accepted_at = self._outage.state.accepted_at
        if accepted_at is not None and accepted_at >= (dataset.requested_at or 0.0):
            self._outage.refused(problem.cause, tried=work.tries)
            self.records.put_back(dataset, problem)
            return
        self.records.failed(dataset, work.step or work.stage, problem, DatasetState.FAILED)
        self._fail_all_that_ask(datasets.in_state(self._database, DatasetState.WAITING), problem)

    def _wait(self, work: _Work, problem: DiskFull | Claimed) -> None:
        """Keep a dataset in the queue until the cause of its stop may be gone."""
        dataset = work.dataset
        self.records.put_back(dataset, problem)
        if isinstance(problem, Claimed):
            not_before = self._clock.monotonic() + _CLAIMED_SECONDS
            self._blocked[dataset.key] = lambda: self._clock.monotonic() < not_before
            return
        # Files of a failed preparation are removed; a partial download stays and is resumed.
        before = free_bytes(self._data_dir) if work.stage is DOWNLOAD else work.free_before
        shared_disk = work.shared_disk

        def too_full() -> bool:
            if shared_disk and not self._working:
                return False  # it may fit when no other job uses space at the same time
            return free_bytes(self._data_dir) < before + _MORE_SPACE_BYTES

        self._blocked[dataset.key] = too_full


class Verifications:
    """Verifications of datasets: those that wait, in the order of the requests, and those that run."""

    def __init__(
        self, database: Database, pool: WorkerPool, records: DatasetRecords, clock: Clock, *, data_dir: Path
    ) -> None:
        self._database = database
        self._pool = pool
        self._records = records
        self._clock = clock
        self._data_dir = data_dir
        self._waiting: deque[Dataset] = deque()
        self._working: dict[int, Dataset] = {}
        self._stopped: set[int] = set()
        self._reported_at = float("-inf")

    @property
    def working(self) -> int:
        """Count the datasets that are being verified."""
        return len(self._working)

    def recover(self) -> None:
        """Queue the verifications again that an earlier engine did not finish."""
        open_ = {
            (step.competition_id, step.edition)
            for step in datasets.all_steps(self._database)
            if step.name == CHECKSUM and step.state in (StepState.WAITING, StepState.WORKING)
        }
        prepared = datasets.in_state(self._database, DatasetState.PREPARED)
        self._waiting.extend(each for each in prepared if each.key in open_)

    def ask(self, dataset: Dataset, kind: VerificationKind) -> None:
        """Queue a verification, unless the dataset is being verified or waits for it."""
        if not self.knows(dataset):
            self._waiting.append(replace(dataset, verification=kind))
            self._records.to_verify(dataset, kind)

    def knows(self, dataset: Dataset) -> bool:
        """Return whether a dataset is being verified or waits for it."""
        return any(each.key == dataset.key for each in (*self._waiting, *self._working.values()))

    def step(self, capacity: int) -> None:
        """Start waiting verifications, up to `capacity` at once."""
        while self._waiting and len(self._working) < capacity:
            dataset = self._waiting.popleft()
            wanted = {
                "competition_id": dataset.competition_id,
                "data_dir": str(self._data_dir),
                "edition": edition_named(dataset.edition),
                "kind": dataset.verification,
            }
            self._working[self._pool.start(VERIFY, wanted)] = dataset

    def stop(self, dataset: Dataset) -> None:
        """Stop the verification of a dataset."""
        for each in [each for each in self._waiting if each.key == dataset.key]:
            self._waiting.remove(each)
            self._records.not_verified(each)
        for number, each in self._working.items():
            if each.key == dataset.key:
                self._stopped.add(number)
                self._pool.cancel(number)

    def take_event(self, news: Progressed | Ended) -> bool:
        """Process an event of a job; return False if the job is unknown."""
        dataset = self._working.get(news.number)
        if dataset is None:
            return False
        if isinstance(news, Progressed):
            now = self._clock.monotonic()
            if now - self._reported_at >= _PROGRESS_SECONDS:  # screens can't show more
                self._reported_at = now
                self._records.verifying(dataset, news)
            return True
        if news.number in self._stopped:
            self._records.not_verified(dataset)
            self._stopped.remove(news.number)
        elif news.lost:
            self._waiting.appendleft(dataset)
        else:
            self._records.verified(dataset, news)
        del self._working[news.number]
        return True


def _may_exist(folder: Path) -> bool:
    """Return whether a folder exists, or can't be examined, which reading the dataset reports."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _waits_for_space(needed: int) -> DiskFull:
    """Return why a dataset waits; without figures that change all the time, as each change is a disk write."""
    return DiskFull(
        "waits for disk space", f"it needs {gigabytes(needed)}, the free space is reserved for others"
    )


def _needs_kaggle(dataset: Dataset, stage: str) -> bool:
    """Return whether the job of a stage sends requests to Kaggle."""
    return stage in (CHECK, DOWNLOAD) or dataset.options.descriptions == KAGGLE
