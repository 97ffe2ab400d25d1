"""Parser of a TLS client's first message, as far as the requested server name. Standard library only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

_HANDSHAKE = 22
_MAJOR_VERSION = 3
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_ENCRYPTED_CLIENT_HELLO = 0xFE0D
# A ClientHello has some hundred bytes, with post-quantum keys some thousand.
_MOST_BYTES = 64 << 10


@dataclass(frozen=True)
class Opening:
    """The beginning of what a client sends.

    Attributes:
        sent: all that was read, to be forwarded.
        is_tls: whether it is TLS.
        server: the requested server name in lower case; empty where none is named.
        problem: why the server name of TLS can't be read; empty where it can, or where none is named.
    """

    sent: bytes
    is_tls: bool
    server: str = ""
    problem: str = ""


async def read_opening(source: asyncio.StreamReader) -> Opening:
    """Read a whole ClientHello, in any number of records and pieces, or one byte of anything that is not TLS."""
    sent, message = b"", b""
    try:
        while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
            kind = await source.readexactly(1)
            sent += kind
            if kind[0] != _HANDSHAKE:
                return Opening(sent, bool(message), problem="its ClientHello is damaged" if message else "")
            rest = await source.readexactly(4)
            sent += rest
            size = int.from_bytes(rest[2:], "big")
            if rest[0] != _MAJOR_VERSION or not size or len(sent) + size > _MOST_BYTES:
                return Opening(sent, is_tls=True, problem="its ClientHello is damaged or too long")
            record = await source.readexactly(size)
            sent += record
            message += record
            if message[0] != _CLIENT_HELLO:
                return Opening(sent, is_tls=True, problem="it does not begin with a ClientHello")
    except asyncio.IncompleteReadError as error:
        sent += error.partial
        return Opening(sent, bool(sent), problem="its ClientHello breaks off" if sent else "")
    try:
        server = _server_name(_Bytes(message[4 : 4 + int.from_bytes(message[1:4], "big")]))
    except ValueError as error:
        return Opening(sent, is_tls=True, problem=str(error))
    return Opening(sent, is_tls=True, server=server)


class _Bytes:
    """A cursor over bytes."""

    def __init__(self, left: bytes) -> None:
        self.left = left

    def take(self, size: int) -> bytes:
        if len(self.left) < size:
            raise ValueError("its ClientHello is damaged")
        taken, self.left = self.left[:size], self.left[size:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> _Bytes:
        """Take a vector that begins with its length, a number of `size` bytes."""
        return _Bytes(self.take(self.number(size)))


def _server_name(hello: _Bytes) -> str:
    """Return the one server name in a ClientHello; empty where there is none.

    Raises:
        ValueError: it is damaged, names several servers, or encrypts the name.
    """
    hello.take(2 + 32)  # version and random
    hello.vector(1)  # session id
    hello.vector(2)  # ciphers
    hello.vector(1)  # compressions
    extensions = hello.vector(2) if hello.left else _Bytes(b"")
    names: list[bytes] = []
    while extensions.left:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _ENCRYPTED_CLIENT_HELLO:
            # The outer name means nothing then, and only the server can decrypt the inner one.
            raise ValueError("its server's name is encrypted (ECH)")
        if kind == _SERVER_NAME:
            listed = content.vector(2)
            while listed.left:
                is_host = listed.number(1) == _HOST_NAME
                named = listed.vector(2).left
                names.append(named if is_host else b"")
    if not names:
        return ""
    if len(names) > 1:
        raise ValueError("it names several servers")
    name = names[0].decode("ascii", "replace").lower().rstrip(".")
    if not name or not all(letter.isalnum() or letter in "-._" for letter in name) or not name.isascii():
        raise ValueError("its server's name is damaged")
    return name
