"""The jobs of dataset workers: functions that a `WorkerPool` starts by name, and that return JSON values."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.engine.claims import Claimed, claimed_folder
from mlebench_console.engine.datasets.limits import Limits
from mlebench_console.engine.datasets.plans import DEMO
from mlebench_console.engine.datasets.prepared.mirrors import import_dataset
from mlebench_console.engine.datasets.prepared.pruning import prune
from mlebench_console.engine.datasets.prepared.stores import store_at
from mlebench_console.engine.datasets.prepared.verification import record, verify
from mlebench_console.engine.datasets.prepared.workspace import resolve_leftovers
from mlebench_console.engine.datasets.preparing import prepare
from mlebench_console.engine.datasets.sources import access, raw_data
from mlebench_console.engine.datasets.steps import CHECKSUM, DOWNLOAD, throttled, within
from mlebench_console.engine.kaggle.credentials import find_credentials
from mlebench_console.engine.layout import dataset_folder, is_demo
from mlebench_console.engine.space import size_on_disk
from mlebench_console.foundation.files import PARTIAL_SUFFIX
from mlebench_console.foundation.workers import ReportProgress
from mlebench_console.state.records import PreparationOptions, VerificationKind

_MOST_NAMES = 1000  # in an event of the state


def check_access(competition_id: str, *, report_progress: ReportProgress) -> dict[str, Any]:
    """Check whether Kaggle allows the download of a competition's data; `bytes` is their size, if known."""
    return {"bytes": access.check(registry.get(competition_id), report_progress)}


def try_credentials(number: int, *, report_progress: ReportProgress) -> dict[str, Any]:
    """Check whether Kaggle accepts the credentials with this number among those found."""
    from mlebench_console.engine.kaggle.client import Kaggle

    del report_progress
    with Kaggle(patience=0, credentials=lambda: find_credentials()[number : number + 1]) as kaggle:
        kaggle.check_credentials()
    return {}


def fetch_zip(
    competition_id: str, data_dir: str, limits: dict[str, Any], *, report_progress: ReportProgress
) -> dict[str, Any]:
    """Download a competition's zip within limits."""
    kept = Limits(**limits)
    competition = registry.get(competition_id)
    folder = dataset_folder(competition, data_dir)
    _share_with_group(data_dir)
    with claimed_folder(folder.root, folder.claim, competition.id):
        report = kept.keeping(throttled(report_progress), folder.root)
        raw_data.fetch(competition, folder, keep_free=kept.keep_free, patience=0, report=report)
    return {}


def prepare_dataset(
    competition_id: str,
    data_dir: str,
    edition: Edition,
    options: dict[str, Any],
    limits: dict[str, Any],
    *,
    report_progress: ReportProgress,
) -> dict[str, Any]:
    """Prepare a dataset or import it; `bytes_on_disk` is its size."""
    chosen, kept = PreparationOptions(**options), Limits(**limits)
    _share_with_group(data_dir)
    report = kept.keeping(throttled(report_progress), Path(data_dir))
    if chosen.mirror:
        competition = registry.get(competition_id)
        folder = dataset_folder(competition, data_dir, edition)
        store = store_at(chosen.mirror)
        import_dataset(competition, folder, store, keep_free=kept.keep_free, report=within(report, DOWNLOAD))
        return {"bytes_on_disk": size_on_disk(folder.prepared), "demo": is_demo(folder)}
    if chosen.source == DEMO:
        chosen = replace(chosen, source=str(_generate(competition_id, data_dir, report_progress)))
    prepared = prepare(
        competition_id,
        data_dir=data_dir,
        edition=edition,
        options=chosen,
        keep_free=kept.keep_free,
        patience=0,
        report=report,
    )
    folder = dataset_folder(registry.get(competition_id), data_dir, edition)
    return {"bytes_on_disk": size_on_disk(prepared), "demo": is_demo(folder)}


def verify_dataset(
    competition_id: str, data_dir: str, edition: Edition, kind: str, *, report_progress: ReportProgress
) -> dict[str, Any]:
    """Verify a prepared dataset.

    Returns:
        The `sums` of its tables, how many `files` its manifest lists, which are `missing`, `changed` and `unlisted`
        (at most the first 1,000 each), whether it was `deep`, and what `differs` as text.
    """
    competition = registry.get(competition_id)
    folder = dataset_folder(competition, data_dir, edition)
    report = within(throttled(report_progress), CHECKSUM)
    if kind == VerificationKind.RECORD:
        record(competition, folder, report)
    found = verify(competition, folder, deep=kind != VerificationKind.QUICK, report=report)
    return {
        "sums": [asdict(one) for one in found.sums],
        "files": found.files,
        "missing": found.missing[:_MOST_NAMES],
        "changed": found.changed[:_MOST_NAMES],
        "unlisted": list(found.unlisted[:_MOST_NAMES]),
        "deep": found.deep,
        "demo": found.demo,
        "differs": found.differences,
    }


def prune_dataset(
    competition_id: str, data_dir: str, parts: list[str], *, report_progress: ReportProgress
) -> dict[str, Any]:
    """Remove parts of a competition's data from the disk; `bytes` is the freed space."""
    del report_progress
    return {"bytes": prune(registry.get(competition_id), Path(data_dir), parts)}


def settle_dataset(competition_id: str, data_dir: str, *, report_progress: ReportProgress) -> dict[str, Any]:
    """Clean up the files of killed preparations of a dataset, unless another process works on it."""
    del report_progress
    competition = registry.get(competition_id)
    folders = [dataset_folder(competition, data_dir, edition) for edition in EDITIONS]
    root, claim = folders[0].root, folders[0].claim
    with (
        suppress(Claimed),
        claimed_folder(root, claim, competition_id),
    ):  # a holder of the claim has cleaned up
        for folder in folders:
            resolve_leftovers(folder)
    return {}


def _share_with_group(data_dir: str) -> None:
    """Set the umask so that the data directory's group can read new files, and write them in a shared directory."""
    folder = Path(data_dir)
    folder.mkdir(parents=True, exist_ok=True)
    shared = folder.stat().st_mode & (stat.S_ISGID | stat.S_IWGRP)
    mask = os.umask(0o022)
    os.umask(mask & ~(stat.S_IRWXG if shared else stat.S_IRGRP | stat.S_IXGRP))


def _generate(competition_id: str, data_dir: str, report_progress: ReportProgress) -> Path:
    """Generate the demo's raw data in place of downloaded ones; the demo has a data directory of its own."""
    from mlebench_console.engine.demo_data import generate

    report_progress(DOWNLOAD, "making synthetic data", 0, 0)
    folder = dataset_folder(registry.get(competition_id), data_dir)
    with claimed_folder(folder.root, folder.claim, competition_id):
        for left in folder.root.glob(f".{folder.raw.name}.*{PARTIAL_SUFFIX}"):
            shutil.rmtree(left)  # we hold the claim, so it is from a killed worker
        generate(competition_id, folder.raw)
    return folder.raw
