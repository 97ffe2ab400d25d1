"""One file comes out of a multipart upload byte for byte, however the upload is cut into pieces."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.environment.validation_server.multipart import (
    UploadRefused,
    boundary_of,
    copy_file_field,
)


class Dripping:
    """A body that comes in pieces of a given size."""

    def __init__(self, data: bytes, piece: int) -> None:
        self._stream = io.BytesIO(data)
        self._piece = piece

    def read(self, size: int, /) -> bytes:
        return self._stream.read(min(size, self._piece))


def form(content: bytes, *, name: str = "file", boundary: bytes = b"XX", before: bytes = b"") -> bytes:
    head = (
        f'Content-Disposition: form-data; name="{name}"; filename="s.csv"\r\nContent-Type: text/csv\r\n\r\n'
    )
    return before + b"--" + boundary + b"\r\n" + head.encode() + content + b"\r\n--" + boundary + b"--\r\n"


def extract(body: bytes, *, piece: int = 1 << 16, length: int | None = None) -> bytes:
    sink = io.BytesIO()
    size = copy_file_field(
        Dripping(body, piece).read, len(body) if length is None else length, b"XX", "file", sink
    )
    assert size == len(sink.getvalue())
    return sink.getvalue()


@given(
    content=st.lists(st.sampled_from([b"\r", b"\n", b"-", b"--XX", b"\r\n--X", b"a", b"\0\xff"])).map(
        b"".join
    ),
    piece=st.integers(1, 40),
)
def test_the_file_comes_out_unchanged_in_whatever_pieces_it_comes(content: bytes, piece: int) -> None:
    if b"\r\n--XX" not in b"\r\n" + content:
        assert extract(form(content), piece=piece) == content


def test_other_fields_are_skipped() -> None:
    other = b'--XX\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'
    assert extract(form(b"a,b\n1,2\n", before=other)) == b"a,b\n1,2\n"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no boundary at all",
        form(b"a", name="other"),
        form(b"a")[:-8],
        b"--XX",
        b"--XX--",
        b"--XX\r\n" + b"X: y\r\n" * 5000,
        b"--XX\r\n\r\n" * 3,
        b"--XX\r\nContent-Disposition: form-data\r\n\r\n" * 100,
    ],
)
def test_a_broken_upload_is_refused(body: bytes) -> None:
    with pytest.raises(UploadRefused):
        extract(body)


def test_nothing_is_read_beyond_the_announced_length() -> None:
    with pytest.raises(UploadRefused):
        extract(form(b"a"), length=10)


@pytest.mark.parametrize(
    ("header", "boundary"),
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        ('Multipart/Form-Data; charset=utf-8; boundary="a b"', b"a b"),
        ("multipart/form-data; boundary=------------------------7b", b"------------------------7b"),
    ],
)
def test_the_boundary_is_found(header: str, boundary: bytes) -> None:
    assert boundary_of(header) == boundary


@pytest.mark.parametrize("header", ["", "text/csv", "multipart/form-data", "multipart/form-data; boundary="])
def test_what_is_no_form_is_refused(header: str) -> None:
    with pytest.raises(UploadRefused, match="field named 'file'"):
        boundary_of(header)
