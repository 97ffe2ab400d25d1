"""The gateway between an agent and a provider: what passes, what is counted, what never gets through."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from mlebench_console.environment.container.redaction import MARK
from mlebench_console.environment.gateway import records, server
from mlebench_console.environment.gateway.budget import SILENCE_SECONDS, Ledger, NoticeReader
from mlebench_console.environment.gateway.dialects import Grant, TokenUsage
from mlebench_console.environment.gateway.orders import BudgetNotice, ModelProvider
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.environment.gateway.rates import KeyRate
from mlebench_console.environment.gateway.recording import RecordedCall, Recorder
from mlebench_console.environment.gateway.records import CallOutcome, Journal, ModelCall
from mlebench_console.environment.gateway.server import Gateway
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.conditions import Budget
from tests.clocks import HandClock
from tests.environment.gateway import provider as loopback
from tests.environment.gateway.provider import GREEDY_INPUT, KEY, PIECES, TEXT, Provider

TOKEN = "sk-mlebench-worthless"
USAGE = TokenUsage(input_tokens=20, cached_tokens=5, output_tokens=9, reasoning_tokens=4)


@dataclass
class Between:
    """An agent's client, the gateway and a provider, all on localhost."""

    url: str
    provider: Provider
    folder: Path
    client: aiohttp.ClientSession
    gateway: Gateway
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {TOKEN}"})

    def post(self, path: str, body: Any, **options: Any) -> Any:
        return self.client.post(f"{self.url}{path}", data=json.dumps(body), headers=self.headers, **options)

    @property
    def calls(self) -> list[ModelCall]:
        return records.read_calls(self.folder / protocol.MODEL_CALLS)

    async def call(self) -> ModelCall:
        """Wait for the one call that is recorded when its answer has ended."""
        async with asyncio.timeout(30):
            while not self.calls:
                await asyncio.sleep(0.005)
        (call,) = self.calls
        return call


@asynccontextmanager
async def serving(runner: web.BaseRunner) -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await runner.cleanup()


Start = Callable[..., Awaitable[Between]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def begin(
            *,
            grants: frozenset[Grant] = frozenset(),
            url: str = "",
            drain_seconds: float = 5.0,
            budget: Budget | None = None,
            notices: NoticeReader | None = None,
            recorder: Recorder | None = None,
            rates: Mapping[str, KeyRate] | None = None,
            changed: Callable[[ModelProvider], ModelProvider] = lambda provider: provider,
            key: str = KEY,
        ) -> Between:
            provider = Provider()
            runner = web.AppRunner(provider.app(), shutdown_timeout=1.0)
            await runner.setup()
            there = url or await stack.enter_async_context(serving(runner))
            stack.callback(provider.go_on.set)  # before the server is closed, which waits for what hangs
            names = ("openai", "anthropic", "gemini")
            roots = {"openai": f"{there}/v1"}
            served = tuple(changed(ModelProvider(name, name, roots.get(name, there))) for name in names)
            prices = price_table({"greedy": TokenPrice(10, 10)})
            ledger = Ledger(budget or Budget(), prices, notices)
            journal = Journal(tmp_path, ledger.add)
            gateway = Gateway(
                served,
                journal,
                ledger,
                token=TOKEN,
                keys=dict.fromkeys(names, key),
                grants=grants,
                drain_seconds=drain_seconds,
                rates=rates,
                recorder=recorder,
            )
            own = await gateway.open()
            here = await stack.enter_async_context(serving(own))
            stack.push_async_callback(gateway.close)
            client = await stack.enter_async_context(aiohttp.ClientSession())
            return Between(here, provider, tmp_path, client, gateway)

        yield begin


MESSAGES = [{"role": "user", "content": "Say hello, please."}]
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/openai/v1/chat/completions", {"messages": MESSAGES}),
    "responses": ("/openai/v1/responses", {"input": "Say hello, please."}),
    "messages": ("/anthropic/v1/messages", {"messages": MESSAGES, "max_tokens": 100}),
    "generateContent": ("/gemini/v1beta/models/MODEL:VERB", {"contents": [{"parts": [{"text": "Hello?"}]}]}),
}


def asking(api: str, model: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
    path, body = CALLS[api]
    if api == "generateContent":
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return path.replace("MODEL", model).replace("VERB", verb), body
    return path, {"model": model, **body, **({"stream": True} if stream else {})}


def events_of(api: str, model: str) -> bytes:
    """The stream of a provider whose client has not asked for usage."""
    made = {
        "chat": lambda: loopback.chat({}, model, usage=True),
        "responses": lambda: loopback.responses(model, usage=True),
        "messages": lambda: loopback.messages(model, usage=True),
        "generateContent": lambda: loopback.gemini(model, usage=True),
    }
    return b"".join(made[api]()[1])


@pytest.mark.parametrize("api", CALLS)
@pytest.mark.parametrize("model", ["plain", "torn"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_passes_unchanged_and_its_usage_is_counted(
    start: Start, api: str, model: str, stream: bool
) -> None:
    between = await start()
    path, body = asking(api, model, stream=stream)
    async with between.post(path, body) as answer:
        content = await answer.read()
        assert answer.status == 200
        assert answer.headers["x-request-id"] == "req-1"
        assert "openai-organization" not in answer.headers
    if stream:
        assert content == events_of(api, model)
    call = await between.call()
    expected = USAGE
    if api == "messages":
        expected = TokenUsage(20, 5, 3, 2, 9)
    assert (call.usage, call.estimated, call.outcome) == (expected, False, CallOutcome.OK)
    assert (call.api, call.asked_model, call.model) == (api, model, f"{model}-2026")
    assert call.stop_reason in ("stop", "completed", "end_turn", "STOP")
    assert (call.status, call.stream) == (200, stream)
    assert call.first_seconds is not None
    assert 0 < call.first_seconds <= call.seconds


@pytest.mark.parametrize("stream", [False, True])
async def test_the_service_that_a_provider_names_is_recorded(start: Start, stream: bool) -> None:
    between = await start()
    path, body = asking("chat", "plain", stream=stream)
    async with between.post(path, {**body, "service_tier": "flex"}) as answer:
        await answer.read()
    assert (await between.call()).service_tier == "flex"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reports", [False, True])
async def test_a_cost_is_taken_only_from_a_provider_that_is_known_to_report_it(
    start: Start, stream: bool, reports: bool
) -> None:
    between = await start(changed=lambda provider: replace(provider, reports_cost=reports))
    async with between.post(*asking("chat", "costly", stream=stream)) as answer:
        await answer.read()
    assert (await between.call()).cost == (0.125 if reports else None)


async def test_a_client_that_asks_for_usage_gets_it(start: Start) -> None:
    between = await start()
    path, body = asking("chat", "plain", stream=True)
    async with between.post(path, {**body, "stream_options": {"include_usage": True}}) as answer:
        content = await answer.read()
    assert b'"completion_tokens": 9' in content
    assert (await between.call()).usage == USAGE


@pytest.mark.parametrize("api", CALLS)
@pytest.mark.parametrize("stream", [False, True])
async def test_usage_that_is_not_reported_is_estimated_and_marked(
    start: Start, api: str, stream: bool
) -> None:
    between = await start()
    async with between.post(*asking(api, "no-usage", stream=stream)) as answer:
        await answer.read()
    call = await between.call()
    assert call.estimated
    assert call.usage.input_tokens is not None
    assert call.usage.output_tokens is not None
    assert call.usage.input_tokens > 0
    assert call.usage.output_tokens >= len(TEXT) // 4


async def test_the_usage_at_the_end_of_a_huge_answer_is_found(start: Start) -> None:
    between = await start()
    async with between.post(*asking("chat", "huge", stream=False)) as answer:
        assert len(await answer.read()) > 6 << 20
    assert (await between.call()).usage == USAGE


async def test_embeddings_count_their_input_alone(start: Start) -> None:
    between = await start()
    async with between.post("/openai/v1/embeddings", {"model": "huge", "input": ["a", "b"]}) as answer:
        assert len(await answer.read()) > 4 << 20
    call = await between.call()
    assert (call.usage.input_tokens, call.usage.output_tokens, call.estimated) == (6, 0, False)


async def test_an_event_arrives_before_the_next_one_is_made(start: Start) -> None:
    between = await start()
    async with between.post(*asking("chat", "pause", stream=True)) as answer:
        first = await answer.content.readuntil(b"\n\n")
        second = await answer.content.readuntil(b"\n\n")
        assert PIECES[0].encode() in first + second
        between.provider.go_on.set()
        rest = await answer.read()
    assert first + second + rest == events_of("chat", "pause")


async def test_a_provider_that_wants_to_be_asked_later_is_heard(start: Start) -> None:
    between = await start()
    async with between.post(*asking("chat", "busy", stream=False)) as answer:
        content = await answer.read()
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert answer.headers["x-ratelimit-remaining-requests"] == "0"
        assert "Set-Cookie" not in answer.headers
    assert KEY.encode() not in content
    call = await between.call()
    assert (call.outcome, call.status, call.retry_after) == (CallOutcome.ERROR, 429, 7.0)
    assert call.usage == TokenUsage()
    assert "slow down" in call.problem
    assert KEY not in call.problem


async def test_a_stream_that_breaks_off_breaks_off_for_the_agent_too(start: Start) -> None:
    between = await start()
    with pytest.raises(aiohttp.ClientError):
        async with between.post(*asking("chat", "cut", stream=True)) as answer:
            await answer.read()
    call = await between.call()
    assert (call.outcome, call.estimated) == (CallOutcome.CUT, True)


async def test_what_a_cancelled_call_has_used_is_read_to_its_end(start: Start) -> None:
    between = await start()
    async with between.post(*asking("chat", "pause", stream=True)) as answer:
        await answer.content.readuntil(b"\n\n")
        assert answer.connection is not None
        answer.close()
    await between.provider.reached_pause.wait()
    between.provider.go_on.set()
    call = await between.call()
    assert (call.outcome, call.usage, call.estimated) == (CallOutcome.CANCELLED, USAGE, False)


async def test_a_provider_is_not_kept_busy_for_an_agent_that_has_gone(start: Start) -> None:
    between = await start(drain_seconds=0.0)
    async with between.post(*asking("messages", "hang", stream=True)) as answer:
        await answer.content.readuntil(b"\n\n")
        answer.close()
    call = await between.call()
    assert (call.outcome, call.estimated) == (CallOutcome.CANCELLED, True)
    assert call.usage.input_tokens == 20, "which the stream said at its beginning"
    assert between.provider.streams_ended == 0


async def test_a_provider_that_is_away_is_told_of_and_not_charged(start: Start) -> None:
    between = await start(url="http://127.0.0.1:1")
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 502
        assert "can't be reached" in (await answer.json())["error"]["message"]
    call = await between.call()
    assert (call.outcome, call.usage) == (CallOutcome.UNREACHABLE, TokenUsage())


async def test_no_connection_counts_only_if_another_process_finds_none_either(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = await start()

    def request(*_args: Any, **_options: Any) -> Any:
        raise aiohttp.ConnectionTimeoutError  # as in a process that an agent keeps busy

    monkeypatch.setattr(between.gateway._session, "request", request)
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 502
    assert (await between.call()).outcome is CallOutcome.CUT
    assert not between.provider.asked


@pytest.mark.parametrize(
    "content",
    [
        b'{"model": "plain", "messages": [' + b"[]," * (13 << 20) + b"[]]}",
        b'{"model": "plain", "tools": [' + b"{}," * 300_000 + b"{}]}",
        b'{"model": "' + b"search" * (6 << 20) + b'"}',
        b'{"model": "plain", "tools": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"model": "plain", "metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["values", "tools", "name", "depth", "abyss"],
)
async def test_a_body_that_takes_long_to_check_is_refused_and_delays_no_other_call(
    start: Start, content: bytes
) -> None:
    between = await start()
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0)
            longest = max(longest, time.monotonic() - before)

    url = f"{between.url}/openai/v1/chat/completions"
    async with aiohttp.ClientSession() as client:
        watching = asyncio.ensure_future(watch())
        sending = [client.post(url, data=BytesIO(content), headers=between.headers) for _ in range(3)]
        answers = await asyncio.gather(*sending)
        watching.cancel()
    assert {answer.status for answer in answers} == {400}
    assert longest < 1.0
    assert not between.provider.asked


@pytest.mark.parametrize("head", ["Content-Length: 66060288", "Transfer-Encoding: chunked"])
async def test_bodies_are_counted_before_they_are_read_and_refused_beyond_their_limit(
    start: Start, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    monkeypatch.setattr(server, "MAX_HELD_BYTES", 256 << 20 if "Length" in head else 1000)
    between = await start()
    first, piece = "POST /openai/v1/chat/completions HTTP/1.1", b"258\r\n" + b" " * 600 + b"\r\n"
    host, port = between.url.removeprefix("http://").split(":")
    lines = (first, "Host: localhost", f"Authorization: Bearer {TOKEN}", head, "", "")

    async def begin() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write("\r\n".join(lines).encode() + piece)
        return reader, writer

    open_ones = [await begin() for _ in range(50)]
    waiting = [asyncio.ensure_future(reader.readline()) for reader, _ in open_ones]
    kept = 4 if "Length" in head else 1
    async with asyncio.timeout(20):
        while sum(one.done() for one in waiting) < 50 - kept:
            await asyncio.sleep(0.01)
    assert {one.result() for one in waiting if one.done()} == {b"HTTP/1.1 429 Too Many Requests\r\n"}
    for one in waiting:
        one.cancel()
    for _, writer in open_ones:
        writer.close()
    async with asyncio.timeout(20):
        while between.gateway._held_bytes:
            await asyncio.sleep(0.01)
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 200
    assert between.gateway._held_bytes == 0


async def test_a_redirect_is_not_followed_with_the_key(start: Start) -> None:
    between = await start()
    async with between.post(*asking("chat", "elsewhere", stream=False)) as answer:
        assert answer.status == 502
        assert "Location" not in answer.headers
    assert (await between.call()).problem == "The provider redirects to another address with status 307."
    assert len(between.provider.asked) == 1


@pytest.mark.parametrize("api", CALLS)
async def test_the_key_goes_to_the_provider_and_nowhere_else(start: Start, api: str) -> None:
    between = await start()
    between.headers |= {
        "x-api-key": TOKEN,
        "x-goog-api-key": TOKEN,
        "X-Forwarded-Host": "evil.example",
        "OpenAI-Organization": "mine",
        "Cookie": "a=b",
        "Proxy-Authorization": "Basic eA==",
        "Host": "evil.example",
    }
    async with between.post(*asking(api, "plain", stream=False)) as answer:
        seen = f"{answer.headers}{await answer.text()}"
    (asked,) = between.provider.asked
    assert KEY in asked.headers.values() or f"Bearer {KEY}" in asked.headers.values()
    assert TOKEN not in str(asked.headers)
    assert not {"Cookie", "X-Forwarded-Host", "OpenAI-Organization", "Proxy-Authorization"} & set(
        asked.headers
    )
    assert "evil" not in str(asked.headers)
    assert KEY not in seen
    await between.call()
    assert all(KEY not in path.read_text() for path in between.folder.iterdir())


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_that_repeats_headers_gives_no_key_away(start: Start, stream: bool) -> None:
    between = await start()
    async with between.post(*asking("chat", "echo", stream=stream)) as answer:
        content = await answer.text()
        assert answer.headers["x-request-id"] == f"for {MARK}"
    assert content.count(f"{MARK}{MARK} is not {KEY[:-1]}") == 2
    assert KEY not in content
    call = await between.call()
    assert (call.usage, KEY in call.model) == (USAGE, False)


async def test_a_wrong_key_of_the_operator_is_told_without_the_provider_s_words(start: Start) -> None:
    between = await start()
    between.gateway._keys = {"openai": "old-key"}
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 401
        assert "old-key" not in await answer.text()
    assert "old-key" not in (await between.call()).problem


@pytest.mark.parametrize("key", ["", "sk-other", "Bearer"])
async def test_without_the_run_s_token_nothing_is_served(start: Start, key: str) -> None:
    between = await start()
    between.headers = {"Authorization": f"Bearer {key}"}
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 401
    assert not between.provider.asked


@pytest.mark.parametrize(
    "target",
    [
        "/openai/v1/files",
        "/openai/v1/chat/completions/../files",
        "/openai/v1//chat/completions",
        "/openai/v1/chat%2Fcompletions",
        "/openai/v1/responses/resp_1",
        "/openai/v1/chat/completions?api-base=http://evil.example",
        "/anthropic/v1/files",
        "/gemini/v1beta/files",
        "/gemini/v1beta/cachedContents",
        "/gemini/v1beta/models/../files:generateContent",
        "/gemini/v1beta/models/plain:generateContent?alt=sse&alt=json",
        "/gemini/v1beta/models/plain:generateContent?$httpHeaders=x",
        "/elsewhere/v1/chat/completions",
        "http://evil.example/openai/v1/chat/completions",
        "//evil.example/v1/chat/completions",
        "@evil.example/v1/chat/completions",
    ],
)
async def test_no_other_path_is_passed_on(start: Start, target: str) -> None:
    between = await start()
    head, body = await raw(between, f"POST {target} HTTP/1.1", "Content-Length: 2", content=b"{}")
    assert head.split()[1] in (b"400", b"404"), head
    if target == "/openai/v1/files":
        assert b"only chat/completions, responses, completions, embeddings and models" in body
    assert not between.provider.asked
    assert KEY.encode() not in head + body


async def raw(between: Between, first: str, *lines: str, content: bytes) -> tuple[bytes, bytes]:
    """Send bytes as they are, and return the answer's head and body."""
    host, port = between.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    own = ("Host: localhost", f"Authorization: Bearer {TOKEN}", "Connection: close")
    writer.write("\r\n".join([first, *own, *lines, "", ""]).encode() + content)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


SMUGGLED = b"POST /openai/v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding : chunked",),
        ("Content-Length: +5",),
    ],
)
async def test_a_request_in_a_request_reaches_no_provider(start: Start, lines: tuple[str, ...]) -> None:
    between = await start()
    first = "POST /openai/v1/chat/completions HTTP/1.1"
    await raw(between, first, *lines, content=b"0\r\n\r\n" + SMUGGLED)
    assert not between.provider.asked


async def test_what_is_checked_is_what_is_sent(start: Start) -> None:
    between = await start()
    body = b'{"model":"plain","messages":[],"tools":[{"type":"web_search"}],"tools":[]}'
    url = f"{between.url}/openai/v1/chat/completions"
    async with between.client.post(url, data=body, headers=between.headers) as answer:
        assert answer.status == 200
    (asked,) = between.provider.asked
    assert asked.body["tools"] == []


REMOTE = {"type": "image_url", "image_url": {"url": "http://evil.example/x.png"}}
URL_SOURCE = {"type": "image", "source": {"type": "url", "url": "https://evil.example"}}
REFUSED: list[tuple[str, dict[str, Any], Grant | None]] = [
    ("chat", {"web_search_options": {"search_context_size": "low"}}, Grant.WEB_SEARCH),
    ("chat", {"tools": [{"type": "web_search_preview"}]}, Grant.WEB_SEARCH),
    ("chat", {"model": "gpt-4o-search-preview"}, Grant.WEB_SEARCH),
    ("chat", {"model": "a/b:online"}, Grant.WEB_SEARCH),
    ("chat", {"models": ["perplexity/sonar"]}, Grant.WEB_SEARCH),
    ("chat", {"plugins": [{"id": "web"}]}, None),
    ("chat", {"messages": [{"role": "user", "content": [REMOTE]}]}, Grant.REMOTE_URLS),
    (
        "responses",
        {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
        Grant.CODE_EXECUTION,
    ),
    ("responses", {"tools": [{"type": "mcp", "server_url": "https://evil.example"}]}, Grant.MCP),
    ("responses", {"prompt": {"id": "pmpt_1"}}, None),
    ("chat", {"api_base": "https://evil.example"}, None),
    ("responses", {"background": True}, None),
    ("responses", {"input": [{"type": "input_file", "file_url": "https://evil.example"}]}, Grant.REMOTE_URLS),
    ("messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, Grant.WEB_SEARCH),
    ("messages", {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, Grant.WEB_SEARCH),
    ("messages", {"tools": [{"type": "code_execution_20250825", "name": "x"}]}, Grant.CODE_EXECUTION),
    ("messages", {"mcp_servers": [{"type": "url", "name": "x"}]}, Grant.MCP),
    ("messages", {"messages": [{"role": "user", "content": [URL_SOURCE]}]}, Grant.REMOTE_URLS),
    ("generateContent", {"tools": [{"googleSearch": {}}]}, Grant.WEB_SEARCH),
    ("generateContent", {"tools": [{"google_search": {}}]}, Grant.WEB_SEARCH),
    ("generateContent", {"tools": {"urlContext": {}}}, Grant.WEB_SEARCH),
    ("generateContent", {"tools": [{"functionDeclarations": [], "codeExecution": {}}]}, Grant.CODE_EXECUTION),
    ("generateContent", {"cachedContent": "cachedContents/1"}, None),
    (
        "generateContent",
        {"contents": [{"parts": [{"file_data": {"file_uri": "https://evil.example"}}]}]},
        Grant.REMOTE_URLS,
    ),
]


@pytest.mark.parametrize(("api", "more", "grant"), REFUSED)
async def test_what_reaches_the_web_through_a_provider_is_refused_unless_granted(
    start: Start, api: str, more: dict[str, Any], grant: Grant | None
) -> None:
    between = await start(grants=frozenset(Grant) - {grant} if grant else frozenset(Grant))
    path, body = asking(api, "plain", stream=False)
    async with between.post(path, {**body, **more}) as answer:
        assert answer.status == 400
        text = await answer.text()
    assert not between.provider.asked
    call = await between.call()
    assert call.outcome is CallOutcome.REFUSED
    assert call.asked_model == more.get("model", "plain")
    if grant is not None:
        assert grant in text
        between.gateway._grants = frozenset({grant})
        async with between.post(path, {**body, **more}) as answer:
            assert answer.status == 200


HARMLESS: list[tuple[str, dict[str, Any]]] = [
    (
        "chat",
        {"tools": [{"type": "function", "function": {"name": "url", "parameters": {"url": "http://x"}}}]},
    ),
    ("chat", {"messages": [{"role": "user", "content": "look at https://example.org"}]}),
    (
        "chat",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x,"}}]}]},
    ),
    (
        "messages",
        {
            "messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "input": {"url": "https://x"}}]}
            ],
            "tools": [{"name": "own", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}],
        },
    ),
    ("responses", {"input": [{"type": "function_call", "arguments": '{"url": "https://x"}'}]}),
    (
        "generateContent",
        {
            "contents": [{"parts": [{"functionCall": {"name": "f", "args": {"url": "https://x"}}}]}],
            "tools": [{"functionDeclarations": [{"name": "f"}]}],
        },
    ),
]


@pytest.mark.parametrize(("api", "more"), HARMLESS)
async def test_what_the_agent_does_itself_is_passed_on(start: Start, api: str, more: dict[str, Any]) -> None:
    between = await start()
    path, body = asking(api, "plain", stream=False)
    async with between.post(path, {**body, **more}) as answer:
        assert answer.status == 200, await answer.text()


async def test_what_a_granted_search_has_found_can_be_sent_again(start: Start) -> None:
    found = {"type": "web_search_call", "action": {"type": "open_page", "url": "https://example.org"}}
    path, body = asking("responses", "plain", stream=False)
    for grants, status in ((frozenset({Grant.WEB_SEARCH}), 200), (frozenset[Grant](), 400)):
        between = await start(grants=grants)
        async with between.post(path, {**body, "input": [found]}) as answer:
            assert answer.status == status


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": ' + b"[" * 5000, b'{"model": "\xff"}', b"\0"])
async def test_what_is_no_request_is_answered_as_a_provider_would(start: Start, content: bytes) -> None:
    between = await start()
    url = f"{between.url}/anthropic/v1/messages"
    async with between.client.post(url, data=content, headers=between.headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["type"] == "invalid_request_error"
    assert not between.provider.asked


async def test_refusals_fill_no_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_REFUSALS", 3)
    between = await start()
    for _ in range(5):
        async with between.post("/openai/v1/chat/completions", []) as answer:
            assert answer.status == 400
    assert len(between.calls) == 3


async def test_a_call_that_can_t_be_recorded_is_not_made(start: Start) -> None:
    between = await start()
    (between.folder / protocol.OPEN_CALLS).mkdir()
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 503
    assert not between.provider.asked


async def test_a_connection_serves_several_calls(start: Start) -> None:
    between = await start()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as client:
        between.client = client
        for stream in (False, True, False):
            async with between.post(*asking("chat", "plain", stream=stream)) as answer:
                assert answer.status == 200
                await answer.read()
                assert answer.headers.get("Connection", "keep-alive") != "close"


@pytest.mark.parametrize(
    ("api", "status", "word"),
    [
        ("chat", 429, "insufficient_quota"),
        ("responses", 429, "insufficient_quota"),
        ("messages", 400, "invalid_request_error"),
        ("generateContent", 429, "RESOURCE_EXHAUSTED"),
    ],
)
async def test_a_used_up_budget_is_answered_as_the_provider_would(
    start: Start, api: str, status: int, word: str
) -> None:
    between = await start(budget=Budget(calls=1))
    async with between.post(*asking(api, "plain", stream=False)) as answer:
        assert answer.status == 200
    async with between.post(*asking(api, "plain", stream=False)) as answer:
        assert answer.status == status
        assert word in await answer.text()
        assert answer.headers["x-should-retry"] == "false"
    assert len(between.provider.asked) == 1
    assert [call.outcome for call in between.calls] == [CallOutcome.OK, CallOutcome.BUDGET]


LIMITS: dict[str, dict[str, Any]] = {
    "chat": {"max_completion_tokens": 20_000},
    "responses": {"max_output_tokens": 20_000},
    "messages": {"max_tokens": 20_000},
    "generateContent": {"generationConfig": {"maxOutputTokens": 20_000}},
}
# Limits that a provider ignores, or reads otherwise than they were meant.
NO_LIMITS: dict[str, list[dict[str, Any]]] = {
    "chat": [{}, {"max_output_tokens": 1}, {"max_tokens": None}, {"max_tokens": 0}],
    "responses": [{}, {"max_tokens": 1}],
    "messages": [{"max_tokens": -1}, {"max_completion_tokens": 1}],
    "generateContent": [{}, {"generation_config": {"max_output_tokens": 1e9}}, {"max_tokens": 1}],
}


@pytest.mark.parametrize("api", LIMITS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("budget", [Budget(usd=1.0), Budget(tokens=100_000)])
@pytest.mark.parametrize("states_limit", [True, False])
async def test_calls_at_once_exceed_no_budget_by_more_than_their_prompts(
    start: Start, api: str, stream: bool, budget: Budget, states_limit: bool
) -> None:
    between = await start(budget=budget)
    path, body = asking(api, "greedy", stream=stream)
    body.pop("max_tokens", None)
    wanted = [LIMITS[api]] if states_limit else NO_LIMITS[api]
    asked = [{**body, **wanted[number % len(wanted)]} for number in range(16)]
    answers = await asyncio.gather(*(answered(between, path, each) for each in asked))
    sent = [call for call in between.calls if call.outcome is CallOutcome.OK]
    assert {status for status, _, _ in answers} == {200, 400 if api == "messages" else 429}
    assert len(sent) >= 4
    used = sum((call.usage.input_tokens or 0) + (call.usage.output_tokens or 0) for call in sent)
    assert 80_000 < used <= 100_000 + len(sent) * GREEDY_INPUT


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("states_limit", [True, False])
async def test_a_shared_budget_is_exceeded_at_most_by_what_is_under_way_when_the_engine_says_that_it_is_used_up(
    start: Start, tmp_path: Path, stream: bool, states_limit: bool
) -> None:
    notice = tmp_path / protocol.SHARED_BUDGET
    protocol.write(notice, BudgetNotice(1.0, "", in_money=False))
    between = await start(notices=NoticeReader(tmp_path))
    path, body = asking("chat", "greedy", stream=stream)
    body |= LIMITS["chat"] if states_limit else {}
    under_way = [asyncio.ensure_future(answered(between, path, body)) for _ in range(16)]
    async with asyncio.timeout(30):
        while len(between.provider.asked) < 16:
            await asyncio.sleep(0.001)
    protocol.write(notice, BudgetNotice(2.0, "the sweep s", in_money=False))
    later = await asyncio.gather(*(answered(between, path, body) for _ in range(16)))
    assert [status for status, _, _ in (*await asyncio.gather(*under_way), *later)] == [200] * 16 + [429] * 16
    assert len(between.provider.asked) == 16


async def test_a_call_for_several_answers_counts_them_all(start: Start) -> None:
    between = await start(budget=Budget(tokens=5_000))
    path, body = asking("chat", "greedy", stream=False)
    many = {**body, "n": 128, "max_tokens": 16}
    answers = await asyncio.gather(*(answered(between, path, many) for _ in range(100)))
    assert sorted(status for status, _, _ in answers) == [200] * 2 + [429] * 98
    async with between.post(path, {**body, "n": 128.0}) as answer:
        assert answer.status == 400


async def test_a_shared_budget_is_answered_alike_and_the_silence_of_the_engine_as_a_failing_server(
    start: Start, tmp_path: Path
) -> None:
    clock = HandClock()
    notice = tmp_path / protocol.SHARED_BUDGET
    protocol.write(notice, BudgetNotice(1.0, "the sweep s", in_money=False))
    between = await start(notices=NoticeReader(tmp_path, clock.monotonic))
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert (answer.status, answer.headers["x-should-retry"]) == (429, "false")
        assert "The budget of the sweep s is used up." in await answer.text()
    protocol.write(notice, BudgetNotice(2.0, "", in_money=False))
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 200
    clock.moment += SILENCE_SECONDS + 1
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 503
        assert "x-should-retry" not in answer.headers
        assert "server_error" in await answer.text()
    assert len(between.provider.asked) == 1
    outcomes = [CallOutcome.SHARED_BUDGET, CallOutcome.OK, CallOutcome.REFUSED]
    assert [call.outcome for call in between.calls] == outcomes


async def test_models_are_listed_and_cost_nothing(start: Start) -> None:
    between = await start()
    async with between.client.get(f"{between.url}/openai/v1/models", headers=between.headers) as answer:
        assert answer.status == 200
    assert not between.calls


def test_a_call_under_way_when_the_gateway_died_counts_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    done = records.OpenCall("1", 1.0, "openai", "chat", "plain", False, 100, 80)
    journal.begin(done)
    journal.end(ModelCall("1", 1.0, "openai", "chat", CallOutcome.OK, usage=USAGE))
    journal.begin(records.OpenCall("2", 2.0, "openai", "chat", "plain", True, 100, 80))
    for _ in range(2):
        counted: list[ModelCall] = []
        Journal(tmp_path, counted.append)
        assert [call.usage.input_tokens for call in counted] == [USAGE.input_tokens, 20]
    kept = {call.id: call for call in records.read_calls(tmp_path / protocol.MODEL_CALLS)}
    assert kept["1"].usage == USAGE
    assert (kept["2"].outcome, kept["2"].estimated) == (CallOutcome.LOST, True)


async def answered(between: Between, path: str, body: Any) -> tuple[int, bytes, bool]:
    """The status and what came of an answer, and whether it came to its end."""
    async with between.post(path, body) as answer:
        content = b""
        try:
            async for piece in answer.content.iter_any():
                content += piece
        except aiohttp.ClientError:
            return answer.status, content, False
        return answer.status, content, True


def recorded(path: Path) -> list[RecordedCall]:
    return [msgspec.convert(line, RecordedCall) for line in jsonlines.read(path).values]


async def test_a_recording_has_what_was_asked_and_answered_without_secrets(
    start: Start, tmp_path: Path
) -> None:
    recording = tmp_path / protocol.RECORDED_CALLS
    between = await start(recorder=Recorder(recording, [KEY, TOKEN]))
    asked = [
        asking("chat", "plain", stream=True),
        asking("messages", "plain", stream=False),
        asking("responses", "cut", stream=True),
        asking("generateContent", "busy", stream=False),
        ("/openai/v1/chat/completions", {"model": "plain", "messages": [{"role": "user", "content": TOKEN}]}),
    ]
    answers = [await answered(between, *each) for each in asked]
    assert [status for status, _, _ in answers] == [200, 200, 200, 429, 200]
    assert [call.recorded for call in between.calls] == ["whole"] * 5
    found = recorded(recording)
    contents = [zlib.decompress(call.answer) for call in found]
    assert [
        (call.status, content, call.is_whole) for call, content in zip(found, contents, strict=True)
    ] == answers
    assert [call.at for call in found] == sorted(call.at for call in found)
    requests = [zlib.decompress(call.request) for call in found]
    assert json.loads(requests[1]) == asked[1][1]
    assert MARK.encode() in requests[-1]
    secrets = [secret.encode() for secret in (KEY, TOKEN)]
    assert not any(
        secret in text for secret in secrets for text in (*requests, *contents, recording.read_bytes())
    )


async def test_what_a_recording_has_no_room_for_is_marked(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / protocol.RECORDED_CALLS
    between = await start(recorder=Recorder(recording, []))
    await answered(between, *asking("chat", "huge", stream=False))
    (kept,) = recorded(recording)
    assert (kept.kept, kept.answer_bytes > 6 << 20) == ("cut", True)
    assert len(zlib.decompress(kept.answer)) == 4 << 20
    monkeypatch.setattr("mlebench_console.environment.gateway.recording.MOST_FILE_BYTES", 10)
    await answered(between, *asking("chat", "plain", stream=False))
    assert [call.recorded for call in between.calls] == ["cut", "nothing"]
    assert len(recorded(recording)) == 1


async def test_a_call_waits_for_its_turn_says_so_and_one_that_is_given_up_is_never_sent(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "key.rate"
    clock = HandClock()
    rate = KeyRate(path, "own", requests=6, tokens=600_000, clock=clock.monotonic)
    other = KeyRate(path, "other", requests=6, tokens=600_000, clock=clock.monotonic)
    between = await start(rates={"openai": rate})
    asked = asking("chat", "plain", stream=False)
    await answered(between, *asked)
    given_up = asyncio.ensure_future(answered(between, *asked))

    def states() -> list[str]:
        return [call.state for call in records.read_open(tmp_path / protocol.OPEN_CALLS)]

    async with asyncio.timeout(30):
        while states() != ["sent", "waiting"]:
            await asyncio.sleep(0.005)
        given_up.cancel()
        while states() != ["sent", "left"]:
            await asyncio.sleep(0.005)
        clock.moment += 10
        assert other.take(0) is None  # it left its turn
        waiting = asyncio.ensure_future(answered(between, *asked))
        while states() != ["sent", "left", "waiting"]:
            await asyncio.sleep(0.005)
        clock.moment += 10
        assert (await waiting)[0] == 200
    assert len(between.provider.asked) == 2
    assert [call.waited > 0 for call in between.calls] == [False, True]
