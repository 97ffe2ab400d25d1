"""Parser of a TLS client's first message, as far as the requested server name. Standard library only."""

from __future__ import annotations

import asyncio

_HANDSHAKE = 22
_MAJOR_VERSION = 3
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_ENCRYPTED_CLIENT_HELLO = 0xFE0D
# A ClientHello has some hundred bytes, with post-quantum keys some thousand.
_MOST_BYTES = 64 << 10


async def read_opening(source: asyncio.StreamReader) -> tuple[bytes, str | None]:
    """Read a whole ClientHello, in any number of records and pieces, or one byte of anything that is not TLS.

    Returns:
        All that was read, to be forwarded, and the requested server's name in lower case; that is empty where none is
        named, and None for anything but TLS.

    Raises:
        ValueError: the name can't be read; the message says why.
    """
    sent, message = b"", b""
    try:
        while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
            kind = await source.readexactly(1)
            sent += kind
            if kind[0] != _HANDSHAKE:
                if message:
                    raise ValueError("its ClientHello is damaged")
                return sent, None
            rest = await source.readexactly(4)
            sent += rest
            size = int.from_bytes(rest[2:], "big")
            if rest[0] != _MAJOR_VERSION or not size or len(sent) + size > _MOST_BYTES:
                raise ValueError("its ClientHello is damaged or too long")
            record = await source.readexactly(size)
            sent += record
            message += record
            if message[0] != _CLIENT_HELLO:
                raise ValueError("it does not begin with a ClientHello")
    except asyncio.IncompleteReadError as error:
        if sent or error.partial:
            raise ValueError("its ClientHello breaks off") from None
        return b"", None
    return sent, _server_name(_Bytes(message[4 : 4 + int.from_bytes(message[1:4], "big")]))


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
