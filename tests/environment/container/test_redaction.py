"""In whatever pieces a secret comes, nothing of it is kept but a mark, and nothing else is touched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.environment.container.redaction import MARK, StreamRedactor, redact_files, worth_hiding
from mlebench_console.environment.container.trees import remove_tree

# Few letters, so that values begin like each other, contain each other and overlap.
VALUES = st.lists(st.text("ab", min_size=6, max_size=9), max_size=4)
TEXTS = st.text("abc", max_size=80)


def cut(text: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(ends)]


def redacted(values: list[str], pieces: list[bytes]) -> bytes:
    redactor = StreamRedactor(values)
    return b"".join([redactor.feed(piece) for piece in pieces]) + redactor.rest()


@given(values=VALUES, text=TEXTS, places=st.lists(st.integers(0, 100), max_size=12))
def test_pieces_make_no_difference(values: list[str], text: str, places: list[int]) -> None:
    whole = text
    if values:
        whole = re.sub("|".join(map(re.escape, worth_hiding(values))), MARK, text)
    assert redacted(values, cut(text.encode(), places)).decode() == whole


def test_a_secret_that_is_printed_byte_by_byte_is_hidden() -> None:
    text = "key=sk-abc\u00e9def, again sk-abc\u00e9def".encode()
    pieces = [text[place : place + 1] for place in range(len(text))]
    assert redacted(["sk-abc\u00e9def"], pieces) == b"key=[secret], again [secret]"


def test_only_what_may_become_a_secret_waits() -> None:
    redactor = StreamRedactor(["sk-secret"])
    assert redactor.feed(b"step 1 done\n") == b"step 1 done\n"
    assert redactor.feed(b"a task") == b"a ta"
    assert redactor.feed(b" ends\n") == b"sk ends\n"
    assert redactor.feed(b"sk-secre") == b""
    assert redactor.rest() == b"sk-secre"


def test_short_words_are_left_alone() -> None:
    assert redacted(["gpt-4", ""], [b"gpt-4 is a model"]) == b"gpt-4 is a model"
    assert worth_hiding(["abcdef", "abcdef", "longer-one", "no"]) == ("longer-one", "abcdef")


def test_files_that_are_left_lose_their_secrets_and_nothing_else(tmp_path: Path) -> None:
    folder, other = tmp_path / "logs", tmp_path / "other.txt"
    (folder / "deep").mkdir(parents=True)
    other.write_text("sk-secret of somebody else")
    files = {
        "a.log": b"key sk-secret\n",
        "deep/config.json": b'{"k": "sk-secret"}',
        "b.bin": b"\0\xff sk-secre",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "a.log").chmod(0o640)
    (folder / "link").symlink_to(other)
    os.link(other, folder / "second-name")
    os.mkfifo(folder / "pipe")
    before = (folder / "b.bin").stat()
    assert redact_files(folder, ["sk-secret"]) == []
    assert (folder / "a.log").read_text() == "key [secret]\n"
    assert (folder / "a.log").stat().st_mode & 0o777 == 0o640
    assert (folder / "deep" / "config.json").read_text() == '{"k": "[secret]"}'
    assert (folder / "b.bin").stat().st_mtime_ns == before.st_mtime_ns
    assert (folder / "second-name").read_text() == "[secret] of somebody else"
    assert other.read_text() == "sk-secret of somebody else"
    assert (folder / "link").is_symlink()
    assert sorted(path.name for path in folder.iterdir()) == [
        "a.log", "b.bin", "deep", "link", "pipe", "second-name",
    ]  # fmt: skip


def test_secrets_are_found_below_any_depth_and_in_names_of_any_length(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):  # far over PATH_MAX, and over the number of files that a process may open
        name = "深" * 85
        os.mkdir(name, dir_fd=here)
        inside = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    file = os.open("文" * 85, os.O_CREAT | os.O_RDWR, dir_fd=here)
    os.write(file, b"key sk-secret")
    os.close(file)
    try:
        assert redact_files(tmp_path, ["sk-secret"]) == []
        (name,) = os.listdir(here)  # noqa: PTH208 - of what is open
        file = os.open(name, os.O_RDONLY, dir_fd=here)
        assert (name, os.read(file, 100)) == ("文" * 85, b"key [secret]")
        os.close(file)
    finally:
        os.close(here)
        assert [remove_tree(path) for path in tmp_path.iterdir()] == [[]]


def test_secrets_are_found_in_what_its_owner_has_closed(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from mlebench_console.environment.container.redaction import redact_files
if os.getuid() == 0:
    os.setgid(1000), os.setuid(1000)
for mode in (0, 0o400, 0o500, 0o300):
    folder = Path("logs", f"{mode:o}", "inner")
    folder.mkdir(parents=True)
    (folder / "file").write_text("sk-secret\\n")
    (folder / "file").chmod(mode & 0o200)
    folder.chmod(mode)
    folder.parent.chmod(mode)
failures = redact_files(Path("logs"), ["sk-secret"])
for path in Path("logs").rglob("file"):
    path.chmod(0o600)
print(failures)
"""
    tmp_path.chmod(0o777)
    # By relative paths, since another user may not pass through the folders above.
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "[]\n")
    read = "grep -rh secret logs; chmod -R u+rwx logs"
    told = subprocess.run(["sh", "-c", read], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.stdout == "[secret]\n" * 4


def test_large_files_are_looked_through_and_their_holes_kept(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as stream:
        stream.seek(1 << 40)
        stream.write(
            b"x" * ((4 << 20) - 5) + b"sk-secret" + b"y" * 100
        )  # over the edge of what is read at once
        stream.truncate(1 << 41)
    (tmp_path / "empty").touch()
    assert redact_files(tmp_path, ["sk-secret"]) == []
    found = (tmp_path / "large").stat()
    assert found.st_size == (1 << 41) - 1 and found.st_blocks * 512 < 16 << 20
    with (tmp_path / "large").open("rb") as stream:
        stream.seek((1 << 40) + (4 << 20) - 6)
        assert stream.read(20) == b"x[secret]yyyyyyyyyyy"


def test_what_takes_too_long_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("sk-secret")
    times = iter([0.0, 1.0, 9.0, 30.0, 30.0])
    (failure,) = redact_files(tmp_path, ["sk-secret"], seconds=25, clock=lambda: next(times))
    assert failure.endswith("and what follows may hold a secret: searching took over 25 s")


def test_a_folder_that_is_a_link_is_left_alone_and_named(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("sk-secret")
    (tmp_path / "logs").symlink_to(tmp_path / "other")
    assert redact_files(tmp_path / "logs", ["sk-secret"]) == ["'logs' may hold a secret: Not a directory"]
    assert (tmp_path / "other" / "file").read_text() == "sk-secret"


def test_a_file_that_can_not_be_replaced_is_named_and_of_many_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        (tmp_path / f"{number}.log").write_text("sk-secret")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)
    failures = redact_files(tmp_path, ["sk-secret"])
    assert len(failures) == 6 and failures[-1] == "4 more may hold a secret"
    assert all(line.endswith(".log' may hold a secret: No space left on device") for line in failures[:5])
    assert len(list(tmp_path.iterdir())) == 9
    assert redact_files(tmp_path, []) == []
