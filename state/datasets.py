"""Datasets: the state of each competition's data, and the progress of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mlebench_console.foundation.problems import ProblemRecord
from mlebench_console.state import events
from mlebench_console.state.database import Database, to_json
from mlebench_console.state.event_records import DatasetChanged, EventKind
from mlebench_console.state.records import (
    Dataset,
    DatasetState,
    DatasetStep,
    KaggleState,
    PreparationOptions,
    StepState,
)

# The text of an event for a dataset that has reached a state; a problem says more about the last two.
_EVENT_TEXTS = {
    DatasetState.ABSENT: "not here any more",
    DatasetState.WAITING: "waits",
    DatasetState.WORKING: "being prepared",
    DatasetState.PREPARED: "prepared",
    DatasetState.FAILED: "could not be prepared",
    DatasetState.REFUSED: "",
    DatasetState.UNAVAILABLE: "",
}


@dataclass(frozen=True)
class Progress:
    """The progress of a step: `done` of `total` (None: unknown) in `unit`."""

    state: StepState
    done: int = 0
    total: int | None = None
    unit: str = ""
    note: str = ""


def request(
    database: Database,
    competition_id: str,
    edition: str,
    *,
    steps: Sequence[str],
    options: PreparationOptions,
    now: float,
) -> None:
    """Request a dataset: it waits, with all steps reset, whatever its state was before."""
    with database.transaction():
        database.execute(
            "INSERT INTO datasets (competition_id, edition, state, options, requested_at, updated_at)"
            " VALUES (?, ?, 'waiting', ?, ?, ?) ON CONFLICT (competition_id, edition) DO UPDATE SET"
            " state = 'waiting', problem_record = NULL, options = excluded.options,"
            " requested_at = excluded.requested_at, updated_at = excluded.updated_at, failures = 0,"
            " failing_since = NULL, retry_at = NULL",
            (competition_id, edition, to_json(options), now, now),
        )
        _set_steps(database, competition_id, edition, steps, StepState.WAITING)
        text = event_text("requested", edition)
        detail = DatasetChanged(edition, DatasetState.WAITING)
        kind = EventKind.DATASET_REQUESTED
        events.append(database, now, kind, text, competition_id=competition_id, detail=detail)


def set_state(
    database: Database,
    competition_id: str,
    edition: str,
    state: DatasetState,
    *,
    now: float,
    problem: ProblemRecord | None = None,
    bytes_on_disk: int | None = None,
    kind: EventKind | None = None,
) -> None:
    """Set a dataset's state, with an event of this kind or of the state's; it need not have been requested."""
    with database.transaction():
        database.execute(
            "INSERT INTO datasets (competition_id, edition, state, bytes_on_disk, prepared_at, updated_at)"
            " VALUES (:id, :edition, :state, :bytes, :prepared, :now)"
            " ON CONFLICT (competition_id, edition) DO UPDATE SET state = excluded.state,"
            " bytes_on_disk = COALESCE(excluded.bytes_on_disk, bytes_on_disk),"
            " prepared_at = COALESCE(excluded.prepared_at, prepared_at), updated_at = excluded.updated_at",
            {
                "id": competition_id,
                "edition": edition,
                "state": state,
                "bytes": bytes_on_disk,
                "prepared": now if state is DatasetState.PREPARED else None,
                "now": now,
            },
        )
        set_problem(database, competition_id, edition, problem, now=now)
        texts = (_EVENT_TEXTS[state], problem.without_subject().in_one_line() if problem is not None else "")
        text = event_text(": ".join(filter(None, texts)) or str(state), edition)
        detail = DatasetChanged(edition, state, "" if problem is None else problem.code)
        kind = kind or EventKind.of_dataset(state)
        events.append(database, now, kind, text, competition_id=competition_id, detail=detail)


def event_text(text: str, edition: str) -> str:
    """Return the text of an event of a dataset, which names its edition unless that is v1."""
    return text if edition == "v1" else f"edition {edition}, {text}"


def found(database: Database, competition_id: str, edition: str, *, steps: Sequence[str], now: float) -> None:
    """Record that a dataset was found prepared without a request, so that none of its steps ran here."""
    with database.transaction():
        prepared = DatasetState.PREPARED
        set_state(database, competition_id, edition, prepared, now=now, kind=EventKind.DATASET_FOUND)
        _set_steps(database, competition_id, edition, steps, StepState.SKIPPED, "was found prepared")


def set_demo(database: Database, competition_id: str, edition: str, demo: bool) -> None:
    """Record whether a dataset is, or will be, made of the demo's synthetic data."""
    with database.transaction():
        database.execute(
            "UPDATE datasets SET demo = ? WHERE competition_id = ? AND edition = ?",
            (demo, competition_id, edition),
        )


def set_problem(
    database: Database, competition_id: str, edition: str, problem: ProblemRecord | None, *, now: float
) -> None:
    """Record a dataset's problem, or what it waits for, without changing its state; its subject is the competition."""
    record = None if problem is None else to_json(problem.without_subject())
    database.execute(
        "UPDATE datasets SET problem_record = ?, updated_at = ? WHERE competition_id = ? AND edition = ?",
        (record, now, competition_id, edition),
    )


def set_priority(database: Database, competition_id: str, edition: str, priority: int) -> None:
    """Set a dataset's priority; higher ones come first."""
    database.execute(
        "UPDATE datasets SET priority = ? WHERE competition_id = ? AND edition = ?",
        (priority, competition_id, edition),
    )


def set_verification(database: Database, competition_id: str, edition: str, verification: str) -> None:
    """Record how to verify a dataset."""
    database.execute(
        "UPDATE datasets SET verification = ? WHERE competition_id = ? AND edition = ?",
        (verification, competition_id, edition),
    )


def set_retry(
    database: Database,
    competition_id: str,
    edition: str,
    *,
    failures: int = 0,
    failing_since: float | None = None,
    retry_at: float | None = None,
) -> None:
    """Record how often a dataset has failed in a row and when to try again; without arguments, that it works."""
    database.execute(
        "UPDATE datasets SET failures = ?, failing_since = ?, retry_at = ? WHERE competition_id = ? AND edition = ?",
        (failures, failing_since, retry_at, competition_id, edition),
    )


def kaggle(database: Database) -> KaggleState:
    """Read whether Kaggle can be reached."""
    found = database.record(
        KaggleState,
        "SELECT unreachable_since, failures, retry_at, problem, accepted_at FROM kaggle WHERE id = ?",
        (1,),
    )
    return found or KaggleState()


def set_kaggle(database: Database, state: KaggleState, *, now: float) -> None:
    """Record whether Kaggle can be reached, with an event when that changes."""
    before = kaggle(database)
    with database.transaction():
        database.execute(
            "UPDATE kaggle SET unreachable_since = :unreachable_since, failures = :failures, retry_at = :retry_at,"
            " problem = :problem, accepted_at = :accepted_at",
            asdict(state),
        )
        if before.unreachable_since is None and state.unreachable_since is not None:
            events.append(
                database, now, EventKind.KAGGLE_UNREACHABLE, f"Kaggle can't be reached: {state.problem}"
            )
        elif before.unreachable_since is not None and state.unreachable_since is None:
            events.append(database, now, EventKind.KAGGLE_ANSWERS, "Kaggle is asked again")


def set_step(
    database: Database, competition_id: str, edition: str, name: str, progress: Progress, *, now: float
) -> None:
    """Record the progress of a step."""
    with database.transaction():
        database.execute(
            "UPDATE dataset_steps SET state = :state, done = :done, total = :total, unit = :unit, note = :note,"
            " started_at = CASE WHEN :state = 'waiting' THEN NULL ELSE COALESCE(started_at, :now) END,"
            " ended_at = CASE WHEN :state IN ('done', 'skipped', 'failed') THEN :now END"
            " WHERE competition_id = :id AND edition = :edition AND name = :name",
            {**asdict(progress), "now": now, "id": competition_id, "edition": edition, "name": name},
        )


def find(database: Database, competition_id: str, edition: str) -> Dataset | None:
    """Read one dataset."""
    return database.record(
        Dataset, "SELECT * FROM datasets WHERE competition_id = ? AND edition = ?", (competition_id, edition)
    )


def all_datasets(database: Database) -> list[Dataset]:
    """Read all datasets that the engine knows."""
    return database.records(Dataset, "SELECT * FROM datasets ORDER BY competition_id, edition")


def in_state(database: Database, state: DatasetState) -> list[Dataset]:
    """Read the datasets in one state, longest waiting first."""
    return database.records(Dataset, "SELECT * FROM datasets WHERE state = ? ORDER BY requested_at", (state,))


def awaited(database: Database) -> frozenset[str]:
    """Return the competitions of queued runs."""
    rows = database.rows("SELECT DISTINCT competition_id FROM runs WHERE state = 'queued'")
    return frozenset(row["competition_id"] for row in rows)


def steps(database: Database, competition_id: str, edition: str) -> list[DatasetStep]:
    """Read a dataset's steps in order."""
    return database.records(
        DatasetStep,
        "SELECT * FROM dataset_steps WHERE competition_id = ? AND edition = ? ORDER BY position",
        (competition_id, edition),
    )


def all_steps(database: Database) -> list[DatasetStep]:
    """Read the steps of all datasets."""
    return database.records(
        DatasetStep, "SELECT * FROM dataset_steps ORDER BY competition_id, edition, position"
    )


def _set_steps(
    database: Database,
    competition_id: str,
    edition: str,
    names: Sequence[str],
    state: StepState,
    note: str = "",
) -> None:
    database.execute(
        "DELETE FROM dataset_steps WHERE competition_id = ? AND edition = ?", (competition_id, edition)
    )
    database.execute_many(
        "INSERT INTO dataset_steps (competition_id, edition, position, name, state, note)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [(competition_id, edition, position, name, state, note) for position, name in enumerate(names)],
    )
