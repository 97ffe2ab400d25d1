"""The demo beside the user's own state: made once, resumed, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.engine import control
from mlebench_console.engine.demo import BASELINE, DUMMY, demo_places, ensure_demo, reset_demo
from mlebench_console.engine.places import Places
from mlebench_console.state import database, experiments, runs, sweeps
from mlebench_console.state.lifecycle import RunState
from tests.engine.harness import eventually


@pytest.mark.usefixtures("bubblewrap")
def test_the_demo_is_made_once_goes_on_when_asked_again_and_can_be_removed(tmp_path: Path) -> None:
    places = Places(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state")
    demo = demo_places(places)
    ensure_demo(places)
    try:
        state = database.open_for_reading(demo.state_dir)
        try:
            eventually(lambda: any(run.state is RunState.FINISHED for run in runs.of_all_sweeps(state)))
            assert control.stop(demo).running is False
            ensure_demo(places)
            assert control.status(demo).running
            assert [sweep.id for sweep in sweeps.all_sweeps(state)] == [DUMMY, BASELINE]
            assert all(sweep.spec.demo for sweep in sweeps.all_sweeps(state))
            assert [one.id for one in experiments.all_experiments(state)] == [DUMMY, BASELINE]
            assert len(runs.of_all_sweeps(state)) == 36
        finally:
            state.close()
        assert not control.status(places).running
        assert not places.data_dir.exists()
    finally:
        reset_demo(places)
    assert not demo.state_dir.exists()
    reset_demo(places)
