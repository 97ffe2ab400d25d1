"""One run: its data in the state, and the data read from its files while a pane shows them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from mlebench_console.competitions.model import Competition
from mlebench_console.console.nouns.call import CallHistory, read_on
from mlebench_console.console.nouns.competition import competition, percentile_of
from mlebench_console.console.nouns.costs import known_prices
from mlebench_console.console.nouns.submission import best_of
from mlebench_console.engine.model_costs import Spending, spending_of
from mlebench_console.engine.needs.waits import QueuedRun, Wait, job_wait, read_queued_run, retry_at
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problems import Problem
from mlebench_console.state import datasets, events, runs, submissions, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import Event
from mlebench_console.state.records import Attempt, Dataset, Run, Submission, Sweep
from mlebench_console.state.usage import model_calls, network_use
from mlebench_console.state.usage.network_use import NetworkUse
from mlebench_console.state.usage.samples import DATABASE_NAME, Samples, UnusableSamples

_EVENTS_SHOWN = 500
_MOST_POINTS = 600
MOST_ENTRIES = 400
_DEEPEST = 4

# Values under such names are never shown, even where a config file contains them in plain text.
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_HIDDEN = "hidden"

Point = tuple[float, float]


@dataclass(frozen=True)
class RunFacts:
    """All data of one run in the state; directories are relative to `state_dir`.

    Attributes:
        spending: usage and costs of the model calls of all its attempts.
        latest_spending: those of the latest attempt, which has the run's whole budget.
        price_problem: why config.toml's prices are not used.
        traffic: the traffic through the proxy of the latest attempt.
        percentile: the percentage of Kaggle's teams that its score beats; None if their scores are unknown.
        queued: what it waits for if it is queued.
        retry_at: when the engine retries it if it has failed; None if it does not.
    """

    state_dir: Path
    run: Run
    sweep: Sweep
    competition: Competition | None
    attempts: tuple[Attempt, ...]
    events: tuple[Event, ...]
    submissions: tuple[Submission, ...]
    dataset: Dataset | None
    spending: Spending
    latest_spending: Spending
    price_problem: str = ""
    traffic: tuple[NetworkUse, ...] = ()
    percentile: float | None = None
    queued: QueuedRun | None = None
    retry_at: float | None = None

    @property
    def best(self) -> Submission | None:
        """The submission of the latest attempt with the best score."""
        return best_of(self.submissions, self.competition)

    @property
    def attempt(self) -> Attempt | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def job_wait(self) -> Wait | None:
        """Why the job of its latest attempt does not run; None if it does, and if the run is not live."""
        return job_wait(self.attempt) if self.attempt is not None and self.run.is_live else None

    def took_seconds(self, now: float) -> float:
        """Return the duration of the latest attempt, so far if it is live."""
        attempt = self.attempt
        if attempt is None or attempt.started_at is None:
            return 0.0
        return (attempt.ended_at or self.run.ended_at or now) - attempt.started_at

    @property
    def directory(self) -> Path | None:
        """The directory of the latest attempt."""
        return self.state_dir / self.attempt.directory if self.attempt else None

    @property
    def log(self) -> Path | None:
        """The log of the latest attempt."""
        return self.directory / protocol.LOG if self.directory else None


@dataclass(frozen=True)
class UsageCurves:
    """The resource usage of one attempt over time, as (time, value); empty for what was never measured."""

    cpu_percent: tuple[Point, ...] = ()
    memory_bytes: tuple[Point, ...] = ()
    disk_bytes: tuple[Point, ...] = ()
    processes: tuple[Point, ...] = ()
    gpu_percent: tuple[Point, ...] = ()
    gpu_memory_bytes: tuple[Point, ...] = ()
    network_rate: tuple[Point, ...] = ()
    latest: UsageSample | None = None


@dataclass(frozen=True)
class Validations:
    """The number of times that an attempt's agent had its submission validated, and the last time."""

    count: int = 0
    last_at: float | None = None


@dataclass(frozen=True)
class FileEntry:
    """One name in a directory; `kind` is file, folder, link or special."""

    path: str
    name: str
    depth: int
    kind: str
    bytes: int
    changed_at: float


@dataclass(frozen=True)
class Listing:
    """The first entries of a directory tree, and whether there are more."""

    entries: tuple[FileEntry, ...] = ()
    is_cut: bool = False


def run_facts(database: Database, run_id: int, config_file: Path, now: float) -> RunFacts:
    """Read one run; its model calls are priced by config.toml.

    Raises:
        UsageProblem: there is no run with this number.
    """
    run = runs.get(database, run_id)
    sweep = sweeps.get(database, run.sweep_id)
    attempts = tuple(runs.attempts(database, run_id))
    uses, prices = model_calls.of_run(database, run_id), known_prices(config_file)
    latest = [use for use in uses if use.attempt_id == attempts[-1].id]
    return RunFacts(
        state_dir=database.path.parent,
        run=run,
        sweep=sweep,
        competition=competition(run.competition_id),
        attempts=attempts,
        events=tuple(events.newest(database, run_id=run_id, limit=_EVENTS_SHOWN)),
        submissions=tuple(submissions.of_attempt(database, attempts[-1].id)) if attempts else (),
        dataset=datasets.find(database, run.competition_id, sweep.conditions.edition),
        spending=spending_of(uses, prices.table),
        latest_spending=spending_of(latest, prices.table),
        price_problem=prices.problem if uses else "",
        percentile=percentile_of(run),
        queued=read_queued_run(database, run, sweep, now),
        retry_at=retry_at(database, run),
        traffic=tuple(
            use for use in network_use.of_run(database, run_id) if use.attempt_id == attempts[-1].id
        ),
    )


def read_listing(facts: RunFacts) -> Listing:
    """List the files of the latest attempt without following links or opening files; waits for the disk."""
    if facts.directory is None:
        return Listing()
    found = list(islice(_below(facts.directory, 0), MOST_ENTRIES + 1))
    return Listing(tuple(found[:MOST_ENTRIES]), len(found) > MOST_ENTRIES)


def read_validations(directory: Path) -> Validations:
    """Count the validations that an attempt's agent requested; waits for the disk."""
    count, last, offset = 0, None, 0
    try:
        while (found := jsonlines.read(directory / protocol.VALIDATIONS, offset)).offset > offset:
            offset = found.offset
            count += len(found.values)
            last = next((line.get("time") for line in reversed(found.values)), last)
    except (OSError, Problem):  # without isolation the agent may have put anything there
        return Validations()
    return Validations(count, last if isinstance(last, int | float) else None)


def read_order(facts: RunFacts) -> Order | None:
    """Read the runner's order for the latest attempt; None if it has none yet. Waits for the disk."""
    if facts.directory is None or not (facts.directory / protocol.ORDER).exists():
        return None
    return protocol.read_order(facts.directory)


def read_calls(facts: RunFacts, known: CallHistory) -> CallHistory:
    """Read the calls added to the latest attempt's file since the last read; waits for the disk."""
    return known if facts.directory is None else read_on(facts.directory, known)


def read_usage(facts: RunFacts) -> UsageCurves:
    """Read the resource usage of the latest attempt, thinned to a plot's resolution; waits for the disk."""
    if facts.attempt is None:
        return UsageCurves()
    found = read_samples(facts.state_dir, [facts.attempt.id])[facts.attempt.id]
    return UsageCurves(
        cpu_percent=_curve(found, lambda sample: sample.cpu_percent),
        memory_bytes=_curve(found, lambda sample: sample.memory_bytes),
        disk_bytes=_curve(found, lambda sample: sample.disk_bytes),
        processes=_curve(found, lambda sample: sample.processes),
        gpu_percent=_curve(found, lambda sample: sample.gpu_percent),
        gpu_memory_bytes=_curve(found, lambda sample: sample.gpu_memory_bytes),
        network_rate=_thinned(_rates(found)),
        latest=found[-1] if found else None,
    )


def read_samples(
    state_dir: Path, attempt_ids: Iterable[int], *, since: float = 0.0
) -> dict[int, list[UsageSample]]:
    """Read the samples of attempts; an empty list for an attempt without samples. Waits for the disk."""
    none: dict[int, list[UsageSample]] = {attempt_id: [] for attempt_id in attempt_ids}
    if not (state_dir / DATABASE_NAME).is_file():
        return none
    with closing(Samples(state_dir, writable=False)) as samples:
        try:
            return {attempt_id: samples.of_attempt(attempt_id, since=since) for attempt_id in none}
        except UnusableSamples:
            return (
                none  # the engine is creating the file, or will report that it is damaged and create it anew
            )


def _rates(samples: list[UsageSample]) -> list[Point]:
    """Return bytes per second between samples of a counter; no value where the counter was reset."""
    counted = [(sample.at, sample.network_bytes) for sample in samples if sample.network_bytes is not None]
    return [
        (at, (now - before) / (at - earlier))
        for (earlier, before), (at, now) in pairwise(counted)
        if at > earlier and now >= before
    ]


def _curve(samples: list[UsageSample], value: Callable[[UsageSample], float | None]) -> tuple[Point, ...]:
    return _thinned([(sample.at, float(known)) for sample in samples if (known := value(sample)) is not None])


def _thinned(points: list[Point]) -> tuple[Point, ...]:
    if len(points) <= _MOST_POINTS:
        return tuple(points)
    # Of neighbouring points the largest is kept, so that peaks remain visible.
    step = -(-len(points) // _MOST_POINTS)
    groups = [points[place : place + step] for place in range(0, len(points), step)]
    return tuple(max(group, key=lambda point: point[1]) for group in groups)


def _below(directory: Path, depth: int) -> Iterator[FileEntry]:
    try:
        with os.scandir(directory) as scan:
            # Limited before sorting, since an agent may create a million files.
            inside = sorted(islice(scan, 10 * MOST_ENTRIES), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    for entry in inside:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        kind = _kind(status.st_mode)
        yield FileEntry(
            entry.path,
            entry.name + ("/" if kind == "folder" else ""),
            depth,
            kind,
            status.st_size,
            status.st_mtime,
        )
        if kind == "folder" and depth + 1 < _DEEPEST:
            yield from _below(Path(entry.path), depth + 1)


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"


def order_facts(order: Order) -> list[tuple[str, str]]:
    """Return how the agent is started, as names and values; values whose names suggest secrets are hidden."""
    gpus = order.conditions.resources.gpus
    facts = [
        ("start script", order.start),
        ("image", order.image),
        ("GPU", ", ".join(order.gpu_uuids) or (f"{gpus}, unknown which" if gpus > 0 else "")),
        ("allowed hosts", ", ".join(order.conditions.allowed_hosts)),
    ]
    rows = [(name, value) for name, value in facts if value]
    rows += [("argument", argument) for argument in without_secrets(order.arguments)]
    return rows + [
        ("variable", f"{name}={_HIDDEN if _SECRET_NAME.search(name) else value}")
        for name, value in order.variables
    ]


def without_secrets(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return arguments with the values hidden whose names suggest secrets: `a.key=x`, or `--key x`."""
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        name, equals, _value = argument.partition("=")
        if hide_next and not argument.startswith("--"):
            shown.append(_HIDDEN)
        elif equals and _SECRET_NAME.search(name):
            shown.append(f"{name}={_HIDDEN}")
        else:
            shown.append(argument)
        hide_next = not equals and argument.startswith("--") and bool(_SECRET_NAME.search(argument))
    return tuple(shown)
