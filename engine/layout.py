"""The folders and files of a competition's dataset, in MLE-bench's layout, and whether it is complete."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.competitions.model import Competition, Edition
from mlebench_console.foundation import manifests
from mlebench_console.foundation.files import PARTIAL_SUFFIX
from mlebench_console.foundation.problems import DataProblem, reading

MARKER = ".complete.json"
MANIFEST = manifests.NAME
DESCRIPTION = "public/description.md"
ADDENDUM = "public/description_addendum.md"


@dataclass(frozen=True)
class DatasetFolder:
    """The folder of one competition in the data directory, for one edition.

    Attributes:
        not_from_kaggle: the names of files in `raw` that are not from Kaggle.
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
        """Raw files from other publishers than Kaggle."""
        return self.root / "published"

    @property
    def prepared(self) -> Path:
        """The prepared dataset; edition corrected has a folder of its own, because MLE-bench reads `prepared`."""
        return self.root / ("prepared" if self.edition == "v1" else "prepared-corrected")

    @property
    def public(self) -> Path:
        """The data that agents can read."""
        return self.prepared / "public"

    @property
    def private(self) -> Path:
        """The answers."""
        return self.prepared / "private"

    @property
    def marker(self) -> Path:
        """The file that this project writes last; datasets prepared by MLE-bench have none."""
        return self.prepared / MARKER

    @property
    def manifest(self) -> Path:
        """The list of all files, in datasets prepared by this project."""
        return self.prepared / MANIFEST

    @property
    def claim(self) -> Path:
        """The claim of a process that works on the dataset, in either edition, because they share the raw data."""
        return self.root / ".claim"

    @property
    def has_extracted_data(self) -> bool:
        """Whether `raw` has data from Kaggle, perhaps incomplete."""
        return self.raw.is_dir() and any(path.name not in self.not_from_kaggle for path in self.raw.iterdir())

    @property
    def has_raw_data(self) -> bool:
        """Whether the competition's raw data exist in some form, so that no download is needed."""
        with reading(self.root):
            return bool(self.zips()) or self.has_extracted_data

    def downloaded_bytes(self, competition: Competition) -> int:
        """Return how many bytes of Kaggle's zip an unfinished download has received."""
        path = self.partial_zip(competition)
        return path.stat().st_size if path.exists() else 0

    def partial_zip(self, competition: Competition) -> Path:
        """Return the path of Kaggle's zip while it is incomplete."""
        target = self.zip(competition)
        return target.with_name(target.name + PARTIAL_SUFFIX)

    def zip(self, competition: Competition) -> Path:
        """Return the path of Kaggle's zip."""
        return self.root / f"{competition.id}.zip"

    def zips(self) -> tuple[Path, ...]:
        """List the zips in the folder."""
        return tuple(sorted(path for path in self.root.glob("*.zip") if path.is_file()))


def default_data_dir() -> Path:
    """Return the data directory of MLE-bench, so that both programs can use the same datasets."""
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
    """Return the path of the image of a prepared dataset's public data, for nodes; its record is `<name>.json`."""
    return prepared.with_name(f"{prepared.name}-public.squashfs")


def is_prepared(competition: Competition, folder: DatasetFolder) -> bool:
    """Return whether agents can run on the dataset and their submissions can be graded.

    The rule is MLE-bench's: both folders are not empty, and answers and sample submission exist.

    Raises:
        DataProblem: its folder can't be read.
    """
    needed = (competition.answers, competition.sample_submission)
    with reading(folder.root):
        return (
            _is_not_empty(folder.public)
            and _is_not_empty(folder.private)
            and all((folder.prepared / name).is_file() for name in needed)
        )


def require_prepared(competition: Competition, folder: DatasetFolder) -> None:
    """Check that a dataset is prepared.

    Raises:
        DataProblem: it is not.
    """
    if not is_prepared(competition, folder):
        raise unprepared(competition.id, f"looked in {folder.prepared}")


def unprepared(competition_id: str, why: str = "") -> DataProblem:
    """Return the problem that a dataset is not prepared."""
    step = f"Prepare it: mlebench-console prepare -c {competition_id}"
    return DataProblem(f"{competition_id} is not prepared", why, step)


def can_grade(competition: Competition, folder: DatasetFolder) -> bool:
    """Return whether submissions can be graded: the answers exist."""
    return _is_not_empty(folder.private) and (folder.prepared / competition.answers).is_file()


def _is_not_empty(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def descriptions_of(folder: DatasetFolder) -> str:
    """Return the kind of description of a prepared dataset; `unknown` if MLE-bench prepared it."""
    return str((prepared_with(folder) or {}).get("descriptions", "unknown"))


# The property of synthetic datasets in their markers and manifests, and its value for the demo.
SYNTHETIC = "synthetic"
DEMO_DATA = "demo"


def is_demo(folder: DatasetFolder) -> bool:
    """Return whether a prepared dataset was made from the demo's synthetic data."""
    return (prepared_with(folder) or {}).get(SYNTHETIC) == DEMO_DATA


def prepared_with(folder: DatasetFolder) -> dict[str, object] | None:
    """Read the marker, which says how the dataset was prepared; None without a marker."""
    try:
        facts = json.loads(folder.marker.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None
