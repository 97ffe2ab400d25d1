"""A forward proxy that allows only listed hosts: CONNECT, and plain HTTP by full address.

    python -m mlebench_console.environment.container.proxy --socket PATH --allow HOST[:PORT]... [--deny HOST...]
        --traffic FILE [--through URL]

Standard library only. It answers one request per connection, and prints one line for each: its destination, and
whether it was allowed. FILE records how many bytes were sent to and received from the hosts of each rule.
HOST may be `*.example.org`; without a PORT, 443 and 80 are allowed.

Many hosts share servers with others, so a tunnel's TLS is allowed only if the requested server name is allowed
too. Data other than TLS is allowed through a tunnel only where a rule names its PORT, which is not 443. The content
of TLS is not inspected: whether a server answers for another host there is up to that server.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mlebench_console.environment.container.client_hello import read_opening
from mlebench_console.environment.container.relay import MAX_CONNECTIONS, Connection, both_ways, carry, serve
from mlebench_console.environment.container.traffic import HostTraffic, Traffic

_HTTPS, _HTTP = 443, 80
_USUAL_PORTS = (_HTTPS, _HTTP)
_CHUNK = 1 << 16
_CONNECT_SECONDS = 30
_HEAD_SECONDS = 60
_OPENING_SECONDS = 60
_RECORD_SECONDS = 1.0
_MOST_SHOWN = 100
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*)")


# Refused hosts that are recorded by name, including their subdomains.
_RECORDED_BY_NAME = (
    *("kaggle.com", "github.com", "githubusercontent.com", "huggingface.co", "hf.co", "pypi.org"),
    *("pythonhosted.org", "openai.com", "anthropic.com", "googleapis.com", "openrouter.ai", "mistral.ai"),
    *("cohere.com", "cohere.ai"),
    *("deepseek.com", "groq.com", "x.ai", "together.xyz", "together.ai", "fireworks.ai", "replicate.com"),
    *("perplexity.ai", "google.com", "bing.com", "duckduckgo.com", "wikipedia.org"),
)
OTHER_HOSTS = "other hosts"


@dataclass(frozen=True)
class Rule:
    """A host, or all subdomains of a domain, on one port or on the usual ones."""

    host: str
    port: int | None

    def __str__(self) -> str:
        """Return the rule as it was given."""
        return f"{self.host}:{self.port}" if self.port else self.host

    def allows(self, host: str, port: int) -> bool:
        """Return whether this rule allows a connection."""
        if port not in ((self.port,) if self.port else _USUAL_PORTS):
            return False
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        return host == self.host


def parse_rule(text: str) -> Rule:
    """Parse HOST or HOST:PORT.

    Raises:
        ValueError: it is neither.
    """
    host, _, port = text.strip().lower().rstrip(".").partition(":")
    if not host or "/" in host or (port and not port.isdigit()):
        raise ValueError(f"'{text}' is not HOST or HOST:PORT")
    return Rule(host, int(port) if port else None)


class TrafficRecord:
    """A file with the traffic of each rule, not of each host, since an agent can make up any number of hosts.

    Only well-known refused hosts are recorded by name: a name that an agent makes up may contain anything, even its
    keys. The counts of an earlier proxy are continued, and the file is replaced atomically.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.counts = Traffic()
        self._written = ""
        if path.exists():
            try:
                known = json.loads(path.read_text())
                hosts = {name: HostTraffic(**one) for name, one in known["hosts"].items()}
                self.counts = Traffic(hosts, dict(known["refused"]))
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                _say(f"earlier traffic counts are lost, {path} is damaged: {error}")

    def of(self, rule: Rule) -> HostTraffic:
        """Return the counts of a rule."""
        return self.counts.hosts.setdefault(str(rule), HostTraffic())

    def refuse(self, host: str) -> None:
        """Count a refused request for a host."""
        name = host.lower().rstrip(".")
        known = (one for one in _RECORDED_BY_NAME if f".{name}".endswith(f".{one}"))
        recorded = next(known, OTHER_HOSTS)
        self.counts.refused[recorded] = self.counts.refused.get(recorded, 0) + 1

    def write(self) -> None:
        """Write the file if the counts have changed since."""
        text = json.dumps(asdict(self.counts))
        if text == self._written:
            return
        partial = self._path.with_name(f".{self._path.name}.partial")
        partial.write_text(text)
        partial.replace(self._path)
        self._written = text

    async def keep(self, seconds: float) -> None:
        """Write the file every so many seconds, forever."""
        while True:
            try:
                self.write()
            except OSError as error:
                _say(f"the traffic can't be written: {error}")
            await asyncio.sleep(seconds)


@dataclass(frozen=True)
class _Request:
    host: str
    port: int
    is_tunnel: bool
    head: bytes


class _Refused(Exception):
    """A request is refused: with its status line, the reason for client and log, and the host."""

    def __init__(self, status: str, text: str, host: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.host = host


class Proxy:
    """Forwards requests to hosts that rules allow, and counts those that it refuses."""

    def __init__(
        self,
        rules: Sequence[Rule],
        denied: Sequence[str],
        record: TrafficRecord,
        through: tuple[str, int] | None,
    ) -> None:
        """Set the rules.

        Args:
            rules: the hosts that may be reached.
            denied: hosts that may not be reached even where a rule allows them.
            record: counts the traffic.
            through: the site's own proxy, where hosts can't be reached without it; else None.
        """
        self._through = through
        self._rules = rules
        self._record = record
        self._denied = frozenset(host.lower() for host in denied)
        self._refused = 0

    async def answer(self, client: Connection) -> None:
        """Answer the one request of a connection."""
        where = "a request"
        try:
            request = _parse(await _read_head(client.reader))
            where = f"{request.host}:{request.port}"
            rule = self._rule(request.host, request.port)
            if rule is None:
                text = f"{request.host} is not among the hosts that may be reached."
                raise _Refused("403 Forbidden", text, request.host)
            await self._forward(client, request, where, self._record.of(rule))
        except _Refused as refusal:
            self._refused += 1
            if refusal.host:
                self._record.refuse(refusal.host)
            _say(f"refused {where} ({self._refused} refused so far): {refusal}")
            if refusal.status:
                await _send_refusal(client, refusal)
        except OSError as error:
            _say(f"broken {where}: {error}")

    def _allows(self, host: str, port: int) -> bool:
        return self._rule(host, port) is not None

    def _rule(self, host: str, port: int) -> Rule | None:
        if host in self._denied:
            return None
        return next((rule for rule in self._rules if rule.allows(host, port)), None)

    async def _forward(self, client: Connection, request: _Request, where: str, traffic: HostTraffic) -> None:
        try:
            server = await asyncio.wait_for(self._connect(request.host, request.port), _CONNECT_SECONDS)
        except OSError as error:
            _say(f"unreachable {where}: {error or 'no answer'}")
            await _send_refusal(client, _Refused("502 Bad Gateway", f"{request.host} can't be reached."))
            return
        traffic.connections += 1
        try:
            if request.is_tunnel:
                client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                forth = self._carry_checked(client, server, request, where, traffic)
            else:
                _say(f"allowed {where}")
                server.writer.write(request.head)
                traffic.send(len(request.head))
                forth = carry(client.reader, server.writer, traffic.send)
            await both_ways(forth, carry(server.reader, client.writer, traffic.receive))
        finally:
            server.writer.close()

    async def _connect(self, host: str, port: int) -> Connection:
        """Connect to a host, through the site's proxy where there is one.

        Raises:
            OSError: it can't be reached.
        """
        if self._through is None:
            return Connection(*await asyncio.open_connection(host, port, limit=_CHUNK))
        server = Connection(*await asyncio.open_connection(*self._through, limit=_CHUNK))
        try:
            name = f"[{host}]" if ":" in host else host
            server.writer.write(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
            head = await server.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            server.writer.close()
            raise OSError("the site's proxy does not answer") from error
        except BaseException:
            server.writer.close()
            raise
        first = head.partition(b"\r\n")[0].decode("latin-1")
        if first.split(" ")[1:2] != ["200"]:
            server.writer.close()
            raise OSError(f"the site's proxy answers {first[:_MOST_SHOWN]!r}")
        return server

    async def _carry_checked(
        self, client: Connection, server: Connection, request: _Request, where: str, traffic: HostTraffic
    ) -> None:
        """Forward what a client sends into its tunnel, after its first message has shown an allowed destination."""
        # On a port that a rule names there may be a service where the server speaks first.
        is_plain_allowed = request.port != _HTTPS and any(
            rule.port and rule.allows(request.host, request.port) for rule in self._rules
        )
        try:
            sent, asked = await asyncio.wait_for(
                read_opening(client.reader), None if is_plain_allowed else _OPENING_SECONDS
            )
        except TimeoutError:
            raise _Refused("", f"nothing was sent within {_OPENING_SECONDS} s") from None
        except ValueError as error:
            raise _Refused("", str(error)) from None
        if asked is not None:
            # TLS does not allow an IP address as server name.
            is_allowed = self._allows(asked, request.port) if asked else _is_address(request.host)
            if not is_allowed:
                text = f"its TLS asks for {asked or 'no server by name'}"
                raise _Refused("", text, asked or request.host)
        elif sent and not is_plain_allowed:
            raise _Refused("", "what is sent is not TLS")
        _say(f"allowed {where}")
        server.writer.write(sent)
        traffic.send(len(sent))
        await carry(client.reader, server.writer, traffic.send)


async def _read_head(source: asyncio.StreamReader) -> bytes:
    try:
        head = await asyncio.wait_for(source.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
        raise _Refused("400 Bad Request", "This is not a request to a proxy.") from None
    return head[: -len(b"\r\n\r\n")]


def _parse(head: bytes) -> _Request:
    """Parse a request's head; that of plain HTTP is rewritten for its server.

    Raises:
        _Refused: it is not a request, or a server might interpret it differently.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = [_HEADER.fullmatch(line) for line in lines]
    parts = first.split(" ")
    if len(parts) != 3 or not first.isprintable() or None in headers:
        raise _Refused("400 Bad Request", "This is not a request to a proxy.")
    method, target, version = parts
    try:
        address = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = (address.hostname or "").rstrip("."), address.port
    except ValueError:
        host, port = "", None
    if not host or (method != "CONNECT" and address.scheme != "http"):
        raise _Refused("400 Bad Request", "This is not a request to a proxy.")
    if method == "CONNECT":
        return _Request(host, port or _HTTPS, True, b"")
    given = [(header[1], header[2]) for header in headers if header is not None]
    for name, value in given:
        if name.lower() == "host" and _named(value) != (host, port or 80):
            raise _Refused("400 Bad Request", "The header Host names another host than the address.")
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    # One request per connection: a second one might be for another host and would not be checked.
    kept = [
        f"{name}: {value}"
        for name, value in given
        if name.lower() not in ("connection", "host", "keep-alive") and not name.lower().startswith("proxy-")
    ]
    rewritten = [f"{method} {path} {version}", f"Host: {address.netloc}", *kept, "Connection: close", "", ""]
    return _Request(host, port or 80, False, "\r\n".join(rewritten).encode("latin-1"))


def _named(value: str) -> tuple[str, int]:
    """Return host and port of a Host header; an empty host, which no address has, where it can't be parsed."""
    try:
        address = urlsplit(f"//{value.strip()}")
        return (address.hostname or "").rstrip("."), address.port or 80
    except ValueError:
        return "", 0


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _send_refusal(client: Connection, refusal: _Refused) -> None:
    body = f"{refusal}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    client.writer.write(head.encode() + body)
    await client.writer.drain()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="proxy", description="Forward requests to allowed hosts only.")
    parser.add_argument("--socket", type=Path, required=True, help="Unix socket to listen on")
    parser.add_argument("--allow", type=parse_rule, action="append", default=[], metavar="HOST[:PORT]")
    parser.add_argument(
        "--deny", action="append", default=[], metavar="HOST", help="not even where a rule allows it"
    )
    parser.add_argument(
        "--traffic", type=Path, required=True, metavar="FILE", help="file to record the traffic in"
    )
    parser.add_argument(
        "--traffic-seconds", type=float, default=_RECORD_SECONDS, metavar="N", help="seconds between writes"
    )
    parser.add_argument("--through", metavar="URL", help="the site's own proxy, http://HOST:PORT")
    options = parser.parse_args()
    through = None
    if options.through:
        site = urlsplit(options.through)
        if not site.hostname:
            parser.error(f"'{options.through}' is not http://HOST:PORT")
        through = site.hostname, site.port or _HTTP
    options.socket.unlink(missing_ok=True)
    record = TrafficRecord(options.traffic)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(options.socket))
        listener.listen(MAX_CONNECTIONS)
        proxy = Proxy(options.allow, options.deny, record, through)
        asyncio.run(_serve(listener, proxy, record, options.traffic_seconds))


async def _serve(listener: socket.socket, proxy: Proxy, record: TrafficRecord, seconds: float) -> None:
    def end() -> None:
        # Record the traffic since the last write, too.
        with suppress(OSError):
            record.write()
        os._exit(0)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    await asyncio.gather(serve(listener, proxy.answer), record.keep(seconds))


if __name__ == "__main__":
    main()
