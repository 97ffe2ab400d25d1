"""A file that Kaggle's storage delivers: what it tells of it, and its bytes from any place on."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.kaggle import timeouts
from engine.kaggle.understanding import understood

if TYPE_CHECKING:
    import requests

_BLOCK = 1 << 17  # requests gives nothing before a block is full, and a slow line is to be seen moving


class Delivery:
    """A file on its way: what is known of it, and its bytes."""

    def __init__(self, response: requests.Response, competition_id: str) -> None:
        self._response = response
        self._competition_id = competition_id

    @property
    def size(self) -> int | None:
        """How many bytes the whole file has."""
        length = self._response.headers.get("Content-Length")
        return int(length) if length and length.isdigit() else None

    @property
    def identity(self) -> str | None:
        """What changes when the file does; None when the server does not say."""
        headers = self._response.headers
        return headers.get("ETag") or headers.get("Last-Modified")

    @property
    def md5(self) -> str | None:
        """The file's MD5 as the storage tells it."""
        for part in self._response.headers.get("x-goog-hash", "").split(","):
            name, _, value = part.strip().partition("=")
            if name == "md5":
                try:
                    return base64.b64decode(value, validate=True).hex()
                except binascii.Error:
                    return None
        return None

    def chunks(self, start: int) -> Iterator[tuple[int, bytes]]:
        """The file's bytes from `start` on, each piece with its place; from 0 if the server can't do parts.

        Raises:
            Passing: the connection was cut or fell silent.
        """
        import requests

        response = self._response
        at = 0
        try:
            if start:
                response = self._part(start)
                at = start if response.status_code == requests.codes.partial_content else 0
            for chunk in response.iter_content(_BLOCK):
                yield at, chunk
                at += len(chunk)
        except requests.RequestException as error:
            raise understood(error, self._competition_id) from None
        finally:
            response.close()

    def _part(self, start: int) -> requests.Response:
        """Ask for the rest, at the address and with the rights with which the whole was offered."""
        import requests

        prepared = self._response.request.copy()
        prepared.headers["Range"] = f"bytes={start}-"
        if self.identity is not None:
            prepared.headers["If-Range"] = self.identity
        self._response.close()
        with requests.Session() as session:
            settings = session.merge_environment_settings(str(prepared.url), {}, True, None, None)
            response = session.send(prepared, timeout=timeouts.TIMEOUTS, **settings)
        response.raise_for_status()
        return response

    def close(self) -> None:
        """Let go of the connection."""
        self._response.close()
