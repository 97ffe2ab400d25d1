"""A submission is read under limits, never through a link of an agent's, and what is wrong is told in one line."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from mlebench_console.competitions.submissions import (
    NoSubmission,
    NotCsv,
    SizeLimits,
    SubmissionFile,
    limits_for,
)

ROOMY = SizeLimits(bytes=10_000_000, lines=10_000, columns=100)


def written(folder: Path, content: bytes, name: str = "submission.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["submission.csv", "S.CSV", "x.Csv"])
def test_any_case_of_the_suffix_is_a_csv(tmp_path: Path, name: str) -> None:
    assert SubmissionFile(written(tmp_path, b"a\n1\n", name), ROOMY).read()["a"].tolist() == [1]


@pytest.mark.parametrize("name", ["submission.txt", "submission", "submission.csv.gz"])
def test_other_names_are_no_submission(tmp_path: Path, name: str) -> None:
    with pytest.raises(NoSubmission, match="not named"):
        SubmissionFile(written(tmp_path, b"a\n1\n", name), ROOMY).read()


def test_nothing_is_no_submission(tmp_path: Path) -> None:
    with pytest.raises(NoSubmission, match="no submission"):
        SubmissionFile(None, ROOMY).read()
    with pytest.raises(NoSubmission, match="no file"):
        SubmissionFile(tmp_path / "submission.csv", ROOMY).read()


def test_a_link_is_followed_for_the_operator_only(tmp_path: Path) -> None:
    secret = written(tmp_path, b"a\n1\n", "answers.csv")
    link = tmp_path / "submission.csv"
    link.symlink_to(secret)
    with pytest.raises(NoSubmission, match="not a regular file"):
        SubmissionFile(link, ROOMY).read()
    assert SubmissionFile(link, ROOMY, follow_links=True).read()["a"].tolist() == [1]


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "folder.csv").mkdir()
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    for name in ("fifo.csv", "folder.csv", "loop.csv"):
        for follow in (False, True):
            with pytest.raises((NoSubmission, NotCsv)):
                SubmissionFile(tmp_path / name, ROOMY, follow).read()


def test_a_socket_is_no_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.csv")
        with pytest.raises(NoSubmission):
            SubmissionFile(Path("s.csv"), ROOMY).read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1\xff,2\n", "not UTF-8 text"),
        ("a\nß\n".encode("utf-16"), "begins like UTF-16"),
        (b"a\n1\x002\n", "NUL bytes and is no text; write it as UTF-8"),
        (b"\x1f\x8b\x08\x00", "begins like a gzip file"),
        (b"PK\x03\x04\xff", "begins like a zip file or a spreadsheet"),
        (b"a;b\n1,5;2\n1;2\n1,5,5;2\n", "its first line has semicolons and no commas"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 of the file has 3 cells, the lines above it 2"),
        (b'a,b\n"1,2\n', "quotation mark is opened and never closed"),
        (b"," * 101 + b"\n", "102 columns, at most 100"),
        (b"a\n" + b"1," * 101 + b"\n", "102 columns, at most 100"),
        (b"a\n" + b"1\n" * 10_001, "10,002 lines, at most 10,000"),
        (b"a\n" + b"1\r" * 10_001, "lines, at most 10,000"),
        (b"a\n" + b"x" * 10_000_001, "at most 10,000,000 are taken"),
    ],
)
def test_what_cannot_be_a_table_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(NotCsv, match=message) as caught:
        SubmissionFile(written(tmp_path, content), ROOMY).read()
    assert "\n" not in str(caught.value)


def test_columns_hidden_behind_a_quoted_line_end_are_counted(tmp_path: Path) -> None:
    content = b'"a\n"' + b",x" * 200 + b"\n"
    with pytest.raises(NotCsv, match="201 columns"):
        SubmissionFile(written(tmp_path, content), ROOMY).read()


def test_one_huge_cell_is_only_a_cell(tmp_path: Path) -> None:
    found = SubmissionFile(written(tmp_path, b"a,b\n" + b"x" * 1_000_000 + b",1\n"), ROOMY).read()
    assert len(found["a"].iloc[0]) == 1_000_000


def test_limits_leave_room_for_ten_right_submissions(tmp_path: Path) -> None:
    answers = written(tmp_path, b"id,x\n" + b"1,2\n" * 1000, "answers.csv")
    limits = limits_for(answers, tmp_path / "none.csv")
    assert limits.bytes > 10 * answers.stat().st_size
    assert limits.lines > 10 * 1000
    assert limits.columns > 20


def test_a_pointer_that_git_lfs_left_is_called_so(tmp_path: Path) -> None:
    pointer = written(tmp_path, b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4096\n")
    with pytest.raises(NotCsv, match="Git LFS pointer"):
        SubmissionFile(pointer, ROOMY).read()
