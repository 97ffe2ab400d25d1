"""A forward proxy to a list of hosts and to no others: CONNECT, and plain HTTP by full address.

    python -m environment.container.proxy --socket PATH --allow HOST[:PORT]...

Standard library only. It answers one request a connection, looks at nothing inside of a tunnel, and prints
one line for each request: where to, and whether it was let through. HOST may be `*.example.org`; without a
PORT it is open on 443 and 80.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from environment.container.relay import carry_both_ways, serve

MAX_CONNECTIONS = 128
_USUAL_PORTS = (443, 80)
_HEAD_LIMIT = 64 << 10
_CONNECT_SECONDS = 30
_HEAD_SECONDS = 60
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Rule:
    """A host, or all below a domain, on one port or on the usual ones."""

    host: str
    port: int | None

    def allows(self, host: str, port: int) -> bool:
        """Tell whether this rule lets a connection through."""
        if port not in ((self.port,) if self.port else _USUAL_PORTS):
            return False
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        return host == self.host


def parse_rule(text: str) -> Rule:
    """Read HOST or HOST:PORT.

    Raises:
        ValueError: it is neither.
    """
    host, _, port = text.strip().lower().rstrip(".").partition(":")
    if not host or "/" in host or (port and not port.isdigit()):
        raise ValueError(f"'{text}' is not HOST or HOST:PORT")
    return Rule(host, int(port) if port else None)


@dataclass(frozen=True)
class _Request:
    host: str
    port: int
    is_tunnel: bool
    head: bytes


def _answer(rules: Sequence[Rule], client: socket.socket) -> None:
    try:
        _forward(rules, client)
    except OSError as error:
        sys.stdout.write(f"broken: {error}\n")
    sys.stdout.flush()


def _forward(rules: Sequence[Rule], client: socket.socket) -> None:
    client.settimeout(_HEAD_SECONDS)
    head, rest = _read_head(client)
    request = _parse(head)
    if request is None:
        _refuse(client, "400 Bad Request", "This is not a request to a proxy.")
        return
    where = f"{request.host}:{request.port}"
    if not any(rule.allows(request.host, request.port) for rule in rules):
        sys.stdout.write(f"refused {where}\n")
        _refuse(client, "403 Forbidden", f"{request.host} is not among the hosts that may be reached.")
        return
    try:
        server = socket.create_connection((request.host, request.port), _CONNECT_SECONDS)
    except OSError as error:
        sys.stdout.write(f"unreachable {where}: {error}\n")
        _refuse(client, "502 Bad Gateway", f"{request.host} can't be reached.")
        return
    sys.stdout.write(f"allowed {where}\n")
    with server:
        for end in (client, server):
            end.settimeout(None)
        if request.is_tunnel:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server.sendall(request.head)
        server.sendall(rest)
        carry_both_ways(client, server)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data and len(data) <= _HEAD_LIMIT:
        more = client.recv(_CHUNK)
        if not more:
            break
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _parse(head: bytes) -> _Request | None:
    """Parse a request's head; a plain one is rewritten for the server that it goes to."""
    first, _, headers = head.decode("latin-1").partition("\r\n")
    parts = first.split(" ")
    if len(parts) != 3:
        return None
    method, target, version = parts
    try:
        address = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = (address.hostname or "").rstrip("."), address.port
    except ValueError:
        return None
    if method == "CONNECT":
        return _Request(host, port or 443, True, b"") if host else None
    if address.scheme != "http" or not host:
        return None
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    # One request a connection: a second one might be meant for another host, and nobody would look.
    kept = [
        line
        for line in headers.split("\r\n")
        if not line.lower().startswith(("connection:", "proxy-", "host:", "keep-alive:"))
    ]
    lines = [f"{method} {path} {version}", f"Host: {address.netloc}", *kept, "Connection: close"]
    return _Request(
        host, port or 80, False, "\r\n".join(line for line in lines if line).encode("latin-1") + b"\r\n\r\n"
    )


def _refuse(client: socket.socket, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    client.sendall(head.encode() + body)


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(
        prog="proxy", description="Forward requests to some hosts and to no others."
    )
    parser.add_argument("--socket", type=Path, required=True, help="Unix socket to listen on")
    parser.add_argument("--allow", type=parse_rule, action="append", default=[], metavar="HOST[:PORT]")
    options = parser.parse_args()
    options.socket.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(options.socket))
        listener.listen(MAX_CONNECTIONS)
        serve(listener, partial(_answer, options.allow), MAX_CONNECTIONS)


if __name__ == "__main__":
    main()
