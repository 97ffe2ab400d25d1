"""The bundle that is handed in with a row: reports by seed, their mapping, the row, checksums of everything.

MLE-bench's own aggregation reads its `runs` folder as it is.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from competitions import registry
from competitions.model import Edition
from engine.grading.batch import REPORT_SUFFIX, BatchReport
from engine.grading.report import Report, ReportOutcome
from engine.rungroups import (
    MAPPING_NAME,
    ExportedRun,
    group_name,
    run_id_for,
    write_group,
    write_mapping,
)
from engine.scoreboard.disclosure import Disclosure
from engine.scoreboard.evidence import Evidence, Trial, result_of
from engine.scoreboard.model import Measure, Row
from engine.scoreboard.row_text import RowFormat, row_text
from foundation.clock import iso
from foundation.files import write_json, write_text
from foundation.problems import DataProblem, UsageProblem

RUNS = "runs"
MANIFEST = "manifest.json"
_FORMAT = "mlebench-console bundle"
_VERSION = 1
_BLOCK = 1 << 20

# Where what a run left is at hand: its attempt's directory and the graded snapshot.
Locate = Callable[[Trial], tuple[Path, Path | None] | None]


@dataclass(frozen=True)
class Counted:
    """A trial as it stands in the bundle: as which seed, and what it counts for there."""

    seed: int
    trial: Trial
    earned: frozenset[Measure]


def write_bundle(
    folder: Path,
    evidence: Evidence,
    row: Row,
    disclosure: Disclosure,
    *,
    now: float,
    locate: Locate | None = None,
) -> Path:
    """Write a bundle and return its manifest; all of it appears in one step.

    Args:
        folder: the new folder.
        evidence: what the row was made of; with a padded row, missing results are in the reports too.
        row: the row.
        disclosure: what is told with it.
        now: the moment, in seconds since the epoch.
        locate: where a run's files are; None leaves submissions, logs and code out.

    Raises:
        UsageProblem: the folder exists, or the evidence is in conflict with itself.
        DataProblem: it has no result, or the folder can't be written.
    """
    if folder.exists():
        raise UsageProblem(f"{folder} exists", "", "Name a new folder.")
    if evidence.conflict:
        raise UsageProblem(f"{evidence.name} makes no row", evidence.conflict)
    counted = counted_trials(evidence, pad_missing=row.padded)
    if not counted:
        raise DataProblem(f"{evidence.name} has no result to hand in")
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir(parents=True)
        write_runs(partial / RUNS, evidence, counted, now=now, locate=locate)
        for form in RowFormat:
            write_text(partial / f"row.{form.value}", row_text(row, disclosure, form))
        write_json(
            partial / MANIFEST,
            {
                "format": _FORMAT,
                "version": _VERSION,
                "created_at": iso(now),
                "experiment_id": evidence.name,
                "edition": evidence.conditions.edition,
                "padded": row.padded,
                "demo": row.demo,
                "files": _checksums(partial),
            },
        )
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise DataProblem(f"{folder} can't be written", error.strerror or str(error)) from error
    return folder / MANIFEST


def counted_trials(evidence: Evidence, *, pad_missing: bool) -> tuple[Counted, ...]:
    """The trials that count, each as the seed that it counts as: the k-th of its competition is seed k."""
    places: dict[str, int] = {}
    found = []
    for trial in evidence.trials:
        result = result_of(trial, pad_missing=pad_missing)
        if result is not None:
            places[trial.competition_id] = places.get(trial.competition_id, 0) + 1
            found.append(Counted(places[trial.competition_id], trial, result.earned))
    return tuple(found)


def write_runs(
    runs_dir: Path,
    evidence: Evidence,
    counted: Sequence[Counted],
    *,
    now: float,
    locate: Locate | None = None,
) -> None:
    """Write one run group with its grading report for each seed, and the mapping of the experiment to them.

    Raises:
        OSError: the folder can't be written.
    """
    runs_dir.mkdir(parents=True, exist_ok=True)
    pairs = []
    for seed in range(1, max(one.seed for one in counted) + 1):
        members = [one for one in counted if one.seed == seed]
        name = group_name(evidence.conditions.agent or evidence.name, evidence.created_at or now, seed)
        ids = [run_id_for(one.trial.competition_id, evidence.name, seed) for one in members]
        exported = [_exported(run_id, one, locate) for run_id, one in zip(ids, members, strict=True)]
        folder = write_group(runs_dir, name, exported)
        batch = BatchReport(
            tuple(
                report_of(one, evidence.conditions.edition, run_id)
                for run_id, one in zip(ids, members, strict=True)
            )
        )
        write_json(folder / f"{name.partition('_')[0]}{REPORT_SUFFIX}", batch.to_dict())
        pairs.append((evidence.name, name))
    write_mapping(runs_dir / MAPPING_NAME, pairs)


def report_of(counted: Counted, edition: str, run_id: str) -> Report:
    """A counted trial as a report; its flags are what it was counted for, not judged anew."""
    trial, earned = counted.trial, counted.earned
    cut = registry.get(trial.competition_id).thresholds
    used: Edition = "corrected" if edition == "corrected" else "v1"
    outcome: ReportOutcome = (
        "scored" if Measure.VALID in earned else "rejected" if Measure.SUBMISSION in earned else "no_file"
    )
    return Report(
        competition_id=trial.competition_id,
        score=trial.score if Measure.VALID in earned else None,
        gold_threshold=cut.gold,
        silver_threshold=cut.silver,
        bronze_threshold=cut.bronze,
        median_threshold=cut.median,
        any_medal=Measure.ANY_MEDAL in earned,
        gold_medal=Measure.GOLD in earned,
        silver_medal=Measure.SILVER in earned,
        bronze_medal=Measure.BRONZE in earned,
        above_median=Measure.ABOVE_MEDIAN in earned,
        submission_exists=Measure.SUBMISSION in earned,
        valid_submission=Measure.VALID in earned,
        is_lower_better=cut.is_lower_better,
        created_at="" if trial.decided_at is None else iso(trial.decided_at),
        submission_path=f"{run_id}/submission/submission.csv" if Measure.SUBMISSION in earned else "None",
        edition=used,
        outcome=outcome,
        message=trial.text if trial.earned is not None else f"counted as no medal (padding): {trial.text}",
        defects=registry.get(trial.competition_id).defects_in(used),
    )


def verify_bundle(folder: Path) -> dict[str, object]:
    """Check a bundle's files against its manifest, and return the manifest.

    Raises:
        DataProblem: it is no bundle, or a file is missing, changed or not told of, by name.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        told = manifest["files"]
        if manifest["format"] != _FORMAT or manifest["version"] != _VERSION:
            raise DataProblem(f"{path} is of a format that is not known here")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataProblem(f"{folder} is no bundle", str(error)) from error
    found = _checksums(folder)
    wrong = sorted(name for name in found.keys() | told.keys() if found.get(name) != told.get(name))
    if wrong:
        raise DataProblem(f"{folder} is not as its manifest says", ", ".join(wrong[:5]))
    return dict(manifest)


def _exported(run_id: str, counted: Counted, locate: Locate | None) -> ExportedRun:
    success = counted.trial.earned is not None and not counted.trial.failure
    at_hand = locate(counted.trial) if locate else None
    return ExportedRun(run_id, success, *(at_hand or (None, None)))


def _checksums(folder: Path) -> dict[str, dict[str, object]]:
    return {
        str(path.relative_to(folder)): {"sha256": _sha256(path), "bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
