from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench_console.foundation.files import (
    reading_untrusted,
    remove_tree,
    replacing,
    sync_file_system,
    write_json,
    write_text,
)
from mlebench_console.foundation.problems import DataProblem


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as stream:
        stream.write(b"half of the n")
        _ = 1 / 0
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_is_whole(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "Zoë"})
    assert (tmp_path / "a.json").read_text() == '{\n "name": "Zoë"\n}\n'


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_bytes(b"id\n1\n")
    with reading_untrusted(tmp_path / "s.csv", max_bytes=5) as stream:
        assert stream.read() == b"id\n1\n"


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "reason"), [(_link, "symbolic link"), (_pipe, "regular file"), (_folder, "regular file")]
)
def test_nothing_but_a_regular_file_is_taken_from_an_agent(tmp_path: Path, make: object, reason: str) -> None:
    path = tmp_path / "submission.csv"
    make(path)  # type: ignore[operator]  # one of the functions above
    with pytest.raises(DataProblem, match=reason), reading_untrusted(path):
        pytest.fail("it was opened")


def test_a_file_over_the_cap_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    path.write_bytes(b"123456")
    with pytest.raises(DataProblem, match="6 bytes, at most 5"), reading_untrusted(path, max_bytes=5):
        pytest.fail("it was opened")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(DataProblem, match=r"gone\.csv.*No such file"),
        reading_untrusted(tmp_path / "gone.csv"),
    ):
        pytest.fail("it was opened")


def test_a_file_system_is_synchronised_by_any_folder_on_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("content")
    sync_file_system(tmp_path)
    with pytest.raises(NotADirectoryError):
        sync_file_system(tmp_path / "x")


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
from mlebench_console.foundation.files import remove_tree
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
