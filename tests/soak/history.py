"""One history of the fault test: a plan is carried out on a real engine while a model keeps what is to be expected."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mlebench_console.engine import control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import (
    ChosenRun,
    LaunchSweep,
    RelaunchRuns,
    RemoveSweep,
    Request,
    StopRuns,
    StopSweep,
    file_request,
)
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import locks
from mlebench_console.foundation.problems import EnvironmentProblem, StateProblem
from mlebench_console.state import database, requests, runs
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, RunState
from mlebench_console.state.records import RequestState, Run
from mlebench_console.state.usage import samples
from tests.conditions import spec_of
from tests.engine.full_disk import fill
from tests.engine.harness import COMPETITION, Harness, shown
from tests.soak.behaviours import BEHAVIOURS, Behaviour, Disturbance
from tests.soak.plans import LAUNCH, Step

SLOTS = 10
_CPUS = 0.05
_PATIENCE = 120.0
_FAULTS_AT_ONCE = 32
_POLL_SECONDS = 0.1
_AFTERWARDS = 15.0  # for so long a fault that is over may still keep an engine from starting
Thing = TypeVar("Thing")
_BY_NAME = {behaviour.name: behaviour for behaviour in BEHAVIOURS}


class Broken(AssertionError):
    """Something that must hold does not, so that the history can't go on."""


@dataclass
class Model:
    """What is to be expected of the state.

    Attributes:
        sweeps: the behaviour of each sweep that there is.
        runtimes: what each of them asked for.
        rerolls, relaunches: of runs, by their number.
        stopped_queued: runs that were stopped before their next attempt.
        disturbances: of attempts, by their token.
        full: when the disk was full.
    """

    sweeps: dict[str, Behaviour] = field(default_factory=dict)
    runtimes: dict[str, str] = field(default_factory=dict)
    rerolls: Counter[int] = field(default_factory=Counter)
    relaunches: Counter[int] = field(default_factory=Counter)
    stopped_queued: set[int] = field(default_factory=set)
    disturbances: dict[str, set[Disturbance]] = field(default_factory=dict)
    full: list[tuple[float, float]] = field(default_factory=list)


class History:
    """Carries out steps, and writes down each with what came of it."""

    def __init__(self, places: Places, agents_dir: Path, *, isolation: bool, own_disk: bool) -> None:
        """Prepare.

        Args:
            places: of the engine; its state directory is made by it.
            agents_dir: the folder with all behaviours.
            isolation: whether bubblewrap works here.
            own_disk: whether the state is on a small file system that may be filled.
        """
        self.harness = Harness(places, agents_dir)
        self.places = places
        self.model = Model()
        self.told: list[str] = []
        self._isolation = isolation
        self._own_disk = own_disk
        self._began = time.monotonic()
        self._pool = ThreadPoolExecutor(_FAULTS_AT_ONCE)
        self._faults: list[Future[None]] = []
        self._quiet_at = 0.0
        self._steps: dict[str, Callable[[Step], str]] = {
            LAUNCH: self._launch,
            "let go on": self._let_go_on,
            "kill the engine": self._kill_engine,
            "kill the runner": self._kill_runner,
            "kill engine and runner": self._kill_both,
            "kill a shim": self._kill_shim,
            "kill a validation server": self._kill_server,
            "kill the grading workers": self._kill_workers,
            "stop a run": self._stop,
            "relaunch a run": self._relaunch,
            "relaunch a run that has moved on": self._relaunch_moved_on,
            "replace a sweep": self._replace,
            "lock the state": self._lock_state,
            "lock the samples": self._lock_samples,
            "damage the samples": self._damage_samples,
            "fill the disk": self._fill_disk,
        }

    def play(self, steps: list[Step]) -> None:
        """Do everything, then let it come to rest.

        Raises:
            Broken: something could not be done, or there is no rest.
        """
        self._start_engine()
        for step in steps:
            self._tell(f"{step.kind}: {self._steps[step.kind](step)}")
            time.sleep(step.pause)
        self._settle()

    def close(self) -> None:
        """End everything that was started."""
        self._pool.shutdown()
        self.harness.close()

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """Open the state for looking."""
        with closing(database.open_for_reading(self.places.state_dir)) as state:
            yield state

    def _tell(self, text: str) -> None:
        self.told.append(f"{time.monotonic() - self._began:6.1f} s  {text}")

    # What operators do

    def _launch(self, step: Step) -> str:
        return self._launch_as(f"{step.behaviour}-{len(self.model.sweeps)}", step)

    def _launch_as(self, name: str, step: Step) -> str:
        behaviour = _BY_NAME[step.behaviour]
        runtime = protocol.BUBBLEWRAP if self._isolation and step.pick % 2 else protocol.PLAIN
        spec = spec_of(
            agent_id=behaviour.name,
            agents_dir=str(self.harness.agents_dir),
            competitions=(COMPETITION,),
            seeds=1 + step.pick // 2 % 2,
            runtime=runtime,
            time_limit_seconds=behaviour.time_limit,
            grace_seconds=1,
            grade_every_seconds=0.5,
            cpus=_CPUS,
        )
        done, text = self._ask(LaunchSweep(spec=spec, name=name, concurrency=20), step)
        if not done:
            return text
        self.model.sweeps[name] = behaviour
        self.model.runtimes[name] = runtime
        return text

    def _let_go_on(self, step: Step) -> str:
        """Let some of the agents go on that wait for it."""
        chance = random.Random(step.pick)
        waiting = [run for run in self._runs() if self._code(run) is not None]
        chosen = chance.sample(waiting, min(len(waiting), 1 + step.pick % 4))
        return _named(*filter(self._let_go, chosen))

    def _let_go(self, run: Run) -> bool:
        """Let an agent go on, if it is there."""
        code = self._code(run)
        if code is not None:
            (code / "go").touch()
        return code is not None

    def _code(self, run: Run) -> Path | None:
        """Return the folder of code of a live run's attempt; None while there is none."""
        code = self.harness.folder(run) / protocol.CODE if run.is_live else None
        return code if code is not None and code.is_dir() else None

    def _stop(self, step: Step) -> str:
        able = [run for run in self._runs() if not run.has_ended and run.state is not RunState.GRADING]
        run = _picked(able, step)
        if run is None:
            return "there is none"
        done, text = self._ask(StopRuns(runs=shown(run)), step)
        if done:
            self._note_stop(run)
        return f"{_named(run)}: {text}"

    def _note_stop(self, run: Run) -> None:
        if run.state is RunState.QUEUED:
            self.model.stopped_queued.add(run.id)
        else:
            self._note(run, Disturbance.STOPPED)

    def _relaunch(self, step: Step) -> str:
        run = _picked([run for run in self._runs() if run.has_ended], step)
        if run is None:
            return "there is none"
        reroll = _is_reroll(run)
        done, text = self._ask(RelaunchRuns(runs=shown(run, reroll=reroll)), step)
        if done:
            self.model.relaunches[run.id] += 1
            self.model.rerolls[run.id] += reroll
        return f"{_named(run)}: {text}"

    def _relaunch_moved_on(self, step: Step) -> str:
        """Ask for what was shown before its latest attempt, or as free where it is none."""
        run = _picked([run for run in self._runs() if run.has_ended and run.attempts], step)
        if run is None:
            return "there is none"
        if step.pick % 3 and _is_reroll(run):
            seen = ChosenRun(run.id, run.attempts, reroll=False)
        else:
            seen = ChosenRun(run.id, run.attempts - 1, reroll=True)
        done, text = self._ask(RelaunchRuns(runs=(seen,)), step)
        if done:
            raise Broken(f"run {run.id} was relaunched though it was shown as {seen}: {text}")
        return f"{_named(run)}: {text}"

    def _replace(self, step: Step) -> str:
        """Remove a sweep, and launch another one of the same name at once."""
        name = _picked(sorted(self.model.sweeps), step)
        if name is None:
            return "there is none"
        live = [run for run in self._runs() if run.sweep_id == name and not run.has_ended]
        if live:
            done, text = self._ask(StopSweep(sweep_id=name), step)
            if not done:
                return text
            for run in self._runs():
                if run.sweep_id == name and run.id in {one.id for one in live}:
                    self._note(run, Disturbance.STOPPED)
                    self.model.stopped_queued.add(run.id)
            self._until(
                lambda: all(run.has_ended for run in self._runs() if run.sweep_id == name), "stopping"
            )
        done, text = self._ask(RemoveSweep(sweep_id=name, with_results=True), step)
        if not done:
            return text
        del self.model.sweeps[name], self.model.runtimes[name]
        return f"{name}: {text}; {step.behaviour}: {self._launch_as(name, step)}"

    def _ask(self, request: Request, step: Step) -> tuple[bool, str]:
        """File a request, perhaps kill the engine at once, and wait for the answer of whichever engine is there then.

        Returns whether it was done, and the answer.
        """
        try:
            with closing(database.open_for_requests(self.places.state_dir)) as bus:
                number = file_request(bus, request, author="soak", now=time.time())
        except StateProblem as problem:
            if not self._is_troubled():
                raise Broken(f"{request.kind} can't be filed: {problem}") from problem
            return False, f"not filed, {problem.what}"
        killed = ""
        if step.pick % 5 == 0:
            time.sleep(step.pick % 7 / 20)
            killed = ", engine killed meanwhile" if self._kill(lock_path(self.places)) else ""
        give_up = time.monotonic() + _PATIENCE
        while time.monotonic() < give_up:
            self._start_engine()
            with suppress(StateProblem), self.reading() as state:
                answered = requests.get(state, number)
                if answered is not None and answered.state is not RequestState.FILED:
                    done = answered.state is RequestState.DONE
                    if "in the engine" in str(answered.answer) and not self._is_troubled():
                        raise Broken(f"{request.kind} failed: {answered.answer}")
                    text = answered.answer["text"] if done else answered.answer["what"]
                    return done, text + killed
            time.sleep(_POLL_SECONDS)
        raise Broken(f"{request.kind} was never answered")

    # Faults

    def _kill_engine(self, step: Step) -> str:
        killed = self._kill(lock_path(self.places))
        if killed and step.pick % 2:
            time.sleep(step.seconds / 3)
            self._start_engine()
        return "killed" if killed else "it was not running"

    def _kill_runner(self, _step: Step) -> str:
        lock = self.places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
        return "killed" if self._kill(lock) else "it was not running"

    def _kill_both(self, step: Step) -> str:
        runner = self._kill_runner(step)
        return f"engine {self._kill_engine(step)}, runner {runner}"

    def _kill_shim(self, step: Step) -> str:
        run = self._with_shim(step)
        if run is None:
            return "there is none"
        self._note(run, Disturbance.SHIM_KILLED)
        self._kill(self.harness.folder(run) / protocol.LOCK)
        return _named(run)

    def _kill_server(self, step: Step) -> str:
        run = self._with_shim(step)
        if run is None:
            return "there is none"
        shim = _holder(self.harness.folder(run) / protocol.LOCK)
        for child in process_tree().get(shim or 0, ()):
            with suppress(FileNotFoundError, ProcessLookupError):
                if (
                    b"mlebench_console.environment.validation_server"
                    in Path(f"/proc/{child.pid}/cmdline").read_bytes()
                ):
                    self._note(run, Disturbance.SERVER_KILLED)
                    os.kill(child.pid, signal.SIGKILL)
        return _named(run)

    def _with_shim(self, step: Step) -> Run | None:
        """Pick a run whose shim lives."""
        live = [run for run in self._runs() if run.is_live]
        return _picked([run for run in live if _holder(self.harness.folder(run) / protocol.LOCK)], step)

    def _kill_workers(self, _step: Step) -> str:
        if _holder(lock_path(self.places)) is None:
            return "no engine is running"
        with suppress(FileNotFoundError, ProcessLookupError):
            return f"{self.harness.kill_workers()} killed"
        return "they were ending"

    def _lock_state(self, step: Step) -> str:
        return self._lock(database.DATABASE_NAME, step.seconds * (3 if step.pick % 4 == 0 else 1))

    def _lock_samples(self, step: Step) -> str:
        return self._lock(samples.DATABASE_NAME, step.seconds * 2)

    def _lock(self, name: str, seconds: float) -> str:
        path = self.places.state_dir / name
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            other.close()
            return f"not locked: {error}"
        self._for(seconds, other.close)
        return f"for {seconds:.1f} s"

    def _damage_samples(self, step: Step) -> str:
        path = self.places.state_dir / samples.DATABASE_NAME
        if not path.exists():
            return "there are none"
        garbage = random.Random(step.pick).randbytes(8192)
        try:
            with path.open("r+b") as stream:
                if step.pick % 2:
                    stream.seek(4096)  # its first page stays as it was
                stream.write(garbage)
        except OSError as error:  # the disk is full
            return f"not damaged: {error}"
        return "from its second page on" if step.pick % 2 else "wholly"

    def _fill_disk(self, step: Step) -> str:
        if not self._own_disk:
            return "left out, it is not its own"
        ballast = self.places.state_dir.parent / "ballast"
        if ballast.exists():
            return "it is full"
        began = time.time()
        fill(ballast)

        def make_room() -> None:
            ballast.unlink()
            self.model.full.append((began, time.time()))

        self._for(step.seconds, make_room)
        return f"for {step.seconds:.1f} s"

    def _for(self, seconds: float, end: Callable[[], None]) -> None:
        """Let a fault last so long while other things happen."""

        def last() -> None:
            time.sleep(seconds)
            end()

        self._quiet_at = max(self._quiet_at, time.monotonic() + seconds + _AFTERWARDS)
        self._faults.append(self._pool.submit(last))

    def _is_troubled(self) -> bool:
        """Whether the state may be locked or full, or was so a moment ago."""
        return time.monotonic() < self._quiet_at

    def _kill(self, lock: Path) -> bool:
        holder = _holder(lock)
        if holder is not None:
            with suppress(ProcessLookupError):
                os.kill(holder, signal.SIGKILL)
            self._until(lambda: _holder(lock) != holder, f"the end of {lock.name}'s holder")
        return holder is not None

    # Looking, and coming to rest

    def _runs(self) -> list[Run]:
        with self.reading() as state:
            return runs.of_all_sweeps(state)

    def _note(self, run: Run, disturbance: Disturbance) -> None:
        attempts = self.harness.attempts(run)
        if attempts:
            self.model.disturbances.setdefault(attempts[-1].token, set()).add(disturbance)

    def _start_engine(self) -> None:
        while True:
            try:
                control.ensure_running(self.places)
                return
            except (StateProblem, EnvironmentProblem) as problem:
                if not self._is_troubled():
                    raise Broken(f"the engine does not start: {problem}") from problem
                time.sleep(1.0)

    def _until(self, look: Callable[[], bool], what: str) -> None:
        give_up = time.monotonic() + _PATIENCE
        while not look():
            if time.monotonic() > give_up:
                raise Broken(f"this did not come to an end: {what}")
            time.sleep(_POLL_SECONDS)

    def _settle(self) -> None:
        """End all faults, let all agents go on, and wait until nothing more happens."""
        for fault in self._faults:
            fault.result()
        self._start_engine()
        give_up = time.monotonic() + _PATIENCE
        while unsettled := self._unsettled():
            if time.monotonic() > give_up:
                raise Broken(f"this does not come to an end: {'; '.join(unsettled)}")
            time.sleep(0.3)
        self._tell("everything has come to rest")
        control.stop(self.places)
        runner = self.places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
        self._until(lambda: not locks.is_held(runner), "the runner, which has nothing to do")

    def _unsettled(self) -> list[str]:
        waiting = [run for run in self._runs() if not run.has_ended]
        for run in waiting:
            self._let_go(run)
        left = [f"{_named(run)} is {run.state}" for run in waiting]
        inbox = protocol.inbox(self.places.state_dir)
        if inbox.is_dir():
            left += [f"{path.name} is in the inbox" for path in inbox.iterdir()]
        leaving = self.places.state_dir / "leaving"
        if leaving.is_dir():
            left += [f"{path.name} is not removed" for path in leaving.iterdir()]
        status = control.status(self.places)
        # That samples were damaged is told for as long as the engine lives.
        if status.problem and samples.DATABASE_NAME not in status.problem:
            left.append(f"the engine's problem is {status.problem}")
        if status.live or status.slots_used:
            left.append(f"{status.live} runs hold {status.slots_used} slots by the engine's account")
        return left


def _holder(lock: Path) -> int | None:
    """Return the process that holds a lock; None where nobody does, or it has not yet said who it is."""
    if not locks.is_held(lock):
        return None
    with suppress(FileNotFoundError):
        text = lock.read_text()
        return int(text) if text.isdigit() else None
    return None


def _is_reroll(run: Run) -> bool:
    """Whether one more attempt of a run that has ended is one more chance for its agent."""
    return run.last_activity_at is not None and run.failure_class is not FailureClass.INFRASTRUCTURE


def _picked(things: list[Thing], step: Step) -> Thing | None:
    return things[step.pick % len(things)] if things else None


def _named(*chosen: Run) -> str:
    return ", ".join(f"{run.sweep_id}/{run.seed} ({run.id})" for run in chosen) or "none"
