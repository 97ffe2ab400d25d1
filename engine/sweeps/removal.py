"""Remove a sweep, unless runs are live or results would be lost; its files are removed in small steps."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import Answer, RemoveSweep
from mlebench_console.environment.container.trees import removing_tree
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import events, experiments, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import EventKind, FilesRemain
from mlebench_console.state.lifecycle import MEDALS, RunState
from mlebench_console.state.usage.samples import Samples, UnusableSamples

LEAVING = "leaving"
_SLICE_SECONDS = 0.05
_LOOK_SECONDS = 0.1
_TOKEN_BYTES = 4


@dataclass(frozen=True)
class Loss:
    """What would be lost with a sweep.

    Attributes:
        busy: how many runs are live, which prevents the removal.
        results: how many runs count in a row.
        experiments: the experiments that it belongs to.
    """

    sweep_id: str
    runs: int
    attempts: int
    busy: int
    results: int
    medals: int
    experiments: tuple[str, ...]

    def in_words(self) -> str:
        """Return the loss as one sentence."""
        medals = f", {self.medals} with medals" if self.medals else ""
        runs_gone, attempts_gone = plural(self.runs, "run"), plural(self.attempts, "attempt")
        parts = [f"{runs_gone} with {attempts_gone}, their logs, code and submissions"]
        if self.results:
            parts.append(f"{plural(self.results, 'result')}{medals}")
        if self.experiments:
            parts.append(f"its part in {', '.join(self.experiments)}")
        return "; ".join(parts)


def loss_of(database: Database, sweep_id: str) -> Loss:
    """Count what would be lost with a sweep."""
    members = runs.of_sweep(database, sweep_id)
    finished = [run for run in members if run.state is RunState.FINISHED]
    return Loss(
        sweep_id,
        len(members),
        sum(run.attempts for run in members),
        sum(run.is_live for run in members),
        len(finished),
        sum(run.outcome in MEDALS for run in finished),
        experiments.of_sweep(database, sweep_id),
    )


class SweepRemoval:
    """Handles requests to remove sweeps, and removes the files of removed sweeps."""

    def __init__(
        self,
        database: Database,
        samples: Samples,
        places: Places,
        log: Log,
    ) -> None:
        self._database = database
        self._samples = samples
        self._state_dir = places.state_dir
        self._runs_dir = places.runs_dir
        self._leaving = places.state_dir / LEAVING
        self._log = log
        self._current: Iterator[None] | None = None  # removes one folder in small steps
        self._stuck: set[str] = set()

    def remove(self, request: RemoveSweep, by: str) -> Answer:
        """Remove a sweep from the state and move its files aside; within the transaction of the answer."""
        sweep = sweeps.get(self._database, request.sweep_id)
        loss = loss_of(self._database, sweep.id)
        refuse_removal(loss, with_results=request.with_results)
        numbers = [attempt.id for attempt in runs.attempts_of_sweep(self._database, sweep.id)]
        try:
            self._samples.forget(numbers)
        except UnusableSamples as problem:
            # They stay without harm: attempt numbers are never used again.
            self._log(f"resource samples of sweep {sweep.id} are not removed", problem)
        sweeps.remove(self._database, sweep.id)
        text = f"sweep {sweep.id} was removed by {by}: {loss.in_words()}"
        events.append(self._database, time.time(), EventKind.SWEEP_REMOVED, text)
        folder = self._runs_dir / sweep.id
        if folder.exists():
            self._leaving.mkdir(exist_ok=True)
            folder.rename(self._leaving / f"{secrets.token_hex(_TOKEN_BYTES)}-{sweep.id}")
        return Answer(f"removed: {loss.in_words()}", sweep.id)

    def step(self) -> None:
        """Remove files for a short time."""
        if self._current is None:
            self._current = self._next()
        give_up = time.monotonic() + _SLICE_SECONDS
        while self._current is not None and time.monotonic() < give_up:
            try:
                next(self._current)
            except StopIteration:
                self._current = None

    def _next(self) -> Iterator[None] | None:
        if not self._leaving.is_dir():
            return None
        for folder in sorted(self._leaving.iterdir()):
            if folder.name not in self._stuck:
                return self._remove(folder)
        return None

    def _give_back(self, folder: Path, sweep_id: str) -> None:
        """Move back attempts that are still in the state, if the engine was killed before the removal was committed.

        A later sweep of the same name has none of these attempts, because their directories are never used again.
        """
        for attempt in runs.attempts_of_sweep(self._database, sweep_id):
            home = self._state_dir / attempt.directory
            kept = folder / home.relative_to(self._runs_dir / sweep_id)
            if kept.exists() and not home.exists():
                home.parent.mkdir(parents=True, exist_ok=True)
                kept.rename(home)

    def _remove(self, folder: Path) -> Iterator[None]:
        try:
            self._give_back(folder, folder.name.partition("-")[2])
            left = yield from removing_tree(folder)
        except OSError as error:
            left = [f"{folder.name}: {error.strerror or error}"]
        if left:
            text = f"not all files of the removed sweep could be removed from {folder}: {'; '.join(left)}"
            with self._database.transaction():
                kind, detail = EventKind.SWEEP_REMAINS, FilesRemain(folder.name)
                events.append(self._database, time.time(), kind, text, detail=detail)
            self._stuck.add(folder.name)


def wait_for_removal(database: Database, sweep_id: str, *, seconds: float) -> bool:
    """Wait until the files of a removed sweep are gone, and return whether they are.

    Raises:
        EnvironmentProblem: some of them can't be removed.
    """
    leaving = database.path.parent / LEAVING
    give_up = time.monotonic() + seconds
    while left := [found for found in leaving.glob("*-*") if found.name.partition("-")[2] == sweep_id]:
        names = {folder.name for folder in left}
        for event in events.newest(database):
            if isinstance(event.detail, FilesRemain) and event.detail.folder in names:
                raise EnvironmentProblem(event.text, "", "Remove the rest by hand; runs no longer need it.")
        if time.monotonic() >= give_up:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def refuse_removal(loss: Loss, *, with_results: bool) -> None:
    """Refuse to remove a sweep with live runs, or with results unless `with_results` is given.

    Raises:
        UsageProblem: runs are live, or there are results and `with_results` is not given.
    """
    if loss.busy:
        raise UsageProblem(
            f"sweep {loss.sweep_id} can't be removed",
            f"{loss.busy} of its runs are live",
            f"Stop it first: mlebench-console sweep stop {loss.sweep_id}",
        )
    if (loss.results or loss.experiments) and not with_results:
        raise UsageProblem(
            f"sweep {loss.sweep_id} has results",
            f"these would be lost: {loss.in_words()}",
            "Export what you need, then give --with-results.",
        )
