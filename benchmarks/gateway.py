"""The model gateway: its overhead per call, compared with the same calls made directly.

What no gateway of this kind could do without is measured too: 16 processes that pass bytes on by the same library,
and neither read nor record anything.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import aiohttp
from aiohttp import web

from benchmarks.measuring import Comparison, Reading
from mlebench_console.environment.container import relay
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.docker.temporary import conditions_without_run, order_without_run

_STREAMS = 64
_GATEWAYS = 16
_EVENTS = 100
_UNPACED_EVENTS = 1000
_PAUSE_SECONDS = 0.05  # between two events, as models write
_UNPACED_ROUNDS = 3
_CALLS = 200
_PATIENCE_SECONDS = 120.0
_TOKEN = "sk-bench"


def measure(_rounds: int) -> list[Comparison | Reading]:
    """Measure single calls, and 64 streams at once through 16 gateways."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _provider() as port,
        _gateways(Path(folder), port) as sockets,
        _bare_processes(Path(folder), port) as bare,
        _relay(sockets[0]) as relay_port,
    ):
        return asyncio.run(_measure(port, sockets, bare, relay_port))


async def _measure(
    port: int, sockets: list[Path], bare: list[Path], relay_port: int
) -> list[Comparison | Reading]:
    def by(paths: list[Path]) -> list[aiohttp.ClientSession]:
        return [aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path), limit=0)) for path in paths]

    direct = [aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))]
    gateways, others = by(sockets), by(bare)
    there, here = f"http://127.0.0.1:{port}/v1", "http://localhost/openai/v1"
    try:
        for session in (*gateways, *others):
            await _call(session, here, 1)
        single: dict[str, list[float]] = {name: [] for name in (there, here)}
        for _ in range(_CALLS):
            for session, url in ((direct[0], there), (gateways[0], here)):
                single[url].append(await _call(session, url, 1))
        kept = await _kept_connection(f"http://127.0.0.1:{relay_port}/openai/v1")
        added = statistics.median(single[here]) - statistics.median(single[there])
        alone = await _streams(direct, there, _EVENTS, _PAUSE_SECONDS)
        through = await _streams(gateways, here, _EVENTS, _PAUSE_SECONDS)
        unpaced = [
            [
                await _streams(sessions, url, _UNPACED_EVENTS, 0.0)
                for sessions, url in ((direct, there), (others, here), (gateways, here))
            ]
            for _ in range(_UNPACED_ROUNDS)
        ]
    finally:
        for session in (*direct, *gateways, *others):
            await session.close()
    streams = f"{_STREAMS} streams of {_EVENTS} events"
    fast_alone, fast_bare, fast = (statistics.median(times) for times in zip(*unpaced, strict=True))
    of_unpaced = f"{_UNPACED_EVENTS} events without pauses"
    return [
        Reading("gateway", "added to the first byte of a call, median", added * 1000, "ms", 5.0),
        Reading("gateway", "a call on a kept connection, by the relay, p50", kept[49] * 1000, "ms", 10.0),
        Reading("gateway", "a call on a kept connection, by the relay, p95", kept[94] * 1000, "ms", 25.0),
        Comparison("gateway", f"{streams} by {_GATEWAYS} gateways", through, "the same directly", alone, 1.1),
        Comparison("gateway", of_unpaced, fast, "the same directly", fast_alone, None),
        Comparison("gateway", of_unpaced, fast, "by what only passes bytes on", fast_bare, None),
    ]


async def _kept_connection(url: str) -> list[float]:
    """Return the percentiles of the seconds of whole calls that a client makes one after the other."""
    times = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        for _ in range(_CALLS + 1):
            began = time.perf_counter()
            await _call(session, url, 1)
            times.append(time.perf_counter() - began)
    return statistics.quantiles(times[1:], n=100)  # the first one connects


async def _streams(sessions: list[aiohttp.ClientSession], url: str, events: int, pause: float) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(_call(sessions[n % len(sessions)], url, events, pause) for n in range(_STREAMS)))
    return time.perf_counter() - began


async def _call(session: aiohttp.ClientSession, url: str, events: int, pause: float = 0.0) -> float:
    """Read a stream to its end; return the seconds until its first byte."""
    body = {"model": "m", "stream": True, "messages": [], "n": events, "pause": pause}
    began = time.perf_counter()
    headers = {"Authorization": f"Bearer {_TOKEN}"}
    async with session.post(f"{url}/chat/completions", data=json.dumps(body), headers=headers) as answer:
        answer.raise_for_status()
        await answer.content.readany()
        first = time.perf_counter() - began
        async for _ in answer.content.iter_any():
            pass
    return first


@contextmanager
def _provider() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    child = subprocess.Popen([sys.executable, "-m", __spec__.name, str(port)])
    try:
        _until(lambda: socket.create_connection(("127.0.0.1", port)).close())
        yield port
    finally:
        child.kill()
        child.wait()


@contextmanager
def _gateways(folder: Path, port: int) -> Iterator[list[Path]]:
    children, sockets = [], []
    try:
        for number in range(_GATEWAYS):
            attempt = folder / str(number)
            (attempt / protocol.SERVICES).mkdir(parents=True)
            served = ModelProvider("openai", "openai", f"http://127.0.0.1:{port}/v1")
            order = order_without_run(
                competition_id="",
                prepared_dir="",
                conditions=conditions_without_run(1.0),
                providers=(served,),
                model_token=_TOKEN,
            )
            protocol.write(attempt / protocol.ORDER, order)
            secrets.leave_keys(attempt, {})
            children.append(
                subprocess.Popen(
                    [sys.executable, "-m", "mlebench_console.environment.runner.gateway", str(attempt)]
                )
            )
            sockets.append(attempt / protocol.SERVICES / protocol.GATEWAY_SOCKET)
        for path in sockets:
            _until(partial(Path.stat, path))
        yield sockets
    finally:
        for child in children:
            child.terminate()
        for number, child in enumerate(children):
            child.wait()
            secrets.discard(folder / str(number))


@contextmanager
def _relay(gateway: Path) -> Iterator[int]:
    """Yield the port by which an agent in a sandbox reaches its gateway."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    child = subprocess.Popen([sys.executable, relay.__file__, "--to", f"{port}:{gateway}"])
    try:
        _until(lambda: socket.create_connection(("127.0.0.1", port)).close())
        yield port
    finally:
        child.kill()
        child.wait()


@contextmanager
def _bare_processes(folder: Path, port: int) -> Iterator[list[Path]]:
    sockets = [folder / f"bare-{number}.sock" for number in range(_GATEWAYS)]
    command = (sys.executable, "-m", __spec__.name, str(port))
    children = [subprocess.Popen([*command, str(path)]) for path in sockets]
    try:
        for path in sockets:
            _until(partial(Path.stat, path))
        yield sockets
    finally:
        for child in children:
            child.kill()
            child.wait()


def _until(look: Callable[[], object]) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            look()
            return
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


async def _answer(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(asked["n"]):
        await response.write(
            b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"some words "}}]}\n\n'
        )
        if asked["pause"]:
            await asyncio.sleep(asked["pause"])
    await response.write(
        b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":5}}\n\ndata: [DONE]\n\n'
    )
    return response


def _serve(port: int) -> None:
    """Run the provider."""
    served = web.Application()
    served.router.add_post("/v1/chat/completions", _answer)
    web.run_app(served, host="127.0.0.1", port=port, print=None)


async def _pass_on(port: int, path: str) -> None:
    """Forward bytes without any processing."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            body = await request.read()
            async with session.post(f"http://127.0.0.1:{port}/v1/chat/completions", data=body) as upstream:
                response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                await response.prepare(request)
                async for chunk in upstream.content.iter_any():
                    await response.write(chunk)
                return response

        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.UnixSite(runner, path).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    port, *path = sys.argv[1:]
    if path:
        asyncio.run(_pass_on(int(port), *path))
    else:
        _serve(int(port))
