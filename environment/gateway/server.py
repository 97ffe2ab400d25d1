"""The gateway's server: receives an agent's calls, sends them to providers, and forwards the answers as they come.

No part of an agent's request is forwarded verbatim: the address is the operator's, headers come from a short list, and
the body is encoded again from the checked values. So an agent can neither choose where a key is sent nor hide one
request in another.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from mlebench_console.environment.container.redaction import StreamRedactor, redacted_text
from mlebench_console.environment.gateway import dialects, probe
from mlebench_console.environment.gateway.budget import Ledger
from mlebench_console.environment.gateway.dialects import (
    AnswerReader,
    Api,
    CheckedCall,
    Dialect,
    ErrorKind,
    EventStream,
    Grant,
    RefusedCall,
    TokenUsage,
)
from mlebench_console.environment.gateway.keys import key_headers, read_key
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.gateway.rates import KeyRate
from mlebench_console.environment.gateway.recording import RecordedCall, Recorder
from mlebench_console.environment.gateway.records import (
    CallOutcome,
    Journal,
    ModelCall,
    OpenCall,
    OpenState,
    estimated_tokens,
    new_id,
)
from mlebench_console.foundation.backoff import seconds_asked
from mlebench_console.foundation.problems import EnvironmentProblem

MAX_REQUEST_BYTES = 64 << 20
MAX_HELD_BYTES = 256 << 20  # of the bodies of all requests together
DRAIN_SECONDS = 10.0  # for an answer to end and report its usage after the agent has closed the connection
_READ_ANSWER_BYTES = 4 << 20
_TAIL_BYTES = 64 << 10
_MAX_EVENT_BYTES = 8 << 20
_MAX_ERROR_BYTES = 1 << 20
_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 3600.0  # models may reason for long without sending anything
_SHUTDOWN_SECONDS = 1.0
_RENEWAL_SECONDS = 10.0  # between two reads of a key that is refused
_LOG = logging.getLogger(__name__)
_USUAL_OUTPUT_TOKENS = 1024  # taken from the tokens per minute for a call without a limit, until it has ended
_SETTLE_TRIES, _SETTLE_SECONDS = 20, 0.01
_PROBLEM_CHARACTERS = 300
_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"

_FORWARDED_HEADERS = (
    *("accept", "user-agent", "anthropic-version", "anthropic-beta", "openai-beta", "x-goog-api-client"),
    *("http-referer", "x-title"),
)
_RETURNED_HEADERS = frozenset(
    {
        *("content-type", "request-id", "x-request-id", "retry-after", "retry-after-ms", "x-should-retry"),
        *("openai-processing-ms", "openai-model", "openai-version"),
    }
)
_RETURNED_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")


class _UnreadBody(RefusedCall):
    """A call is refused for the size of its body, which is not read to its end."""


@dataclass
class _Call:
    """A call while it is under way."""

    provider: ModelProvider
    sent: CheckedCall
    query: dict[str, str]
    id: str = field(default_factory=new_id)
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.monotonic)
    status: int = 0
    answer_bytes: int = 0
    first_seconds: float | None = None
    retry_after: float | None = None
    waits: bool = False
    waited: float = 0.0
    taken: int = 0
    held: int = 0  # bytes of the request's body, counted before they are read
    recording: RecordedCall | None = None
    # The agent has closed the connection; then a part of the answer may be undelivered.
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    undelivered: bool = False

    def begun(self) -> OpenCall:
        return OpenCall(
            self.id,
            self.at,
            self.provider.name,
            str(self.sent.api),
            self.sent.model,
            self.sent.stream,
            len(self.sent.content),
            self.sent.input_characters,
        )

    def ended(self, outcome: CallOutcome, answer: AnswerReader, problem: str = "") -> ModelCall:
        usage, is_estimated = self._usage(outcome, answer)
        return replace(
            self.begun().ended(outcome),
            model=answer.model,
            status=self.status,
            stop_reason=answer.stop_reason,
            service_tier=answer.service_tier,
            usage=usage,
            estimated=is_estimated,
            cost=answer.cost if self.provider.reports_cost else None,
            first_seconds=None if self.first_seconds is None else round(self.first_seconds, 4),
            seconds=round(time.monotonic() - self.began, 4),
            answer_bytes=self.answer_bytes,
            retry_after=self.retry_after,
            waited=round(self.waited, 4),
            problem=(problem or answer.error)[:_PROBLEM_CHARACTERS],
        )

    def _usage(self, outcome: CallOutcome, answer: AnswerReader) -> tuple[TokenUsage, bool]:
        """Return a call's usage, and whether it is an estimate."""
        reported = answer.usage
        has_worked = outcome in (CallOutcome.OK, CallOutcome.CUT, CallOutcome.CANCELLED)
        is_complete = outcome is CallOutcome.OK or bool(answer.stop_reason)
        if not has_worked or self.sent.api is Api.UNCOUNTED or (reported.is_known and is_complete):
            return reported, False
        seen = 0 if self.sent.api is Api.EMBEDDINGS else estimated_tokens(answer.characters)
        reckoned = replace(
            reported,
            input_tokens=(
                estimated_tokens(self.sent.input_characters)
                if reported.input_tokens is None
                else reported.input_tokens
            ),
            output_tokens=max(reported.output_tokens or 0, seen),
        )
        return reckoned, True


class Gateway:
    """Serves one agent."""

    def __init__(
        self,
        providers: Sequence[ModelProvider],
        journal: Journal,
        ledger: Ledger,
        *,
        token: str,
        keys: Mapping[str, str],
        grants: frozenset[Grant] = frozenset(),
        drain_seconds: float = DRAIN_SECONDS,
        rates: Mapping[str, KeyRate] | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Configure it.

        Args:
            providers: those that the agent may call.
            journal: records the calls.
            ledger: admits them.
            token: the agent's substitute for a key.
            keys: the operator's keys by provider; none for a provider that needs none.
            grants: what providers may do besides answering.
            drain_seconds: for how long an answer is read after its agent has left.
            rates: the rate limits of providers that have one.
            recorder: keeps requests and answers; None without a recording.
        """
        self._token = token.encode()
        self._keys = dict(keys)
        self._renewals = {provider.name: asyncio.Lock() for provider in providers}
        self._renewed_at: dict[str, float] = {}
        self._grants = grants
        self._ledger = ledger
        self._recorder = recorder
        self._providers = {provider.name: provider for provider in providers}
        self._journal = journal
        self._drain_seconds = drain_seconds
        self._rates = rates or {}
        self._turns = {name: asyncio.Lock() for name in self._rates}
        self._held_bytes = 0
        # One, since checks share the interpreter's lock with the server anyway.
        self._checks = ThreadPoolExecutor(1, thread_name_prefix="bodies")
        self._probes: dict[str, asyncio.Future[bool]] = {}
        self._sending: set[asyncio.Task[web.StreamResponse]] = set()
        self._session: aiohttp.ClientSession

    async def open(self) -> web.ServerRunner:
        """Start the server; the caller binds it to a socket."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=timeout,
            skip_auto_headers=("User-Agent", "Accept"),
        )
        server = web.Server(
            # A compressed body could be far larger than what is counted of it.
            self._answer,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
        )
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        return runner

    async def close(self) -> None:
        """End all calls under way."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self._session.close()
        self._checks.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one call."""
        provider: ModelProvider | None = None
        call: _Call | None = None
        try:
            provider, path = self._provider_of(request)
            self._check_token(request)
            call = self._call_to(request, provider, path)
            if self._journal.is_full:
                raise RefusedCall("the record of this run's model calls is full", ErrorKind.QUOTA, 429)
            if request.method == "POST":
                content = await self._read_body(request, call)
                call.sent = await self._off_loop(
                    partial(
                        dialects.checked_request,
                        call.sent,
                        content,
                        self._grants,
                        include_usage=provider.include_usage,
                    )
                )
                del content
            await self._wait_to_send(call)
        except BaseException as error:
            # Nothing was sent: it may not be, it can't be recorded, or the agent has closed the connection.
            if call is not None:
                self._held_bytes -= call.held
                self._ledger.release(call.id)
            if isinstance(error, RefusedCall):
                return self._refuse(provider, call, error)
            if isinstance(error, OSError):
                text = f"the gateway can't record this call: {error.strerror}"
                return self._refuse(provider, None, RefusedCall(text, ErrorKind.SERVER, 503))
            raise
        if self._recorder is not None:
            call.recording = RecordedCall(
                id=call.id,
                at=call.at,
                provider=provider.name,
                method=request.method,
                path=call.sent.path,
                query=call.query,
                request=call.sent.content,
            )
        # A task of its own, so that the end of an answer is still read after the agent has closed the connection.
        sending = asyncio.ensure_future(self._send(request, call))
        self._sending.add(sending)

        def done(task: asyncio.Task[web.StreamResponse]) -> None:
            self._sending.discard(task)
            self._held_bytes -= call.held

        sending.add_done_callback(done)
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            call.gone.set()
            asyncio.get_running_loop().call_later(self._drain_seconds, sending.cancel)
            raise

    def _provider_of(self, request: web.BaseRequest) -> tuple[ModelProvider, str]:
        """Return which provider a request is for, and the path below it.

        Raises:
            RefusedCall: there is none.
        """
        target = request.raw_path
        name, _, path = target.removeprefix("/").partition("/")
        provider = self._providers.get(name)
        if not target.startswith("/") or provider is None:
            served = ", ".join(f"/{name}" for name in self._providers)
            raise RefusedCall(f"the gateway serves {served} and nothing else", status=404)
        return provider, f"/{path.partition('?')[0]}"

    def _check_token(self, request: web.BaseRequest) -> None:
        """Refuse a request without the token of this run."""
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        given = (
            bearer.strip() if scheme.lower() == "bearer" else "",
            request.headers.get("x-api-key", ""),
            request.headers.get("x-goog-api-key", ""),
            request.query.get("key", ""),
        )
        if not any(hmac.compare_digest(text.encode("utf-8", "replace"), self._token) for text in given):
            raise RefusedCall("this is not the key that this run was given", ErrorKind.KEY, 401)

    def _call_to(self, request: web.BaseRequest, provider: ModelProvider, path: str) -> _Call:
        """Return the call of a request, without its body.

        Raises:
            RefusedCall: the gateway does not forward such calls.
        """
        if len(request.query) != len(set(request.query)):
            raise RefusedCall("a query parameter is given twice", status=404)
        route = dialects.route(Dialect(provider.dialect), request.method, path)
        return _Call(provider, route, dialects.checked_query(request.query))

    async def _read_body(self, request: web.BaseRequest, call: _Call) -> bytearray:
        """Return the body of a request.

        Raises:
            RefusedCall: it is too large, or all bodies together are.
        """
        content = bytearray()
        self._hold(call, request.content_length or 0)
        async for chunk in request.content.iter_any():
            content += chunk
            self._hold(call, len(content))
        return content

    def _hold(self, call: _Call, size: int) -> None:
        """Count the body of a call, as far as its size is known."""
        more = max(0, size - call.held)
        if size > MAX_REQUEST_BYTES:
            raise _UnreadBody(f"a request may have {MAX_REQUEST_BYTES >> 20} MiB", status=413)
        if self._held_bytes + more > MAX_HELD_BYTES:
            text = f"requests under way may have {MAX_HELD_BYTES >> 20} MiB together; try again later"
            raise _UnreadBody(text, ErrorKind.SERVER, 429)
        call.held += more
        self._held_bytes += more

    async def _off_loop(self, work: Callable[[], CheckedCall]) -> CheckedCall:
        """Run work on a body in a thread, so that other calls go on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._checks, work)

    async def _wait_to_send(self, call: _Call) -> None:
        """Reserve what a call may cost, wait for its turn, and record that it is sent.

        Raises:
            RefusedCall: it may not be sent.
            OSError: it can't be recorded, so that it must not be sent.
        """
        if call.sent.api is Api.UNCOUNTED:
            return
        sent = call.sent
        limit = self._ledger.admit(
            call.id,
            sent.model,
            sent.input_characters,
            sent.most_output_tokens,
            answers=sent.answers,
            service_tier=sent.service_tier,
        )
        if limit is not None:
            call.sent = await self._off_loop(partial(dialects.limited, sent, limit))
        try:
            await self._take_turn(call)
        except asyncio.CancelledError:
            if call.waits:
                self._journal.begin(replace(call.begun(), state=OpenState.LEFT))
            raise
        began = time.monotonic()
        call.waited, call.began = began - call.began if call.waits else 0.0, began
        self._journal.begin(call.begun())

    def _record_waiting(self, call: _Call) -> None:
        if not call.waits:
            call.waits = True
            self._journal.begin(replace(call.begun(), state=OpenState.WAITING))
        self._journal.touch()

    async def _take_turn(self, call: _Call) -> None:
        """Wait, in the order of arrival, until the rate limit of the provider's key permits one more call."""
        rate = self._rates.get(call.provider.name)
        if rate is None:
            return
        most = call.sent.most_output_tokens
        output = _USUAL_OUTPUT_TOKENS if most is None else most
        call.taken = estimated_tokens(call.sent.input_characters) + call.sent.answers * output
        turn = self._turns[call.provider.name]
        if turn.locked():
            self._record_waiting(call)
        async with turn:
            try:
                while (seconds := rate.take(call.taken)) is not None:
                    self._record_waiting(call)
                    await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                rate.leave()
                raise

    async def _settle(self, call: _Call, usage: TokenUsage) -> None:
        """Correct the tokens per minute that a call took by those that it used."""
        rate = self._rates.get(call.provider.name)
        used = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        for _ in range(_SETTLE_TRIES if rate is not None and call.taken else 0):
            if rate is None or rate.settle(call.taken, used):
                return
            await asyncio.sleep(_SETTLE_SECONDS)

    def _refuse(
        self, provider: ModelProvider | None, call: _Call | None, refusal: RefusedCall
    ) -> web.StreamResponse:
        """Answer in place of the provider, in the form of its API."""
        dialect = Dialect(provider.dialect) if provider is not None else Dialect.OPENAI
        status, outcome, text = refusal.status, CallOutcome.REFUSED, str(refusal)
        text = f"{text[:1].upper()}{text[1:]}."
        if refusal.kind is ErrorKind.QUOTA:
            outcome = CallOutcome.SHARED_BUDGET if refusal.is_shared else CallOutcome.BUDGET
            status = 400 if dialect is Dialect.ANTHROPIC else status  # as it reports a used-up quota
        if call is not None:
            call.status = status
            call.sent = replace(call.sent, model=call.sent.model or refusal.model)
            self._journal.end(call.ended(outcome, AnswerReader(call.sent.api), text))
        body = dialects.error_body(dialect, text, kind=refusal.kind, status=status)
        answer = web.Response(status=status, body=msgspec.json.encode(body), content_type=_JSON)
        if refusal.kind is ErrorKind.QUOTA:
            answer.headers["x-should-retry"] = "false"
        if isinstance(refusal, _UnreadBody):
            answer.force_close()
        return answer

    async def _send(self, request: web.BaseRequest, call: _Call) -> web.StreamResponse:
        """Send a call to its provider and forward the answer; whatever happens, it is counted once."""
        reader = AnswerReader(call.sent.api)
        outcome, problem = CallOutcome.CANCELLED, ""
        answer: web.StreamResponse | None = None
        try:
            async with await self._request(request, call) as upstream:
                call.status = upstream.status
                call.retry_after = seconds_asked(upstream.headers.get("Retry-After"))
                is_redirect = 300 <= upstream.status < 400
                if upstream.status in (401, 403) or is_redirect:
                    # An agent can't correct this, and some providers quote parts of the key in their answer.
                    what = "redirects to another address" if is_redirect else "answers the operator's key"
                    problem = f"The provider {what} with status {upstream.status}."
                    outcome = CallOutcome.ERROR
                    status = upstream.status if upstream.status >= 400 else 502
                    return self._own_error(call, status, problem)
                secrets = self._secrets(call.provider)
                headers = _returned_headers(upstream, secrets)
                answer = web.StreamResponse(status=upstream.status, headers=headers)
                if call.recording is not None:
                    call.recording.status, call.recording.headers = upstream.status, headers
                await self._pass_on(request, call, upstream, answer, reader, StreamRedactor(secrets))
                if call.recording is not None:
                    call.recording.is_whole = True
                if call.status >= 400:
                    outcome = CallOutcome.ERROR
                elif not call.undelivered:  # some clients close the connection once they have everything
                    outcome = CallOutcome.OK
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            outcome, problem = CallOutcome.CUT, f"the answer broke off ({type(error).__name__})"
            if answer is None or not answer.prepared:
                problem = f"The provider gives no answer ({type(error).__name__})."
                no_connection = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
                # An agent may have kept this process busy, or used up its open files.
                if isinstance(error, no_connection) and await self._is_away(call.provider):
                    outcome = CallOutcome.UNREACHABLE
                    problem = f"The provider can't be reached ({type(error).__name__})."
                return self._own_error(call, 502, problem)
            if request.transport is not None:
                request.transport.abort()  # so that the agent sees that the answer is incomplete
            return answer
        finally:
            ended = call.ended(outcome, reader, problem)
            if self._recorder is not None and call.recording is not None:
                ended = replace(ended, recorded=str(self._recorder.keep(call.recording)))
            if call.sent.api is not Api.UNCOUNTED:
                self._journal.end(ended)
            await self._settle(call, ended.usage)

    async def _request(self, request: web.BaseRequest, call: _Call) -> aiohttp.ClientResponse:
        """Send a call, again if the operator's key had expired, and return the answer, whose body is not yet read."""
        while True:
            key = self._keys.get(call.provider.name, "")
            upstream = await self._session.request(
                request.method,
                _address(call),
                data=BytesIO(call.sent.content) if call.sent.content else None,  # sent in parts, not copied
                headers=_sent_headers(request, call.provider, key),
                allow_redirects=False,
                proxy=probe.proxy_to(call.provider.url),
            )
            if upstream.status != 401 or not await self._renew_key(call.provider, key):
                return upstream
            upstream.close()

    async def _renew_key(self, provider: ModelProvider, refused: str) -> bool:
        """Read a key that a provider has refused again, and return whether there is another one now."""
        if not provider.key_file and not provider.key_command:
            return False
        async with self._renewals[provider.name]:
            is_old = time.monotonic() - self._renewed_at.get(provider.name, -math.inf) > _RENEWAL_SECONDS
            if self._keys.get(provider.name, "") == refused and is_old:
                self._renewed_at[provider.name] = time.monotonic()
                try:
                    self._keys[provider.name] = await asyncio.to_thread(read_key, provider)
                except EnvironmentProblem as problem:
                    _LOG.warning("%s", problem)
        return self._keys.get(provider.name, "") != refused

    async def _is_away(self, provider: ModelProvider) -> bool:
        """Return whether another process finds no connection to a provider either; the calls at once ask one."""
        if provider.name not in self._probes:
            probing = asyncio.ensure_future(_probe_fails(provider))
            self._probes[provider.name] = probing
            probing.add_done_callback(lambda _: self._probes.pop(provider.name))
        return await asyncio.shield(self._probes[provider.name])

    def _own_error(self, call: _Call, status: int, text: str) -> web.StreamResponse:
        body = dialects.error_body(Dialect(call.provider.dialect), text, kind=ErrorKind.SERVER, status=status)
        content = msgspec.json.encode(body)
        if call.recording is not None:
            call.recording.status, call.recording.headers = status, {"content-type": _JSON}
            call.recording.add(content)
            call.recording.is_whole = True
        return web.Response(status=status, body=content, content_type=_JSON)

    def _secrets(self, provider: ModelProvider) -> tuple[str, ...]:
        """Return what no answer of a provider may contain, as one that repeats the request's headers would."""
        return (self._keys.get(provider.name, ""),)

    async def _pass_on(
        self,
        request: web.BaseRequest,
        call: _Call,
        upstream: aiohttp.ClientResponse,
        answer: web.StreamResponse,
        reader: AnswerReader,
        redactor: StreamRedactor,
    ) -> None:
        """Forward an answer piece by piece without the operator's key, reading its usage."""

        async def write(piece: bytes) -> None:
            if call.recording is not None:
                call.recording.add(piece)
            if not piece:
                return
            if call.gone.is_set():
                call.undelivered = True
                return
            try:
                if not answer.prepared:
                    await answer.prepare(request)
                await answer.write(piece)
            except (ConnectionError, aiohttp.ClientConnectionResetError):
                call.gone.set()
                call.undelivered = True

        async def pieces() -> AsyncIterator[bytes]:
            async for chunk in upstream.content.iter_any():
                self._count_bytes(call, chunk)
                yield redactor.feed(chunk)
            yield redactor.rest()

        if upstream.status >= 400:
            content = bytearray()
            async for piece in pieces():
                content += piece
                if len(content) > _MAX_ERROR_BYTES:
                    break
            reader.read(bytes(content[:_MAX_ERROR_BYTES]))
            await write(bytes(content[:_MAX_ERROR_BYTES]))
        elif upstream.content_type == _EVENT_STREAM:
            events = EventStream(reader, _MAX_EVENT_BYTES)
            withholds = call.sent.asks_usage
            async for piece in pieces():
                if withholds:
                    await write(events.feed(piece))
                else:
                    await write(piece)
                    events.feed(piece)
            rest = events.rest()
            if withholds:
                await write(rest)
        else:
            held, is_long = bytearray(), False
            async for piece in pieces():
                await write(piece)
                held += piece
                if len(held) > _READ_ANSWER_BYTES:
                    is_long = True
                    del held[:-_TAIL_BYTES]
            reader.read(dialects.usage_at_the_end(bytes(held)) if is_long else bytes(held))
        if not answer.prepared and not call.gone.is_set():
            await answer.prepare(request)

    @staticmethod
    def _count_bytes(call: _Call, chunk: bytes) -> None:
        if call.first_seconds is None:
            call.first_seconds = time.monotonic() - call.began
        call.answer_bytes += len(chunk)


async def _probe_fails(provider: ModelProvider) -> bool:
    """Return whether another process finds no connection to a provider."""
    command = (sys.executable, "-I", "-m", probe.__name__, provider.url)
    try:
        process = await asyncio.create_subprocess_exec(*command)
    except OSError:
        return False
    return await process.wait() == probe.NOT_REACHED


def _address(call: _Call) -> URL:
    query = {**call.query, **dict(call.provider.query)}
    return URL(call.provider.url.rstrip("/") + call.sent.path, encoded=True).with_query(query)


def _sent_headers(request: web.BaseRequest, provider: ModelProvider, key: str) -> dict[str, str]:
    headers = {name: request.headers[name] for name in _FORWARDED_HEADERS if name in request.headers}
    # A compressed answer could not be read while it is forwarded.
    headers["accept-encoding"] = "identity"
    if request.method == "POST":
        headers["content-type"] = _JSON
    return headers | key_headers(provider, key)


def _returned_headers(upstream: aiohttp.ClientResponse, secrets: tuple[str, ...]) -> dict[str, str]:
    return {
        name: redacted_text(value, secrets)
        for name, value in upstream.headers.items()
        if name.lower() in _RETURNED_HEADERS or name.lower().startswith(_RETURNED_PREFIXES)
    }
