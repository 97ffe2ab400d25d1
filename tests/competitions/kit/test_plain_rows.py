"""Plain text is counted and cut without being parsed, and what is not plain is told."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from competitions.kit.tables import plain_rows

PLAIN = st.lists(st.text("a,1.", min_size=1, max_size=9), min_size=2, max_size=9)


@pytest.mark.parametrize("size", [1, 2, 5, 1 << 20])
@given(lines=PLAIN, ended=st.booleans())
def test_plain_rows_are_counted_and_cut_between_rows(size: int, lines: list[str], ended: bool) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_rows, "PIECE", size)
        pieces = list(plain_rows.pieces(io.BytesIO(text.encode())))
        assert plain_rows.count(io.BytesIO(text.encode())) == len(lines) - 1
    header = f"{lines[0]}\n".encode()
    assert all(piece.content.startswith(header) for piece in pieces)
    assert header + b"".join(piece.content[len(header) :] for piece in pieces) == text.encode()
    assert [piece.first for piece in pieces] == [
        sum(before.rows for before in pieces[:place]) for place in range(len(pieces))
    ]
    assert sum(piece.rows for piece in pieces) == len(lines) - 1


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        'k,n\n"a",1\n',
        "k,n\na,1\r\n",
        "k,n\n\na,1\n",
        "k,n\n \na,1\n",
        "\nk,n\na,1\n",
        "k,n\na\0,1\n",
        "k\n\t\n1\n",
    ],
)
def test_text_whose_lines_may_be_no_rows_is_not_plain(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_rows, "PIECE", size)
    assert plain_rows.count(io.BytesIO(text.encode())) is None


@pytest.mark.parametrize("text", ["", "k,n", "k,n\n"])
def test_a_header_alone_has_no_rows(text: str) -> None:
    assert plain_rows.count(io.BytesIO(text.encode())) == 0
    assert list(plain_rows.pieces(io.BytesIO(text.encode()))) == []


@given(st.lists(st.text("a1, .x", max_size=6), min_size=1, max_size=8))
def test_the_parser_finds_as_many_rows_in_plain_text(cells: list[str]) -> None:
    text = "\n".join(["k,n", *(f"{cell.replace(',', '')},1" for cell in cells)])
    rows = plain_rows.count(io.BytesIO(text.encode()))
    assert rows is None or rows == len(pd.read_csv(io.BytesIO(text.encode()), index_col=False))
