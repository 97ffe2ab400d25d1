"""A tree is walked through to its end whatever an agent makes of it, also while it is walked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench_console.environment.container.trees import remove_tree, removing_tree, walk


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


def test_a_tree_is_removed_however_deep_it_is_and_however_long_its_names_are(tmp_path: Path) -> None:
    tree = tmp_path / "code"
    tree.mkdir()
    here = os.open(tree, os.O_RDONLY)
    for _ in range(1200):  # far over PATH_MAX, and over the number of files that a process may open
        name = "深" * 85
        os.mkdir(name, dir_fd=here)
        inside = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(os.open("文" * 85, os.O_CREAT | os.O_WRONLY, dir_fd=inside))
        os.close(here)
        here = inside
    os.close(here)
    assert remove_tree(tree) == []
    assert list(tmp_path.iterdir()) == []


def test_a_tree_is_removed_though_its_folders_are_closed_and_links_in_it_are_not_followed(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    script = """
import os, sys
from pathlib import Path
from mlebench_console.environment.container.trees import remove_tree
if os.getuid() == 0:
    os.setgid(1000), os.setuid(1000)
tree, kept = Path(sys.argv[1]), sys.argv[2]
for mode in (0, 0o400, 0o500, 0o300):
    folder = tree / f"{mode:o}" / "inner"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    (folder / "link").symlink_to(kept)
    os.mkfifo(folder / "pipe")
    folder.chmod(mode)
    folder.parent.chmod(mode)
(tree / "to-kept").symlink_to(kept)
print(remove_tree(tree), remove_tree(tree.parent / "to-kept"), remove_tree(tree / "was" / "never"))
"""
    workplace = tmp_path / "work"
    workplace.mkdir()
    workplace.chmod(0o777)
    (workplace / "to-kept").symlink_to(kept)
    # By relative paths, since another user may not pass through the folders above.
    command = [sys.executable, "-c", script, "tree", str(kept)]
    done = subprocess.run(command, cwd=workplace, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "[] [] []\n"
    assert list(workplace.iterdir()) == []
    assert [path.name for path in kept.iterdir()] == ["file"]


def test_what_can_not_be_removed_is_named_and_the_rest_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "goes"):
        (tmp_path / "tree" / "a" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / "a" / name).touch()
    (tmp_path / "tree" / "b").mkdir()
    unlink = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "stays":
            raise OSError(5, "Input/output error")
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    assert remove_tree(tmp_path / "tree") == ["tree/a/stays: Input/output error"]
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "stays", "tree"]


def test_what_is_moved_away_while_its_tree_is_removed_takes_nothing_beside_it_along(tmp_path: Path) -> None:
    here = tmp_path / "tree"
    for _ in range(100):  # more than stay open
        here = here / "d"
        here.mkdir(parents=True)
        (here / "x").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / "tree" / "beside").touch()
    steps = removing_tree(tmp_path / "tree")
    for _ in range(101):
        next(steps)
    (tmp_path / "tree" / "/".join(["d"] * 80)).rename(tmp_path / "elsewhere" / "d")
    with pytest.raises(StopIteration) as end:
        while True:
            next(steps)
    assert any(line.endswith("it was moved while it was read") for line in end.value.value)
    assert (tmp_path / "elsewhere" / "kept").exists()
    assert remove_tree(tmp_path / "tree") == []
