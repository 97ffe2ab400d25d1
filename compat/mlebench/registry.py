"""MLE-bench's registry: the competitions, and the paths of their datasets."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import platformdirs

from mlebench.grade_helpers import Grader, OwnGrader
from mlebench.utils import get_logger
from mlebench_console import competitions
from mlebench_console.competitions import descriptions, leaderboards, model
from mlebench_console.competitions import registry as known
from mlebench_console.competitions.task import Preparation
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.engine.places import find_places
from mlebench_console.foundation.files import write_text

logger = get_logger(__name__)
DEFAULT_DATA_DIR = find_places().data_dir.resolve()
NO_LEADERBOARD = Path(__file__).parent / "no_leaderboard.csv"
"""An empty table with a leaderboard's column, where only the cut-offs are known."""


@dataclass(frozen=True)
class Competition:
    """A competition with the files of its dataset."""

    id: str
    name: str
    description: str
    grader: Grader
    answers: Path
    gold_submission: Path
    sample_submission: Path
    competition_type: str
    prepare_fn: Callable[[Path, Path, Path], Path]
    raw_dir: Path
    private_dir: Path
    public_dir: Path
    checksums: Path
    leaderboard: Path

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Competition:
        """Return a competition of a configuration, whose grader is one too.

        Raises:
            ValueError: a key is missing.
        """
        try:
            values = {each.name: data[each.name] for each in fields(Competition)}
        except KeyError as error:
            raise ValueError(f"Missing key {error} in competition config!") from error
        return Competition(**values | {"grader": Grader.from_dict(data["grader"])})


class Registry:
    """The competitions of one data directory."""

    def __init__(self, data_dir: Path = DEFAULT_DATA_DIR) -> None:
        """Set the data directory; by default that of mlebench-console, which is also MLE-bench's."""
        self._data_dir = data_dir.resolve()

    def get_competition(self, competition_id: str) -> Competition:
        """Return a competition.

        Raises:
            Problem: there is none of that id.
        """
        facts = known.get(competition_id)
        folder = dataset_folder(facts, self._data_dir)
        whole = leaderboards.path_of(facts)
        return Competition(
            id=facts.id,
            name=facts.name,
            description=descriptions.description(facts, "v1"),
            grader=OwnGrader(facts, self._data_dir),
            answers=folder.prepared / facts.answers,
            gold_submission=folder.prepared / (facts.files.gold_submission or facts.answers),
            sample_submission=folder.prepared / facts.sample_submission,
            competition_type=facts.kaggle_type,
            prepare_fn=_preparer(facts),
            raw_dir=folder.raw,
            private_dir=folder.private,
            public_dir=folder.public,
            checksums=facts.folder / "competition.toml",
            leaderboard=whole if whole.is_file() else NO_LEADERBOARD,
        )

    def get_competitions_dir(self) -> Path:
        """Return the folder of the competitions' facts."""
        return Path(competitions.__path__[0])

    def get_splits_dir(self) -> Path:
        """Return a folder with a text file for each split, of one id a line."""
        folder = Path(platformdirs.user_cache_path("mle-bench"), "splits")
        folder.mkdir(parents=True, exist_ok=True)
        for name, ids in known.splits().items():
            write_text(folder / f"{name}.txt", "".join(f"{each}\n" for each in ids), durable=False)
        return folder

    def get_data_dir(self) -> Path:
        """Return the data directory."""
        return self._data_dir

    def set_data_dir(self, new_data_dir: Path) -> Registry:
        """Return a registry of another data directory."""
        return Registry(Path(new_data_dir))

    def list_competition_ids(self) -> list[str]:
        """Return the ids of all competitions, sorted."""
        return sorted(known.all_ids())

    def get_lite_competition_ids(self) -> list[str]:
        """Return the ids of MLE-bench Lite."""
        return list(known.splits()["lite"])


def _preparer(facts: model.Competition) -> Callable[[Path, Path, Path], Path]:
    """Return the function that prepares a dataset from an extracted Kaggle folder."""

    def prepare(raw: Path, public: Path, private: Path) -> Path:
        with tempfile.TemporaryDirectory(prefix=".scratch-", dir=public.parent) as scratch:
            known.load_task(facts).prepare(
                Preparation(facts, "v1", facts.parameters, raw, public, private, Path(scratch))
            )
        return public

    return prepare


registry = Registry()
