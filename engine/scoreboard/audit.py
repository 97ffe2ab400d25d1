"""The audit trail of a run: everything in the state and in files that led to its outcome, for sceptics to check.

It holds hashes of answers, never answers or secrets, and is the same whenever it is made of the same run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from competitions import registry
from competitions.model import edition_named
from engine.layout import DatasetFolder, dataset_folder, descriptions_of
from engine.scoreboard.model import Evidence
from environment.runner import protocol
from foundation.files import reading_untrusted
from foundation.problems import DataProblem
from state import database as state_database
from state import datasets, events, runs, submissions, sweeps
from state.database import Database
from state.lifecycle import RunState
from state.records import IMPORTED, Attempt, Dataset, Event, Run, Submission, Sweep, SweepSpec
from state.usage import model_calls
from state.usage.model_calls import ModelUse

_BLOCK = 1 << 20
_MOST_EVENTS = 100_000
# What lies in an attempt's directory and says what was asked for, what happened and how it ended.
_FILES = (protocol.ORDER, protocol.EVENTS, protocol.EXIT, protocol.VALIDATIONS)


@dataclass(frozen=True)
class AuditedSubmission:
    """A snapshot with its grade as the state has them, and the hash of its file now; empty: it can't be read."""

    submission: Submission
    file_sha256: str


@dataclass(frozen=True)
class AuditedAttempt:
    """An attempt as the state has it, and hashes of the files in its directory by name; empty: it can't be read.

    Attributes:
        model_use: what its model calls have used, by model.
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
    """What agents worked on, with hashes of its files; empty: they are not here."""

    dataset: Dataset | None
    descriptions: str
    answers_sha256: str
    sample_submission_sha256: str


@dataclass(frozen=True)
class RunAudit:
    """Everything behind the outcome of one run.

    Attributes:
        sweep: what was asked for, with the agent's hash as its version; this machine's paths are left out.
        events: in order.
    """

    run: Run
    sweep: Sweep
    dataset: AuditedDataset
    attempts: tuple[AuditedAttempt, ...]
    events: tuple[Event, ...]

    @property
    def final(self) -> AuditedSubmission | None:
        """The submission that the run's outcome is the grade of."""
        return self.attempts[-1].final if self.attempts else None

    def differences(self) -> tuple[str, ...]:
        """List where files and records do not agree with each other."""
        found = []
        if [one.attempt.number for one in self.attempts] != list(range(1, self.run.attempts + 1)):
            found.append(f"it counts {self.run.attempts} attempts and has {len(self.attempts)}")
        for audited in self.attempts:
            number, imported = audited.attempt.number, audited.attempt.runtime == IMPORTED
            if audited.attempt.exit_reason and not imported:
                needed = (protocol.ORDER, protocol.EVENTS, protocol.EXIT)
                found += [f"attempt {number} has no {name}" for name in needed if not audited.files.get(name)]
            for one in audited.submissions:
                what = f"submission {one.submission.sequence} of attempt {number}"
                if not one.file_sha256:
                    found.append(f"{what} can't be read")
                elif one.file_sha256 != one.submission.sha256:
                    found.append(f"{what} is not what was handed in")
        final = self.final
        if self.run.state is RunState.FINISHED and final is not None:
            graded = final.submission
            if (graded.standing, graded.score) != (self.run.outcome, self.run.score):
                found.append("its outcome is not the grade of its final submission")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON's object."""
        return asdict(self) | {"differences": list(self.differences())}


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
    """Gather the audit trails of own runs, in the order in which they count; none of what was imported as reports."""
    numbers = [trial.run_id for trial in evidence.trials if trial.run_id is not None]
    if not numbers:
        return ()
    with closing(state_database.open_for_reading(state_dir)) as database:
        return tuple(audit_of(database, number) for number in numbers)


def answers_hash(folder: DatasetFolder, competition_id: str) -> str:
    """Return the SHA-256 of a dataset's answers; empty where they are not here."""
    return file_hash(folder.prepared / registry.get(competition_id).answers)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file that an agent may have written; empty where it can't be read."""
    digest = hashlib.sha256()
    try:
        with reading_untrusted(path) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except (DataProblem, OSError):
        return ""  # which is what the audit says of it
    return digest.hexdigest()


def _dataset(database: Database, run: Run, sweep: Sweep) -> AuditedDataset:
    competition = registry.get(run.competition_id)
    folder = dataset_folder(competition, sweep.spec.data_dir or None, edition_named(sweep.spec.edition))
    return AuditedDataset(
        dataset=datasets.find(database, run.competition_id, sweep.spec.edition),
        descriptions=descriptions_of(folder),
        answers_sha256=answers_hash(folder, run.competition_id),
        sample_submission_sha256=file_hash(folder.prepared / competition.sample_submission),
    )


def _attempt(database: Database, attempt: Attempt, spec: SweepSpec) -> AuditedAttempt:
    state_dir = database.path.parent
    handed_in = submissions.of_attempt(database, attempt.id)
    names = (*_FILES, protocol.MODEL_CALLS) if spec.gateway else _FILES
    return AuditedAttempt(
        attempt=attempt,
        files={name: file_hash(state_dir / attempt.directory / name) for name in names},
        submissions=tuple(AuditedSubmission(one, file_hash(state_dir / one.path)) for one in handed_in),
        model_use=tuple(model_calls.of_attempt(database, attempt.id)),
    )
