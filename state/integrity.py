"""Integrity: detectors' results for attempts, with findings and coverage, and people's reviews of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property

from mlebench_console.state import events, runs
from mlebench_console.state.database import Database, read_all
from mlebench_console.state.event_records import EventKind


class Layer(StrEnum):
    """The kind of a detector: rules over facts, comparison with other code, or a model as judge."""

    FACTS = "facts"
    PLAGIARISM = "plagiarism"
    JUDGE = "judge"


class Severity(StrEnum):
    """How strongly a finding speaks against a run; none of them excludes a run by itself."""

    CLEAN = "clean"
    NOTE = "note"
    SUSPICIOUS = "suspicious"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """Its position, starting with clean."""
        return list(Severity).index(self)

    @property
    def is_flag(self) -> bool:
        """Whether a person should review it."""
        return self.rank >= Severity.SUSPICIOUS.rank


@dataclass(frozen=True)
class Excerpt:
    """A passage with its source: untrusted text, verbatim but cut.

    Attributes:
        source: the file, below the attempt's directory, or a public kernel.
        first_line: counted from 1; 0 where the file has no lines.
    """

    source: str
    first_line: int
    last_line: int
    text: str

    @property
    def place(self) -> str:
        """The file and its lines."""
        if not self.first_line:
            return self.source
        to = f"-{self.last_line}" if self.last_line > self.first_line else ""
        return f"{self.source}:{self.first_line}{to}"


@dataclass(frozen=True)
class Finding:
    """A detector's finding in an attempt, with its evidence.

    Attributes:
        statement: the finding in one line.
        excerpts: the passages that show it; those of a comparison come in pairs.
        numbers: the figures that show it, by name.
    """

    severity: Severity
    statement: str
    excerpts: tuple[Excerpt, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)

    # A frozen dataclass still has a dictionary, in which a cached property is stored.
    @cached_property
    def key(self) -> str:
        """Its id within its run, which stays the same as long as a detector finds the same."""
        numbers = {
            name: float(value) for name, value in self.numbers.items()
        }  # as they are read from the state
        content = json.dumps(
            [self.statement, [asdict(one) for one in self.excerpts], numbers], sort_keys=True
        )
        return hashlib.sha256(content.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class DetectorResult:
    """The result of one detector for one attempt, and what it examined.

    Attributes:
        version: of the detector; a newer one runs again.
        content: the hash of all that it examined; when that has changed, it runs again.
        coverage: how much of the material it examined, in words; empty for all of it.
        problem: why it could not run; then it says nothing about the run.
        model: the model that judged; empty for none.
        usd: the cost of its answers, including cached ones; None where the price is unknown.
    """

    detector: str
    layer: Layer
    version: int
    content: str
    looked_at: float
    findings: tuple[Finding, ...] = ()
    coverage: str = ""
    problem: str = ""
    model: str = ""
    usd: float | None = 0.0

    @property
    def severity(self) -> Severity:
        """The severity of its gravest finding."""
        return max((one.severity for one in self.findings), key=lambda one: one.rank, default=Severity.CLEAN)


@dataclass(frozen=True)
class Review:
    """A person's review of a finding, with the reason; it is never removed, and the newest one of a finding counts.

    Attributes:
        finding: its key.
        statement: the finding's at the time of the review.
        cleared: whether the finding does not speak against the run; otherwise it is confirmed.
    """

    id: int
    run_id: int
    finding: str
    statement: str
    cleared: bool
    reason: str
    author: str
    at: float


@dataclass(frozen=True)
class RunIntegrity:
    """The integrity of one run: the results for its latest attempt, and the reviews of its findings."""

    run_id: int
    results: tuple[DetectorResult, ...]
    reviews: tuple[Review, ...]

    def review_of(self, finding: Finding) -> Review | None:
        """Return the review of a finding that counts; None without one."""
        return next((one for one in reversed(self.reviews) if one.finding == finding.key), None)

    def is_cleared(self, finding: Finding) -> bool:
        """Return whether a person has cleared a finding."""
        review = self.review_of(finding)
        return review is not None and review.cleared

    def standing(self) -> list[Finding]:
        """Return the findings that nobody has cleared, the gravest first."""
        found = (one for result in self.results for one in result.findings if not self.is_cleared(one))
        return sorted(found, key=lambda one: -one.severity.rank)

    def flags(self) -> list[Finding]:
        """Return those of them that a person should review."""
        return [one for one in self.standing() if one.severity.is_flag]

    @property
    def severity(self) -> Severity:
        """The gravest of the findings that nobody has cleared."""
        return next((one.severity for one in self.standing()), Severity.CLEAN)

    def result_of(self, detector: str) -> DetectorResult | None:
        """Return the result of a detector; None without one."""
        return next((one for one in self.results if one.detector == detector), None)


def replace_results(
    database: Database, attempt_id: int, layer: Layer, results: Sequence[DetectorResult]
) -> None:
    """Store a layer's results for an attempt, replacing its earlier ones."""
    with database.transaction():
        database.execute(
            "DELETE FROM integrity_results WHERE attempt_id = ? AND layer = ?", (attempt_id, layer)
        )
        for result in results:
            kept = asdict(result) | {"findings": json.dumps([asdict(one) for one in result.findings])}
            database.insert("integrity_results", {"attempt_id": attempt_id, **kept})


def of_runs(database: Database, run_ids: Collection[int]) -> dict[int, RunIntegrity]:
    """Read the integrity of runs; those that no detector has examined have no results."""
    wanted = json.dumps(sorted(run_ids))
    rows = database.rows(
        "SELECT integrity_results.*, run_id FROM integrity_results JOIN attempts ON attempts.id = attempt_id"
        " JOIN runs ON runs.id = run_id AND runs.attempts = attempts.number"
        " WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY run_id, layer, detector",
        (wanted,),
    )
    reviewed = database.records(
        Review,
        "SELECT * FROM reviews WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (wanted,),
    )
    results: dict[int, list[DetectorResult]] = {}
    for row, result in zip(rows, read_all(DetectorResult, rows), strict=True):
        results.setdefault(row["run_id"], []).append(result)
    reviews: dict[int, list[Review]] = {}
    for review in reviewed:
        reviews.setdefault(review.run_id, []).append(review)
    return {
        number: RunIntegrity(number, tuple(results.get(number, ())), tuple(reviews.get(number, ())))
        for number in sorted(run_ids)
    }


def add_review(
    database: Database, run_id: int, finding: Finding, *, cleared: bool, reason: str, author: str, now: float
) -> None:
    """Store a person's review of a finding, with an event."""
    with database.transaction():
        values = {"run_id": run_id, "finding": finding.key, "statement": finding.statement}
        review = {"cleared": cleared, "reason": reason, "author": author, "at": now}
        database.insert("reviews", values | review)
        verb = "cleared" if cleared else "confirmed"
        text = f"finding {finding.key} {verb} by {author}: {reason}"
        events.append(database, now, EventKind.INTEGRITY_REVIEWED, text, run=runs.get(database, run_id))
