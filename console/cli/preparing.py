"""Having an engine prepare datasets and watching it, engines that die on the way included."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from engine.places import Places
    from state.database import Database
    from state.records import Dataset, DatasetStep

_LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Seen:
    """How far one dataset is."""

    dataset: Dataset
    steps: tuple[DatasetStep, ...]


class Display(Protocol):
    """Somebody who shows how far datasets are."""

    def show(self, seen: Sequence[Seen]) -> None:
        """Take how far all of them are now."""


def prepare_and_watch(
    places: Places, ids: Sequence[str], edition: str, arguments: Mapping[str, Any], display: Display
) -> tuple[Seen, ...]:
    """Ask for datasets and return when there is nothing more to be done for any of them."""
    wanted = {**arguments, "competition_ids": list(ids), "edition": edition, "keep_going": True}
    _ask(places, wanted)
    seen: tuple[Seen, ...] = ()
    while True:
        seen = look(places, ids, edition)
        display.show(seen)
        open_ = [one.dataset.competition_id for one in seen if _is_open(one)]
        if not open_:
            return seen
        if not _engine_is_there(places):
            # Whatever killed it: what it was doing waits in the state, and asking again adds nothing.
            _ask(places, {**wanted, "competition_ids": open_})
        time.sleep(_LOOK_SECONDS)


def look(places: Places, ids: Sequence[str], edition: str) -> tuple[Seen, ...]:
    """Read how far datasets are, in the order given."""
    from state import datasets

    with _reading(places) as opened:
        found = (datasets.find(opened, competition_id, edition) for competition_id in ids)
        return tuple(
            Seen(one, tuple(datasets.steps(opened, one.competition_id, edition)))
            for one in found
            if one is not None
        )


def _is_open(seen: Seen) -> bool:
    from state.records import DatasetState

    return seen.dataset.state in (DatasetState.WAITING, DatasetState.WORKING)


def _ask(places: Places, wanted: dict[str, Any]) -> None:
    from engine.control import ask, ensure_running

    while True:
        ensure_running(places)
        try:
            ask(places, "dataset.prepare", wanted, wait_seconds=600.0)
            return
        except EnvironmentProblem:
            if _engine_is_there(places):
                raise


def _engine_is_there(places: Places) -> bool:
    from engine.control.status import lock_path
    from foundation.locks import is_held

    return is_held(lock_path(places))


@contextmanager
def _reading(places: Places) -> Iterator[Database]:
    from state.database import open_for_reading

    opened = open_for_reading(places.state_dir)
    try:
        yield opened
    finally:
        opened.close()
