"""The official client libraries through the gateway: what they get, what they raise, and what is counted."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.environment.container import relay as relaying
from mlebench_console.environment.gateway import records
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.records import CallOutcome
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.gateway.keeper import GatewayKeeper
from tests.engine.harness import kill_holder
from tests.environment.gateway import official_clients as script
from tests.environment.gateway.provider import ARGUMENTS, KEY, TEXT, TOOL
from tests.environment.gateway.test_server import TOKEN, Start, start
from tests.environment.runner.orders import order_with

__all__ = ["start"]

_PATIENCE_SECONDS = 120.0
CALLED = [TOOL, ARGUMENTS]
OK, ESTIMATED = (CallOutcome.OK, False), (CallOutcome.OK, True)
ERROR = (CallOutcome.ERROR, False)

# What each call gives, and how it is counted; None where it is not, as it costs nothing.
Expected = dict[str, tuple[Any, tuple[CallOutcome, bool] | None]]
_USUAL: Expected = {
    **{f"{kind} {model}": (TEXT, OK) for model in ("plain", "pings", "huge") for kind in ("whole", "stream")},
    "tools": (CALLED, OK),
    "stream tools": (CALLED, OK),
    "image": (TEXT, OK),
    "count": (12, None),
    "models": (["plain"], None),
    "retried": (TEXT, OK),
    "busy": (429, ERROR),
    "broken": (503, ERROR),
    "cut": ("RemoteProtocolError", (CallOutcome.CUT, True)),
    "web search": (400, (CallOutcome.REFUSED, False)),
    "wrong key": (401, None),
}
_UNREPORTED: Expected = {f"{kind} no-usage": (TEXT, ESTIMATED) for kind in ("whole", "stream")}
_CANCELLED = (CallOutcome.CANCELLED, True)
EXPECTED: dict[str, Expected] = {
    "openai": {
        **{name: value for name, value in _USUAL.items() if name != "count"},
        **_UNREPORTED,
        "stream with usage": ([TEXT, 9], OK),
        "responses": (TEXT, OK),
        "stream responses": (TEXT, OK),
        "embeddings": (1, OK),
        "cancelled": ("assistant", _CANCELLED),
    },
    "anthropic": {**_USUAL, "cancelled": ("message_start", _CANCELLED)},
    "google-genai": {
        **{
            name: value
            for name, value in _USUAL.items()
            if name not in ("stream pings", "stream tools", "models", "retried")
        },
        **_UNREPORTED,
        "cancelled": ("Hel", _CANCELLED),
    },
    "litellm": {
        f"{kind} {dialect}": value
        for dialect in ("openai", "anthropic", "gemini")
        for kind, value in (("whole", (TEXT, OK)), ("stream", (TEXT, OK)), ("busy", (429, ERROR)))
    },
}


@pytest.mark.parametrize("library", script.LIBRARIES)
async def test_an_official_client_finds_nothing_between_it_and_its_provider(
    start: Start, official_clients: Path, library: str
) -> None:
    between = await start(drain_seconds=0.0)
    told = await _calls_by(official_clients, library, between.url)
    expected = EXPECTED[library]
    assert {name: _short(value) for name, value in told.items()} == {
        name: value for name, (value, _) in expected.items()
    }
    if library != "litellm":
        assert told["busy"]["retry_after"] == "7"
        assert "web-search" in told["web search"]["text"]
    counted = [call for name in told if (call := expected[name][1]) is not None]
    if "retried" in told:
        place = [name for name in told if expected[name][1] is not None].index("retried")
        counted.insert(place, ERROR)
    await _until(lambda: len(between.calls) >= len(counted))
    assert [(call.outcome, call.estimated) for call in between.calls] == counted
    exact = [call.usage for call in between.calls if (call.outcome, call.estimated) == OK]
    assert {usage.output_tokens for usage in exact} <= {9, 0}
    assert {usage.input_tokens for usage in exact} <= {20, 6}
    assert KEY not in json.dumps(told)


def _short(value: Any) -> Any:
    """What a call gave; of an error its status, or its name where it has none."""
    return (value["status"] or value["error"]) if isinstance(value, dict) and "error" in value else value


async def _calls_by(python: Path, library: str, url: str) -> dict[str, Any]:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        child = await _client(python, library, url)
        output, errors = await child.communicate()
    assert child.returncode == 0, errors.decode()
    return dict(map(json.loads, output.splitlines()))


async def _client(
    python: Path, library: str, url: str, *, before: Sequence[str] = (), folder: Path = Path("/")
) -> asyncio.subprocess.Process:
    own = {name: os.environ[name] for name in ("PATH", "HOME")}
    pipe = asyncio.subprocess.PIPE
    command = (*before, str(python), "-I", script.__file__, library, url, TOKEN)
    return await asyncio.create_subprocess_exec(*command, env=own, cwd=folder, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize("source", ["key", "key_file"])
async def test_a_killed_gateway_breaks_a_stream_off_and_the_next_call_is_served(
    start: Start, official_clients: Path, tmp_path: Path, source: str
) -> None:
    between = await start()
    served = between.gateway._providers["openai"]
    from_file = source == "key_file"
    (tmp_path / "key").write_text(KEY)
    served = replace(served, key_file=str(tmp_path / "key")) if from_file else replace(served, key="KEY")
    order = order_with(providers=(served,), model_token=TOKEN)
    attempt = tmp_path / "attempt"
    attempt.mkdir()
    protocol.write(attempt / protocol.ORDER, order)
    secrets.leave_keys(attempt, {} if from_file else {"KEY": KEY})
    keeper = GatewayKeeper(attempt, order)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # As in a sandbox, where the agent is started by what leads its calls out.
    relay = (sys.executable, relaying.__file__, f"--to={port}:{protocol.GATEWAY_SOCKET}", "--")
    try:
        assert keeper.start() == ""
        await _until(lambda: keeper.is_ready)
        child = await _client(
            official_clients,
            script.KILLED,
            f"http://localhost:{port}",
            before=relay,
            folder=attempt / protocol.SERVICES,
        )
        assert child.stdout is not None
        async with asyncio.timeout(_PATIENCE_SECONDS):
            begun = await child.stdout.readline()
        kill_holder(attempt / protocol.GATEWAY_LOCK)
        telling = asyncio.ensure_future(child.communicate())
        while not telling.done():
            keeper.keep()
            await asyncio.wait([telling], timeout=0.05)
        output, errors = await telling
    finally:
        await _until(keeper.end)
        secrets.discard(attempt)
    assert child.returncode == 0, errors.decode()
    told = dict(map(json.loads, [begun, *output.splitlines()]))
    assert (told["begun"], told["next"]) == ("assistant", TEXT)
    assert told["broken"]["error"] in ("RemoteProtocolError", "ReadError"), told
    calls = records.read_calls(attempt / protocol.MODEL_CALLS)
    assert [call.outcome for call in calls] == [CallOutcome.LOST, CallOutcome.OK]
    assert (calls[0].estimated, calls[1].usage) == (True, TokenUsage(20, 5, None, None, 9, 4))
    assert len(between.provider.asked) == 2


async def _until(look: Callable[[], Any]) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not look():
            await asyncio.sleep(0.02)
