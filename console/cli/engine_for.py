"""An engine to work with: the user's own, or one for another data directory that ends with the command."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from engine.places import Places


@contextmanager
def engine_for(places: Places, data_dir: Path) -> Iterator[Places]:
    """Let an engine work on a data directory; one that was started for this and has nothing to do is stopped.

    An interrupted command leaves the user's own engine at work.
    """
    from engine.control import ensure_running, status, stop

    if data_dir == places.data_dir:
        was_running = status(places).running
        ensure_running(places)
        goes_on = was_running
        try:
            yield places
        except KeyboardInterrupt:
            goes_on = True
            raise
        finally:
            if not goes_on and _is_idle(places):
                stop(places)
        return
    # One data directory to an engine: the state knows datasets by competition and edition alone.
    folder = Path(tempfile.mkdtemp(prefix="mlebench-prepare-"))
    other = replace(places, data_dir=data_dir, state_dir=folder)
    try:
        ensure_running(other)
        yield other
    finally:
        stop(other)
        shutil.rmtree(folder)


def _is_idle(places: Places) -> bool:
    from state import database, datasets, runs
    from state.records import DatasetState

    opened = database.open_for_reading(places.state_dir)
    try:
        busy = (DatasetState.WAITING, DatasetState.WORKING)
        live = sum(runs.live_counts(opened).values()) + runs.queued_count(opened)
        return not live and not any(datasets.in_state(opened, state) for state in busy)
    finally:
        opened.close()
