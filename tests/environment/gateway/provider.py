"""A model provider on localhost that speaks all dialects; the model that is asked for says how it behaves.

python -m tests.environment.gateway.provider PORT: serve until killed, with the key `real-key`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

KEY = "real-key"
PIECES = ("Hel", "lo, ", "wor", "ld")
TEXT = "".join(PIECES)
GREEDY_INPUT = 10
_LIMITS = {
    "/chat/completions": ("max_completion_tokens", "max_tokens"),
    "/responses": ("max_output_tokens",),
    "/messages": ("max_tokens",),
    "enerateContent": ("maxOutputTokens",),
}
TOOL, ARGUMENTS = "weather", {"city": "Oslo"}

CHAT_USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 9,
    "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 4},
}
RESPONSES_USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 5},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}
MESSAGES_USAGE = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 5,
    "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
    "output_tokens": 9,
}
GEMINI_USAGE = {
    "promptTokenCount": 20,
    "cachedContentTokenCount": 5,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 4,
    "totalTokenCount": 29,
}


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any


class Provider:
    """Answers all dialects; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.streams_ended = 0
        self.was_busy = False
        self.go_on = asyncio.Event()  # for what waits in mid-stream
        self.reached_pause = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"null")
        self.asked.append(Asked(request.method, request.raw_path, dict(request.headers), body))
        keys = (
            request.headers.get("Authorization", "").removeprefix("Bearer "),
            request.headers.get("x-api-key"),
            request.headers.get("x-goog-api-key"),
            request.headers.get("api-key"),
        )
        if KEY not in keys:
            return web.json_response({"error": {"message": f"wrong key {keys}"}}, status=401)
        if request.method == "GET":
            return web.json_response({"object": "list", "data": [{"id": "plain", "object": "model"}]})
        path = request.path
        named = path.rpartition("/models/")[2].partition(":")[0] if "/models/" in path else ""
        model = named or str((body or {}).get("model", "plain"))
        stream = "streamGenerateContent" in path or bool((body or {}).get("stream"))
        if model == "busy":
            return web.json_response(
                {"error": {"message": f"slow down, {KEY}", "type": "rate_limit_error"}},
                status=429,
                headers={"Retry-After": "7", "x-ratelimit-remaining-requests": "0", "Set-Cookie": "a=b"},
            )
        if model == "once-busy" and not self.was_busy:
            self.was_busy = True
            return web.json_response(
                {"error": {"message": "again"}}, status=429, headers={"Retry-After-Ms": "1"}
            )
        if model == "broken":
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        if model == "elsewhere":
            raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/v1/chat/completions")
        if model == "echo":
            return await self._echo(request, stream=stream)
        if model == "costly":
            costly: dict[str, Any] = {"model": model, "choices": [], "usage": {**CHAT_USAGE, "cost": 0.125}}
            send = self._stream if stream else self._whole
            return await send(request, model, costly, [event(costly)])
        if model == "greedy":
            return await self._use_all(request, body, stream=stream)
        usage = model != "no-usage"
        make = self._stream if stream else self._whole
        if path.endswith("/chat/completions"):
            return await make(request, model, *chat(body, model, usage=usage))
        if path.endswith("/responses"):
            return await make(request, model, *responses(model, usage=usage))
        if path.endswith("/messages"):
            return await make(request, model, *messages(model, usage=usage))
        if "enerateContent" in path:
            return await make(request, model, *gemini(model, usage=usage))
        if path.endswith("/embeddings"):
            numbers = [0.5] * (1_000_000 if model == "huge" else 4)
            answer = {
                "object": "list",
                "data": [{"object": "embedding", "index": 0, "embedding": numbers}],
                "model": model,
                "usage": {"prompt_tokens": 6, "total_tokens": 6},
            }
            return web.json_response(answer)
        return web.json_response({"input_tokens": 12, "totalTokens": 12})

    async def _echo(self, request: web.Request, *, stream: bool) -> web.StreamResponse:
        """Repeat the key in the answer's headers and body, in pieces of three bytes."""
        kind = "text/event-stream" if stream else "application/json"
        response = web.StreamResponse(headers={"x-request-id": f"for {KEY}", "Content-Type": kind})
        await response.prepare(request)
        text = f"{KEY}{KEY} is not {KEY[:-1]}"
        answer = {"model": text, "choices": [{"delta": {"content": text}}], "usage": CHAT_USAGE}
        content = event(answer) if stream else json.dumps(answer).encode()
        for start in range(0, len(content), 3):
            await response.write(content[start : start + 3])
            await asyncio.sleep(0.001)
        return response

    async def _use_all(self, request: web.Request, body: Any, *, stream: bool) -> web.StreamResponse:
        """Use all that a call permits, 20,000 tokens for an answer without a limit, in no time but at once."""
        await asyncio.sleep(0.1)
        names = next(names for end, names in _LIMITS.items() if request.path.endswith(end))
        place = body.get("generationConfig") or {} if "enerateContent" in request.path else body
        limit = next((place[name] for name in names if place.get(name)), 0)
        output = body.get("n", 1) * (limit if limit > 0 else 20_000)
        used = {"input_tokens": GREEDY_INPUT, "output_tokens": output}
        answer = {"model": "greedy", "stop_reason": "length", "usage": used}
        if stream:
            return web.Response(body=event(answer), content_type="text/event-stream")
        return web.json_response(answer)

    async def _whole(
        self, request: web.Request, model: str, answer: dict[str, Any], events: list[bytes]
    ) -> web.StreamResponse:
        if model == "huge":
            answer = {"padding": "x" * (6 << 20), **answer}
        return web.json_response(
            answer, headers={"x-request-id": "req-1", "openai-organization": "secret-org"}
        )

    async def _stream(
        self, request: web.Request, model: str, answer: dict[str, Any], events: list[bytes]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "x-request-id": "req-1"})
        await response.prepare(request)
        for number, event in enumerate(events):
            if number == 2 and model == "cut":
                assert request.transport is not None
                request.transport.abort()
                return response
            if model == "pings":  # that keep a connection alive while a model thinks
                await response.write(b": PROCESSING\n\n")
                if request.path.endswith("/messages"):
                    await response.write(_PING)
            if number == 2 and model in ("pause", "hang"):
                self.reached_pause.set()
                await self.go_on.wait()
            if model == "torn":  # in pieces that end anywhere
                for start in range(0, len(event), 7):
                    await response.write(event[start : start + 7])
                    await asyncio.sleep(0)
            else:
                with suppress(ConnectionError):  # whoever asked has gone
                    await response.write(event)
        self.streams_ended += 1
        return response


_PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"{head}data: {text}\n\n".encode()


def chat(body: Any, model: str, *, usage: bool) -> tuple[dict[str, Any], list[bytes]]:
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": f"{model}-2026"}
    if "service_tier" in body:
        base["service_tier"] = body["service_tier"]

    def choice(delta: dict[str, Any], finish: str | None = None) -> list[dict[str, Any]]:
        return [{"index": 0, "delta": delta, "finish_reason": finish}]

    pieces: list[dict[str, Any]] = [{"content": piece} for piece in PIECES]
    message: dict[str, Any] = {"role": "assistant", "content": TEXT}
    reason, arguments = "stop", json.dumps(ARGUMENTS)
    if model == "tools":
        called = {"id": "t1", "type": "function", "function": {"name": TOOL, "arguments": arguments}}
        message, reason = {"role": "assistant", "content": None, "tool_calls": [called]}, "tool_calls"
        begun = {**called, "index": 0, "function": {"name": TOOL, "arguments": ""}}
        rest = [{"index": 0, "function": {"arguments": part}} for part in (arguments[:7], arguments[7:])]
        pieces = [{"tool_calls": [part]} for part in (begun, *rest)]
    events = [event({**base, "choices": choice({"role": "assistant", "content": ""})})]
    events += [event({**base, "choices": choice(piece)}) for piece in pieces]
    events += [event({**base, "choices": choice({}, reason)})]
    if usage and ((body.get("stream_options") or {}).get("include_usage")):
        events += [event({**base, "choices": [], "usage": CHAT_USAGE})]
    answer = {
        **base,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        **({"usage": CHAT_USAGE} if usage else {}),
    }
    return answer, [*events, event("[DONE]")]


def responses(model: str, *, usage: bool) -> tuple[dict[str, Any], list[bytes]]:
    item = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": TEXT, "annotations": []}],
    }
    answer: dict[str, Any] = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": f"{model}-2026",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **({"usage": RESPONSES_USAGE} if usage else {}),
    }
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    events = [
        event({"type": "response.created", "sequence_number": 0, "response": begun}, "response.created")
    ]
    empty = {**item, "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    place = {"item_id": "m1", "output_index": 0, "content_index": 0}
    added = {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": empty}
    begun_part = {"type": "response.content_part.added", "sequence_number": 2, **place, "part": part}
    events += [
        event(added, "response.output_item.added"),
        event(begun_part, "response.content_part.added"),
    ]
    for number, piece in enumerate(PIECES, 3):
        delta = {
            "type": "response.output_text.delta",
            "sequence_number": number,
            **place,
            "delta": piece,
            "logprobs": [],
        }
        events.append(event(delta, "response.output_text.delta"))
    last = {"type": "response.completed", "sequence_number": 9, "response": answer}
    return answer, [*events, event(last, "response.completed")]


def messages(model: str, *, usage: bool) -> tuple[dict[str, Any], list[bytes]]:
    base = {"id": "msg1", "type": "message", "role": "assistant", "model": f"{model}-2026"}
    use: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": TOOL, "input": ARGUMENTS}
    content, reason = (
        ([use], "tool_use") if model == "tools" else ([{"type": "text", "text": TEXT}], "end_turn")
    )
    answer = {
        **base,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        **({"usage": MESSAGES_USAGE} if usage else {}),
    }
    first = {**MESSAGES_USAGE, "output_tokens": 1}
    begun: dict[str, Any] = {
        **base,
        "content": [],
        "stop_reason": None,
        **({"usage": first} if usage else {}),
    }
    end = {"stop_reason": reason, "stop_sequence": None}
    block = {**use, "input": {}} if model == "tools" else {"type": "text", "text": ""}
    kind, name, pieces = "text_delta", "text", list(PIECES)
    if model == "tools":
        arguments = json.dumps(ARGUMENTS)
        kind, name, pieces = "input_json_delta", "partial_json", [arguments[:7], arguments[7:]]
    events = [
        event({"type": "message_start", "message": begun}, "message_start"),
        event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start"),
    ]
    for piece in pieces:
        delta = {"type": kind, name: piece}
        events.append(
            event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
        )
    tail = {"type": "message_delta", "delta": end, **({"usage": {"output_tokens": 9}} if usage else {})}
    events += [
        event({"type": "content_block_stop", "index": 0}, "content_block_stop"),
        event(tail, "message_delta"),
        event({"type": "message_stop"}, "message_stop"),
    ]
    return answer, events


def gemini(model: str, *, usage: bool) -> tuple[dict[str, Any], list[bytes]]:
    def part(text: str, **more: Any) -> dict[str, Any]:
        return {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **more}

    tail = {"usageMetadata": GEMINI_USAGE} if usage else {}
    whole = part(TEXT, finishReason="STOP")
    if model == "tools":
        whole["content"]["parts"] = [{"functionCall": {"name": TOOL, "args": ARGUMENTS}}]
    answer = {
        "candidates": [whole],
        "modelVersion": f"{model}-2026",
        **tail,
    }
    so_far = {"usageMetadata": {"promptTokenCount": 20, "totalTokenCount": 20}} if usage else {}
    events = [
        event({"candidates": [part(piece)], "modelVersion": f"{model}-2026", **so_far})
        for piece in PIECES[:-1]
    ]
    last = {"candidates": [part(PIECES[-1], finishReason="STOP")], "modelVersion": f"{model}-2026", **tail}
    return answer, [*events, event(last)]


if __name__ == "__main__":

    async def main() -> web.Application:
        return Provider().app()

    web.run_app(main(), host="127.0.0.1", port=int(sys.argv[1]), print=None)
