"""Verify a bundle: recompute its scores from its submissions, and its row from its reports and audits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.grader import PER_PROCESS, Grader
from mlebench_console.competitions.judging import GradeRequest
from mlebench_console.competitions.model import edition_named
from mlebench_console.engine.grading.grader import report_on
from mlebench_console.engine.grading.report import standing_of
from mlebench_console.engine.layout import can_grade, dataset_folder
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.audit import AuditDifference, DifferenceKind, RunAudit, answers_hash
from mlebench_console.engine.scoreboard.export import (
    AUDIT,
    RUNS,
    RowFormat,
    check_files,
    columns_document,
    snapshot_path,
)
from mlebench_console.engine.scoreboard.model import Conditions, Evidence
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.engine.scoreboard.reports import load_evidence
from mlebench_console.foundation.files import file_hash
from mlebench_console.foundation.problems import DataProblem


@dataclass(frozen=True)
class BundleVerification:
    """The result of checking a bundle.

    Attributes:
        scores: how many scores were recomputed and found equal.
        unchecked: what could not be checked, each with the reason.
        differences: what differs from what the bundle says.
    """

    scores: int
    unchecked: tuple[tuple[str, str], ...]
    differences: tuple[AuditDifference, ...]

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents: `differences` are texts, `differing` the same as records."""
        return asdict(self) | {
            "differences": [one.text for one in self.differences],
            "differing": [asdict(one) for one in self.differences],
        }


def verify(folder: Path, data_dir: Path | None = None, *, at_once: int = 1) -> BundleVerification:
    """Check a bundle for contradictions, and its scores against the prepared data of this machine.

    Raises:
        DataProblem: it is not a bundle.
    """
    manifest, wrong = check_files(folder)
    differences = [
        AuditDifference(DifferenceKind.FILE_CHANGED, f"{name} is missing, changed or not listed", name)
        for name in wrong
    ]
    unchecked: list[tuple[str, str]] = []
    audits = _audits(folder, differences)
    differences += _row_differences(folder, manifest, audits)
    if not audits:
        unchecked.append(("scores", "the bundle has no audit trail: it was made from imported reports"))
    for audit in audits:
        name = _name(audit)
        differences += [replace(one, text=f"{name}: {one.text}", run=name) for one in audit.differences()]
    scores = _check_scores(folder, audits, data_dir, at_once, unchecked, differences)
    return BundleVerification(scores, tuple(unchecked), tuple(differences))


def _audits(folder: Path, differences: list[AuditDifference]) -> tuple[RunAudit, ...]:
    found = []
    for path in sorted((folder / AUDIT).glob("*.json")):
        try:
            found.append(RunAudit.from_dict(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError) as error:
            name = str(path.relative_to(folder))
            text = f"{name} can't be read: {error}"
            differences.append(AuditDifference(DifferenceKind.FILE_UNREADABLE, text, name))
    return tuple(found)


def _row_differences(
    folder: Path, manifest: Mapping[str, Any], audits: Sequence[RunAudit]
) -> list[AuditDifference]:
    """Compare the numbers of the bundle's row with those of its reports and of its audited runs."""
    pad = bool(manifest.get("padded"))
    edition = str(manifest.get("edition") or "v1")
    row_file = folder / f"row{RowFormat.JSON.suffix}"
    try:
        stated = json.loads(row_file.read_text(encoding="utf-8"))["columns"]
        reported = load_evidence([folder / RUNS])
    except (OSError, ValueError, KeyError, DataProblem) as error:
        text = f"the row can't be recomputed: {error}".replace("\n", " ")
        return [AuditDifference(DifferenceKind.ROW, text, row_file.name)]
    sources = [("its reports", reported)]
    if audits:
        trials = tuple(trial_of(audit.run) for audit in audits)
        audited = Evidence("own", str(manifest.get("experiment_id")), Conditions(edition), trials, 0.0)
        sources.append(("its audited runs", audited))
    found = []
    for what, evidence in sources:
        computed = columns_document(row_of(evidence, pad_missing=pad))
        for column in sorted(stated.keys() & computed.keys()):
            theirs, ours = stated[column]["measures"], computed[column]["measures"]
            if not _are_equal(theirs, ours):
                text = f"the row's column '{column}' does not follow from {what}"
                found.append(AuditDifference(DifferenceKind.ROW, text, row_file.name, column, theirs, ours))
    return found


def _are_equal(one: Any, other: Any) -> bool:
    """Compare parsed JSON: numbers by value, as sums in another order may differ in their last digit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _check_scores(
    folder: Path,
    audits: Sequence[RunAudit],
    data_dir: Path | None,
    at_once: int,
    unchecked: list[tuple[str, str]],
    differences: list[AuditDifference],
) -> int:
    requests: list[GradeRequest] = []
    graded: list[RunAudit] = []
    for audit in audits:
        if audit.final is None:
            continue  # no submission, or none that counts
        request = _request(folder, audit, data_dir)
        if isinstance(request, str):
            unchecked.append((_name(audit), request))
        else:
            requests.append(request)
            graded.append(audit)
    scores = 0
    with Grader(per_process=PER_PROCESS) as grader:
        for place, result in grader.grade_all(requests, at_once=at_once):
            audit, request = graded[place], requests[place]
            assert audit.final is not None  # audits without one were skipped above
            recorded = audit.final.submission
            if result.judgement is None:
                unchecked.append((_name(audit), result.problem.cause if result.problem else ""))
                continue
            report = report_on(request, result.judgement, audit.dataset.descriptions)
            found = (report.score, report.valid_submission, standing_of(report))
            if _are_equal([*found], [recorded.score, recorded.valid, recorded.standing]):
                scores += 1
            else:
                name = _name(audit)
                text = f"{name}: its score is {found[0]} ({found[2]}), not {recorded.score} ({recorded.standing})"
                differences.append(
                    AuditDifference(
                        DifferenceKind.SCORE,
                        text,
                        recorded.path,
                        "score",
                        (recorded.score, recorded.standing),
                        (found[0], found[2]),
                        name,
                    )
                )
    return scores


def _request(folder: Path, audit: RunAudit, data_dir: Path | None) -> GradeRequest | str:
    """Return the request to grade a run's final submission again, or why that can't be done."""
    assert audit.final is not None  # the caller skips audits without one
    submission = audit.final.submission
    if submission.standing is None:
        return "it was never graded"
    path = folder / snapshot_path(submission.sha256)
    if not path.is_file():
        return "its submission is not in the bundle"
    if file_hash(path) != submission.sha256:
        return "its submission in the bundle is not the file that was submitted"
    competition = registry.get(audit.run.competition_id)
    edition = edition_named(audit.sweep.conditions.edition)
    dataset = dataset_folder(competition, data_dir, edition)
    if not can_grade(competition, dataset):
        return f"{competition.id} is not prepared on this machine in edition {edition}"
    if audit.dataset.answers_sha256 not in ("", answers_hash(dataset, competition.id)):
        return f"the answers of {competition.id} on this machine differ from those that it was graded with"
    request = GradeRequest(competition.id, path, dataset.prepared, edition)
    return replace(request, sha256=submission.sha256)


def _name(audit: RunAudit) -> str:
    return f"{audit.run.sweep_id}/{audit.run.competition_id}/{audit.run.seed}"
