"""A tree is walked through to its end whatever an agent makes of it, also while it is walked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mlebench_console.environment.container.trees import walk


def never(place: str, error: OSError) -> None:
    pytest.fail(f"{place}: {error}")


def test_everything_is_met_once_each_folder_before_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    (tmp_path / "c").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    found = [entry.place.removeprefix(f"{tmp_path.name}/") for entry in walk(tmp_path, never)]
    assert sorted(found) == ["a", "a/b", "a/b/file", "c", "link", "pipe"]
    assert found.index("a") < found.index("a/b") < found.index("a/b/file")
    assert list(walk(tmp_path / "gone", never)) == []


def test_what_is_moved_away_while_it_is_walked_through_keeps_nothing_else_from_being_met(
    tmp_path: Path,
) -> None:
    deep = tmp_path / "tree" / "/".join(["d"] * 100)
    deep.mkdir(parents=True)
    for name in ("x", "y"):
        (tmp_path / "tree" / "d" / name).mkdir()
        (tmp_path / "tree" / "d" / name / "file").touch()
    refused: list[str] = []
    met = []
    for entry in walk(tmp_path / "tree", lambda place, error: refused.append(f"{place}: {error.strerror}")):
        met.append(entry.name)
        if entry.name == "d" and met.count("d") == 100:
            # Far below what stands open, so that `..` leads elsewhere now.
            deep.parent.rename(tmp_path / "elsewhere")
    assert met.count("file") == 2
    assert len(refused) == 1 and refused[0].endswith("it was moved while it was read")


def test_what_is_removed_while_it_is_walked_through_is_no_failure(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name / "in").mkdir(parents=True)
    for entry in walk(tmp_path, never):
        if entry.name in "abc":
            shutil.rmtree(tmp_path / entry.name)
