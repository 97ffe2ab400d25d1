"""The engine's loop over its steps, with its status file and its log."""

from __future__ import annotations

import os
import selectors
import shutil
import socket
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

from mlebench_console.competitions.grader import Grader
from mlebench_console.engine.agent_snapshots import AgentSnapshots
from mlebench_console.engine.control.status import EngineStatus, GpuUse, publish
from mlebench_console.engine.datasets import Capacity, DatasetQueue
from mlebench_console.engine.datasets.limits import Limits
from mlebench_console.engine.datasets.requests import DatasetRequests
from mlebench_console.engine.images.builds import ImageBuilds
from mlebench_console.engine.integrity.results import IntegrityRequests
from mlebench_console.engine.needs.need import disk_needs
from mlebench_console.engine.notifications.notifier import Notifier
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import (
    BuildImages,
    Handlers,
    ImportSweep,
    RecordIntegrity,
    RemoveSweep,
    ReviewFinding,
    StopBuild,
)
from mlebench_console.engine.runs.grading import LiveGrading
from mlebench_console.engine.runs.intake import Intake
from mlebench_console.engine.runs.scheduling import GpuPool, Retrier
from mlebench_console.engine.runs.starting import Starter
from mlebench_console.engine.settings import EngineSettings
from mlebench_console.engine.space import existing
from mlebench_console.engine.supervisor.requests import RequestDispatcher
from mlebench_console.engine.sweeps.checks import HostCapacity
from mlebench_console.engine.sweeps.imports import SweepImport
from mlebench_console.engine.sweeps.launch import SweepLaunches
from mlebench_console.engine.sweeps.removal import SweepRemoval
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.runner.host.readings import read_nvidia
from mlebench_console.environment.runner.process import bubblewrap
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemons import EndSignal, write_log
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.workers import Ended, Progressed, WorkerPool
from mlebench_console.state import events, runs
from mlebench_console.state.database import Database, UnusableState, lost_state
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.usage.samples import Samples

WAKE_SECONDS = 0.1
_BACK_OFF_SECONDS = 5.0
# The longest wait for another process that locks the state; consoles lock it for milliseconds.
_LOCK_SECONDS = 0.5


@dataclass
class _Step:
    """A step of the loop, when it is due, and its current problem.

    Attributes:
        every: seconds between two calls; 0: in each iteration.
        writes: whether it needs a writable state.
    """

    name: str
    do: Callable[[], None]
    every: float
    writes: bool = True
    due_at: float = 0.0
    problem: str = ""


class Supervisor:
    """The engine of one open state: all its steps and their order."""

    def __init__(
        self,
        places: Places,
        settings: EngineSettings,
        database: Database,
        samples: Samples,
        workers: WorkerPool,
        grader: Grader,
        clock: Clock,
    ) -> None:
        self._places = places
        self._settings = settings
        self._database = database
        self._workers = workers
        self._grader = grader
        self._clock = clock
        redaction = TextRedactor()
        self._log = log = EngineLog(redaction)
        capacity = Capacity(
            downloads=int(settings.download_workers),
            preparations=int(settings.dataset_workers),
            limits=Limits(
                keep_free=int(settings.keep_free_gb * 1e9),
                rate=None
                if settings.download_mb_per_second is None
                else settings.download_mb_per_second * 1e6,
                rate_file=str(places.state_dir / "download-rate"),
            ),
        )
        self._datasets = DatasetQueue(
            database,
            workers,
            clock,
            data_dir=places.data_dir,
            capacity=capacity,
            patience=settings.kaggle_patience_hours * 3600,
        )
        of_datasets = DatasetRequests(database, self._datasets, places.data_dir, clock)
        self._removal = SweepRemoval(database, samples, places, log)
        self._import = SweepImport(database, places, clock)
        self._images = ImageBuilds(places.state_dir)
        of_integrity = IntegrityRequests(database, clock)
        handlers: Handlers = {
            **of_datasets.handlers,
            RemoveSweep: self._removal.remove,
            ImportSweep: self._import.import_,
            BuildImages: self._images.build,
            StopBuild: self._images.stop,
            RecordIntegrity: of_integrity.record,
            ReviewFinding: of_integrity.review,
        }
        self._agents = AgentSnapshots(database, places.state_dir, clock, log)
        self._gpus = GpuPool(read_nvidia, clock)
        self._placements = Placements(places, clock, log)
        launches = SweepLaunches(database, places, clock, self._agents, self._host_capacity)
        self._requests = RequestDispatcher(database, places, self._placements, clock, log, launches, handlers)
        self._starter = Starter(
            database, places, self._placements, clock, log, redaction, self._gpus, settings, samples
        )
        self._retrier = Retrier(database, clock)
        self._intake = Intake(database, samples, places.state_dir, self._placements, clock, log, redaction)
        self._grading = LiveGrading(
            database, grader, places.state_dir, clock, log, redaction, at_once=settings.grading_workers
        )
        self._started_at = clock.now()
        why_not = bubblewrap.why_unavailable()
        self._isolation = f"none: {why_not}" if why_not else "bubblewrap"
        self._status = EngineStatus()
        self._notifier = Notifier(places.config_file, database, clock, lambda: disk_needs(self._status))
        self._seen_version = -1
        self._state_file = _file_of(database)
        self._worker_events: deque[Progressed | Ended] = deque()
        self._live = self._queued = self._retrying = 0
        self._steps = [
            _Step("results of workers", self._take_worker_events, 0.0),
            _Step("results of grading", self._grading.take_results, 0.0),
            _Step("requests", self._answer, WAKE_SECONDS),
            _Step("datasets", self._datasets.step, 0.3),
            _Step("intake", self._intake.step, 0.25),
            _Step("importing", self._import.settle, 0.1),
            _Step("grading", self._grading.step, 0.25),
            _Step("retrying", self._retrier.step, 2.0),
            _Step("budgets", self._starter.budgets.step, 1.0),
            _Step("starting", self._starter.step, 0.25),
            _Step("placements", self._placements.step, 0.25, writes=False),
            _Step("removing", self._removal.step, 0.25),
            _Step("agents", self._agents.step, 2.0),
            _Step("image builds", self._images.step, 2.0),
            _Step("heartbeat", self._beat, 2.0, writes=False),
            _Step("notifying", self._notifier.step, 2.0),
        ]

    def recover(self) -> None:
        """Reconcile the state with files and processes after a start, however the last engine ended."""
        self._import.recover()
        self._datasets.recover()
        self._starter.recover()
        self._do(next(step for step in self._steps if step.do == self._beat))
        text = f"engine {os.getpid()} is up"
        with self._database.transaction():
            events.append(self._database, self._clock.now(), EventKind.ENGINE_STARTED, text)
        self._log(text)

    def run(self, stopping: Callable[[], bool], end_signal: EndSignal) -> None:
        """Run the steps until `stopping` returns true, which is asked at once when the signal comes."""
        self._database.wait_at_most(_LOCK_SECONDS)
        while not stopping():
            for step in self._steps:
                if self._clock.monotonic() >= step.due_at:
                    self._do(step)
            self._sleep(end_signal)
        self._log(f"engine {os.getpid()} ends; live runs continue")

    def _do(self, step: _Step) -> None:
        step.problem = ""
        step.due_at = self._clock.monotonic() + step.every
        try:
            step.do()
        except UnusableState as problem:
            # All writing steps back off: otherwise each would wait for the lock in turn, and the heartbeat be late.
            self._log(f"step {step.name}", problem)
            step.problem = problem.cause
            for other in self._steps:
                if other.writes:
                    other.due_at = self._clock.monotonic() + _BACK_OFF_SECONDS
        except Exception as error:  # noqa: BLE001 - the other steps go on; this one is tried again later
            self._log(f"step {step.name}", error)
            step.problem = f"{step.name}: {error}".replace("\n", " ")
            step.due_at = self._clock.monotonic() + _BACK_OFF_SECONDS

    def _answer(self) -> None:
        version = self._database.data_version()
        if version != self._seen_version or self._requests.is_waiting:
            self._requests.step()
            self._seen_version = version

    def _host_capacity(self) -> HostCapacity:
        """Return the resources that this host has for runs."""
        gpus = len(self._gpus.devices())
        return HostCapacity(self._settings.cpus, self._settings.memory_bytes, gpus)

    def _take_worker_events(self) -> None:
        """Process the events of workers; each stays in the queue until the state has it."""
        self._worker_events.extend(self._workers.poll())
        while self._worker_events:
            try:
                self._datasets.take_event(self._worker_events[0])
            except UnusableState:
                raise
            except Exception as error:  # noqa: BLE001 - an event of one task must not block those of others
                self._log(f"event of task {self._worker_events[0].number}", error)
            self._worker_events.popleft()

    def _problems(self) -> tuple[str, ...]:
        """List the current problems of all steps."""
        problems = [
            *(step.problem for step in self._steps),
            *(part.problem for part in (self._intake, self._placements, self._starter)),
            ""
            if _file_of(self._database) == self._state_file
            else lost_state(self._database.path).in_one_line(),
        ]
        return tuple(dict.fromkeys(filter(None, problems)))

    def _beat(self) -> None:
        """Publish the current status of the engine and its host."""
        # Imported here: imports at the start of the engine delay its report that it is ready.
        import psutil

        memory = psutil.virtual_memory()
        state_disk = shutil.disk_usage(existing(self._places.state_dir))
        data_disk = shutil.disk_usage(existing(self._places.data_dir))
        with suppress(UnusableState):  # other steps report this problem; the last counts stay
            self._live = sum(runs.live_counts(self._database).values())
            self._queued = runs.queued_count(self._database)
            self._retrying = len(runs.to_retry(self._database))
        problems = self._problems()
        self._status = EngineStatus(
            running=True,
            pid=os.getpid(),
            host=socket.gethostname(),
            version=version("mlebench-console"),
            data_dir=str(self._places.data_dir),
            started_at=self._started_at,
            heartbeat_at=self._clock.now(),
            live=self._live,
            waiting=min(self._live, self._placements.waiting),
            queued=self._queued,
            retrying=self._retrying,
            datasets_working=self._datasets.working,
            download_rate=self._datasets.download_rate,
            grading=self._grading.working,
            runner_alive=self._placements.here.runner_alive,
            slots=self._settings.cpus,
            slots_used=self._starter.slots_used,
            memory_for_runs=self._settings.memory_bytes,
            disk_for_runs=self._starter.disk_for_runs,
            load1=os.getloadavg()[0],
            cpus=os.cpu_count(),
            memory_total=memory.total,
            memory_available=memory.available,
            state_disk_free=state_disk.free,
            state_disk_total=state_disk.total,
            data_disk_free=data_disk.free,
            data_disk_total=data_disk.total,
            gpus=len(self._gpus.devices()),
            gpu_uses=tuple(
                GpuUse(gpu.minor, gpu.name, attempts=attempts, is_lost=True)
                if is_lost
                else GpuUse(
                    gpu.minor, gpu.name, gpu.busy_percent, gpu.memory_used, gpu.memory_total, attempts
                )
                for gpu, attempts, is_lost in self._gpus.holders()
            ),
            isolation=self._isolation,
            problem="; ".join(problems),
            problems=problems,
        )
        publish(self._places, self._status)

    def _sleep(self, end_signal: EndSignal) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(end_signal, selectors.EVENT_READ)
            for descriptor in (self._workers.fileno(), self._grader.fileno()):
                if descriptor is not None:
                    selector.register(descriptor, selectors.EVENT_READ)
            selector.select(WAKE_SECONDS)


class EngineLog:
    """Writes the engine's log (its standard error) without agents' secrets."""

    def __init__(self, redaction: TextRedactor) -> None:
        self._redaction = redaction

    def __call__(self, text: str, error: BaseException | None = None) -> None:
        """Write what happened, with the text of a problem or the traceback of any other error."""
        if isinstance(error, Problem):
            text = f"{text}: {error}"
        elif error is not None:
            text = f"{text}: {''.join(traceback.format_exception(error))}"
        write_log(self._redaction.clean(text))


def _file_of(database: Database) -> tuple[int, int] | None:
    """Return which file is at the place of the state; None where there is none."""
    try:
        found = database.path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
