"""Plan the preparation of requested datasets: their options and steps, their order, and the next stage of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Edition
from mlebench_console.engine.datasets.sources.access import AccessState, access_of
from mlebench_console.engine.datasets.steps import CHECK, DOWNLOAD, EXTRACT, PREPARE, STEPS, VERIFY
from mlebench_console.engine.kaggle import CredentialsRefused
from mlebench_console.engine.kaggle.credentials import require_credentials
from mlebench_console.engine.layout import DEMO_DATA, dataset_folder, is_demo, is_prepared
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.state import datasets
from mlebench_console.state.database import Database
from mlebench_console.state.datasets import Progress
from mlebench_console.state.records import Dataset, DatasetState, PreparationOptions, StepState, SweepSpec

DEMO = DEMO_DATA


def given_raw(given: Path, competition_id: str) -> Path:
    """Return a competition's raw data at a given path: an extracted folder or Kaggle's zip.

    The path is the data, or a folder with the data named by the competition's id.

    Raises:
        DataProblem: there are no such data.
    """
    own, archive = given / competition_id, given / f"{competition_id}.zip"
    for path in (archive, own / archive.name, own, given):
        if path.is_dir():
            entries = list(islice(path.iterdir(), 2))
            if len(entries) == 1 and entries[0].suffix == ".zip":
                return entries[0]  # Kaggle's zip under another name
            return path
        if path.is_file() and path.suffix == ".zip":
            return path
    raise DataProblem(
        f"raw data {given} were not found", "", "Give an extracted Kaggle folder, or Kaggle's zip."
    )


def require_raw(given: Path, chosen: Sequence[str]) -> None:
    """Check that a path has raw data for the chosen competitions; several need a folder or a zip each.

    Raises:
        DataProblem: it does not exist.
        UsageProblem: it has no data for one of several competitions.
    """
    if not given.exists():
        given_raw(given, chosen[0])
    missing = [one for one in chosen if not ((given / one).is_dir() or (given / f"{one}.zip").is_file())]
    if missing and len(chosen) > 1:
        raise UsageProblem(
            f"{given} has neither a folder {missing[0]} nor its zip",
            f"{len(chosen)} competitions were chosen",
            "Give a folder with a folder or a zip per competition id, or choose a single competition.",
        )
    if len(chosen) == 1:
        given_raw(given, chosen[0])


@dataclass(frozen=True)
class Plan:
    """How a dataset will be prepared, and whether it must be downloaded first."""

    competition_id: str
    edition: Edition
    options: PreparationOptions
    download: bool

    @property
    def skipped(self) -> dict[str, str]:
        """The steps that this source does not need, with the reason."""
        if self.options.mirror:
            return dict.fromkeys((CHECK, VERIFY, EXTRACT, PREPARE), "it comes prepared")
        if self.options.source == DEMO:
            return dict.fromkeys((CHECK, VERIFY, EXTRACT), "the data are made here")
        if self.options.source:
            return dict.fromkeys((CHECK, DOWNLOAD, VERIFY, EXTRACT), "the raw data are given")
        return {} if self.download else dict.fromkeys((CHECK, DOWNLOAD), "the raw data are there")


def plan(
    competition_id: str,
    edition: Edition,
    data_dir: Path,
    options: PreparationOptions | None = None,
) -> Plan:
    """Plan how a dataset is prepared, by the source of its raw data.

    Raises:
        Problem: the competition is not known, or it has no raw data.
    """
    competition = registry.get(competition_id)
    registry.load_task(competition)
    wanted = options or PreparationOptions()
    if wanted.mirror or wanted.source == DEMO:
        return Plan(competition.id, edition, wanted, download=False)
    if wanted.source:
        source = str(given_raw(Path(wanted.source).expanduser().absolute(), competition.id))
        return Plan(competition.id, edition, replace(wanted, source=source), download=False)
    download = not dataset_folder(competition, data_dir, edition).has_raw_data
    if download:
        try:
            require_credentials()
        except CredentialsRefused as problem:
            raise DataProblem(
                "there are no raw data",
                f"its folder has neither raw/ nor a zip, and {problem.why}",
                f"Give --raw, or put its zip into its folder. {problem.next_step}",
                subject=competition.id,
            ) from None
    return Plan(competition.id, edition, wanted, download)


def options_of(spec: SweepSpec) -> PreparationOptions:
    """Return how a sweep's missing datasets are prepared."""
    return PreparationOptions(source=DEMO if spec.demo else spec.raw_dir)


def is_ready(competition_id: str, edition: Edition, data_dir: Path) -> bool:
    """Return whether a dataset is prepared on disk, by any program."""
    competition = registry.get(competition_id)
    return is_prepared(competition, dataset_folder(competition, data_dir, edition))


def record_prepared(
    database: Database, competition_id: str, edition: Edition, data_dir: Path, *, now: float
) -> None:
    """Record in the state that a dataset is prepared on disk, unless it is about to be replaced."""
    known = datasets.find(database, competition_id, edition)
    if known is not None and known.state.is_busy:
        return
    demo = is_demo(dataset_folder(registry.get(competition_id), data_dir, edition))
    with database.transaction():
        if known is None or known.state is not DatasetState.PREPARED:
            datasets.found(database, competition_id, edition, steps=STEPS, now=now)
            datasets.set_demo(database, competition_id, edition, demo)
        elif demo:  # another program may have put the demo's data in place of real ones
            datasets.set_demo(database, competition_id, edition, demo)


def request(database: Database, wanted: Plan, *, now: float) -> None:
    """Put a dataset in the queue, unless it is queued or being worked on already."""
    known = datasets.find(database, wanted.competition_id, wanted.edition)
    if known is not None and known.state.is_busy:
        return
    with database.transaction():
        datasets.request(
            database,
            wanted.competition_id,
            wanted.edition,
            steps=STEPS,
            options=wanted.options,
            now=now,
        )
        datasets.set_demo(database, wanted.competition_id, wanted.edition, wanted.options.source == DEMO)
        for step, why in wanted.skipped.items():
            skipped = Progress(StepState.SKIPPED, note=why)
            datasets.set_step(database, wanted.competition_id, wanted.edition, step, skipped, now=now)


def by_priority(database: Database, waiting: Sequence[Dataset]) -> list[Dataset]:
    """Sort by priority, then datasets that runs wait for, then by size, so that most of the benchmark is ready early.

    Datasets that failed and are retried come after all others.
    """
    wanted = datasets.awaited(database) if len(waiting) > 1 else frozenset()
    sizes = {
        (step.competition_id, step.edition): step.total
        for step in datasets.all_steps(database)
        if step.name == DOWNLOAD and step.unit == "bytes"
    }

    def place(dataset: Dataset) -> tuple[float, int, bool, float, float]:
        size = sizes.get(dataset.key)
        known = registry.get(dataset.competition_id).size_gb
        by_facts = float("inf") if known is None else known * 1e9
        awaited = dataset.competition_id in wanted
        asked_at = dataset.requested_at or 0.0
        return dataset.retry_at or 0.0, -dataset.priority, not awaited, size or by_facts, asked_at

    return sorted(waiting, key=place)


def next_stage(database: Database, dataset: Dataset, data_dir: Path) -> str:
    """Return the next stage of a dataset, CHECK, DOWNLOAD or PREPARE, each of which is one job."""
    folder = dataset_folder(registry.get(dataset.competition_id), data_dir)
    options = dataset.options
    if options.mirror or options.source or folder.has_raw_data:
        return PREPARE
    steps = datasets.steps(database, *dataset.key)
    return DOWNLOAD if access_of(dataset.state, steps) is AccessState.OPEN else CHECK
