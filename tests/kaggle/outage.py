"""An outage as a play: Kaggle is away for an hour, limits for ten minutes, and takes other tokens; who works is killed.

`python -m tests.soak --kaggle` plays it with all competitions.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from mlebench_console.engine import control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.foundation import locks
from mlebench_console.state import database, datasets
from mlebench_console.state.records import DatasetState
from tests.conformance.trees import VECTORS, Vector, describe
from tests.kaggle.fast import FastClock, command
from tests.kaggle.loopback import Fault, Loopback, published_apart

HOUR, LIMITED = 3_600.0, 600.0
_ROOT = Path(__file__).parents[2]
# Those that ask when the outage begins; every engine that is started may begin as many before it knows of an outage.
_AT_ONCE = 7
# Of one dataset's jobs; the queue forgives two more.
_MOST_DEATHS = 2


@dataclass
class Outage:
    """A play of one seed; `play` returns what does not hold in the end."""

    loopback: Loopback
    places: Places
    names: Sequence[str]
    token_file: Path
    seed: int
    speed: float = 600.0
    most_kills: int | None = None
    patience: float = 240.0
    kills: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._clock = FastClock(time.time(), self.speed)
        self._chance = random.Random(self.seed)
        whom = ["engine", "worker", "worker", "console"]
        self._chance.shuffle(whom)
        self._turns = itertools.cycle(whom)
        self._whom = next(self._turns)
        self._list = self.places.data_dir.parent / "names.txt"
        self._list.write_text("\n".join(self.names))
        self._console: subprocess.Popen[bytes] | None = None

    def play(self) -> list[str]:
        for name in self.names:
            delivered, published = published_apart(name)
            self.loopback.add(name, archive=delivered)
            for file, content in published.items():
                self.loopback.add(Path(file).stem, archive=content)
        self._use_token("KGAT_first")
        try:
            self._until(lambda: self.loopback.count("DownloadDataFiles") > len(self.names) // 3)
            asked_in_outage = self._trouble(Fault(hang_up=True), HOUR)
            before = self.loopback.count("storage")
            self._until(lambda: self.loopback.count("storage") > before + len(self.names) // 3)
            asked_when_limited = self._trouble(Fault(status=429, retry_after=f"{LIMITED:.0f}"), LIMITED)
            self.loopback.accepted = {"Bearer KGAT_second"}
            self._for(30.0)
            self._use_token("KGAT_second")
            self._until(self._is_over)
        finally:
            if self._console is not None:
                self._console.kill()
                self._console.wait()
            control.stop(self.places)
        return [
            *self._not_exact(),
            *self._not_allowed("outage", asked_in_outage),
            *self._not_allowed("limit", asked_when_limited),
        ]

    def _trouble(self, fault: Fault, seconds: float) -> list[float]:
        """Let every request meet a fault for so long, by the fast clock; returns when they came."""
        before = len(self.loopback.asked)
        self.loopback.fault = fault
        self._for(seconds)
        self.loopback.fault = Fault()
        return [asked.at for asked in self.loopback.asked[before:] if asked.what != "storage"]

    def _for(self, seconds: float) -> None:
        """Kill somebody from time to time, for so long by the fast clock."""
        end = self._clock.now() + seconds
        self._until(lambda: self._clock.now() >= end, kills_every=1.5)

    def _until(self, is_reached: Callable[[], bool], *, kills_every: float = 3.0) -> None:
        give_up = time.monotonic() + self.patience
        kill_at = time.monotonic() + kills_every
        while not is_reached():
            assert time.monotonic() < give_up, f"not over, after {Counter(self.kills)}"
            if self._console is None or self._console.poll() is not None:
                self._console = self._prepare()
            kills = time.monotonic() >= kill_at and len(self.kills) != self.most_kills
            if kills and self._kill(self._whom):  # or else as soon as there is one
                kill_at = time.monotonic() + kills_every * self._chance.uniform(0.5, 1.5)
                self._whom = next(self._turns)
            time.sleep(0.05)

    def _prepare(self) -> subprocess.Popen[bytes]:
        flags = [f"--state-dir={self.places.state_dir}", f"--data-dir={self.places.data_dir}"]
        flags += [f"--config={self.places.config_file}"]
        asked = ["prepare", "--list", str(self._list), "--skip-verification"]
        return subprocess.Popen(
            command(self._clock, "console", *flags, *asked),
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _kill(self, whom: str) -> bool:
        """Kill one of a kind; False: there is none now."""
        victims: list[int] = []
        lock = lock_path(self.places)
        if whom == "console":
            victims = [self._console.pid] if self._console is not None else []
        elif locks.is_held(lock):
            with suppress(ValueError):  # it is just starting
                victims = [int(lock.read_text())]
        if whom == "worker":
            children = process_tree()
            servers = [child.pid for engine in victims for child in children.get(engine, ())]
            jobs = [child.pid for server in servers for child in children.get(server, ())]
            victims = [self._chance.choice(jobs)] if jobs and not self._has_died_often() else []
        for victim in victims:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                self.kills.append(whom)
                return True
        return False

    def _has_died_often(self) -> bool:
        """Whether another death might be the last that is forgiven some dataset, as where a machine is slow."""
        state = database.open_for_reading(self.places.state_dir)
        try:
            return any(each.failures >= _MOST_DEATHS for each in datasets.all_datasets(state))
        finally:
            state.close()

    def _is_over(self) -> bool:
        assert self._console is not None
        if not database.exists(self.places.state_dir):
            return False
        state = database.open_for_reading(self.places.state_dir)
        try:
            found = datasets.all_datasets(state)
            failed = [
                f"{each.competition_id}: {each.problem_record}" for each in found if _has_failed(each.state)
            ]
            assert not failed, f"{failed}, after {Counter(self.kills)}"
            done = {each.competition_id for each in found if each.state is DatasetState.PREPARED}
        finally:
            state.close()
        return done >= set(self.names) and self._console.poll() == 0

    def _use_token(self, token: str) -> None:
        self.loopback.accepted = {f"Bearer {token}"}
        new = self.token_file.with_name("new")
        new.write_text(token)
        new.chmod(0o600)
        new.replace(self.token_file)

    def _not_exact(self) -> list[str]:
        problems = []
        for name in self.names:
            expected = Vector(VECTORS / name).expected
            found = describe(self.places.data_dir / name / "prepared", expected)
            free = set(expected.get("nondeterministic", ()))
            for side in ("public", "private"):
                differs = found[side].keys() ^ expected[side].keys() | {
                    path
                    for path, facts in expected[side].items()
                    if f"{side}/{path}" not in free and found[side].get(path) != facts
                }
                problems += [f"{name}: {side}/{path} is not exact" for path in sorted(differs)]
        return problems

    def _not_allowed(self, what: str, asked: Sequence[float]) -> list[str]:
        """What of the requests in a time of trouble was more than the back-off allows."""
        engines = self.kills.count("engine") + 1
        tries = [(later - sooner) * self.speed for sooner, later in pairwise(asked[_AT_ONCE * engines :])]
        too_soon = [wait for number, wait in enumerate(tries) if wait < min(600.0, 2.0**number)]
        most = _AT_ONCE * engines + 15
        found = [f"{what}: {len(asked)} requests, at most {most} are allowed"] if len(asked) > most else []
        return found + [f"{what}: asked again after {wait:.0f} s" for wait in too_soon]


def _has_failed(state: DatasetState) -> bool:
    return state in (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)
