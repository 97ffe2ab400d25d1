"""Datasets are worked through by an engine: each on its own, seen step by step, and resumed after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.demo import generate
from engine.places import Places
from state import database, datasets
from state.records import Dataset, DatasetState, StepState
from tests.engine.harness import COMPETITION, Harness, eventually

OTHER = "nomad2018-predict-transparent-conductors"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Harness]:
    """An engine with an empty data directory."""
    places = Places(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state")
    made = Harness(places, tmp_path / "agents")
    yield made
    made.close()


def known(harness: Harness) -> dict[str, Dataset]:
    state = database.open_for_reading(harness.places.state_dir)
    try:
        return {dataset.competition_id: dataset for dataset in datasets.all_datasets(state)}
    finally:
        state.close()


def steps(harness: Harness, competition_id: str) -> dict[str, StepState]:
    state = database.open_for_reading(harness.places.state_dir)
    try:
        return {step.name: step.state for step in datasets.steps(state, competition_id, "v1")}
    finally:
        state.close()


def test_one_broken_dataset_stops_nothing_else(own: Harness, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    generate(COMPETITION, raw / COMPETITION)
    (raw / OTHER).mkdir()
    own.start()
    own.ask("dataset.prepare", competition_ids=[OTHER, COMPETITION], raw_dir=str(raw))
    ended = (DatasetState.PREPARED, DatasetState.FAILED)
    eventually(lambda: all(dataset.state in ended for dataset in known(own).values()))
    assert known(own)[COMPETITION].state is DatasetState.PREPARED
    assert known(own)[COMPETITION].bytes_on_disk
    assert known(own)[OTHER].state is DatasetState.FAILED
    assert known(own)[OTHER].problem
    told = steps(own, COMPETITION)
    assert [told[name] for name in ("download", "verify", "extract")] == [StepState.SKIPPED] * 3
    assert [told[name] for name in ("prepare", "checksum")] == [StepState.DONE] * 2
    assert steps(own, OTHER)["prepare"] is StepState.FAILED
    assert (raw / COMPETITION).is_dir()


def test_runs_wait_for_their_data_and_a_killed_engine_takes_the_work_up_again(own: Harness) -> None:
    own.agent("submitter", 'cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"')
    own.start()
    own.launch("submitter", competitions=[COMPETITION, OTHER], demo=True)
    eventually(lambda: any(dataset.state is DatasetState.WORKING for dataset in known(own).values()))
    own.kill_engine()
    own.start()
    for run in own.ended():
        assert run.state == "finished"
        assert run.attempts == 1
    assert all(dataset.state is DatasetState.PREPARED for dataset in known(own).values())
    left = [path.name for path in own.places.data_dir.rglob("*.partial")]
    assert left == []
