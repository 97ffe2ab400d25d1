"""Competitions and splits are found by name, cheaply, and unknown names are told with what may be meant."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition
from mlebench_console.competitions.reading import read_competition
from mlebench_console.engine.images.building import PACKAGES_OF_THE_GRADER
from mlebench_console.foundation.problems import DataProblem, UsageProblem

LEAVES = (registry.get("leaf-classification").folder / "competition.toml").read_text()
ALL = [registry.get(competition_id) for competition_id in registry.all_ids()]


def test_there_are_82_competitions() -> None:
    assert len(registry.all_ids()) == 82


@pytest.mark.parametrize("competition", ALL, ids=lambda competition: competition.id)
def test_facts_are_whole(competition: Competition) -> None:
    assert competition.complexity == next(
        name for name in ("low", "medium", "high", "dev") if competition.id in registry.splits()[name]
    )
    assert competition.metric.formula


@pytest.mark.parametrize(
    "competition",
    [competition for competition in ALL if competition.available],
    ids=lambda competition: competition.id,
)
def test_what_is_available_is_complete(competition: Competition) -> None:
    task = registry.load_task(competition)
    assert callable(task.prepare) and callable(task.grade)
    assert len(competition.description_path.read_text()) > 500
    if not competition.excluded:
        open_ones = [defect.text for defect in competition.defects if defect.treatment == "open"]
        assert not open_ones


def test_splits_have_their_known_sizes() -> None:
    sizes = {name: len(ids) for name, ids in registry.splits().items()}
    assert sizes == {
        "low": 22,
        "medium": 38,
        "high": 15,
        "split75": 75,
        "dev": 7,
        "systemcard": 30,
        "lite": 22,
        "all": 75,
    }
    assert {member for ids in registry.splits().values() for member in ids} == set(registry.all_ids())


def test_a_split_file_names_competitions_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("# two of them\nleaf-classification\n\n  AI4Code\nleaf-classification\n")
    assert registry.read_split(path) == ("leaf-classification", "AI4Code")
    path.write_text("leaf-clasification\n")
    with pytest.raises(UsageProblem, match="Did you mean leaf-classification"):
        registry.read_split(path)


def test_an_unknown_split_is_told_with_the_names() -> None:
    with pytest.raises(UsageProblem, match="Splits: low"):
        registry.read_split("heavy")


def test_an_unreadable_split_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="cannot be read"):
        registry.read_split(tmp_path)


def test_an_unknown_competition_is_told_with_what_may_be_meant() -> None:
    with pytest.raises(UsageProblem, match="'spoky-author-identification' is not known\nDid you mean spooky"):
        registry.get("spoky-author-identification")
    with pytest.raises(UsageProblem, match="not known"):
        registry.get("../etc")


def test_the_registry_needs_no_heavy_library() -> None:
    program = (
        "import sys; from mlebench_console.competitions import registry; registry.all_ids(); registry.get('AI4Code');"
        "print({'numpy', 'pandas', 'sklearn'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_a_task_that_is_not_written_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "leaf-classification"
    folder.mkdir()
    original = registry.get("leaf-classification").folder / "competition.toml"
    (folder / "competition.toml").write_text(original.read_text())
    with pytest.raises(UsageProblem, match=r"its task\.py is not written"):
        registry.load_task(read_competition(folder))


def _moved(competition: Competition, folder: Path) -> Competition:
    from dataclasses import replace

    return replace(competition, folder=folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('id = "x"', "name is missing"),
        ("id = ", "cannot be read"),
        (None, "is missing"),
    ],
)
def test_facts_that_are_missing_are_told(tmp_path: Path, content: str | None, message: str) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    if content is not None:
        (folder / "competition.toml").write_text(content)
    with pytest.raises(DataProblem, match=message):
        read_competition(folder)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"leaf-classification"', '"leafs"', "its id 'leafs' is not the folder's name"),
        ('complexity = "low"', 'complexity = "tiny"', "complexity is not one of low, medium, high, dev"),
        ('direction = "lower"', 'direction = "up"', "metric.direction is not one of higher, lower"),
        (
            'direction = "lower"',
            'directon = "lower"',
            "metric.directon is not known\nDid you mean direction?",
        ),
        ('name = "Leaf', 'nmae = "Leaf', "nmae is not known\nDid you mean name?"),
        ('kaggle_type = "simple"', "", "kaggle_type is missing"),
        ("gold = 0.0\n", 'gold = "best"\n', "thresholds.gold is not a finite number"),
        ("gold = 0.0\n", "gold = nan\n", "thresholds.gold is not a finite number"),
        ("gold = 0.0\n", "", "thresholds.gold is missing"),
        ("num_teams = 1596", "num_teams = 1.5", "thresholds.num_teams is not a whole number"),
        (
            'confidence = "high"',
            'confidence = "sure"',
            "thresholds.confidence is not one of low, medium, high",
        ),
        (
            "silver = 0.00791",
            "silver = 0.5",
            "thresholds.bronze (0.01526) is better than thresholds.silver (0.5), where metric.direction says that",
        ),
        (
            'direction = "lower"',
            'direction = "higher"',
            "thresholds.silver (0.00791) is better than thresholds.gold",
        ),
        (
            "[thresholds]",
            "[thresholds]\nis_lower_better = false",
            "thresholds.is_lower_better is not known\nRemove it: direction in [metric] says it already.",
        ),
        ("needs = []", 'folder = "/tmp"', "folder is not known"),
        (
            'answers = "private/test.csv"',
            'answers = "test.csv"',
            "files.answers ('test.csv') is not a file below private/",
        ),
        (
            'answers = "private/test.csv"',
            'answers = "private/../x"',
            "files.answers ('private/../x') is not a file",
        ),
        ('answers = "private/test.csv"', "", "files.answers is missing"),
        ("[files]", "[file]", "file is not known\nDid you mean files?"),
        ('zip = "043b', 'zip = "43b', "checksums.zip '' is not an MD5 sum"),
        ('"test.csv" = "52', '"test.csv" = "X', "checksums.public 'test.csv' is not an MD5 sum"),
        (
            'treatment = "told"',
            'treatment = "hidden"',
            "defects.3.treatment is not one of mended, told, open",
        ),
        (
            'severity = "crash"\ntreatment = "mended"',
            'severity = "crash"\ntreatment = "told"',
            "defects.2.treatment is told",
        ),
        ("[parameters]", "parameters = 1\n[other]", "other is not known"),
    ],
)
def test_facts_that_are_not_understood_or_contradict_each_other_are_refused_with_file_and_key(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    folder = tmp_path / "leaf-classification"
    folder.mkdir()
    assert before in LEAVES
    (folder / "competition.toml").write_text(LEAVES.replace(before, after, 1))
    with pytest.raises(DataProblem) as caught:
        read_competition(folder)
    assert str(caught.value).startswith(f"{folder / 'competition.toml'} cannot be used: {message}")


def test_a_split_that_names_no_competition_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wolves").mkdir()
    (tmp_path / "wolves" / "competition.toml").touch()
    (tmp_path / "splits.toml").write_text('low = ["wolves", "wolfs"]\n')
    monkeypatch.setattr(registry, "_HOME", tmp_path)
    registry.splits.cache_clear()
    with pytest.raises(
        DataProblem, match=r"splits\.toml cannot be used: low names wolfs, and no such folder"
    ):
        registry.splits()


def test_a_task_imports_what_lies_beside_it_and_not_what_lies_beside_another(tmp_path: Path) -> None:
    original = registry.get("leaf-classification")
    for name in ("of-rivers", "of-lakes"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "waters.py").write_text(f"NAME = {name!r}\n")
        (folder / "task.py").write_text("from . import waters\nfrom .waters import NAME\n")
        task = registry.load_task(_moved(original, folder))
        assert task.NAME == task.waters.NAME == name


LOADS_WITHOUT_PACKAGES = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from mlebench_console.competitions import judging, registry
from mlebench_console.environment import validation_server
for name in registry.all_ids():
    registry.load_task(registry.get(name))
print(len(registry.all_ids()))
"""


def test_every_task_loads_with_the_packages_of_the_image_that_checks_submissions() -> None:
    present = {*PACKAGES_OF_THE_GRADER, "dateutil", "six", "competitions", "environment", "foundation"}
    absent = packages_distributions().keys() - present
    assert {"sklearn", "docker", "PIL"} <= absent
    done = subprocess.run(
        [sys.executable, "-c", LOADS_WITHOUT_PACKAGES, *absent], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("82\n", "")
