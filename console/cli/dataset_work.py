"""Having an engine work on datasets, and showing how far it is: for `prepare`, `datasets verify` and `datasets prune`.

An engine that dies on the way is started again; what it was asked for waits in the state.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from console import wording
from console.cli.common import complain, say
from console.views.rates import Pace, Rates
from engine.datasets.steps import CHECKSUM
from engine.places import Places
from foundation.problems import EnvironmentProblem
from state import datasets, events
from state.database import Database, exists, open_for_reading
from state.records import Dataset, DatasetState, DatasetStep, Event, StepState

if TYPE_CHECKING:
    from rich.live import Live

_LOOK_SECONDS = 0.25
_ANSWER_SECONDS = 600.0
_BAR_CELLS = 16
_MOST_ROWS = 12
_MOST_EVENTS = 10_000
_BUSY = (DatasetState.WAITING, DatasetState.WORKING)
_FAILED = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)
_ENDED = (DatasetState.PREPARED, DatasetState.ABSENT, *_FAILED)


@dataclass(frozen=True)
class DatasetProgress:
    """How far one dataset is."""

    dataset: Dataset
    steps: tuple[DatasetStep, ...]

    @property
    def is_busy(self) -> bool:
        """Whether it is being prepared, or waits for that."""
        return self.dataset.state in _BUSY

    @property
    def is_verifying(self) -> bool:
        """Whether it is being verified, or waits for that."""
        open_ = (StepState.WAITING, StepState.WORKING)
        return any(step.name == CHECKSUM and step.state in open_ for step in self.steps)

    @property
    def current(self) -> DatasetStep | None:
        """What is being done."""
        return next((step for step in self.steps if step.state is StepState.WORKING), None)


class Display(Protocol):
    """Shows how far datasets are."""

    def show(self, seen: Sequence[DatasetProgress]) -> None:
        """Take how far all of them are now."""


def prepare_and_watch(
    places: Places, ids: Sequence[str], edition: str, arguments: Mapping[str, Any], display: Display
) -> tuple[DatasetProgress, ...]:
    """Ask for datasets and return when there is nothing more to be done for any of them."""
    wanted = {**arguments, "competition_ids": list(ids), "edition": edition, "keep_going": True}
    _ask(places, "dataset.prepare", wanted)
    while True:
        seen = look(places, ids, edition)
        display.show(seen)
        busy = [one.dataset.competition_id for one in seen if one.is_busy]
        if not busy:
            return seen
        if not _is_alive(places):
            # Whatever killed it: what it was doing waits in the state, and asking again adds nothing.
            _ask(places, "dataset.prepare", {**wanted, "competition_ids": busy})
        time.sleep(_LOOK_SECONDS)


def verify_and_watch(
    places: Places, ids: Sequence[str], edition: str, display: Display
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Have prepared datasets verified; yields each as it is, with what was found, or nothing if it was stopped."""
    before = _last_event(places)
    _ask(places, "dataset.verify", {"competition_ids": list(ids), "edition": edition})
    ended: set[str] = set()
    while True:
        seen = look(places, ids, edition)
        for one in seen:
            name = one.dataset.competition_id
            if name not in ended and not one.is_verifying:
                ended.add(name)
                found = (
                    event.detail
                    for event in _events_since(places, before, "dataset.verified")
                    if event.competition_id == name and event.detail.get("edition") == edition
                )
                yield name, next(found, {})
        display.show(seen)
        if len(ended) == len(ids):
            return
        _revive(places)  # it takes up by itself what it was to verify
        time.sleep(_LOOK_SECONDS)


def prune_and_wait(places: Places, parts: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """Have the parts of each competition's data removed; returns the `bytes` given back or the `problem` of each."""
    before = _last_event(places)
    together: dict[tuple[str, ...], list[str]] = {}
    for competition_id, names in parts.items():
        together.setdefault(tuple(names), []).append(competition_id)
    found: dict[str, dict[str, Any]] = {}
    asked = False
    while len(found) < len(parts):
        if not asked or not _is_alive(places):
            for names, ids in together.items():
                missing = [one for one in ids if one not in found]
                if missing:
                    wanted = {"competition_ids": missing, "parts": list(names), "keep_going": True}
                    _ask(places, "dataset.prune", wanted)
            asked = True
        for event in _events_since(places, before, "dataset.pruned"):
            if event.competition_id is not None and event.competition_id in parts:
                found.setdefault(event.competition_id, event.detail)
        time.sleep(0 if len(found) == len(parts) else _LOOK_SECONDS / 5)
    return found


def look(places: Places, ids: Sequence[str], edition: str) -> tuple[DatasetProgress, ...]:
    """Read how far datasets are, in the order given."""
    with _reading(places) as opened:
        found = (datasets.find(opened, competition_id, edition) for competition_id in ids)
        return tuple(
            DatasetProgress(one, tuple(datasets.steps(opened, one.competition_id, edition)))
            for one in found
            if one is not None
        )


def _last_event(places: Places) -> int:
    if not exists(places.state_dir):
        return 0
    with _reading(places) as opened:
        return next((event.id for event in events.newest(opened, limit=1)), 0)


def _events_since(places: Places, before: int, kind: str) -> list[Event]:
    with _reading(places) as opened:
        newest = events.newest(opened, limit=_MOST_EVENTS, after_id=before)
        return [event for event in newest if event.kind == kind]


def _ask(places: Places, kind: str, wanted: dict[str, Any]) -> None:
    from engine.control import ask, ensure_running

    while True:
        ensure_running(places)
        try:
            ask(places, kind, wanted, wait_seconds=_ANSWER_SECONDS)
            return
        except EnvironmentProblem:
            if _is_alive(places):
                raise


def _revive(places: Places) -> None:
    from engine.control import ensure_running

    if not _is_alive(places):
        ensure_running(places)


def _is_alive(places: Places) -> bool:
    from engine.control.status import lock_path
    from foundation.locks import is_held

    return is_held(lock_path(places))


@contextmanager
def _reading(places: Places) -> Iterator[Database]:
    opened = open_for_reading(places.state_dir)
    try:
        yield opened
    finally:
        opened.close()


@dataclass(frozen=True)
class StepProgress:
    """How far one step of one thing is.

    Attributes:
        total: how much there is; nothing if that is not known.
        unit: `bytes`, or what is counted.
    """

    name: str
    step: str
    done: int
    total: int | None
    unit: str = "bytes"
    note: str = ""


class ProgressRows:
    """A table at the bottom of the terminal; what is printed meanwhile stands above it."""

    def __init__(self) -> None:
        self._rates = Rates()
        self._live: Live | None = None

    def __enter__(self) -> ProgressRows:
        """Begin to draw."""
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()

    def draw(self, rows: Sequence[Sequence[str]]) -> None:
        """Show these rows."""
        from rich.table import Table

        assert self._live is not None
        table = Table.grid(padding=(0, 2))
        for row in rows:
            table.add_row(*row)
        self._live.update(table)

    def row(self, progress: StepProgress) -> tuple[str, ...]:
        """What a step's row says, and how fast it goes since it was looked at last."""
        from console.sanitize import plain

        name = plain(progress.name, limit=44)
        pace = self._rates.measure((name, progress.step), progress.done, progress.total, time.monotonic())
        note = plain(progress.note, limit=40)
        return (name, progress.step, _bar(progress), _amount(progress), _pace(progress, pace), note)


class Silent:
    """For those who read the result as JSON."""

    def show(self, seen: Sequence[DatasetProgress]) -> None:
        """Say nothing."""


class PlainLines:
    """A line whenever a dataset gets to another step, waits for something, or is done with."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._first_with: dict[str, str] = {}

    def show(self, seen: Sequence[DatasetProgress]) -> None:
        """Say what is new."""
        for one in seen:
            line = self._line(one)
            if line and self._said.get(one.dataset.competition_id) != line:
                self._said[one.dataset.competition_id] = line
                (complain if one.dataset.state in _FAILED else say)(line)
        sys.stdout.flush()

    def _line(self, one: DatasetProgress) -> str:
        name, state = one.dataset.competition_id, one.dataset.state
        if state is DatasetState.PREPARED:
            size = one.dataset.bytes_on_disk
            return f"{name}: prepared" + (f", {wording.size(size)}" if size else "")
        if state is DatasetState.ABSENT:
            return f"{name}: stopped"
        if state in _FAILED:
            return f"{name}: {self._trouble(one)}"
        if one.dataset.problem:
            return f"{name}: waiting: {self._trouble(one)}"
        step = one.current
        if step is None:
            return ""
        total = f", {wording.size(step.total)}" if step.unit == "bytes" and step.total else ""
        waiting = f": {step.note}" if step.note.startswith("waiting") else ""
        return f"{name}: {step.name}{total}{waiting}"

    def _trouble(self, one: DatasetProgress) -> str:
        """What is wrong; what is wrong with many, such as credentials, is written in full once."""
        name = one.dataset.competition_id
        trouble = one.dataset.problem.removeprefix(f"{name}: ")
        first = self._first_with.setdefault(trouble, name)
        return trouble if first == name else f"the same as with {first}"


class Bars:
    """A live table of what is going on, with what is done with as lines above it."""

    def __init__(self, rows: ProgressRows) -> None:
        self._lines = PlainLines()
        self._rows = rows
        self._ended: set[str] = set()

    def show(self, seen: Sequence[DatasetProgress]) -> None:
        """Draw how far all is now."""
        ended = [one for one in seen if one.dataset.state in _ENDED]
        self._lines.show([one for one in ended if one.dataset.competition_id not in self._ended])
        self._ended |= {one.dataset.competition_id for one in ended}
        going = [one for one in seen if one.dataset.state is DatasetState.WORKING]
        waiting = [one for one in seen if one.dataset.state is DatasetState.WAITING]
        held = [one for one in waiting if one.dataset.problem]
        counts = f"{len(self._ended)} of {len(seen)} done, {len(waiting)} waiting"
        self._rows.draw([*map(self._row, [*going, *held][:_MOST_ROWS]), (counts,)])

    def _row(self, one: DatasetProgress) -> tuple[str, ...]:
        from console.sanitize import plain

        name = plain(one.dataset.competition_id, limit=44)
        if one.dataset.state is DatasetState.WAITING:
            return (name, "waiting", plain(one.dataset.problem, limit=60))
        step = one.current
        if step is None:
            return (name, "starting")
        progress = StepProgress(
            one.dataset.competition_id, step.name, step.done, step.total, step.unit, step.note
        )
        return self._rows.row(progress)


class VerifyBars:
    """A live table of what is being verified."""

    def __init__(self, rows: ProgressRows) -> None:
        self._rows = rows
        self._verified: set[str] = set()

    def show(self, seen: Sequence[DatasetProgress]) -> None:
        """Draw how far all is now; what has just been verified is drawn once more, as a whole bar."""
        rows = []
        for one in seen:
            name, step = one.dataset.competition_id, one.current
            if one.is_verifying and step is not None:
                rows.append(StepProgress(name, "verify", step.done, step.total, note=step.note))
            elif not one.is_verifying and name not in self._verified:
                self._verified.add(name)
                rows.append(StepProgress(name, "verify", 1, 1, unit="dataset"))
        counts = f"{len(self._verified)} of {len(seen)} verified"
        self._rows.draw([*map(self._rows.row, rows[:_MOST_ROWS]), (counts,)])


def _bar(progress: StepProgress) -> str:
    if not progress.total:
        return " " * _BAR_CELLS
    full = min(_BAR_CELLS, progress.done * _BAR_CELLS // progress.total)
    return "█" * full + "·" * (_BAR_CELLS - full)


def _amount(progress: StepProgress) -> str:
    if not progress.total:
        return ""
    if progress.unit == "bytes":
        return f"{wording.size(progress.done)} of {wording.size(progress.total)}"
    return f"{progress.done:,} of {progress.total:,}"


def _pace(progress: StepProgress, pace: Pace) -> str:
    if not pace.rate:
        return ""
    rate = f"{wording.size(int(pace.rate))}/s" if progress.unit == "bytes" else f"{pace.rate:,.0f}/s"
    return f"{rate}, {wording.duration(pace.eta)} left" if pace.eta is not None else rate
