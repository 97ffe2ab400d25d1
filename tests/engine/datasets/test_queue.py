"""Datasets are worked through by an engine: each on its own, seen step by step, and resumed after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.demo_data import generate
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import PrepareDatasets, PruneDatasets, StopDatasets, VerifyDatasets
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import database, datasets, events
from mlebench_console.state.records import Dataset, DatasetState, PreparationOptions, StepState
from tests.engine.harness import COMPETITION, WAIT_FOR_GO, Harness, eventually

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
    own.ask(
        PrepareDatasets(
            competition_ids=(
                OTHER,
                COMPETITION,
            ),
            options=PreparationOptions(source=str(raw)),
        )
    )
    ended = (DatasetState.PREPARED, DatasetState.FAILED)
    eventually(lambda: all(dataset.state in ended for dataset in known(own).values()))
    assert known(own)[COMPETITION].state is DatasetState.PREPARED
    assert known(own)[COMPETITION].bytes_on_disk
    assert known(own)[OTHER].state is DatasetState.FAILED
    assert known(own)[OTHER].problem_text
    told = steps(own, COMPETITION)
    assert [told[name] for name in ("download", "verify", "extract")] == [StepState.SKIPPED] * 3
    assert [told[name] for name in ("prepare", "checksum")] == [StepState.DONE] * 2
    assert steps(own, OTHER)["prepare"] is StepState.FAILED
    assert (raw / COMPETITION).is_dir()


def test_runs_wait_for_their_data_and_a_killed_engine_takes_the_work_up_again(own: Harness) -> None:
    own.agent("submitter", 'cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"')
    own.start()
    own.launch("submitter", competitions=(COMPETITION, OTHER), demo=True)
    eventually(lambda: any(dataset.state is DatasetState.WORKING for dataset in known(own).values()))
    own.kill_engine()
    own.start()
    for run in own.ended():
        assert run.state == "finished"
        assert run.attempts == 1
    assert all(dataset.state is DatasetState.PREPARED for dataset in known(own).values())
    left = [path.name for path in own.places.data_dir.rglob("*.partial")]
    assert left == []


def told(harness: Harness, kind: str) -> list[str]:
    """What the events of one kind tell, the newest first."""
    state = database.open_for_reading(harness.places.state_dir)
    try:
        return [event.text for event in events.newest(state) if event.kind == kind]
    finally:
        state.close()


def prepared(own: Harness, tmp_path: Path) -> Path:
    """A dataset that the engine has prepared from generated data, and its folder."""
    generate(COMPETITION, tmp_path / "raw")
    own.start()
    own.ask(
        PrepareDatasets(
            competition_ids=(COMPETITION,), options=PreparationOptions(source=str(tmp_path / "raw"))
        )
    )
    eventually(lambda: known(own)[COMPETITION].state is DatasetState.PREPARED)
    return own.places.data_dir / COMPETITION


def test_a_dataset_is_verified_on_request_and_what_has_changed_is_told(own: Harness, tmp_path: Path) -> None:
    folder = prepared(own, tmp_path)
    with pytest.raises(UsageProblem, match=f"{OTHER} is not prepared"):
        own.ask(VerifyDatasets(competition_ids=(OTHER,)))
    own.ask(VerifyDatasets(competition_ids=(COMPETITION,)))
    # The data are generated, so they are not as the real ones are known, and yet as they were made.
    eventually(lambda: told(own, "dataset.verified"))
    assert "changed" not in known(own)[COMPETITION].problem_text
    answers = next((folder / "prepared" / "private").glob("*.csv"))
    answers.write_text("id\n")
    own.ask(VerifyDatasets(competition_ids=(COMPETITION,)))
    eventually(lambda: len(told(own, "dataset.verified")) == 2)
    dataset = known(own)[COMPETITION]
    assert f"changed since it was prepared: private/{answers.name}" in dataset.problem_text
    assert dataset.state is DatasetState.PREPARED


def test_a_dataset_is_pruned_on_request_but_not_under_runs_that_need_it(own: Harness, tmp_path: Path) -> None:
    folder = prepared(own, tmp_path)
    own.agent("waiter", WAIT_FOR_GO)
    own.launch("waiter")
    own.all_in("running")
    with pytest.raises(UsageProblem, match="has runs of it that have not ended"):
        own.ask(PruneDatasets(competition_ids=(COMPETITION,), parts=("prepared",)))
    own.ask(PruneDatasets(competition_ids=(COMPETITION,), parts=("prepared",), keep_going=True))
    eventually(lambda: told(own, "dataset.pruned"))
    assert "has runs of it that have not ended" in told(own, "dataset.pruned")[0]
    own.ask(
        PruneDatasets(
            competition_ids=(COMPETITION,),
            parts=(
                "zip",
                "raw",
            ),
        )
    )  # runs need none of them
    # The next prune would find the dataset claimed by this one.
    eventually(lambda: len(told(own, "dataset.pruned")) == 2)
    assert (folder / "prepared").is_dir()
    for run in own.until_started():
        own.go(run)
    own.ended()
    own.ask(PruneDatasets(competition_ids=(COMPETITION,), parts=("prepared",)))
    eventually(lambda: known(own)[COMPETITION].state is DatasetState.ABSENT)
    eventually(lambda: list(folder.iterdir()) == [])
    assert told(own, "dataset.pruned")[0].startswith("pruned, ")


def test_data_are_not_prepared_again_under_runs_that_need_them(own: Harness, tmp_path: Path) -> None:
    folder = prepared(own, tmp_path)
    own.agent("waiter", WAIT_FOR_GO)
    own.launch("waiter")
    own.all_in("running")
    before = (folder / "prepared").stat().st_ino
    raw = PreparationOptions(source=str(tmp_path / "raw"))
    for anew in (
        PrepareDatasets(competition_ids=(COMPETITION,), again=True),
        PrepareDatasets(competition_ids=(COMPETITION,), options=raw),
    ):
        with pytest.raises(
            UsageProblem, match=r"can't be prepared again: sweep .* has runs of it that have not"
        ):
            own.ask(anew)
    assert known(own)[COMPETITION].state is DatasetState.PREPARED
    own.ask(PrepareDatasets(competition_ids=(COMPETITION,)))  # nothing is replaced by that
    assert (folder / "prepared").stat().st_ino == before
    for run in own.until_started():
        own.go(run)
    own.ended()
    own.ask(
        PrepareDatasets(
            competition_ids=(COMPETITION,),
            again=True,
            options=PreparationOptions(source=str(tmp_path / "raw")),
        )
    )
    eventually(lambda: known(own)[COMPETITION].state is DatasetState.PREPARED)
    assert (folder / "prepared").stat().st_ino != before


def test_what_waits_is_stopped_on_request_and_nothing_else(own: Harness, tmp_path: Path) -> None:
    prepared(own, tmp_path)
    with pytest.raises(UsageProblem, match="none of them is being prepared"):
        own.ask(StopDatasets(competition_ids=(COMPETITION,)))
    held = own.places.data_dir / OTHER / ".claim"
    held.parent.mkdir()
    held.write_text("somebody else's")  # unreadable, so it is believed until it is old
    generate(OTHER, tmp_path / "other")
    own.ask(
        PrepareDatasets(competition_ids=(OTHER,), options=PreparationOptions(source=str(tmp_path / "other")))
    )
    eventually(lambda: "another process works on it" in known(own)[OTHER].problem_text)
    own.ask(StopDatasets(competition_ids=(OTHER,)))
    eventually(lambda: known(own)[OTHER].state is DatasetState.ABSENT)
    assert known(own)[COMPETITION].state is DatasetState.PREPARED
