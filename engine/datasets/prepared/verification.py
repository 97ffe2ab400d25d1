"""Verify a prepared dataset: its tables by known checksums, its whole tree by its manifest; nothing is repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from mlebench_console.competitions.model import Checksums, Competition
from mlebench_console.engine.claims import claimed
from mlebench_console.engine.datasets.prepared import checksums, manifest
from mlebench_console.engine.datasets.prepared.descriptions import KAGGLE, check_choice, chosen_texts
from mlebench_console.engine.datasets.prepared.manifest import TreeDifferences
from mlebench_console.engine.datasets.steps import ReportStep
from mlebench_console.engine.layout import (
    DESCRIPTION,
    DatasetFolder,
    is_demo,
    prepared_with,
    require_prepared,
)
from mlebench_console.foundation.files import write_json
from mlebench_console.foundation.problems import DataProblem, reading
from mlebench_console.state.records import PreparationOptions

RAW_FOLDER, RAW_DATA = "raw folder", "raw data"
"""The origin of a dataset in its marker: a folder given by the operator, or the raw data in its own folder."""

_MOST_NAMES = 3


@dataclass(frozen=True)
class TableSum:
    """The sums of one table.

    Attributes:
        known: of the real data, if known.
        sealed: at the preparation, if this project prepared the dataset.
        found: of the current file; None: there is no such file, or it was not read.
    """

    name: str
    known: str | None
    sealed: str | None
    found: str | None = None


@dataclass(frozen=True)
class DatasetComparison:
    """A prepared dataset, compared with its manifest and with the known checksums.

    Attributes:
        tree: how the files differ from the manifest; None: there is no manifest.
        files: how many files the manifest lists.
        deep: whether the content of every file was compared.
        demo: whether it was made from the demo's synthetic data, for which there are no known checksums.
    """

    sums: tuple[TableSum, ...]
    tree: TreeDifferences | None
    files: int
    deep: bool
    demo: bool = False

    @property
    def missing(self) -> list[str]:
        """Expected files that do not exist."""
        tables = {one.name for one in self.sums if one.found is None}
        return sorted(tables.union(() if self.tree is None else self.tree.missing))

    @property
    def changed(self) -> list[str]:
        """Files that have changed since the preparation."""
        tables = {one.name for one in self.sums if one.found and one.sealed not in (None, one.found)}
        return sorted(tables.union(() if self.tree is None else self.tree.changed))

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Files that did not exist at the preparation."""
        return () if self.tree is None else self.tree.unlisted

    @property
    def differences(self) -> str:
        """A text of all differences with file names; empty without any."""
        changed = self.changed
        unlike = [
            one.name
            for one in self.sums
            if one.found and one.known not in (None, one.found) and one.name not in changed
        ]
        found: dict[str, Sequence[str]] = {
            "missing": self.missing,
            "changed since it was prepared": changed,
            "unlike the known checksum": unlike,
            "not in its manifest": self.unlisted,
        }
        parts = [f"{what}: {_some(names)}" for what, names in found.items() if names]
        if self.deep and self.tree is None:
            parts.append("no manifest to compare with, as MLE-bench prepared it")
        return "; ".join(parts)


def verify(
    competition: Competition, folder: DatasetFolder, *, deep: bool = False, report: ReportStep | None = None
) -> DatasetComparison:
    """Compare a prepared dataset with the known checksums and its manifest: names, sizes and the sums of tables.

    With `deep`, the content of every file is compared.

    Raises:
        DataProblem: it is not prepared, or its manifest is damaged.
    """
    require_prepared(competition, folder)
    listed = manifest.of_dataset(folder)
    found = checksums.checksums_of(folder.prepared, report)
    tree = None
    if listed is not None:
        tree = manifest.compare(folder.prepared, listed, deep=deep, report=report)
    sums = table_sums(competition, folder, found)
    files = 0 if listed is None else len(listed.entries)
    return DatasetComparison(sums, tree, files, deep, is_demo(folder))


def table_sums(
    competition: Competition, folder: DatasetFolder, found: Checksums | None = None
) -> tuple[TableSum, ...]:
    """Return the sums of a dataset's tables: known, of its preparation, and those found, if they are given."""
    known, marker = competition.checksums, prepared_with(folder) or {}
    # The known sums are of edition v1 of the real data; demo data only have a manifest.
    is_real = folder.edition == "v1" and not is_demo(folder)
    sums: list[TableSum] = []
    for side, expected, actual in (
        ("public", known.public, {} if found is None else found.public),
        ("private", known.private, {} if found is None else found.private),
    ):
        real = checksums.comparable(expected) if is_real else {}
        recorded = marker.get(side)
        sealed = checksums.comparable(recorded) if isinstance(recorded, dict) else {}
        sums += [
            TableSum(f"{side}/{name}", real.get(name), sealed.get(name), actual.get(name))
            for name in sorted({*actual, *real, *sealed})
        ]
    return tuple(sums)


def check(
    competition: Competition,
    folder: DatasetFolder,
    *,
    deep: bool = False,
    report: ReportStep | None = None,
    options: PreparationOptions | None = None,
) -> str:
    """Return how a prepared dataset differs from its manifest and from the requested options; empty if it does not.

    Without `deep`, no table is read, so that thousands of datasets can be checked quickly.

    Args:
        competition: the competition.
        folder: of its dataset.
        deep: whether to read every file.
        report: called with the progress.
        options: with which it is requested now; empty descriptions fit any.

    Raises:
        DataProblem: its manifest is damaged.
    """
    if deep:
        found = verify(competition, folder, deep=manifest.of_dataset(folder) is not None, report=report)
    else:
        listed = manifest.of_dataset(folder)
        tree = None if listed is None else manifest.compare(folder.prepared, listed, deep=False)
        found = DatasetComparison((), tree, 0, deep=False)
    marker = prepared_with(folder) or {}
    unlike = [found.differences] if found.differences else []
    options = options or PreparationOptions()
    wanted = options.descriptions
    if wanted and not _has_description(competition, folder, marker, wanted):
        had = marker.get("descriptions", "not known")
        unlike.append(f"its descriptions are {had}, not {wanted}")
    if options.source and marker.get("origin") != RAW_FOLDER:
        unlike.append("it was not prepared from a folder given by --raw")
    if options.keep_raw and not folder.has_extracted_data:
        unlike.append("its raw data were not kept")
    if options.discard_zip and folder.zips():
        unlike.append("its zip still exists ('datasets prune' removes it)")
    return "; ".join(unlike)


def _has_description(
    competition: Competition, folder: DatasetFolder, marker: Mapping[str, object], wanted: str
) -> bool:
    """Return whether it has the requested kind of description, by its marker, or else by the text."""
    if "descriptions" in marker or wanted == KAGGLE:
        return bool(marker.get("descriptions") == check_choice(wanted))
    path = folder.prepared / DESCRIPTION
    text = chosen_texts(competition, folder.edition, wanted).get(DESCRIPTION)
    with reading(path):
        return text is None or (path.exists() and path.read_bytes() == text.encode())


def record(competition: Competition, folder: DatasetFolder, report: ReportStep | None = None) -> None:
    """Write the manifest of a prepared dataset that has none, from its current files.

    Raises:
        DataProblem: it is not prepared, or its tables differ from the known checksums or from their preparation.
    """
    with claimed(folder.claim, competition.id):
        found = verify(competition, folder)
        if found.tree is not None:
            return
        if found.differences:
            raise DataProblem(
                f"{competition.id} was not recorded", found.differences, "Prepare it again with --again."
            )
        seal = manifest.write(folder.prepared, competition.id, folder.edition, {}, report)
        facts = prepared_with(folder) or {"competition_id": competition.id, "edition": folder.edition}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(folder.marker, {**facts, "recorded_at": now, "manifest": asdict(seal)})


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
