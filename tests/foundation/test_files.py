from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlebench_console.foundation.files import (
    reading_untrusted,
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
