"""Snapshots of submissions and their grades: the curve of a run over time."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mlebench_console.foundation.problems import StateProblem
from mlebench_console.state import events, runs
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import EventKind, SubmissionGraded
from mlebench_console.state.records import Grade, Submission

_WITH_GRADES = (
    "SELECT submissions.*, graded_at, edition, grades.score, grades.valid, grades.standing, message"
    " FROM submissions LEFT JOIN grades ON grades.submission_id = submissions.id"
)


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a submission as its runner took it."""

    sequence: int
    taken_at: float
    elapsed_seconds: float
    sha256: str
    bytes: int
    path: str


def add(database: Database, attempt_id: int, snapshot: Snapshot) -> None:
    """Add a snapshot to the state; a known sequence number changes nothing."""
    with database.transaction():
        attempt = runs.attempt(database, attempt_id)
        database.insert("submissions", {"attempt_id": attempt_id, **asdict(snapshot)}, or_ignore=True)
        database.execute(
            "UPDATE runs SET submissions = (SELECT COUNT(*) FROM submissions WHERE attempt_id = ?),"
            " last_activity_at = MAX(COALESCE(last_activity_at, 0), ?) WHERE id = ? AND attempts = ?",
            (attempt_id, snapshot.taken_at, attempt.run_id, attempt.number),
        )


def is_current(database: Database, submission_id: int) -> bool:
    """Return whether a submission exists and belongs to the latest attempt of its run."""
    sql = (
        "SELECT 1 FROM submissions JOIN attempts ON attempts.id = attempt_id"
        " JOIN runs ON runs.id = run_id AND runs.attempts = attempts.number WHERE submissions.id = ?"
    )
    return database.row(sql, (submission_id,)) is not None


def is_known(database: Database, attempt_id: int, sequence: int) -> bool:
    """Return whether an attempt's snapshot is in the state."""
    sql = "SELECT 1 FROM submissions WHERE attempt_id = ? AND sequence = ?"
    return database.row(sql, (attempt_id, sequence)) is not None


def set_final(database: Database, attempt_id: int, sequence: int) -> None:
    """Record which snapshot is the final submission, and give the run that one's standing.

    Raises:
        StateProblem: there is no such snapshot.
    """
    if not is_known(database, attempt_id, sequence):
        raise StateProblem(f"attempt {attempt_id} has no snapshot {sequence}")
    with database.transaction():
        database.execute(
            "UPDATE submissions SET final = (sequence = ?) WHERE attempt_id = ?", (sequence, attempt_id)
        )
        final = final_of(database, attempt_id)
        assert final is not None  # it has just been set
        run_id = runs.attempt(database, attempt_id).run_id
        database.update("runs", run_id, standing=final.standing, score=final.score, valid=final.valid)


def final_of(database: Database, attempt_id: int) -> Submission | None:
    """Read the final submission of an attempt, with its grade; None while there is none."""
    return database.record(Submission, f"{_WITH_GRADES} WHERE attempt_id = ? AND final", (attempt_id,))


def add_grade(database: Database, grade: Grade, *, now: float) -> None:
    """Store a grade, and give the run the standing of its final or else its latest graded submission."""
    with database.transaction():
        row = database.row("SELECT attempt_id FROM submissions WHERE id = ?", (grade.submission_id,))
        if row is None:
            return
        attempt = runs.attempt(database, row["attempt_id"])
        run = runs.get(database, attempt.run_id)
        database.execute("DELETE FROM grades WHERE submission_id = ?", (grade.submission_id,))
        database.insert("grades", asdict(grade))
        newest = database.row(
            f"{_WITH_GRADES} WHERE attempt_id = ? AND graded_at IS NOT NULL ORDER BY final DESC, sequence DESC LIMIT 1",
            (attempt.id,),
        )
        if newest is None or newest["id"] != grade.submission_id or attempt.number != run.attempts:
            return
        database.update("runs", run.id, standing=grade.standing, score=grade.score, valid=grade.valid)
        if run.standing != grade.standing or run.score != grade.score:
            was = f" (was {run.standing.replace('_', ' ')})" if run.standing else ""
            score = "" if grade.score is None else f" {grade.score:g}"
            text = f"{grade.standing.replace('_', ' ')}{score}{was}"
            detail = SubmissionGraded(grade.score, grade.standing, run.standing)
            kind = EventKind.SUBMISSION_GRADED
            events.append(database, now, kind, text, run=run, attempt_id=attempt.id, detail=detail)


def of_attempt(database: Database, attempt_id: int) -> list[Submission]:
    """Read an attempt's snapshots with their grades, first to latest."""
    return database.records(
        Submission, f"{_WITH_GRADES} WHERE attempt_id = ? ORDER BY sequence", (attempt_id,)
    )


def ungraded(database: Database) -> list[Submission]:
    """Read the final, else the newest snapshot of each live attempt, where it has no grade yet."""
    return database.records(
        Submission,
        f"{_WITH_GRADES} JOIN attempts ON attempts.id = submissions.attempt_id"
        " JOIN runs ON runs.id = attempts.run_id AND runs.attempts = attempts.number"
        " WHERE graded_at IS NULL AND runs.state IN ('running', 'collecting', 'grading')"
        " AND sequence = (SELECT sequence FROM submissions AS other"
        " WHERE other.attempt_id = submissions.attempt_id ORDER BY final DESC, sequence DESC LIMIT 1)"
        " ORDER BY taken_at",
    )


@dataclass(frozen=True)
class HandedIn:
    """The content of a run's final submission."""

    sha256: str
    run_id: int
    sweep_id: str
    agent_id: str
    competition_id: str
    seed: int


def handed_in_by_several(database: Database) -> list[HandedIn]:
    """Read the final submissions whose bytes equal another run's."""
    return database.records(
        HandedIn,
        "WITH finals AS (SELECT sha256, run_id, sweep_id, json_extract(spec, '$.agent_id') AS agent_id,"
        " competition_id, seed FROM submissions JOIN attempts ON attempts.id = attempt_id"
        " JOIN runs ON runs.id = run_id AND runs.attempts = attempts.number"
        " JOIN sweeps ON sweeps.id = sweep_id WHERE final)"
        " SELECT * FROM finals WHERE sha256 IN"
        " (SELECT sha256 FROM finals GROUP BY sha256 HAVING COUNT(*) > 1) ORDER BY run_id",
    )
