"""Findings of detectors in runs: how suspicious they are, and what people say of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from mlebench_console.console.fields import REST, Cell, Noun, NounField
from mlebench_console.console.roles import Drawing, Role
from mlebench_console.state.integrity import DetectorResult, Excerpt, Finding, Review, RunIntegrity, Severity
from mlebench_console.state.records import Run

_ROLES: dict[Severity, Role] = {
    Severity.CLEAN: "good",
    Severity.NOTE: "dim",
    Severity.SUSPICIOUS: "warn",
    Severity.HIGH: "bad",
}


@dataclass(frozen=True)
class FindingRow:
    """A finding in a run.

    Attributes:
        directory: of the run's latest attempt.
        review: a person's review, if there is one.
    """

    run: Run
    directory: Path
    result: DetectorResult
    finding: Finding
    review: Review | None

    @property
    def key(self) -> tuple[int, str]:
        """What identifies it among all findings."""
        return self.run.id, self.finding.key

    @property
    def is_cleared(self) -> bool:
        """Whether a person has cleared it."""
        return self.review is not None and self.review.cleared

    def file_of(self, excerpt: Excerpt) -> Path | None:
        """Return the file that contains a passage; None if it is not the run's, such as a public kernel."""
        path = self.directory / excerpt.source
        is_own = ".." not in Path(excerpt.source).parts and not Path(excerpt.source).is_absolute()
        return path if is_own and path.is_file() else None

    @property
    def counts(self) -> bool:
        """Whether it needs a review, or has one."""
        return self.finding.severity.is_flag or self.review is not None


def finding_rows(run: Run, known: RunIntegrity, directory: Path) -> list[FindingRow]:
    """Join the findings of a run with the reviews of people; its latest attempt lies in `directory`."""
    return [
        FindingRow(run, directory, result, finding, known.review_of(finding))
        for result in known.results
        for finding in result.findings
    ]


def _suspicion(row: FindingRow, _drawing: Drawing) -> Cell:
    if row.review is not None:
        return (("cleared", "good"),) if row.is_cleared else (("confirmed", "bad"),)
    return ((row.finding.severity, _ROLES[row.finding.severity]),)


FINDING = Noun[FindingRow](
    "finding",
    key=lambda row: row.key,
    document=lambda row, _now: asdict(row.finding) | {"key": row.finding.key, "cleared": row.is_cleared},
    fields=(
        NounField("suspicion", _suspicion, 10, words=True),
        NounField("run", lambda row, _: str(row.run.id), 5, right=True, role="dim"),
        NounField("competition", lambda row, _: row.run.competition_id, 14, grows=40, drop=1, words=True),
        NounField("seed", lambda row, _: str(row.run.seed), 4, right=True, role="dim", drop=3),
        NounField("detector", lambda row, _: row.result.detector, 15, role="dim", drop=2, words=True),
        NounField(
            "what", lambda row, _: row.finding.statement, 32, grows=REST, title="what was found", words=True
        ),
    ),
)
