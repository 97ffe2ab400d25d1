"""Queries of runs and their attempts; `transitions` changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state.causes import group_of
from mlebench_console.state.database import Database, sql_list
from mlebench_console.state.lifecycle import ENGINE, LIVE, OCCUPYING, FailureClass, RunState, SweepState
from mlebench_console.state.records import Attempt, JobFacts, Run


@dataclass(frozen=True)
class FailedRun:
    """A run that may be retried: it had `failures` infrastructure failures, the last one at `ended_at`."""

    id: int
    sweep_id: str
    ended_at: float | None
    failures: int


_LIVE = sql_list(LIVE)
_OCCUPYING = sql_list(OCCUPYING)
# Runs with their latest attempts.
_LATEST = "runs JOIN attempts ON attempts.run_id = runs.id AND attempts.number = runs.attempts"


def of_sweep(database: Database, sweep_id: str) -> list[Run]:
    """Read a sweep's runs in the order in which they were queued."""
    return database.records(Run, "SELECT * FROM runs WHERE sweep_id = ? ORDER BY position", (sweep_id,))


def of_all_sweeps(database: Database) -> list[Run]:
    """Read all runs."""
    return database.records(Run, "SELECT * FROM runs ORDER BY sweep_id, position")


def seeds(database: Database) -> dict[int, int]:
    """Read the seed of each run, by its number."""
    return {row["id"]: row["seed"] for row in database.rows("SELECT id, seed FROM runs")}


def get(database: Database, run_id: int) -> Run:
    """Read one run."""
    run = database.record(Run, "SELECT * FROM runs WHERE id = ?", (run_id,))
    if run is None:
        raise UsageProblem(
            f"there is no run {run_id}", "", "'mlebench-console runs list' shows the runs with their numbers."
        )
    return run


def live(database: Database) -> list[Run]:
    """Read the runs that are being worked on."""
    return database.records(Run, f"SELECT * FROM runs WHERE state IN ({_LIVE}) ORDER BY id")


def live_counts(database: Database) -> dict[str, int]:
    """Count the live runs of each sweep that has any."""
    rows = database.rows(
        f"SELECT sweep_id, COUNT(*) AS live FROM runs WHERE state IN ({_LIVE}) GROUP BY sweep_id"
    )
    return {row["sweep_id"]: row["live"] for row in rows}


def occupying_counts(database: Database) -> dict[str, int]:
    """Count the runs of each sweep whose agents occupy slots, memory and GPUs."""
    rows = database.rows(
        f"SELECT sweep_id, COUNT(*) AS held FROM runs WHERE state IN ({_OCCUPYING}) GROUP BY sweep_id"
    )
    return {row["sweep_id"]: row["held"] for row in rows}


def troubled(database: Database) -> list[Run]:
    """Read the runs that may need a person: those that have failed, are live, or can't be graded."""
    return database.records(
        Run,
        f"SELECT * FROM runs WHERE state IN ('{RunState.FAILED}', {_LIVE}) OR grading_problem != ''"
        " ORDER BY sweep_id, position",
    )


def past_causes(database: Database) -> list[tuple[str, str]]:
    """Read all causes of failed attempts, with their groups."""
    rows = database.rows(
        "SELECT DISTINCT failure_class, suspected, cause FROM attempts WHERE failure_class IS NOT NULL"
    )
    return [
        (
            group_of(
                FailureClass(row["failure_class"]),
                ProblemCode(row["suspected"]) if row["suspected"] else None,
            ),
            row["cause"],
        )
        for row in rows
    ]


def attempts(database: Database, run_id: int) -> list[Attempt]:
    """Read all attempts of a run, first to latest."""
    return database.records(Attempt, "SELECT * FROM attempts WHERE run_id = ? ORDER BY number", (run_id,))


def latest_attempt(database: Database, run_id: int) -> Attempt | None:
    """Read the latest attempt of a run."""
    return database.record(
        Attempt, "SELECT * FROM attempts WHERE run_id = ? ORDER BY number DESC LIMIT 1", (run_id,)
    )


def attempt(database: Database, attempt_id: int) -> Attempt:
    """Read one attempt."""
    attempt = database.record(Attempt, "SELECT * FROM attempts WHERE id = ?", (attempt_id,))
    if attempt is None:
        raise UsageProblem(f"there is no attempt {attempt_id}")
    return attempt


def knows_attempt(database: Database, token: str) -> bool:
    """Return whether an attempt was launched in this state, live or not."""
    return database.row("SELECT 1 FROM attempts WHERE token = ?", (token,)) is not None


def live_attempts(database: Database) -> list[Attempt]:
    """Read the attempts that belong to live runs."""
    return _latest_attempts(database, f"runs.state IN ({_LIVE})")


def live_attempts_on(database: Database, placement: str) -> list[Attempt]:
    """Read the attempts of live runs that were launched on one placement."""
    return _latest_attempts(database, f"runs.state IN ({_LIVE}) AND placement = ?", placement)


def attempts_in(database: Database, state: RunState) -> list[Attempt]:
    """Read the latest attempts of the runs in a state."""
    return _latest_attempts(database, "runs.state = ?", state)


def placed_elsewhere(database: Database, sweep_id: str | None = None) -> dict[int, Attempt]:
    """Read the attempts of live runs that are a batch system's jobs, by run; of one sweep or all."""
    condition = f"runs.state IN ({_LIVE}) AND placement != ? AND (?2 IS NULL OR runs.sweep_id = ?2)"
    return {attempt.run_id: attempt for attempt in _latest_attempts(database, condition, HERE, sweep_id)}


def _latest_attempts(database: Database, condition: str, *values: str | None) -> list[Attempt]:
    """Read the latest attempts of the runs for which an SQL condition is true, oldest first."""
    return database.records(
        Attempt, f"SELECT attempts.* FROM {_LATEST} WHERE {condition} ORDER BY attempts.id", values
    )


def occupying_attempts(database: Database) -> dict[int, tuple[str, str]]:
    """Read the attempts whose agents occupy slots, memory and GPUs, each with its directory and its sweep."""
    sql = f"SELECT attempts.id, directory, sweep_id FROM {_LATEST} WHERE runs.state IN ({_OCCUPYING})"
    return {row["id"]: (row["directory"], row["sweep_id"]) for row in database.rows(sql)}


def report_offsets(database: Database, attempt_id: int) -> tuple[int, int]:
    """Read how far an attempt's events and usage files have been read into the state."""
    row = database.row("SELECT events_offset, usage_offset FROM attempts WHERE id = ?", (attempt_id,))
    return (0, 0) if row is None else (row["events_offset"], row["usage_offset"])


def set_report_offsets(database: Database, attempt_id: int, events_offset: int, usage_offset: int) -> None:
    """Record how far an attempt's events and usage files have been read into the state, in the same transaction."""
    database.update("attempts", attempt_id, events_offset=events_offset, usage_offset=usage_offset)


def note_jobs(database: Database, facts: Mapping[int, JobFacts]) -> None:
    """Record a batch system's facts about attempts, by their numbers, in one transaction."""
    with database.transaction():
        for attempt_id, known in facts.items():
            database.update("attempts", attempt_id, **asdict(known))


def note_activity(database: Database, run_id: int, at: float) -> None:
    """Record the last activity of a run: output, work, or a change on disk."""
    database.update("runs", run_id, last_activity_at=at)


def mark_demo(database: Database, sweep_id: str, run_id: int | None = None) -> None:
    """Record which runs of a sweep, or whether one run, are on the demo's synthetic data, as their datasets are now."""
    # A launch must not touch all other queued runs.
    chosen, value = ("sweep_id", sweep_id) if run_id is None else ("id", run_id)
    with database.transaction():
        database.execute(
            "UPDATE runs SET demo = COALESCE((SELECT datasets.demo FROM datasets JOIN sweeps"
            " ON sweeps.id = runs.sweep_id WHERE datasets.competition_id = runs.competition_id"
            f" AND datasets.edition = json_extract(sweeps.spec, '$.conditions.edition')), 0) WHERE {chosen} = ?",
            (value,),
        )


def next_ready(database: Database, sweep_id: str, edition: str, *, limit: int) -> list[Run]:
    """Read the next runs of a sweep to start, of competitions whose data are prepared."""
    return database.records(
        Run,
        "SELECT * FROM runs WHERE state = 'queued' AND sweep_id = ? AND competition_id IN"
        " (SELECT competition_id FROM datasets WHERE edition = ? AND state = 'prepared')"
        " ORDER BY position LIMIT ?",
        (sweep_id, edition, limit),
    )


def failed(database: Database, sweep_id: str, kind: FailureClass) -> list[Run]:
    """Read the runs of a sweep with a class of failure, in the order of failing."""
    return database.records(
        Run,
        "SELECT * FROM runs WHERE state = 'failed' AND sweep_id = ? AND failure_class = ? ORDER BY ended_at",
        (sweep_id, kind),
    )


def to_retry(database: Database) -> list[FailedRun]:
    """Read the runs that will be retried after a delay; a class that was set by hand triggers no retry."""
    return database.records(
        FailedRun,
        # Each sweep's specification is parsed once, however many of its runs have failed.
        "WITH retried AS MATERIALIZED (SELECT id, json_extract(spec, '$.retries') AS retries FROM sweeps"
        f" WHERE state = '{SweepState.ACTIVE}')"
        " SELECT runs.id, sweep_id, runs.ended_at, (SELECT COUNT(*) FROM attempts WHERE run_id = runs.id"
        f" AND failure_class = '{FailureClass.INFRASTRUCTURE}') AS failures"
        " FROM runs JOIN retried ON retried.id = sweep_id AND retries > 0"
        " JOIN attempts AS latest ON latest.run_id = runs.id AND latest.number = runs.attempts"
        f" WHERE runs.state = '{RunState.FAILED}' AND runs.failure_class = '{FailureClass.INFRASTRUCTURE}'"
        f" AND latest.classified_by = '{ENGINE}' AND failures <= retries ORDER BY runs.id",
    )


def queued_count(database: Database) -> int:
    """Count the queued runs."""
    row = database.row("SELECT COUNT(*) AS queued FROM runs WHERE state = 'queued'")
    return 0 if row is None else int(row["queued"])


def last_launch(database: Database, sweep_id: str) -> float | None:
    """Return when the newest attempt of a sweep was created; None without one."""
    row = database.row(
        "SELECT MAX(created_at) AS at FROM attempts JOIN runs ON runs.id = attempts.run_id WHERE sweep_id = ?",
        (sweep_id,),
    )
    return None if row is None else row["at"]


def past_attempts(database: Database, agent_id: str) -> list[tuple[int, str, float]]:
    """Read an agent's attempts, newest first, without stopped and lost ones: number, competition and duration."""
    rows = database.rows(
        "SELECT attempts.id, competition_id, attempts.ended_at - attempts.started_at"
        " FROM attempts JOIN runs ON runs.id = attempts.run_id JOIN sweeps ON sweeps.id = runs.sweep_id"
        " WHERE json_extract(spec, '$.agent_id') = ? AND attempts.started_at IS NOT NULL"
        " AND exit_reason IN ('exited', 'deadline') ORDER BY attempts.id DESC",
        (agent_id,),
    )
    return [(number, competition_id, seconds) for number, competition_id, seconds in rows]


def attempts_of_sweep(database: Database, sweep_id: str) -> list[Attempt]:
    """Read all attempts of all runs of a sweep."""
    return database.records(
        Attempt,
        "SELECT attempts.* FROM attempts JOIN runs ON runs.id = attempts.run_id WHERE sweep_id = ?"
        " ORDER BY attempts.id",
        (sweep_id,),
    )
