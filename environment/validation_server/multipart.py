"""Extract one file from a multipart upload while it is received, without keeping it in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.parser import BytesHeaderParser
from http import HTTPStatus
from typing import IO

_CHUNK = 1 << 16
_MAX_PART_HEADERS = 16 << 10
_MAX_PARTS = 64
_BOUNDARY = re.compile(
    r"""multipart/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))""", re.I
)


class UploadRefused(Exception):
    """An upload is refused; the message is for its sender."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


def boundary_of(content_type: str) -> bytes:
    """Return the boundary in a Content-Type header.

    Raises:
        UploadRefused: it is not a multipart form.
    """
    match = _BOUNDARY.match(content_type.strip())
    if match is None:
        raise UploadRefused("Send the submission as multipart/form-data with a field named 'file'.")
    return (match[1] or match[2]).encode("latin-1", "replace")


def copy_file_field(
    read: Callable[[int], bytes], length: int, boundary: bytes, field: str, sink: IO[bytes]
) -> int:
    """Copy the first part with that field name to `sink` and return its size.

    `read` is called with a number of bytes and returns at most that many of the body, none at its end.

    Raises:
        UploadRefused: there is no such part, or the upload breaks off.
    """
    parts = _Parts(read, length, boundary)
    parts.skip_to_delimiter(None)
    for _ in range(_MAX_PARTS):
        name = parts.next_name()
        if name is None:
            raise UploadRefused(f"The upload has no field named '{field}'.")
        if name == field:
            return parts.skip_to_delimiter(sink)
        parts.skip_to_delimiter(None)
    raise UploadRefused("The upload has too many fields.")


class _Parts:
    """A cursor over the parts of a body of known length."""

    def __init__(self, read: Callable[[int], bytes], length: int, boundary: bytes) -> None:
        self._read = read
        self._remaining = length
        # The first delimiter has no line end before it; adding one makes all of them alike.
        self._buffer = b"\r\n"
        self._delimiter = b"\r\n--" + boundary

    def next_name(self) -> str | None:
        """Read the headers after a delimiter; None at the end of the form."""
        while len(self._buffer) < 2:
            self._fill()
        if self._buffer.startswith(b"--"):
            return None
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MAX_PART_HEADERS:
                raise UploadRefused("A field of the upload has too long headers.")
            self._fill()
        headers = BytesHeaderParser().parsebytes(self._buffer[2 : end + 4])
        self._buffer = self._buffer[end + 4 :]
        name = headers.get_param("name", header="content-disposition")
        return name if isinstance(name, str) else ""

    def skip_to_delimiter(self, sink: IO[bytes] | None) -> int:
        """Write everything before the next delimiter to `sink`, skip the delimiter and return the size."""
        passed = 0
        while (end := self._buffer.find(self._delimiter)) < 0:
            keep = len(self._delimiter) - 1
            passed += self._pass_on(max(0, len(self._buffer) - keep), sink)
            self._fill()
        passed += self._pass_on(end, sink)
        self._buffer = self._buffer[len(self._delimiter) :]
        return passed

    def _pass_on(self, size: int, sink: IO[bytes] | None) -> int:
        if sink is not None:
            sink.write(self._buffer[:size])
        self._buffer = self._buffer[size:]
        return size

    def _fill(self) -> None:
        data = self._read(min(_CHUNK, self._remaining)) if self._remaining else b""
        if not data:
            raise UploadRefused("The upload broke off or is not closed by its boundary.")
        self._remaining -= len(data)
        self._buffer += data
