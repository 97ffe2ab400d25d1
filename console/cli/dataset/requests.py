"""Requests to an engine about datasets, with their progress: for `prepare`, `datasets verify` and `datasets prune`.

An engine that dies on the way is started again; what it was asked for waits in the state.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from mlebench_console.competitions.model import Edition
from mlebench_console.console import wording
from mlebench_console.console.cli.common import Context
from mlebench_console.console.cli.output import drawing, say, say_on_stderr
from mlebench_console.console.fields import text_of
from mlebench_console.console.nouns.dataset import DATASET, DatasetRow, dataset_rows
from mlebench_console.console.pieces import bar
from mlebench_console.console.rates import Rates
from mlebench_console.console.sanitize import plain
from mlebench_console.engine.control import (
    EngineGone,
    answer_to,
    ensure_running,
    file,
    status,
    variables_unknown_to_engine,
)
from mlebench_console.engine.datasets.prepared.pruning import Part
from mlebench_console.engine.kaggle.credentials import VARIABLES
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import PrepareDatasets, PruneDatasets, Request, VerifyDatasets
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.state import events
from mlebench_console.state.database import exists, open_for_reading
from mlebench_console.state.event_records import DatasetPruned, DatasetVerified, Event
from mlebench_console.state.records import DatasetState, VerificationKind

_POLL_SECONDS = 0.25
_STARTED_AGAIN = "The engine has ended; it is started again, and continues."
_STOPPED = "not verified: stopped"
_ANSWER_SECONDS = 600.0
_MOST_ROWS = 12
_BAR_CELLS = 8
_MOST_EVENTS = 10_000
_FAILED = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)

# What is shown of each dataset while it is being prepared or verified.
_PROGRESS = DATASET.columns("competition step done amount rate left note")
# Takes how far all datasets are now, and shows it.
Display = Callable[[Sequence[DatasetRow]], None]


def prepare_by_engine(context: Context, base: Path, requests: Sequence[PrepareDatasets]) -> list[DatasetRow]:
    """Have an engine prepare datasets, with a display of the progress; return how each has ended."""
    found: list[DatasetRow] = []
    with (
        context.engine(base) as used,
        progress_display(lambda row: row.is_busy, PlainLines().show, json=context.json) as show,
    ):
        if not all(request.options.mirror for request in requests):
            _say_unknown_variables(used)
        try:
            for request in requests:
                found += _prepare_and_watch(used, request, show)
        except KeyboardInterrupt:
            if used is context.places:
                say_on_stderr(_after_interrupt(used))
            raise
    return found


def _after_interrupt(places: Places) -> str:
    if status(places).running:
        return "The engine continues; 'mlebench-console datasets stop --all' stops it."
    return "No engine is running; 'mlebench-console engine start' continues with what was requested."


def _say_unknown_variables(places: Places) -> None:
    """Print which credentials are set here, but not in the running engine."""
    unknown = variables_unknown_to_engine(places, VARIABLES)
    if unknown:
        say_on_stderr(
            f"note: the engine was started without this {', '.join(unknown)} and does not use it;"
            " 'mlebench-console engine stop', and the next command starts it anew"
        )


def _prepare_and_watch(places: Places, request: PrepareDatasets, show: Display) -> tuple[DatasetRow, ...]:
    """Request datasets, and return when the work on all of them has ended."""
    _ask(places, request)
    while True:
        seen = _read_rows(places, request.competition_ids, request.edition)
        show(seen)
        busy = tuple(row.competition_id for row in seen if row.is_busy)
        if not busy:
            return seen
        if not status(places).running:
            # Whatever killed it: what it was doing waits in the state, and asking again adds nothing.
            say_on_stderr(_STARTED_AGAIN)
            _ask(places, replace(request, competition_ids=busy))
        time.sleep(_POLL_SECONDS)


def verify_and_watch(
    places: Places, ids: Sequence[str], edition: Edition, kind: VerificationKind, show: Display
) -> Iterator[tuple[str, DatasetVerified]]:
    """Have prepared datasets verified; yield each with its findings, or with the problem that it was stopped."""
    before = _last_event(places)
    _ask(places, VerifyDatasets(competition_ids=tuple(ids), edition=edition, verification=kind))
    ended: set[str] = set()
    while True:
        seen = _read_rows(places, ids, edition)
        for row in seen:
            if row.competition_id not in ended and not row.is_verifying:
                ended.add(row.competition_id)
                found = (
                    event.detail
                    for event in _events_since(places, before)
                    if isinstance(event.detail, DatasetVerified)
                    and (event.competition_id, event.detail.edition) == (row.competition_id, edition)
                )
                yield row.competition_id, next(found, DatasetVerified(edition, _STOPPED))
        show(seen)
        if len(ended) == len(ids):
            return
        ensure_running(places)  # it takes up by itself what it was to verify
        time.sleep(_POLL_SECONDS)


def prune_and_wait(places: Places, parts: Sequence[Part]) -> dict[str, DatasetPruned]:
    """Have parts of datasets removed; return what came of it, by competition."""
    before = _last_event(places)
    names: defaultdict[str, list[str]] = defaultdict(list)
    for part in parts:
        names[part.competition_id].append(part.name)
    found: dict[str, DatasetPruned] = {}
    asked = False
    while missing := [one for one in names if one not in found]:
        if asked and status(places).running:
            time.sleep(_POLL_SECONDS / 5)
        else:
            for wanted, ids in groupby(sorted(missing, key=names.__getitem__), key=names.__getitem__):
                request = PruneDatasets(competition_ids=tuple(ids), parts=tuple(wanted), keep_going=True)
                _ask(places, request)
            asked = True
        for event in _events_since(places, before):
            name = event.competition_id
            if name is not None and name in names and isinstance(event.detail, DatasetPruned):
                found.setdefault(name, event.detail)
    return found


def _read_rows(places: Places, ids: Sequence[str], edition: str) -> tuple[DatasetRow, ...]:
    """Read the states of datasets, in the order given."""
    with closing(open_for_reading(places.state_dir)) as opened:
        rows = {row.key: row for row in dataset_rows(opened)}
    return tuple(rows[one, edition] for one in ids)


def _last_event(places: Places) -> int:
    if not exists(places.state_dir):
        return 0
    with closing(open_for_reading(places.state_dir)) as opened:
        return next((event.id for event in events.newest(opened, limit=1)), 0)


def _events_since(places: Places, before: int) -> list[Event]:
    with closing(open_for_reading(places.state_dir)) as opened:
        return events.newest(opened, limit=_MOST_EVENTS, after_id=before)


def _ask(places: Places, request: Request) -> None:
    filed: int | None = None
    while True:
        ensure_running(places)
        try:
            filed = filed or file(places, request)
            answer_to(places, filed, wait_seconds=_ANSWER_SECONDS)
            return
        except EngineGone:
            say_on_stderr(_STARTED_AGAIN)
        except EnvironmentProblem:  # it ended before anything was filed
            if status(places).running:
                raise


def show_nothing(_seen: Sequence[DatasetRow]) -> None:
    """Show no progress, for commands that print only the result."""


class PlainLines:
    """Print a line whenever a dataset enters another step, waits, or is finished."""

    def __init__(self) -> None:
        self._printed: dict[str, str] = {}
        self._first_with: dict[str, str] = {}
        self._waiting_since: float | None = None

    def show(self, seen: Sequence[DatasetRow]) -> None:
        """Print what has changed."""
        from mlebench_console.engine.needs.needs import kaggle_text

        for kaggle in {row.kaggle for row in seen}:
            if kaggle.unreachable_since != self._waiting_since:
                say(kaggle_text(kaggle) or "Kaggle answers again")
                self._waiting_since = kaggle.unreachable_since
        for row in seen:
            line = self._line(row)
            if line and self._printed.get(row.competition_id) != line:
                self._printed[row.competition_id] = line
                (say_on_stderr if row.state in _FAILED else say)(f"{row.competition_id}: {line}")
        sys.stdout.flush()

    def _line(self, row: DatasetRow) -> str:
        if row.state is DatasetState.PREPARED:
            return "prepared" + (f", {wording.size(row.bytes_on_disk)}" if row.bytes_on_disk else "")
        if row.state is DatasetState.ABSENT:
            return "stopped"
        if row.state in _FAILED:
            return self._trouble(row)
        if row.waits_for_kaggle:
            return ""  # what holds for all of them is said once
        if row.problem:
            return f"waiting: {self._trouble(row)}"
        step = row.step
        if step is None:
            return ""
        total = f", {wording.size(step.total)}" if step.unit == "bytes" and step.total else ""
        return f"{step.name}{total}"

    def _trouble(self, row: DatasetRow) -> str:
        """Return the problem; one that concerns many datasets, such as credentials, is written in full only once."""
        first = self._first_with.setdefault(row.problem, row.competition_id)
        return row.problem if first == row.competition_id else f"the same as with {first}"


@contextmanager
def progress_display(
    is_open: Callable[[DatasetRow], bool], lines: Display, *, json: bool
) -> Iterator[Display]:
    """Provide the display of progress: `lines`, or none with JSON.

    In a terminal it is a table of those that are open, with the lines of those that have ended above it.
    """
    if json or not sys.stdout.isatty():
        yield show_nothing if json else lines
        return
    # The display replaces the output, whose encoding says which signs it takes.
    rates, begun = Rates(), drawing()
    ended: set[str] = set()

    def show(seen: Sequence[DatasetRow]) -> None:
        going = [row for row in seen if is_open(row)]
        waiting = [row for row in going if row.step is None]
        table, how = Table.grid(padding=(0, 2)), replace(begun, now=time.time())
        shown = [row for row in going if row.step or row.problem]
        if shown:
            table.add_row(*(field.heading for field in _PROGRESS))
        for row in sorted(shown, key=lambda row: row.step is None)[:_MOST_ROWS]:
            if row.going is None:
                table.add_row(plain(row.competition_id, limit=44), "waiting", plain(row.problem, limit=60))
                continue
            step = row.going
            pace = rates.measure((*row.key, step.name), step.done, step.total, how.now)
            paced = replace(row, pace=pace)
            table.add_row(*(plain(text_of(field.cell(paced, how)), limit=44) for field in _PROGRESS))
        just_ended = [row for row in seen if row.competition_id not in ended and not is_open(row)]
        lines(just_ended)
        for row in just_ended:
            ended.add(row.competition_id)
            table.add_row(plain(row.competition_id, limit=44), "done", bar(1.0, _BAR_CELLS, how.signs)[0])
        table.add_row(f"{len(ended)} of {len(seen)} done, {len(waiting)} waiting")
        live.update(table)

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield show
