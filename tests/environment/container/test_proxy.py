"""What the way out to model APIs lets through; the whole way is tested on a real daemon."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from mlebench_console.environment.container import proxy
from mlebench_console.environment.container.proxy import Proxy, TrafficRecord, parse_rule
from mlebench_console.environment.container.relay import serve


@pytest.mark.parametrize(
    ("rule", "host", "port", "allowed"),
    [
        ("api.example.org", "api.example.org", 443, True),
        ("api.example.org", "api.example.org", 22, False),
        ("api.example.org", "evil-api.example.org", 443, False),
        ("api.example.org", "api.example.org.evil.net", 443, False),
        ("*.example.org", "api.example.org", 80, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("10.0.0.1:8000", "10.0.0.1", 8000, True),
        ("10.0.0.1:8000", "10.0.0.1", 443, False),
    ],
)
def test_only_what_a_rule_names_gets_through(rule: str, host: str, port: int, allowed: bool) -> None:
    assert parse_rule(rule).allows(host, port) is allowed


@pytest.mark.parametrize("text", ["", "http://example.org", "example.org:https", ":443"])
def test_what_names_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST"):
        parse_rule(text)


def context(purpose: int) -> ssl.SSLContext:
    """Make one for TLS without certificates, of which there is none here to show."""
    made = ssl.SSLContext(purpose)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return made


@dataclass
class Server:
    """A server of `localhost` on a port that the proxy takes for that of HTTPS."""

    port: int
    received: list[bytes] = field(default_factory=list)


@contextmanager
def on_a_thread(listener: socket.socket, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    def run() -> None:
        with suppress(OSError):  # the listener was shut down
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    client.settimeout(30)
                    answer(client)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Server(listener.getsockname()[1])

        def answer(client: socket.socket) -> None:
            if client.recv(1, socket.MSG_PEEK) != b"\x16":
                made.received.append(client.recv(1000))
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\nplain")
                return
            with context(ssl.PROTOCOL_TLS_SERVER).wrap_socket(client, server_side=True) as tls:
                made.received.append(tls.recv(1000))
                tls.sendall(b"answer")

        monkeypatch.setattr(proxy, "_HTTPS", made.port)
        monkeypatch.setattr(proxy, "_USUAL_PORTS", (made.port,))
        with on_a_thread(listener, answer):
            yield made


@contextmanager
def proxying(
    *rules: str, record: TrafficRecord | None = None, through: tuple[str, int] | None = None
) -> Iterator[socket.socket]:
    """Give a connection to a proxy with these rules."""

    stops: list[Callable[[], object]] = []
    ready = threading.Event()

    async def run() -> None:
        stop = asyncio.Event()
        stops.append(partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set))
        counts = record or TrafficRecord(Path("/nowhere/traffic.json"))
        made = Proxy([parse_rule(rule) for rule in rules], (), counts, through)
        serving = asyncio.ensure_future(serve(listener, made.answer))
        ready.set()
        await stop.wait()
        serving.cancel()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        try:
            with socket.create_connection(listener.getsockname(), timeout=30) as client:
                yield client
        finally:
            ready.wait()
            stops[0]()
            thread.join()


def tunnel(client: socket.socket, host: str, port: int) -> None:
    client.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(1)
    assert head.startswith(b"HTTP/1.1 200 ")


def asked(client: socket.socket, name: str | None) -> bytes:
    with context(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(client, server_hostname=name) as tls:
        tls.sendall(b"question")
        return tls.recv(100)


@pytest.mark.parametrize("name", ["localhost", "also.example.org"])
def test_a_tunnel_leads_to_the_host_that_its_tls_asks_for(server: Server, name: str) -> None:
    with proxying("localhost", "*.example.org") as client:
        tunnel(client, "localhost", server.port)
        assert asked(client, name) == b"answer"
    assert server.received == [b"question"]


def test_where_a_site_has_a_proxy_tunnels_go_through_it_and_are_checked_all_the_same(
    server: Server, tmp_path: Path
) -> None:
    passed = TrafficRecord(tmp_path / "traffic.json")
    with (
        proxying("localhost", record=passed) as site,
        proxying("localhost", through=site.getpeername()) as client,
    ):
        tunnel(client, "localhost", server.port)
        assert asked(client, "localhost") == b"answer"
    assert passed.counts.hosts["localhost"].connections == 1
    with (
        proxying("localhost") as site,
        proxying("localhost", through=site.getpeername()) as client,
        pytest.raises((ssl.SSLError, OSError)),
    ):
        tunnel(client, "localhost", server.port)
        asked(client, "evil.example.net")
    assert b"".join(server.received) == b"question"


def test_what_a_sites_proxy_refuses_is_told_to_be_out_of_reach(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with proxying("*.example.org") as site, proxying("localhost", through=site.getpeername()) as client:
        client.sendall(f"CONNECT localhost:{server.port} HTTP/1.1\r\n\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 502 ")
    assert "the site's proxy answers 'HTTP/1.1 403 Forbidden'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "why"),
    [("evil.example.net", "its TLS asks for evil.example.net"), (None, "its TLS asks for no server by name")],
)
def test_tls_that_asks_for_another_host_is_cut_off_logged_and_counted(
    server: Server, name: str | None, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with proxying("localhost", "*.example.org") as client:
        tunnel(client, "localhost", server.port)
        with pytest.raises((ssl.SSLError, OSError)):
            asked(client, name)
    assert b"".join(server.received) == b""
    assert capsys.readouterr().out == f"refused localhost:{server.port} (1 refused so far): {why}\n"


def test_an_address_that_is_allowed_needs_no_name(server: Server) -> None:
    with proxying("127.0.0.1") as client:
        tunnel(client, "127.0.0.1", server.port)
        assert asked(client, None) == b"answer"


def hello(name: str) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def in_records(sent: bytes, size: int) -> bytes:
    pieces = [sent[5:][at : at + size] for at in range(0, len(sent) - 5, size)]
    return b"".join(sent[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_hello_in_many_records_and_pieces_is_read_whole(server: Server, size: int) -> None:
    for name, is_through in (("localhost", True), ("evil.example.net", False)):
        with proxying("localhost") as client:
            tunnel(client, "localhost", server.port)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(OSError):  # it is cut off as soon as it is known
                sent = in_records(hello(name), size)
                for at in range(0, len(sent), 7):
                    client.sendall(sent[at : at + 7])
            with suppress(ConnectionResetError):
                assert bool(client.recv(1)) is is_through


def with_extension(sent: bytes, kind: int, content: bytes) -> bytes:
    """Add an extension at the end of a ClientHello in one record."""
    body = sent[9:]
    place = 2 + 32
    place += 1 + body[place]
    place += 2 + int.from_bytes(body[place : place + 2], "big")
    place += 1 + body[place]
    extensions = body[place + 2 :] + kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content
    body = body[:place] + len(extensions).to_bytes(2, "big") + extensions
    message = sent[5:6] + len(body).to_bytes(3, "big") + body
    return sent[:3] + len(message).to_bytes(2, "big") + message


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (with_extension(hello("localhost"), 0xFE0D, b"x"), "its server's name is encrypted (ECH)"),
        (with_extension(hello("localhost"), 0, b"\0\5\0\0\2ab"), "it names several servers"),
        (hello("localhost")[:-1], "its ClientHello breaks off"),
        (b"\x16\3\1\0\4\1\0\0\0", "its ClientHello is damaged"),
        (b"\x16\3\1\0\4\2\0\0\0", "it does not begin with a ClientHello"),
        (b"\x16\3\1\0\0", "its ClientHello is damaged or too long"),
        (b"\x16\3\1\xff\xff\1\xff\xff\xff" + b"x" * 70_000, "its ClientHello is damaged or too long"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "what is sent is not TLS"),
        (b"SSH-2.0-x\r\n", "what is sent is not TLS"),
    ],
    # A hello is random, and tests must be called the same in each process that collects them.
    ids=range(9),
)
def test_what_hides_where_it_leads_is_cut_off(
    server: Server, sent: bytes, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with proxying("localhost") as client:
        tunnel(client, "localhost", server.port)
        with suppress(ConnectionResetError):
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert b"".join(server.received) == b""
    assert capsys.readouterr().out.rstrip().endswith(f"(1 refused so far): {why}")


def test_a_client_that_sends_nothing_is_not_waited_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "_OPENING_SECONDS", 0.1)
    with proxying("localhost") as client:
        tunnel(client, "localhost", server.port)
        assert client.recv(1) == b""


def test_a_port_that_a_rule_names_may_be_no_tls_but_tls_on_it_is_checked(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def greet(client: socket.socket) -> None:
            client.sendall(b"220 hello")
            client.sendall(client.recv(100))

        with on_a_thread(listener, greet):
            with proxying(f"localhost:{port}") as client:
                tunnel(client, "localhost", port)
                assert client.recv(100) == b"220 hello"  # it speaks first
                client.sendall(b"plain")
                assert client.recv(1) == b"p"
            with proxying(f"localhost:{port}") as client:
                tunnel(client, "localhost", port)
                assert client.recv(100) == b"220 hello"
                client.sendall(hello("evil.example.net"))
                with suppress(ConnectionResetError):
                    assert client.recv(100) == b""


def requested(client: socket.socket, head: str) -> bytes:
    client.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n")
    answer = b""
    with suppress(ConnectionResetError):
        while data := client.recv(1000):
            answer += data
    return answer


def test_a_plain_request_goes_to_the_host_of_its_address(server: Server) -> None:
    with proxying("localhost") as client:
        head = f"GET http://localhost:{server.port}/x?y HTTP/1.1\nhost: LOCALHOST:{server.port}\nA: b\nProxy-X: c"
        assert requested(client, head).endswith(b"plain")
    (received,) = server.received
    assert received.decode() == (
        f"GET /x?y HTTP/1.1\r\nHost: localhost:{server.port}\r\nA: b\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    "lines",
    ["Host: evil.example.net", "Host : evil.example.net", "A: b\n Host: evil", "A: b\rHost: evil", ": x"],
)
def test_a_plain_request_that_names_another_host_is_refused(server: Server, lines: str) -> None:
    with proxying("localhost") as client:
        answer = requested(client, f"GET http://localhost:{server.port}/ HTTP/1.1\n{lines}")
    assert answer.startswith(b"HTTP/1.1 400 ") and server.received == []


def test_a_host_that_no_rule_names_is_refused(server: Server) -> None:
    with proxying("example.org") as client:
        client.sendall(f"CONNECT localhost:{server.port} HTTP/1.1\r\n\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 403 ")


def test_bytes_are_counted_by_the_rule_that_let_them_through_also_over_restarts(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "traffic.json"
    for times in (1, 2):
        record = TrafficRecord(path)
        with proxying("other.example.org", f"localhost:{server.port}", record=record) as client:
            answer = requested(client, f"GET http://localhost:{server.port}/ HTTP/1.1")
        record.write()
        known = json.loads(path.read_text())["hosts"]
        assert list(known) == [f"localhost:{server.port}"]
        counted = known[f"localhost:{server.port}"]
        assert counted["connections"] == times
        assert counted["received_bytes"] == times * len(answer)
        assert counted["sent_bytes"] == sum(map(len, server.received))


def test_bytes_of_a_tunnel_are_counted_and_refused_requests_are_not(server: Server, tmp_path: Path) -> None:
    record = TrafficRecord(tmp_path / "traffic.json")
    with proxying("localhost", record=record) as client:
        tunnel(client, "localhost", server.port)
        assert asked(client, "localhost") == b"answer"
    with proxying("localhost", record=record) as client:
        client.sendall(b"CONNECT evil.example.org:443 HTTP/1.1\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 403 ")
    (counted,) = record.counts.hosts.values()
    assert counted.connections == 1
    assert min(counted.sent_bytes, counted.received_bytes) > len(b"question")


def test_refused_hosts_are_counted_by_well_known_names_alone(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "traffic.json"
    for target in ("www.Kaggle.com", "kaggle.com.", "notkaggle.com", "sk-secret.example.org"):
        record = TrafficRecord(path)
        with proxying("localhost", record=record) as client:
            client.sendall(f"CONNECT {target}:443 HTTP/1.1\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 403 ")
        record.write()
    record = TrafficRecord(path)
    with proxying("localhost", record=record) as client:
        tunnel(client, "localhost", server.port)
        with pytest.raises(OSError, match="EOF"):
            asked(client, "api.openai.com")
    record.write()
    assert json.loads(path.read_text())["refused"] == {"kaggle.com": 2, "other hosts": 2, "openai.com": 1}


def test_a_damaged_record_of_traffic_keeps_no_proxy_from_serving(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "traffic.json"
    path.write_text('{"hosts": {"a": 1}}')
    assert TrafficRecord(path).counts.hosts == {}
    assert "is damaged" in capsys.readouterr().out


def test_a_denied_host_is_not_even_let_through_where_a_rule_allows_it(tmp_path: Path) -> None:
    record = TrafficRecord(tmp_path / "traffic.json")
    proxy = Proxy([parse_rule("*.example.org")], ["api.example.org"], record, None)
    assert proxy._allows("www.example.org", 443)
    assert not proxy._allows("api.example.org", 443)
