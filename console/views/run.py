"""One run: its data in the state, and the data read from its files while a pane shows them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, pairwise
from pathlib import Path

from mlebench_console.competitions.model import Competition
from mlebench_console.console import wording
from mlebench_console.console.nouns.call import CallHistory, read_on
from mlebench_console.console.nouns.competition import competition, percentile_of
from mlebench_console.console.nouns.costs import known_prices
from mlebench_console.console.nouns.submission import best_of
from mlebench_console.engine.model_costs import Spending, spending_of
from mlebench_console.engine.needs.waits import QueuedRun, Wait, job_wait, read_queued_run, retry_at
from mlebench_console.engine.options.sweep import USUAL_VALUES
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.fields import flat
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import names_of_limits
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
# Options of a sweep that are not conditions of a single run, or are listed separately.
_NOT_OF_A_RUN = frozenset(
    {"agent_id", "competitions", "seeds", "demo", "prepare_missing", "raw_dir", "start_ramp_seconds"}
)
_DURATION, _BYTES = "_seconds", "_bytes"
_NAMES = {"cpus": "processors", "gpus": "GPUs", "runs_per_gpu": "runs per GPU", "gateway": "model gateway"}
_VERSION_LENGTH = 12
# The name of the line with the devices that an attempt got, which depends on which were free.
DEVICES = "GPU"

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


class Resource(StrEnum):
    """What an attempt uses, the scarcest first."""

    GPU = "GPU busy"
    GPU_MEMORY = "GPU memory"
    CPU = "processors"
    MEMORY = "memory"
    DISK = "disk"
    NETWORK = "network"
    PROCESSES = "processes"


# The resource usage of one attempt over time; without those that were never measured.
UsageCurves = Mapping[Resource, Sequence[Point]]

_MEASURES: dict[Resource, Callable[[UsageSample], float | None]] = {
    Resource.GPU: lambda sample: sample.gpu_percent,
    Resource.GPU_MEMORY: lambda sample: sample.gpu_memory_bytes,
    Resource.CPU: lambda sample: sample.cpu_percent,
    Resource.MEMORY: lambda sample: sample.memory_bytes,
    Resource.DISK: lambda sample: sample.disk_bytes,
    Resource.PROCESSES: lambda sample: sample.processes,
}


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
        return {}
    found = read_samples(facts.state_dir, [facts.attempt.id])[facts.attempt.id]
    curves = {
        resource: [(sample.at, float(known)) for sample in found if (known := value(sample)) is not None]
        for resource, value in _MEASURES.items()
    }
    curves[Resource.NETWORK] = _rates(found)
    return {resource: _thinned(curves[resource]) for resource in Resource if curves[resource]}


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


def _thinned(points: list[Point]) -> list[Point]:
    if len(points) <= _MOST_POINTS:
        return points
    # Of neighbouring points the largest is kept, so that peaks remain visible.
    step = -(-len(points) // _MOST_POINTS)
    groups = [points[place : place + step] for place in range(0, len(points), step)]
    return [max(group, key=lambda point: point[1]) for group in groups]


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


@dataclass(frozen=True)
class RunSetting:
    """One line of the configuration of a run.

    Attributes:
        usual: whether it is the default; None if it has none.
        is_warning: whether it puts the result in doubt.
    """

    name: str
    text: str
    usual: bool | None = None
    is_warning: bool = False


def configuration(
    run: Run, sweep: Sweep, attempt: Attempt | None, order: Order | None
) -> Iterator[RunSetting]:
    """Yield what was asked for, what an attempt got, and how its agent is started."""
    spec = sweep.spec
    yield RunSetting("competition", run.competition_id)
    yield RunSetting("seed", str(run.seed))
    yield RunSetting("agent", spec.agent_id)
    yield RunSetting("agent version", sweep.agent_version[:_VERSION_LENGTH])
    if spec.demo:
        yield RunSetting("data", "synthetic, made for the demo: no result", is_warning=True)
    # What an attempt got replaces what was asked for.
    got = {} if attempt is None else {"runtime": attempt.runtime, "placement": attempt.placement}
    for name, asked in flat(spec).items():
        if name not in _NOT_OF_A_RUN:
            usual = asked == USUAL_VALUES[name] if name in USUAL_VALUES else None
            if usual and asked is False:
                continue  # a switch that is off
            words = name.removesuffix(_DURATION).removesuffix(_BYTES).replace("_", " ")
            yield RunSetting(_NAMES.get(name, words), got.get(name, _value(name, asked)), usual)
    if attempt is not None:
        trusted = "yes" if attempt.isolated else "no: only for agents that are trusted"
        isolated = "" if attempt.isolated is None else trusted
        yield RunSetting("isolated", isolated, is_warning=attempt.isolated is False)
        unenforced = names_of_limits(attempt.unenforced)
        yield RunSetting("limits not enforced", unenforced, is_warning=bool(unenforced))
        yield RunSetting("job", f"{attempt.job} on {attempt.node}" if attempt.node else attempt.job)
        yield RunSetting(
            "machine", (attempt.hardware.in_words() if attempt.hardware else "") or wording.UNKNOWN
        )
        yield RunSetting("image digest", attempt.image)
        yield RunSetting("image built from", attempt.recipe)
    if order is not None:
        yield from _start(order)


def _value(name: str, value: object) -> str:
    if value is None or value in ((), [], ""):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, int | float) and name.endswith(_DURATION):
        return wording.duration(value)
    if isinstance(value, int | float) and name.endswith(_BYTES):
        return wording.size(value)
    if name == "gpus" and value == -1:
        return "all"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _start(order: Order) -> Iterator[RunSetting]:
    """Yield how the agent is started; values whose names suggest secrets are hidden."""
    gpus = order.conditions.resources.gpus
    yield RunSetting("start script", order.start)
    yield RunSetting("image", order.image)
    yield RunSetting(DEVICES, ", ".join(order.gpu_uuids) or (f"{gpus}, unknown which" if gpus > 0 else ""))
    for argument in without_secrets(order.arguments):
        yield RunSetting("argument", argument)
    for name, value in order.variables:
        yield RunSetting("variable", f"{name}={_HIDDEN if _SECRET_NAME.search(name) else value}")


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
