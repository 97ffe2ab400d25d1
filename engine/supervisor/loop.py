"""The engine's loop: wakes when something was filed, a worker has news or a timer is due; no step harms another."""

from __future__ import annotations

import selectors
from collections.abc import Callable
from dataclasses import dataclass

from engine.datasets import DatasetDesk, Room
from engine.datasets.requests import DatasetRequests
from engine.notifications.notifier import Notifier
from engine.places import Places
from engine.runs.intake import Intake
from engine.runs.live_grading import LiveGrading
from engine.runs.redaction import Redaction
from engine.settings import Settings
from engine.supervisor.heartbeat import Heartbeat
from engine.supervisor.keeper import RunnerKeeper
from engine.supervisor.requests import RequestDesk
from engine.supervisor.retrying import Retrier
from engine.supervisor.starting import Starter
from engine.sweeps.importing import SweepImport
from engine.sweeps.removing import SweepRemoval
from engine.workers import WorkerPool
from environment.runner.gpus import GpuPool, nvidia_reader
from foundation.clock import Clock
from state import runs
from state.database import Database
from state.samples import Samples

WAKE_SECONDS = 0.1
_BACK_OFF_SECONDS = 5.0

Log = Callable[[str, BaseException | None], None]


@dataclass
class _Timed:
    """A step of the loop, when it is due, and what is wrong with it at the moment."""

    name: str
    do: Callable[[], None]
    every: float
    due_at: float = 0.0
    problem: str = ""


class Supervisor:
    """Everything that the engine does, over one open state."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        database: Database,
        samples: Samples,
        pool: WorkerPool,
        clock: Clock,
        log: Log,
        redaction: Redaction,
    ) -> None:
        self._database = database
        self._pool = pool
        self._clock = clock
        self._log = log
        room = Room(
            downloads=int(settings.download_workers),
            preparations=int(settings.dataset_workers),
            keep_free=int(settings.keep_free_gb * 1e9),
        )
        self._datasets = DatasetDesk(database, pool, clock, data_dir=places.data_dir, room=room)
        asked = DatasetRequests(database, self._datasets, places.data_dir, clock)
        self._removal = SweepRemoval(database, samples, places, log)
        self._import = SweepImport(database, places, clock)
        more = asked.handlers | self._removal.handlers | self._import.handlers
        self._requests = RequestDesk(database, places, clock, log, more, settings)
        self._gpus = GpuPool(nvidia_reader(), clock)
        self._starter = Starter(database, places, clock, log, redaction, self._gpus, settings)
        self._retrier = Retrier(database, clock)
        self._intake = Intake(database, samples, places.state_dir, clock, log, redaction)
        self._grading = LiveGrading(database, pool, places.state_dir, clock, at_once=settings.grading_workers)
        self._keeper = RunnerKeeper(places.state_dir, clock)
        self._heartbeat = Heartbeat(places, clock, settings)
        self._notifier = Notifier(places.config_file, database, clock, self._heartbeat.full_disks)
        self._seen_version = -1
        self._steps = [
            _Timed("requests", self._answer, WAKE_SECONDS),
            _Timed("datasets", self._datasets.step, 0.3),
            _Timed("intake", self._intake.step, 0.25),
            _Timed("importing", self._import.settle, 0.1),
            _Timed("grading", self._grading.step, 0.25),
            _Timed("retrying", self._retrier.step, 1.0),
            _Timed("starting", self._starter.step, 0.25),
            _Timed("runner", self._keeper.step, 0.25),
            _Timed("removing", self._removal.step, 0.25),
            _Timed("heartbeat", self._beat, 2.0),
            _Timed("notifying", self._notifier.step, 2.0),
        ]

    def recover(self) -> None:
        """Bring together what the state says and what is there, after whatever happened before."""
        self._import.recover()
        self._datasets.recover()
        self._starter.recover()
        self._beat()

    def run(self, stopping: Callable[[], bool], wakeup: int) -> None:
        """Work until told to stop; `wakeup` is readable when a signal has come."""
        while not stopping():
            self._hear()
            for step in self._steps:
                if self._clock.monotonic() >= step.due_at:
                    self._do(step)
            self._sleep(wakeup)

    def _do(self, step: _Timed) -> None:
        try:
            step.do()
            step.problem = ""
            step.due_at = self._clock.monotonic() + step.every
        except Exception as error:  # noqa: BLE001 - the other steps go on; this one is tried again later
            self._log(f"step {step.name}", error)
            step.problem = str(error).replace("\n", " ") or type(error).__name__
            step.due_at = self._clock.monotonic() + _BACK_OFF_SECONDS

    def _answer(self) -> None:
        version = self._database.data_version()
        if version != self._seen_version:
            self._requests.step()
            self._seen_version = version

    def _hear(self) -> None:
        for news in self._pool.poll():
            try:
                if not self._datasets.hear(news):
                    self._grading.hear(news)
            except Exception as error:  # noqa: BLE001 - one task's news must not keep the others from being heard
                self._log(f"news of task {news.number}", error)

    def _beat(self) -> None:
        self._heartbeat.beat(
            live=sum(runs.live_counts(self._database).values()),
            queued=runs.queued_count(self._database),
            datasets_working=self._datasets.working,
            grading=self._grading.working,
            runner_alive=self._keeper.alive,
            slots_used=self._starter.slots_used,
            gpus=len(self._gpus.devices()),
            problem="; ".join(f"{step.name}: {step.problem}" for step in self._steps if step.problem),
        )

    def _sleep(self, wakeup: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(wakeup, selectors.EVENT_READ)
            news = self._pool.fileno()
            if news is not None:
                selector.register(news, selectors.EVENT_READ)
            selector.select(WAKE_SECONDS)
