"""What is sent to localhost inside a sandbox arrives at the Unix socket, and the answer comes back."""

from __future__ import annotations

import asyncio
import http.client
import json
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from mlebench_console import environment
from mlebench_console.environment.container import relay as relaying
from mlebench_console.environment.validation_server.server import (
    RateLimit,
    ValidationService,
    make_server,
)

RELAY = Path(environment.__path__[0]) / "container" / "relay.py"


def relay_command(target: Path, port: str, *rest: str) -> list[str]:
    return [sys.executable, str(RELAY), "--to", f"{port}:{target}", *rest]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def validation_server(path: Path) -> Iterator[None]:
    service = ValidationService(
        check=lambda file: (True, f"{file.stat().st_size} bytes"),
        record=path.with_name("validations.jsonl"),
        uploads=path.with_name("uploads"),
        rate=RateLimit(100, 1),
    )
    with make_server(service, address=path) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


ASK = """
import http.client, json, sys
body = b'--B\\r\\nContent-Disposition: form-data; name="file"\\r\\n\\r\\n' + b"x" * 3_000_000 + b"\\r\\n--B--\\r\\n"
for _ in range(3):
    client = http.client.HTTPConnection("localhost", int(sys.argv[1]), timeout=60)
    client.request("POST", "/validate", body, {"Content-Type": "multipart/form-data; boundary=B"})
    print(json.loads(client.getresponse().read())["result"])
sys.exit(5)
"""


def test_the_command_finds_the_door_open_and_keeps_its_exit_code(tmp_path: Path) -> None:
    port = str(free_port())
    with validation_server(tmp_path / "v.sock"):
        told = subprocess.run(
            relay_command(tmp_path / "v.sock", port, "--", sys.executable, "-c", ASK, port),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (told.returncode, told.stdout) == (5, "3000000 bytes\n" * 3)


def test_the_door_closes_with_the_command(tmp_path: Path) -> None:
    port = free_port()
    subprocess.run(
        [sys.executable, RELAY, "--to", f"{port}:{tmp_path / 'v.sock'}", "--", "true"],
        timeout=60,
        check=True,
    )
    pause = threading.Event()
    for _ in range(1000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        pause.wait(0.02)
    pytest.fail("the relay is still there")


def test_it_also_serves_alone_and_a_missing_server_ends_only_the_connection(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, RELAY, "--to", f"{port}:{tmp_path / 'v.sock'}"], stderr=subprocess.PIPE
    ) as relay:
        try:
            with connected(port) as client:
                assert client.recv(10) == b""
            with validation_server(tmp_path / "v.sock"):
                asking = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                asking.request("GET", "/health")
                assert json.loads(asking.getresponse().read()) == {"status": "running"}
                asking.close()
        finally:
            relay.kill()
        assert relay.stderr is not None
        assert b"No such file" in relay.stderr.read()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    pause = threading.Event()
    for _ in range(1000):
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            pause.wait(0.02)
        else:
            with client:
                yield client
            return
    pytest.fail("the relay does not listen")


def test_it_carries_as_many_connections_as_an_agent_needs(tmp_path: Path) -> None:
    port, target = free_port(), tmp_path / "v.sock"
    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as opened:
        listener.bind(str(target))
        listener.listen(300)
        listener.settimeout(30)
        # Its limits are those of a small agent.
        command = f"ulimit -v 400000; ulimit -Sn 256; exec {shlex.join(relay_command(target, str(port)))}"
        with subprocess.Popen(["sh", "-c", command]) as relay:
            try:
                pairs = []
                for _ in range(300):
                    client = opened.enter_context(connected(port))
                    server, _ = listener.accept()
                    pairs.append((client, opened.enter_context(server)))
                for number, (client, server) in enumerate(pairs):
                    client.sendall(b"%d?" % number)
                    assert server.recv(100) == b"%d?" % number
                for number, (client, server) in reversed([*enumerate(pairs)]):
                    server.sendall(b"%d!" % number)
                    assert client.recv(100) == b"%d!" % number
            finally:
                relay.kill()


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = subprocess.run(
            [
                sys.executable,
                RELAY,
                "--to",
                f"{taken.getsockname()[1]}:{tmp_path / 'v'}",
                "--",
                "true",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert told.returncode == 1
    assert "Address already in use" in told.stderr


def test_parts_of_an_answer_are_sent_at_once() -> None:
    """Else each part waits for the acknowledgement of the one before, which clients delay by 40 ms."""
    without_delay = []

    async def answer(client: relaying.Connection) -> None:
        accepted = client.writer.get_extra_info("socket")
        without_delay.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    async def connect_once() -> None:
        port = free_port()
        with relaying.listen(port) as listener:
            serving = asyncio.ensure_future(relaying.serve(listener, answer))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()
            serving.cancel()

    asyncio.run(connect_once())
    assert without_delay == [1]
