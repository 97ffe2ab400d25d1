"""The folders of a competition's dataset, which are MLE-bench's own, and whether it is complete."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from competitions.model import Competition, Edition
from foundation import manifests
from foundation.files import PARTIAL_SUFFIX
from foundation.problems import DataProblem, reading

MARKER = ".complete.json"
MANIFEST = manifests.NAME
DESCRIPTION = "public/description.md"
ADDENDUM = "public/description_addendum.md"


@dataclass(frozen=True)
class DatasetFolder:
    """The folder of one competition below the data directory, seen by one edition.

    Attributes:
        not_from_kaggle: what in `raw` others than Kaggle publish, by name.
    """

    root: Path
    edition: Edition
    not_from_kaggle: frozenset[str] = frozenset()

    @property
    def raw(self) -> Path:
        """Kaggle's zip, extracted once."""
        return self.root / "raw"

    @property
    def published(self) -> Path:
        """Raw files that others than Kaggle publish."""
        return self.root / "published"

    @property
    def prepared(self) -> Path:
        """The prepared dataset; edition corrected has its own, because MLE-bench reads the other one."""
        return self.root / ("prepared" if self.edition == "v1" else "prepared-corrected")

    @property
    def public(self) -> Path:
        """What an agent sees."""
        return self.prepared / "public"

    @property
    def private(self) -> Path:
        """The answers."""
        return self.prepared / "private"

    @property
    def marker(self) -> Path:
        """Written last by this project; datasets made by MLE-bench have none."""
        return self.prepared / MARKER

    @property
    def manifest(self) -> Path:
        """Lists every file of the prepared dataset, where this project prepared it."""
        return self.prepared / MANIFEST

    @property
    def claim(self) -> Path:
        """Held while a process works on the dataset, in either edition: they share the raw data."""
        return self.root / ".claim"

    @property
    def partial_raw(self) -> Path:
        """A zip that is being consumed, as far as it is extracted."""
        return self.root / ".raw.partial"

    @property
    def whole_raw(self) -> Path:
        """What a zip held that has been consumed; it is removed when the dataset is prepared."""
        return self.root / ".raw"

    @property
    def consuming(self) -> Path:
        """Exists while the zip is no longer whole, because its space is being freed."""
        return self.root / ".consuming.json"

    @property
    def has_extracted_data(self) -> bool:
        """Whether `raw` holds data from Kaggle, perhaps not all of them."""
        return self.raw.is_dir() and any(path.name not in self.not_from_kaggle for path in self.raw.iterdir())

    @property
    def has_raw_data(self) -> bool:
        """Whether some of the competition's raw data are there, so that nothing need be downloaded."""
        with reading(self.root):
            return bool(self.zips()) or self.whole_raw.is_dir() or self.has_extracted_data

    def downloaded_bytes(self, competition: Competition) -> int:
        """How many bytes of Kaggle's zip an unfinished download has brought."""
        path = self.partial_zip(competition)
        return path.stat().st_size if path.exists() else 0

    def partial_zip(self, competition: Competition) -> Path:
        """Where Kaggle's zip lies as long as it is not whole."""
        target = self.zip(competition)
        return target.with_name(target.name + PARTIAL_SUFFIX)

    def zip(self, competition: Competition) -> Path:
        """Where Kaggle's zip is downloaded to."""
        return self.root / f"{competition.id}.zip"

    def zips(self) -> tuple[Path, ...]:
        """The archives that Kaggle delivered."""
        return tuple(sorted(path for path in self.root.glob("*.zip") if path.is_file()))


def default_data_dir() -> Path:
    """The data directory of MLE-bench, so that datasets prepared by either are seen by both."""
    import platformdirs

    return Path(platformdirs.user_cache_dir()) / "mle-bench" / "data"


def dataset_folder(
    competition: Competition, data_dir: Path | str | None = None, edition: Edition = "v1"
) -> DatasetFolder:
    """Return the folder of a competition's dataset, which need not exist."""
    base = default_data_dir() if data_dir is None else Path(data_dir)
    published = [Path(file.name) for file in competition.published]
    names = frozenset(name for path in published for name in (path.name, path.stem))
    return DatasetFolder(base.expanduser().absolute() / competition.id, edition, names)


def squashfs_image(prepared: Path) -> Path:
    """Name the image of a prepared dataset's public data, for nodes; its record lies beside it, `<name>.json`."""
    return prepared.with_name(f"{prepared.name}-public.squashfs")


def is_prepared(competition: Competition, folder: DatasetFolder) -> bool:
    """Whether agents can run on the dataset and their submissions be graded.

    The rule is MLE-bench's: both folders hold something, and answers and sample submission are there.

    Raises:
        DataProblem: its folder can't be read.
    """
    needed = (competition.answers, competition.sample_submission)
    with reading(folder.root):
        return (
            _holds_something(folder.public)
            and _holds_something(folder.private)
            and all((folder.prepared / name).is_file() for name in needed)
        )


def require_prepared(competition: Competition, folder: DatasetFolder) -> None:
    """Make sure that a dataset is prepared.

    Raises:
        DataProblem: it is not.
    """
    if not is_prepared(competition, folder):
        raise unprepared(competition.id, f"looked in {folder.prepared}")


def unprepared(competition_id: str, why: str = "") -> DataProblem:
    """Make the problem that a dataset is not prepared."""
    step = f"Prepare it: mlebench-console prepare -c {competition_id}"
    return DataProblem(f"{competition_id} is not prepared", why, step)


def can_grade(competition: Competition, folder: DatasetFolder) -> bool:
    """Whether submissions can be graded: the answers are there."""
    return _holds_something(folder.private) and (folder.prepared / competition.answers).is_file()


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def descriptions_of(folder: DatasetFolder) -> str:
    """Return whose description a prepared dataset has; `unknown` for one that MLE-bench prepared."""
    return str((prepared_with(folder) or {}).get("descriptions", "unknown"))


# A property of made-up datasets, in their markers and manifests: whose data they are.
SYNTHETIC = "synthetic"
DEMO_DATA = "demo"


def is_demo(folder: DatasetFolder) -> bool:
    """Whether a prepared dataset was made of the demo's synthetic data."""
    return (prepared_with(folder) or {}).get(SYNTHETIC) == DEMO_DATA


def prepared_with(folder: DatasetFolder) -> dict[str, object] | None:
    """Read from the marker how the dataset was prepared; None for one without a marker."""
    try:
        facts = json.loads(folder.marker.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None
