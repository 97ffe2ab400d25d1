"""The runner's loop: start or adopt attempts, watch them and collect their results, each isolated from the others."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.container.warden import die_with
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.attempt import RunnerAttempt, Stage
from mlebench_console.environment.runner.docker.sandbox import DockerHost, DockerSandbox
from mlebench_console.environment.runner.host.readings import GpuReader
from mlebench_console.environment.runner.process.containment import in_scope
from mlebench_console.environment.runner.process.sandbox import ProcessSandbox
from mlebench_console.environment.runner.protocol import InboxEntry, Order
from mlebench_console.environment.runner.sandbox import Sandbox, Unreachable
from mlebench_console.foundation import locks
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemons import Log, start_daemon
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.foundation.problems import EnvironmentProblem, Problem

POLL_SECONDS = 0.25
USAGE_SECONDS = 2.0
USAGE_SECONDS_PER_ATTEMPT = 0.05  # so that two hundred attempts use no more processor time than forty
# A job measures and writes on a file system that many hosts share, so that long ones do it less often.
USAGE_SECONDS_OF_JOB, LONGEST_USAGE_SECONDS_OF_JOB = 9.0, 59.0
_SHARE_OF_AGE = 1 / 30
DISK_EVERY = 6  # usage measurements: walking a directory costs more than reading a counter
LEFTOVERS_SECONDS = 15.0
_BACK_OFF_SECONDS = 5.0
_GIVE_UP_AFTER = 12


@dataclass
class _Supervised:
    """An attempt under this runner, and when it is tried again after a failure."""

    folder: Path | None = None
    attempt: RunnerAttempt | None = None
    retry_at: float = 0.0
    troubles: int = 0


class Runner:
    """Owns the attempts in one state directory's inbox, or a single attempt that is in no inbox."""

    def __init__(
        self,
        state_dir: Path,
        clock: Clock,
        log: Log,
        gpus: GpuReader,
        *,
        single: Path | None = None,
        as_job: bool = False,
        image_cache: Path | None = None,
    ) -> None:
        """Prepare.

        Args:
            state_dir: the directory with the inbox, which also labels the containers.
            clock: of this host.
            log: receives errors.
            gpus: reads the driver.
            single: the directory of a single attempt to supervise instead of an inbox.
            as_job: whether a batch system limits this process; then all that it starts must stay within these limits
                and end with it.
            image_cache: the folder of images that attempts share; by default in the state directory.
        """
        self._state_dir = state_dir
        self._inbox = protocol.inbox(state_dir)
        self._single = single
        self._as_job = as_job
        self._image_cache = image_cache or state_dir / protocol.IMAGE_CACHE
        self._clock = clock
        self._log = log
        self._gpus = gpus
        self._attempts: dict[str, _Supervised] = {}
        self._children: list[subprocess.Popen[bytes]] = []
        self._containers = state_dir / protocol.CONTAINERS if single is None else None
        self._docker: DockerHost | None = None
        if self._containers is not None and self._containers.exists():
            self._docker = DockerHost(state_dir)
        self._leftovers_at = 0.0
        self._leftovers_problem = ""
        try:
            secrets.discard_orphans()
        except (OSError, EnvironmentProblem) as error:
            log("secrets of attempts that are over can't be removed", error)
        self._disk_worker = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._code_worker = ThreadPoolExecutor(2, thread_name_prefix="code")
        self._measure_at = 0.0
        self._measured = 0
        self._began_at = clock.monotonic()

    def tick(self) -> None:
        """Take one step with every attempt, and measure those whose turn it is."""
        names = self._names()
        for name in self._attempts.keys() - names:
            del self._attempts[name]  # the engine has read everything
        for name in sorted(names):
            supervised = self._attempts.setdefault(name, _Supervised())
            if self._clock.monotonic() >= supervised.retry_at:
                self._step(name, supervised)
        self._children = [child for child in self._children if child.poll() is None]
        if self._clock.monotonic() >= self._leftovers_at:
            self._leftovers_at = self._clock.monotonic() + LEFTOVERS_SECONDS
            self._remove_leftovers()
        if self._clock.monotonic() >= self._measure_at:
            running = self._measure()
            every = max(USAGE_SECONDS, USAGE_SECONDS_PER_ATTEMPT * running)
            if self._as_job:
                age = self._clock.monotonic() - self._began_at
                every = min(LONGEST_USAGE_SECONDS_OF_JOB, max(USAGE_SECONDS_OF_JOB, age * _SHARE_OF_AGE))
            self._measure_at = self._clock.monotonic() + every

    def close(self) -> None:
        """Stop the background threads, and remove containers without an attempt."""
        for worker in (self._disk_worker, self._code_worker):
            worker.shutdown(wait=False, cancel_futures=True)
        if self._docker is not None:
            self._docker.close()
            if self._remove_leftovers(ending=True) and self._containers is not None and not self._names():
                self._containers.unlink(missing_ok=True)

    @property
    def holds_nothing(self) -> bool:
        """Whether there was nothing to look after at the last tick."""
        return not self._attempts

    @property
    def is_done(self) -> bool:
        """Whether the single attempt has ended, with everything gathered."""
        assert self._single is not None
        supervised = self._attempts.get(self._single.name)
        if supervised is not None and supervised.attempt is not None:
            return supervised.attempt.stage is Stage.DONE  # only this runner can set it
        return (self._single / protocol.EXIT).exists()

    @property
    def single_attempt(self) -> RunnerAttempt | None:
        """The single attempt as the last tick left it; None before there is supervised."""
        assert self._single is not None
        supervised = self._attempts.get(self._single.name)
        return None if supervised is None else supervised.attempt

    def _names(self) -> set[str]:
        if self._single is None:
            return {path.name for path in self._inbox.glob("[!.]*.json")}
        return set() if self.is_done else {self._single.name}

    def _folder(self, name: str) -> Path:
        if self._single is not None:
            return self._single
        return self._state_dir / protocol.read(self._inbox / name, InboxEntry).directory

    def _step(self, name: str, supervised: _Supervised) -> None:
        """Take one step with an attempt; errors are logged and retried later, without delaying other attempts."""
        try:
            if supervised.folder is None:
                supervised.folder = self._folder(name)
            if supervised.attempt is None:
                supervised.attempt = RunnerAttempt(
                    supervised.folder,
                    self._clock,
                    self._sandbox_for,
                    self._gpus,
                    self._disk_worker,
                    self._code_worker,
                    as_job=self._as_job,
                )
            supervised.attempt.step()
            supervised.troubles = 0
        except Unreachable as problem:
            self._log(f"attempt {name}", problem)
            supervised.retry_at = self._clock.monotonic() + _BACK_OFF_SECONDS
        except Exception as error:  # noqa: BLE001 - isolated from the other attempts, logged
            if name not in self._names():
                return  # it was taken out of the inbox meanwhile
            self._log(f"attempt {name}", error)
            supervised.retry_at = self._clock.monotonic() + _BACK_OFF_SECONDS
            if _is_of_the_host(error):
                return
            supervised.troubles += 1
            if supervised.troubles >= _GIVE_UP_AFTER and supervised.folder is not None:
                self._give_up(name, supervised.folder, supervised.attempt, error)

    def _give_up(self, name: str, folder: Path, attempt: RunnerAttempt | None, error: Exception) -> None:
        """End an attempt that can't be supervised, unless its agent may live: that ends at its own deadline."""
        text = f"it can't be looked after: {error}".replace("\n", " ")
        try:
            if attempt is not None:
                attempt.give_up(text)
            elif not self._may_live(name, folder):
                ending = Ending.unseen(EndReason.LOST, text, ProblemCode.NOT_SUPERVISED)
                protocol.write(folder / protocol.EXIT, ending)
        except (Problem, OSError) as second:
            self._log(f"giving up {folder}", second)

    def _may_live(self, name: str, folder: Path) -> bool:
        """Return whether the agent of an attempt may live whose order can't be read, or may still be started.

        Raises:
            Unreachable: the daemon can't say.
        """
        (folder / protocol.OUTPUT).mkdir(exist_ok=True)
        if output.claim(folder / protocol.CLAIM):
            return False  # nothing has started it, and nothing can start it now
        if (folder / protocol.LOCK).exists():
            return locks.is_held(folder / protocol.LOCK)
        return not self._docker_host().end(name.removesuffix(".json"))

    def _remove_leftovers(self, *, ending: bool = False) -> bool:
        """Remove containers of attempts that have ended, and return whether none is left."""
        if self._docker is None:
            return True
        try:
            for name in self._docker.remove_leftovers(self._serving, network_too=ending):
                self._log(f"removed the container {name}, whose attempt has ended", None)
        except Exception as error:  # noqa: BLE001 - isolated from the attempts, logged, tried again
            if str(error) != self._leftovers_problem:  # a daemon may be away for days
                self._leftovers_problem = str(error)
                self._log("containers of ended attempts can't be removed", error)
            return False
        self._leftovers_problem = ""
        return True

    def _serving(self) -> list[str]:
        """Return all attempts that may have containers, by the name in these containers' labels.

        Raises:
            OSError: the inbox can't be read; then it must not look empty.
        """
        if self._single is None:
            return [path.stem for path in self._inbox.iterdir()]
        is_over = (self._single / protocol.EXIT).exists()
        return [] if is_over else [protocol.read(self._single / protocol.ORDER, Order).token]

    def _docker_host(self) -> DockerHost:
        if self._docker is None:
            if self._containers is not None:
                self._containers.touch()
            self._docker = DockerHost(self._state_dir)
        return self._docker

    def _sandbox_for(self, folder: Path, order: Order) -> Sandbox:
        if order.conditions.runtime != protocol.DOCKER:
            return ProcessSandbox(folder, order.token, self._start_shim)
        return DockerSandbox(self._docker_host(), folder, order)

    def _start_shim(self, folder: Path) -> subprocess.Popen[bytes]:
        shim = "mlebench_console.environment.runner.process.shim"
        command = [sys.executable, "-I", "-m", shim, str(folder), str(self._image_cache)]
        runner = os.getpid()
        child = start_daemon(
            command if self._as_job else in_scope(command),
            folder / protocol.SHIM_LOG,
            prepare=(lambda: die_with(runner)) if self._as_job else None,
        )
        self._children.append(child)
        return child

    def _measure(self) -> int:
        """Measure the running attempts, and return how many they are."""
        running = [
            supervised.attempt
            for supervised in self._attempts.values()
            if supervised.attempt is not None and supervised.attempt.stage is Stage.RUNNING
        ]
        if not running:
            return 0
        tree = process_tree()
        # Once for all attempts: calling the driver takes longer than everything else here.
        gpus = self._gpus() if any(attempt.has_gpus for attempt in running) else ()
        for attempt in running:
            try:
                # A job's attempt decides itself when its disk is measured again.
                with_disk = self._as_job or self._measured % DISK_EVERY == 0
                attempt.measure(tree, with_disk=with_disk, gpus=gpus)
            except Exception as error:  # noqa: BLE001 - isolated from the other attempts, logged
                self._log(f"usage of {attempt.folder}", error)
        self._measured += 1
        return len(running)


def _is_of_the_host(error: Exception) -> bool:
    """Return whether an error comes from the host, such as a full disk, and not from an attempt's directory."""
    cause = error.__cause__ if isinstance(error, Problem) else error
    return isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)
