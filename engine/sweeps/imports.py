"""Import run groups of MLE-bench as a sweep: a command copies them, the engine creates a sweep and grades its runs."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.engine import datasets as preparation
from mlebench_console.engine.layout import unprepared
from mlebench_console.engine.options.sweep import check_name
from mlebench_console.engine.places import Places, share_runs
from mlebench_console.engine.requests import Answer, ImportSweep
from mlebench_console.engine.rungroups import (
    METADATA,
    RunGroup,
    competition_of,
    copy_file,
    copy_tree,
    find_groups,
    read_group,
)
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import files
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import RunConditions
from mlebench_console.foundation.folders import make_private
from mlebench_console.foundation.locks import FileLock, is_held
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import DataProblem, UsageProblem, refuse_pointer
from mlebench_console.foundation.text import plural
from mlebench_console.state import experiments, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome, SweepState
from mlebench_console.state.records import IMPORTED, SweepSpec
from mlebench_console.state.submissions import Snapshot

_TAKEN = "taken-"
ARRIVING = "arriving"
FILES = "runs"
SNAPSHOT = f"{protocol.SNAPSHOTS}/1.csv"
_LISTED = "runs.json"
_TOKEN_BYTES = 6


@dataclass(frozen=True)
class ImportedRun:
    """One run of a group that becomes a run of the sweep.

    Attributes:
        token: of its attempt, which its directory is named after.
        sha256: of its submission; empty without one.
        taken_at: when the submission was last written.
    """

    competition_id: str
    seed: int
    token: str
    sha256: str = ""
    bytes: int = 0
    taken_at: float = 0.0


@contextmanager
def staged(places: Places, folder: Path) -> Iterator[tuple[str, tuple[ImportedRun, ...]]]:
    """Copy a run group, or all groups of a runs folder, to a folder from which the engine takes them.

    Yields the folder's name for the request `sweep.import`, and the runs. Files that the engine has not taken by the
    end of the block are removed.

    Raises:
        Problem: there is no group, one can't be read, or it names an unknown competition.
    """
    groups = _groups(folder)
    token = secrets.token_hex(_TOKEN_BYTES)
    make_private(places.state_dir)
    share_runs(places)
    place = places.state_dir / ARRIVING / token
    lock = FileLock(_lock_path(place))
    lock.acquire()
    try:
        (place / FILES).mkdir(parents=True)
        found = tuple(_copy_all(groups, place / FILES))
        files.write_json(place / _LISTED, [asdict(run) for run in found])
        files.sync_file_system(place)
        yield token, found
    finally:
        shutil.rmtree(place, ignore_errors=True)
        lock.path.unlink(missing_ok=True)
        lock.release()


def _lock_path(place: Path) -> Path:
    """Return the lock of who copies to a place, on the state's own disk: what is shared may have no locks."""
    return place.parent.parent / f"import-{place.name}.lock"


def agent_of_group(folder: Path) -> str:
    """Return the agent's name from a group's name; empty where the name does not have MLE-bench's form."""
    return _groups(folder)[0].name.partition("_run-group_")[2]


class SweepImport:
    """Handles requests to import: creates a sweep from copied runs, which then only have to be graded."""

    def __init__(self, database: Database, places: Places, clock: Clock) -> None:
        self._database = database
        self._places = places
        self._clock = clock
        self._arriving = places.state_dir / ARRIVING

    def recover(self) -> None:
        """After a start: finish imports that are in the state, and remove copies of interrupted commands."""
        self.settle()
        for place in self._arriving.glob("*"):
            if not is_held(_lock_path(place)):  # the copying command has died
                shutil.rmtree(place)
                _lock_path(place).unlink(missing_ok=True)

    def settle(self) -> None:
        """Move copied runs to their sweep's folder, once the sweep is in the state."""
        for place in self._arriving.glob(f"{_TAKEN}*"):
            sweep_id = place.name.removeprefix(_TAKEN)
            folder = self._places.runs_dir / sweep_id
            if sweeps.find(self._database, sweep_id) is not None and not folder.exists():
                self._places.runs_dir.mkdir(exist_ok=True)
                (place / FILES).rename(folder)
            shutil.rmtree(place)

    def import_(self, request: ImportSweep, _by: str) -> Answer:
        """Create the sweep, within the transaction of the answer."""
        place = self._arriving / Path(request.place).name
        sweep_id = check_name(request.name)
        found = _read_staged(place)
        folder = self._places.runs_dir / sweep_id
        if folder.exists() or sweeps.find(self._database, sweep_id) is not None:
            raise UsageProblem(f"there is already a sweep '{sweep_id}'", "", "Choose another name.")
        spec = SweepSpec(
            agent_id=request.agent_id,
            agents_dir="",
            competitions=tuple(dict.fromkeys(run.competition_id for run in found)),
            seeds=max(run.seed for run in found),
            conditions=RunConditions(
                request.time_limit_seconds or 0.0, edition=request.edition, runtime=IMPORTED, network=""
            ),
            data_dir=str(self._places.data_dir),
        )
        for competition_id in sorted({run.competition_id for run in found if run.sha256}):
            if not preparation.is_ready(competition_id, request.edition, self._places.data_dir):
                raise unprepared(competition_id, "what is imported is graded")
        now = self._clock.now()
        sweeps.create(
            self._database,
            sweep_id=sweep_id,
            name=sweep_id,
            spec=spec,
            agent_version="",
            concurrency=1,
            members=[(run.competition_id, run.seed) for run in found],
            now=now,
        )
        runs.mark_demo(self._database, sweep_id)
        sweeps.set_state(self._database, sweep_id, SweepState.STOPPED, now=now)
        for run, made in zip(found, runs.of_sweep(self._database, sweep_id), strict=True):
            self._take(run, made.id, f"runs/{sweep_id}/{_below_sweep(run)}", now)
        if request.experiment:
            experiments.assign(self._database, request.experiment, sweep_id, now=now)
        place.rename(self._arriving / f"{_TAKEN}{sweep_id}")
        return Answer(
            f"sweep {sweep_id} is imported with {plural(len(found), 'run')}, to be graded", sweep_id
        )

    def _take(self, run: ImportedRun, run_id: int, directory: str, now: float) -> None:
        attempt = transitions.launch(
            self._database, run_id, directory=directory, runtime=IMPORTED, now=now, token=run.token
        )
        transitions.agent_ended(
            self._database, attempt.id, EndReason.IMPORTED, exit_code=None, at=now, now=now
        )
        transitions.collected(self._database, attempt.id, now=now)
        if not run.sha256:
            transitions.finished(self._database, attempt.id, Outcome.NO_SUBMISSION, now=now)
            return
        path = f"{directory}/{SNAPSHOT}"
        taken = Snapshot(1, run.taken_at, 0.0, run.sha256, run.bytes, path)
        submissions.add(self._database, attempt.id, taken)
        submissions.set_final(self._database, attempt.id, taken.sequence)


def _groups(folder: Path) -> Sequence[RunGroup]:
    return (read_group(folder),) if (folder / METADATA).is_file() else find_groups(folder)


def _copy_all(groups: Sequence[RunGroup], target: Path) -> Iterator[ImportedRun]:
    """Copy all runs; the k-th run of a competition, in the order of the groups, is seed k."""
    seeds: Counter[str] = Counter()
    for group in groups:
        for run_id in group.run_ids:
            competition = registry.get(competition_of(run_id))
            seeds[competition.id] += 1
            run = ImportedRun(competition.id, seeds[competition.id], transitions.new_token())
            source = group.folder / run_id
            missing = source.is_symlink() or not source.is_dir()
            yield run if missing else _copy_run(source, target, run)


def _copy_run(source: Path, target: Path, run: ImportedRun) -> ImportedRun:
    folder = target / _below_sweep(run)
    protocol.make_folders(folder)
    for name in (protocol.LOGS, protocol.CODE):
        copy_tree(source / name, folder / name)
    log = source / "run.log"
    if log.is_file() and not log.is_symlink():
        copy_file(log, folder / protocol.LOG)
    handed_in = source / protocol.SUBMISSION / protocol.SUBMISSION_FILE
    if handed_in.parent.is_symlink() or not handed_in.is_file() or handed_in.is_symlink():
        return run
    snapshot = folder / SNAPSHOT
    copy_file(handed_in, snapshot)
    refuse_pointer(snapshot, original=handed_in)
    with snapshot.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        size = stream.tell()
    return replace(run, sha256=digest, bytes=size, taken_at=handed_in.stat().st_mtime)


def _below_sweep(run: ImportedRun) -> str:
    """Return the path of a run's attempt within its sweep's folder."""
    return protocol.attempt_folder("", run.competition_id, run.seed, 1, run.token).partition("//")[2]


def _read_staged(place: Path) -> list[ImportedRun]:
    """Read the list of copied runs, in the order of the queue: one seed of every competition first."""
    try:
        found = [ImportedRun(**values) for values in json.loads((place / _LISTED).read_bytes())]
    except (OSError, ValueError, TypeError) as error:
        raise DataProblem("there is nothing to import", str(error)) from error
    if not found:
        raise DataProblem("there is nothing to import", "the run groups have no runs")
    return sorted(found, key=lambda run: run.seed)
