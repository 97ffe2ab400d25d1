"""The audit trail of a run: everything in the state and in files that led to its outcome, so that anyone can check it.

It contains hashes of answers, never answers or secrets, and is always the same for the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import edition_named
from mlebench_console.engine.layout import DatasetFolder, dataset_folder, descriptions_of
from mlebench_console.engine.scoreboard.model import Evidence
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.code_snapshots import (
    KeptFile,
    manifest_path,
    read_kept,
    read_snapshot,
)
from mlebench_console.foundation.fields import from_flat
from mlebench_console.foundation.files import file_hash
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import database as state_database
from mlebench_console.state import datasets, events, runs, submissions, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import Event
from mlebench_console.state.lifecycle import RunState
from mlebench_console.state.records import (
    IMPORTED,
    Attempt,
    Dataset,
    Run,
    Submission,
    Sweep,
    SweepSpec,
)
from mlebench_console.state.usage import model_calls
from mlebench_console.state.usage.model_calls import ModelUse

_MOST_EVENTS = 100_000
# The files of an attempt's directory that record its order, its events and how it ended.
_FILES = (protocol.ORDER, protocol.EVENTS, protocol.EXIT, protocol.VALIDATIONS)


class DifferenceKind(StrEnum):
    """What contradicts what."""

    FILE_MISSING = "file_missing"
    FILE_UNREADABLE = "file_unreadable"
    FILE_CHANGED = "file_changed"
    ATTEMPTS = "attempts"
    OUTCOME = "outcome"
    SCORE = "score"
    ROW = "row"


@dataclass(frozen=True)
class AuditDifference:
    """A contradiction among files and records.

    Attributes:
        run: the run that it is about, as `sweep/competition/seed`; empty for a bundle as a whole.
        file, field: which file, and which of its entries or of the state's columns.
        theirs, ours: what is stated, and what was found or computed; None where neither can be written so.
    """

    kind: DifferenceKind
    text: str
    file: str = ""
    field: str = ""
    theirs: Any = None
    ours: Any = None
    run: str = ""


@dataclass(frozen=True)
class AuditedSubmission:
    """A snapshot and its grade from the state, and the hash of its file now; empty: the file can't be read.

    Attributes:
        code_sha256: of the manifest of the agent's code at that moment, which lists each file with its hash; empty:
            none was kept.
        damaged_code: the kept files that no longer have the hash in that manifest.
    """

    submission: Submission
    file_sha256: str
    code_sha256: str
    damaged_code: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditedAttempt:
    """An attempt from the state, and the hashes of the files in its directory.

    Attributes:
        files: hashes by file name; an empty hash: the file can't be read.
        model_use: the tokens of its model calls, by model.
    """

    attempt: Attempt
    files: Mapping[str, str]
    submissions: tuple[AuditedSubmission, ...]
    model_use: tuple[ModelUse, ...] = ()

    @property
    def final(self) -> AuditedSubmission | None:
        """The final submission."""
        return next((one for one in self.submissions if one.submission.final), None)


@dataclass(frozen=True)
class AuditedDataset:
    """The dataset that agents worked on, with hashes of its files; empty: the files are not on this machine."""

    dataset: Dataset | None
    descriptions: str
    answers_sha256: str
    sample_submission_sha256: str


@dataclass(frozen=True)
class RunAudit:
    """Everything behind the outcome of one run.

    Attributes:
        sweep: the sweep's options, with the agent's hash as its version, without this machine's paths.
        events: in order of time.
    """

    run: Run
    sweep: Sweep
    dataset: AuditedDataset
    attempts: tuple[AuditedAttempt, ...]
    events: tuple[Event, ...]

    @property
    def final(self) -> AuditedSubmission | None:
        """The submission whose grade is the run's outcome."""
        return self.attempts[-1].final if self.attempts else None

    def differences(self) -> tuple[AuditDifference, ...]:
        """List where files and records contradict each other."""
        kind, found = DifferenceKind, []
        counted, kept = self.run.attempts, len(self.attempts)
        if [one.attempt.number for one in self.attempts] != list(range(1, counted + 1)):
            text = f"it counts {counted} attempts and has {kept}"
            found.append(AuditDifference(kind.ATTEMPTS, text, field="attempts", theirs=counted, ours=kept))
        for audited in self.attempts:
            number, imported = audited.attempt.number, audited.attempt.runtime == IMPORTED
            if audited.attempt.exit_reason and not imported:
                needed = (protocol.ORDER, protocol.EVENTS, protocol.EXIT)
                missing = [name for name in needed if not audited.files.get(name)]
                found += [
                    AuditDifference(kind.FILE_MISSING, f"attempt {number} has no {name}", name)
                    for name in missing
                ]
            for one in audited.submissions:
                kept_file, what = one.submission, f"submission {one.submission.sequence} of attempt {number}"
                if not one.file_sha256:
                    text = f"{what} can't be read"
                    found.append(AuditDifference(kind.FILE_UNREADABLE, text, kept_file.path))
                elif one.file_sha256 != kept_file.sha256:
                    text = f"{what} is not the file that was submitted"
                    sums = kept_file.sha256, one.file_sha256
                    found.append(AuditDifference(kind.FILE_CHANGED, text, kept_file.path, "sha256", *sums))
                found += [
                    AuditDifference(
                        kind.FILE_CHANGED, f"the code at {what}: {path} is not what was kept", path, "sha256"
                    )
                    for path in one.damaged_code
                ]
        final = self.final
        if self.run.state is RunState.FINISHED and final is not None:
            stated = (self.run.outcome, self.run.score)
            graded = (final.submission.standing, final.submission.score)
            if graded != stated:
                text = "its outcome is not the grade of its final submission"
                found.append(AuditDifference(kind.OUTCOME, text, field="outcome", theirs=stated, ours=graded))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON object: `differences` are texts, `differing` the same as records."""
        differences = self.differences()
        return asdict(self) | {
            "sweep": self.sweep.document(),
            "differences": [one.text for one in differences],
            "differing": [asdict(one) for one in differences],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunAudit:
        """Read back what `to_dict` returned.

        Raises:
            ValueError: it is damaged.
        """
        try:
            sweep = dict(values["sweep"])
            sweep["spec"] = asdict(from_flat(SweepSpec, sweep["spec"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"its sweep is not complete: {error}") from error
        return msgspec.convert({**values, "sweep": sweep}, cls)


def audit_of(database: Database, run_id: int) -> RunAudit:
    """Gather the audit trail of one run from the state and from its files.

    Raises:
        UsageProblem: there is no such run.
    """
    run = runs.get(database, run_id)
    sweep = sweeps.get(database, run.sweep_id)
    happened = events.newest(database, run_id=run_id, limit=_MOST_EVENTS)
    return RunAudit(
        run=run,
        sweep=replace(sweep, spec=replace(sweep.spec, agents_dir="", data_dir="", raw_dir="")),
        dataset=_dataset(database, run, sweep),
        attempts=tuple(
            _attempt(database, attempt, sweep.spec) for attempt in runs.attempts(database, run_id)
        ),
        events=tuple(reversed(happened)),
    )


def audits_of(state_dir: Path, evidence: Evidence) -> tuple[RunAudit, ...]:
    """Gather the audit trails of own runs, in the order in which they count; imported reports have none."""
    run_ids = [trial.run_id for trial in evidence.trials if trial.run_id is not None]
    if not run_ids:
        return ()
    with closing(state_database.open_for_reading(state_dir)) as database:
        return tuple(audit_of(database, run_id) for run_id in run_ids)


def answers_hash(folder: DatasetFolder, competition_id: str) -> str:
    """Return the SHA-256 of a dataset's answers; empty where they are not on this machine."""
    return file_hash(folder.prepared / registry.get(competition_id).answers)


def _dataset(database: Database, run: Run, sweep: Sweep) -> AuditedDataset:
    competition = registry.get(run.competition_id)
    folder = dataset_folder(competition, sweep.spec.data_dir or None, edition_named(sweep.conditions.edition))
    return AuditedDataset(
        dataset=datasets.find(database, run.competition_id, sweep.conditions.edition),
        descriptions=descriptions_of(folder),
        answers_sha256=answers_hash(folder, run.competition_id),
        sample_submission_sha256=file_hash(folder.prepared / competition.sample_submission),
    )


def _attempt(database: Database, attempt: Attempt, spec: SweepSpec) -> AuditedAttempt:
    state_dir = database.path.parent
    snapshots = submissions.of_attempt(database, attempt.id)
    names = (*_FILES, protocol.MODEL_CALLS) if spec.conditions.models.gateway else _FILES
    directory = state_dir / attempt.directory
    is_kept = cache(partial(_is_kept, directory))  # most files are the same at many submissions
    return AuditedAttempt(
        attempt=attempt,
        files={name: file_hash(directory / name) for name in names},
        submissions=tuple(_submission(state_dir, directory, one, is_kept) for one in snapshots),
        model_use=tuple(model_calls.of_attempt(database, attempt.id)),
    )


def _submission(
    state_dir: Path, directory: Path, handed_in: Submission, is_kept: Callable[[KeptFile], bool]
) -> AuditedSubmission:
    snapshot = read_snapshot(directory, handed_in.sequence)
    return AuditedSubmission(
        handed_in,
        file_hash(state_dir / handed_in.path),
        file_hash(manifest_path(directory, handed_in.sequence)),
        tuple(kept.path for kept in (snapshot.files if snapshot else ()) if not is_kept(kept)),
    )


def _is_kept(directory: Path, kept: KeptFile) -> bool:
    try:
        read_kept(directory, kept)
    except (DataProblem, OSError):
        return False
    return True
