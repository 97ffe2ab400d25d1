"""In whatever pieces a secret comes, nothing of it is kept but a mark, and nothing else is touched."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from environment.container.redaction import MARK, StreamRedactor, redact_files, worth_hiding

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


def test_a_file_that_can_not_be_replaced_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("sk-secret")
    (tmp_path / ".a.log.partial").mkdir()
    (failure,) = redact_files(tmp_path, ["sk-secret"])
    assert failure == "'a.log' may hold a secret: Is a directory"
    assert redact_files(tmp_path, []) == []
