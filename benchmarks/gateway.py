"""The model gateway: what it adds to calls, measured against the same calls made directly."""

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
from environment.runner import protocol, secrets
from environment.runner.docker.temporary import order_of_no_run
from environment.runner.protocol import ModelProvider

_STREAMS = 64
_GATEWAYS = 16
_EVENTS = 100
_PAUSE_SECONDS = 0.05  # between two events, as models write
_CALLS = 200
_PATIENCE_SECONDS = 120.0
_TOKEN = "sk-bench"


def measure(_rounds: int) -> list[Comparison | Reading]:
    """Measure single calls, and 64 streams at once through 16 gateways."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _provider() as port,
        _gateways(Path(folder), port) as sockets,
    ):
        return asyncio.run(_measure(port, sockets))


async def _measure(port: int, sockets: list[Path]) -> list[Comparison | Reading]:
    direct = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    by = [aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path), limit=0)) for path in sockets]
    there, here = f"http://127.0.0.1:{port}/v1", "http://localhost/openai/v1"
    try:
        for session in by:
            await _call(session, here, 1)
        single: dict[str, list[float]] = {name: [] for name in (there, here)}
        for _ in range(_CALLS):
            for session, url in ((direct, there), (by[0], here)):
                single[url].append(await _call(session, url, 1))
        added = statistics.median(single[here]) - statistics.median(single[there])
        alone = await _streams([direct], there)
        through = await _streams(by, here)
    finally:
        for session in (direct, *by):
            await session.close()
    streams = f"{_STREAMS} streams of {_EVENTS} events"
    return [
        Reading("gateway", "added to the first byte of a call, median", added * 1000, "ms", 5.0),
        Comparison("gateway", f"{streams} by {_GATEWAYS} gateways", through, "the same directly", alone, 1.1),
    ]


async def _streams(sessions: list[aiohttp.ClientSession], url: str) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(_call(sessions[n % len(sessions)], url, _EVENTS) for n in range(_STREAMS)))
    return time.perf_counter() - began


async def _call(session: aiohttp.ClientSession, url: str, events: int) -> float:
    """Read a stream to its end; returns the seconds until its first byte."""
    body = {"model": "m", "stream": True, "messages": [], "n": events}
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
            (attempt / protocol.GRADER).mkdir(parents=True)
            served = ModelProvider("openai", "openai", f"http://127.0.0.1:{port}/v1")
            order = order_of_no_run(
                competition_id="",
                prepared_dir="",
                time_limit_seconds=1.0,
                providers=(served,),
                model_token=_TOKEN,
            )
            protocol.write(attempt / protocol.ORDER, order)
            secrets.leave_keys(attempt, {})
            children.append(subprocess.Popen([sys.executable, "-m", "environment.gateway", str(attempt)]))
            sockets.append(attempt / protocol.GRADER / protocol.GATEWAY_SOCKET)
        for path in sockets:
            _until(partial(Path.stat, path))
        yield sockets
    finally:
        for child in children:
            child.terminate()
        for number, child in enumerate(children):
            child.wait()
            secrets.discard(folder / str(number))


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
    events = (await request.json())["n"]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(events):
        await response.write(
            b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"some words "}}]}\n\n'
        )
        if events > 1:
            await asyncio.sleep(_PAUSE_SECONDS)
    await response.write(
        b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":5}}\n\ndata: [DONE]\n\n'
    )
    return response


if __name__ == "__main__":
    served = web.Application()
    served.router.add_post("/v1/chat/completions", _answer)
    web.run_app(served, host="127.0.0.1", port=int(sys.argv[1]), print=None)
