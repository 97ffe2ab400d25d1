"""Kaggle credentials are checked where they are read, and what is wrong with them is told without showing them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlebench_console.engine.kaggle.credentials import find_credentials

TOKEN = "KGAT_0123456789"


@pytest.mark.parametrize(
    "content",
    [
        TOKEN.encode(),
        f"  {TOKEN}\r\n".encode(),
        b"\xef\xbb\xbf" + TOKEN.encode(),
        TOKEN.encode("utf-16"),
    ],
    ids=["plain", "a line", "a mark at the beginning", "as PowerShell writes it"],
)
def test_a_token_is_found_however_an_editor_has_written_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".kaggle").mkdir()
    (tmp_path / ".kaggle" / "access_token").write_bytes(content)
    (found,) = find_credentials({}, tmp_path)
    assert (found.token, found.problem) == (TOKEN, "")
    assert TOKEN not in repr(found)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (f"{TOKEN}\n{TOKEN}".encode(), "it has 2 lines instead of one token"),
        (f"{TOKEN} ".encode() + TOKEN.encode(), "a character that no token has"),
        (TOKEN.encode() + b"\xff", "it is not UTF-8 text"),
        (f"{TOKEN}\u00e9".encode(), "a character that no token has"),
    ],
)
def test_what_is_no_token_is_told_and_not_shown(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / ".kaggle").mkdir()
    (tmp_path / ".kaggle" / "access_token").write_bytes(content)
    (found,) = find_credentials({}, tmp_path)
    assert told in found.problem and found.token == ""
    assert TOKEN not in repr(found)


def test_all_that_there_are_are_found_in_the_order_of_kaggles_own_client(tmp_path: Path) -> None:
    own = tmp_path / ".kaggle"
    own.mkdir()
    (own / "access_token").write_text("file")
    (own / "kaggle.json").write_text(json.dumps({"username": "alice", "key": "in the file"}))
    (own / "credentials.json").write_text("{")
    variables = {"KAGGLE_API_TOKEN": "variable", "KAGGLE_USERNAME": "bob", "KAGGLE_KEY": "k"}
    found = find_credentials(variables, tmp_path)
    assert [(each.source.removeprefix(f"{own}/"), each.problem) for each in found] == [
        ("KAGGLE_API_TOKEN", ""),
        ("access_token", ""),
        ("KAGGLE_USERNAME and KAGGLE_KEY", ""),
        ("kaggle.json", "it has a character that no token has"),
        ("credentials.json", "it is not JSON"),
    ]
    assert find_credentials({}, tmp_path / "elsewhere") == ()
