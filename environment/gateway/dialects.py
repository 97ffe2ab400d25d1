"""The APIs of model providers: which calls exist, what they may request, and where answers report usage.

Pure functions and readers of JSON, without any I/O. A request is checked as it is parsed and encoded again before
it is sent, so that no provider can interpret it differently from how it was checked.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Any

import msgspec

Json = dict[str, Any]

CHARACTERS_PER_TOKEN = 4  # as in English, where tokens are only estimated


class Dialect(StrEnum):
    """A provider's API."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class Grant(StrEnum):
    """Something that a provider can do besides answering, which an agent may use only if the operator grants it."""

    WEB_SEARCH = "web-search"
    CODE_EXECUTION = "code-execution"
    MCP = "mcp"
    REMOTE_URLS = "remote-urls"


class Api(StrEnum):
    """A kind of call."""

    CHAT = "chat"
    RESPONSES = "responses"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"
    MESSAGES = "messages"
    GENERATE = "generateContent"
    UNCOUNTED = "uncounted"  # lists of models and the counting of tokens, which cost nothing


class ErrorKind(StrEnum):
    """What went wrong with a call that the gateway answers itself, as far as providers' errors tell it apart."""

    QUOTA = "quota"
    REQUEST = "request"
    SERVER = "server"
    KEY = "key"


class RefusedCall(Exception):
    """A call that is not forwarded; the message says why, for the agent and the record.

    Attributes:
        kind: what the agent is told by the form of the answer.
        status: of the answer.
        model: the requested model, where that is known.
        is_shared: whether a budget is used up that the run shares with others.
    """

    is_shared = False

    def __init__(self, text: str, kind: ErrorKind = ErrorKind.REQUEST, status: int = 400) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status
        self.model = ""


@dataclass(frozen=True)
class CheckedCall:
    """A call as it is forwarded; what comes after `stream` is known once its body has been checked.

    Attributes:
        path: the path below the provider's address.
        model: the requested model; before the body is checked only where the path names it.
        stream: whether it asks for a stream.
        content: the body, encoded again from the checked values; empty where it has none.
        asks_usage: whether the gateway requests usage that the agent did not, and must remove it from the answer.
        input_characters: the length of all texts, for an estimate where usage is not reported.
        answers: how many answers it requests at once.
        most_output_tokens: the limit of each answer; None where the call states none that all providers would obey.
        service_tier: the tier that the agent requests, in the provider's word.
    """

    api: Api
    path: str
    model: str = ""
    stream: bool = False
    content: bytes = b""
    asks_usage: bool = False
    input_characters: int = 0
    answers: int = 1
    most_output_tokens: int | None = None
    service_tier: str = ""


@dataclass(frozen=True)
class TokenUsage:
    """The tokens of one call, with the same meaning for all providers; None where a count was not reported.

    Attributes:
        input_tokens: the whole prompt, including tokens read from and written to a cache.
        cached_tokens: the part of these that was read from a cache.
        cache_write_tokens: the part of these that was written to a cache.
        cache_write_hour_tokens: the part of the written ones that is kept for an hour.
        output_tokens: the whole answer, including reasoning that is not shown.
        reasoning_tokens: the part of these that is reasoning.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_hour_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether the provider has reported what the call used."""
        return self.input_tokens is not None and self.output_tokens is not None


_MODEL = r"(?P<model>[A-Za-z0-9][A-Za-z0-9._:@-]*(?:/[A-Za-z0-9][A-Za-z0-9._:@-]*){0,3})"
_ROUTES: dict[Dialect, tuple[tuple[str, str, Api], ...]] = {
    Dialect.OPENAI: (
        ("POST", r"/v1(?P<path>/chat/completions)", Api.CHAT),
        ("POST", r"/v1(?P<path>/responses)", Api.RESPONSES),
        ("POST", r"/v1(?P<path>/completions)", Api.COMPLETIONS),
        ("POST", r"/v1(?P<path>/embeddings)", Api.EMBEDDINGS),
        ("GET", rf"/v1(?P<path>/models(?:/{_MODEL})?)", Api.UNCOUNTED),
    ),
    Dialect.ANTHROPIC: (
        ("POST", r"/v1/messages", Api.MESSAGES),
        ("POST", r"/v1/messages/count_tokens", Api.UNCOUNTED),
        ("GET", rf"/v1/models(?:/{_MODEL})?", Api.UNCOUNTED),
    ),
    Dialect.GEMINI: (
        ("POST", rf"/v1(?:beta)?/models/{_MODEL}:(?P<stream>streamG|g)enerateContent", Api.GENERATE),
        ("POST", rf"/v1(?:beta)?/models/{_MODEL}:(?:e|batchE)mbedContents?", Api.EMBEDDINGS),
        ("POST", rf"/v1(?:beta)?/models/{_MODEL}:countTokens", Api.UNCOUNTED),
        ("GET", rf"/v1(?:beta)?/models(?:/{_MODEL})?", Api.UNCOUNTED),
    ),
}
_ALLOWED = {
    Dialect.OPENAI: "chat/completions, responses, completions, embeddings and models",
    Dialect.ANTHROPIC: "messages, messages/count_tokens and models",
    Dialect.GEMINI: "generateContent, streamGenerateContent, embeddings, countTokens and models",
}
_PATTERNS = {
    dialect: tuple((method, re.compile(path), api) for method, path, api in routes)
    for dialect, routes in _ROUTES.items()
}
# The parameters that official clients send; a provider may interpret others in ways that are not checked here.
_QUERY = frozenset({"alt", "beta", "limit", "after_id", "before_id", "pageSize", "pageToken"})
_QUERY_VALUE = re.compile(r"[A-Za-z0-9._~=+/-]{0,512}")

# Models that always search the web.
_SEARCHING_MODEL = re.compile(r"search|sonar|deep-research|:online\b|^@preset/", re.IGNORECASE)
_OPENAI_TOOLS = frozenset({"function", "custom", "local_shell", "apply_patch", "allowed_tools"})
_ANTHROPIC_TOOLS = re.compile(r"custom|(?:bash|text_editor|computer|memory)_\d{8}")
_GEMINI_TOOLS = frozenset({"functionDeclarations", "function_declarations"})
_NEEDED_GRANT = (
    (re.compile(r"search|fetch|url|maps", re.IGNORECASE), Grant.WEB_SEARCH),
    (re.compile(r"code|container|shell", re.IGNORECASE), Grant.CODE_EXECUTION),
    (re.compile(r"mcp|connector", re.IGNORECASE), Grant.MCP),
)
# Fields that make a provider do more than answer; None: no grant suffices, since their content is not visible here.
_FIELDS: dict[str, Grant | None] = {
    "web_search_options": Grant.WEB_SEARCH,
    "mcp_servers": Grant.MCP,
    "container": Grant.CODE_EXECUTION,
    "plugins": None,
    "preset": None,
    "background": None,
    "api_base": None,  # LiteLLM's servers would use another provider than the operator's
    "base_url": None,
    "cachedContent": None,
    "cached_content": None,
}
# Arguments and results of an agent's own functions, which providers do not interpret.
_DATA_OF_TOOLS = frozenset({"args", "arguments", "response"})
_CALLS_OF_TOOLS = frozenset({"tool_use", "function_call", "custom_tool_call"})
# Fields of a body with schemas and settings, in which a field named like an address is none.
_SETTINGS = frozenset(
    {"tools", "functions", "response_format", "text", "generationConfig", "generation_config", "metadata"}
)
_NO_TEXT = frozenset({"data", "file_data", "type", "role", "id", "model"})
_URL_FIELDS = frozenset(
    {
        *("image_url", "file_url", "video_url", "audio_url", "url", "imageUrl"),
        *("fileUri", "file_uri", "videoUrl", "audioUrl", "fileUrl"),
    }
)
# Results of a granted web search, which clients send again with the conversation.
_WEB_RESULTS = frozenset(
    {
        *("web_search_call", "web_search_result", "web_search_result_location", "web_search_tool_result"),
        *("url_citation", "web_fetch_result", "web_fetch_tool_result"),
    }
)
# The fields by which an API limits an answer; the gateway sets the first.
_OUTPUT_LIMITS: dict[Api, tuple[str, ...]] = {
    Api.CHAT: ("max_completion_tokens", "max_tokens"),
    Api.RESPONSES: ("max_output_tokens",),
    Api.COMPLETIONS: ("max_tokens",),
    Api.MESSAGES: ("max_tokens",),
    Api.GENERATE: ("maxOutputTokens", "max_output_tokens"),
}
_ANSWER_COUNTS = ("n", "best_of", "candidateCount", "candidate_count")
_ADDRESS = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]{0,20}://")
_MAX_DEPTH = 100
# A body of more lists, objects and commas takes longer to parse than any prompt, and a hundred times its memory.
_MAX_VALUES = 1_000_000
_MAX_CHECK_SECONDS = 1.0  # of processor time: a busy host refuses nothing
_MAX_MODEL_CHARACTERS = 200


def route(dialect: Dialect, method: str, path: str) -> CheckedCall:
    """Return where a call goes.

    Raises:
        RefusedCall: the gateway does not forward such a call.
    """
    for known_method, pattern, api in _PATTERNS[dialect]:
        match = pattern.fullmatch(path)
        if match is not None and known_method == method:
            named = match.groupdict()
            stream = (named.get("stream") or "").startswith("stream")
            # The address of an OpenAI-compatible server ends with its version; those of others do not.
            return CheckedCall(api, named.get("path") or path, named.get("model") or "", stream)
    text = f"the gateway does not forward {method} {path[:100]}, only {_ALLOWED[dialect]}"
    raise RefusedCall(text, status=404)


def checked_query(query: Mapping[str, str]) -> dict[str, str]:
    """Return the query to forward, which is all but a key.

    Raises:
        RefusedCall: it has an unknown parameter.
    """
    kept = {name: value for name, value in query.items() if name != "key"}
    for name, value in kept.items():
        if name not in _QUERY or not _QUERY_VALUE.fullmatch(value):
            text = f"the gateway does not forward the query parameter '{name[:50]}'"
            raise RefusedCall(text, status=404)
    return kept


def checked_request(
    call: CheckedCall, content: bytes | bytearray, grants: frozenset[Grant], *, include_usage: bool
) -> CheckedCall:
    """Parse a call's body, refuse what is not granted, and return the call to send.

    Raises:
        RefusedCall: it is not a JSON object, has too many values, or requests something that is not granted.
    """
    began = time.thread_time()
    if sum(map(content.count, (b"[", b"{", b","))) > _MAX_VALUES:
        raise RefusedCall("the body has too many values")
    try:
        body = msgspec.json.decode(content, type=Json)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedCall(f"the body is not a JSON object ({error})") from None
    stream = call.stream or body.get("stream") is True
    model = call.model or _text(body.get("model"))
    try:
        _check_depth(body)
        characters = _check_body(call.api, body, model, grants, began + _MAX_CHECK_SECONDS)
    except RefusedCall as error:
        error.model = model[:200]
        raise
    asks_usage = (
        include_usage and stream and call.api in (Api.CHAT, Api.COMPLETIONS) and not _wants_usage(body)
    )
    if asks_usage:
        options = body.get("stream_options")
        body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    try:
        written = msgspec.json.encode(body)
    except (msgspec.MsgspecError, OverflowError, RecursionError) as error:
        raise RefusedCall(f"the body can't be forwarded ({error})") from None
    return replace(
        call,
        model=model[:200],
        stream=stream,
        content=written,
        asks_usage=asks_usage,
        input_characters=characters,
        answers=_answers(call.api, body),
        most_output_tokens=_most_output(call.api, body),
        service_tier=_service(body),
    )


def _check_depth(body: Json) -> None:
    level: list[Any] = [body]
    for _ in range(_MAX_DEPTH):
        items = (value.values() if isinstance(value, dict) else value for value in level)
        level = [item for item in chain.from_iterable(items) if isinstance(item, dict | list)]
        if not level:
            return
    raise RefusedCall("the body is nested too deeply")


def _check_time(deadline: float) -> None:
    if time.thread_time() > deadline:
        raise RefusedCall("the body takes too long to check")


def _check_body(api: Api, body: Json, model: str, grants: frozenset[Grant], deadline: float) -> int:
    """Refuse what is not granted, and return the number of characters of all texts."""
    _check_model(model, grants)
    if isinstance(body.get("models"), list):  # OpenRouter's fallbacks
        for other in body["models"]:
            _check_time(deadline)
            _check_model(_text(other), grants)
    _check_fields(api, body, grants)
    for tool in _tools(body):
        _check_time(deadline)
        _check_tool(api, tool, grants)
    contents = {name: value for name, value in body.items() if name not in _SETTINGS}
    settings = sum(len(msgspec.json.encode(body[name])) for name in _SETTINGS if name in body)
    return _check_content(contents, grants, deadline) + settings


def _service(answer: Json) -> str:
    return _text(answer.get("service_tier") or answer.get("serviceTier"))[:20]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _wants_usage(body: Json) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def limited(call: CheckedCall, most_output_tokens: int) -> CheckedCall:
    """Return a call with a limit for each of its answers, in the field of its API and in no other."""
    body = msgspec.json.decode(call.content, type=Json)
    place = body
    if call.api is Api.GENERATE:
        place = body["generationConfig"] = _generation_config(body)
        body.pop("generation_config", None)
    names = _OUTPUT_LIMITS[call.api]
    for name in names:
        place.pop(name, None)
    place[names[0]] = most_output_tokens
    return replace(call, content=msgspec.json.encode(body), most_output_tokens=most_output_tokens)


def _generation_config(body: Json) -> Json:
    """Return Gemini's settings of the answer, which may have either of two names."""
    found = (body.get("generation_config"), body.get("generationConfig"))
    return {name: value for place in found if isinstance(place, dict) for name, value in place.items()}


def _most_output(api: Api, body: Json) -> int | None:
    """Return the limit of each answer, the greatest of several; None if one is missing or may be read differently."""
    names = _OUTPUT_LIMITS.get(api)
    if names is None:
        return 0
    place = _generation_config(body) if api is Api.GENERATE else body
    given = [place[name] for name in names if place.get(name) is not None]
    return max(given, default=None) if all(_is_positive(value) for value in given) else None


def _answers(api: Api, body: Json) -> int:
    """Return how many answers a call requests: for each of its prompts as many as it asks for."""
    place = {**body, **_generation_config(body)}
    given = [place[name] for name in _ANSWER_COUNTS if place.get(name) is not None]
    if not all(_is_positive(value) for value in given):
        raise RefusedCall("the number of answers is not a positive whole number")
    prompts = body.get("prompt") if api is Api.COMPLETIONS else None
    several = isinstance(prompts, list) and bool(prompts) and isinstance(prompts[0], str | list)
    return max(given, default=1) * (len(prompts) if several and isinstance(prompts, list) else 1)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _refuse(what: str, grant: Grant | None, grants: frozenset[Grant]) -> None:
    if grant is None:
        raise RefusedCall(f"{what} is not forwarded by the gateway")
    if grant not in grants:
        raise RefusedCall(f"{what} needs '{grant}', which this run is not granted")


def _check_model(model: str, grants: frozenset[Grant]) -> None:
    if len(model) > _MAX_MODEL_CHARACTERS:
        raise RefusedCall("the model's name is too long")
    if _SEARCHING_MODEL.search(model):
        _refuse(f"the model '{model[:100]}', which searches the web,", Grant.WEB_SEARCH, grants)


def _check_fields(api: Api, body: Json, grants: frozenset[Grant]) -> None:
    for name, grant in _FIELDS.items():
        if body.get(name):
            _refuse(f"the field '{name}'", grant, grants)
    if api is Api.RESPONSES and body.get("prompt"):  # stored at the provider, perhaps with tools
        _refuse("the field 'prompt'", None, grants)


def _tools(body: Json) -> Iterator[Any]:
    tools = body.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        tools = [tools]
    yield from tools


def _check_tool(api: Api, tool: Any, grants: frozenset[Grant]) -> None:
    """Refuse a tool that is not run by the agent itself, unless it is granted."""
    if not isinstance(tool, dict):
        raise RefusedCall("a tool is not an object")
    if api is Api.GENERATE or not isinstance(tool.get("type"), str | None):
        foreign = [name for name in tool if name not in _GEMINI_TOOLS]
    elif api in (Api.MESSAGES, Api.UNCOUNTED) and "type" not in tool:
        foreign = []
    elif api in (Api.MESSAGES, Api.UNCOUNTED):
        foreign = [] if _ANTHROPIC_TOOLS.fullmatch(tool["type"] or "") else [str(tool["type"])]
    else:
        foreign = [] if tool.get("type") in _OPENAI_TOOLS else [str(tool.get("type"))]
    for name in foreign:
        grant = next((grant for pattern, grant in _NEEDED_GRANT if pattern.search(name)), None)
        _refuse(f"the provider's tool '{name[:50]}'", grant, grants)


def _check_content(value: Any, grants: frozenset[Grant], deadline: float, depth: int = 0) -> int:
    """Refuse what a provider would fetch from elsewhere, and return the number of characters of all texts."""
    if isinstance(value, str):
        return 0 if value.startswith("data:") else len(value)
    _check_time(deadline)
    if isinstance(value, list):
        return sum(_check_content(item, grants, deadline, depth + 1) for item in value)
    if not isinstance(value, dict):
        return CHARACTERS_PER_TOKEN if isinstance(value, int) else 0  # prompts may be numbers of tokens
    characters = 0
    if value.get("type") in _WEB_RESULTS and Grant.WEB_SEARCH in grants:
        return len(msgspec.json.encode(value))
    is_call = depth > 0 and value.get("type") in _CALLS_OF_TOOLS
    for name, item in value.items():
        if isinstance(item, str):
            is_address = name in _URL_FIELDS and not item.startswith("data:")
            if is_address or (name in ("data", "file_data") and _ADDRESS.match(item)):
                _refuse(f"an address in '{name}', which the provider would fetch,", Grant.REMOTE_URLS, grants)
        if name in _DATA_OF_TOOLS or (is_call and name == "input"):
            characters += len(msgspec.json.encode(item))
        elif name not in _NO_TEXT or not isinstance(item, str):
            characters += _check_content(item, grants, deadline, depth + 1)
    return characters


_ERROR_NAMES: dict[Dialect, dict[ErrorKind, str]] = {
    Dialect.OPENAI: {
        ErrorKind.QUOTA: "insufficient_quota",
        ErrorKind.REQUEST: "invalid_request_error",
        ErrorKind.SERVER: "server_error",
        ErrorKind.KEY: "invalid_request_error",
    },
    Dialect.ANTHROPIC: {
        ErrorKind.QUOTA: "invalid_request_error",
        ErrorKind.REQUEST: "invalid_request_error",
        ErrorKind.SERVER: "api_error",
        ErrorKind.KEY: "authentication_error",
    },
    Dialect.GEMINI: {
        ErrorKind.QUOTA: "RESOURCE_EXHAUSTED",
        ErrorKind.REQUEST: "INVALID_ARGUMENT",
        ErrorKind.SERVER: "UNAVAILABLE",
        ErrorKind.KEY: "UNAUTHENTICATED",
    },
}


def error_body(dialect: Dialect, text: str, *, kind: ErrorKind, status: int) -> Json:
    """Return an error in the form of the provider's API."""
    name = _ERROR_NAMES[dialect][kind]
    if dialect is Dialect.ANTHROPIC:
        return {"type": "error", "error": {"type": name, "message": text}}
    if dialect is Dialect.GEMINI:
        return {"error": {"code": status, "message": text, "status": name}}
    code = {ErrorKind.QUOTA: name, ErrorKind.KEY: "invalid_api_key"}.get(kind)
    return {"error": {"message": text, "type": name, "param": None, "code": code}}


class AnswerReader:
    """Reads usage, model and stop reason of one answer while it is forwarded, whole or as a stream of events.

    Attributes:
        model: the provider's name of the model; empty until it is reported.
        stop_reason: why the answer ended, in the provider's word.
        service_tier: the tier that served the call, in the provider's word.
        characters: roughly the length of the text so far, for an estimate.
        error: the provider's error message.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._counts: Json = {}
        self.model = ""
        self.stop_reason = ""
        self.service_tier = ""
        self.characters = 0
        self.error = ""

    @property
    def usage(self) -> TokenUsage:
        """The counts so far; a stream's later events may leave out counts of earlier ones."""
        return _usage_of(self._api, self._counts) if self._counts else TokenUsage()

    @property
    def cost(self) -> float | None:
        """The cost of the call in US dollars, as some providers report it; None where it is not reported."""
        cost = self._counts.get("cost")
        is_amount = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf
        return float(cost) if is_amount and cost is not None else None

    def read_events(self, block: bytes) -> bytes:
        """Read whole events of a stream, and return them without those that contain only usage."""
        # Nearly all contain only text and need not be parsed; those that do are found by bisection.
        if self.model and _contain_only_text(block):
            self.characters += _characters(block)
            return block
        cut = _end_of_an_event(block)
        if cut:
            return self.read_events(block[:cut]) + self.read_events(block[cut:])
        return b"" if self.read(_event_data(block)) else block

    def read(self, content: bytes) -> bool:
        """Read one JSON text, an answer or the data of an event, and return whether it contains only usage."""
        try:
            value = msgspec.json.decode(content)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return False
        # Gemini's streams without alt=sse, and errors in them, are lists.
        for item in value if isinstance(value, list) else [value]:
            self._read_object(item)
        self.characters += _characters(content)
        return (
            isinstance(value, dict)
            and value.get("choices") == []
            and isinstance(value.get("usage"), dict)
            and "error" not in value
        )

    def _read_object(self, value: Any) -> None:
        if not isinstance(value, dict):
            return
        inner = value.get("response") or value.get("message")
        answer = inner if isinstance(inner, dict) else value
        model = answer.get("model") or answer.get("modelVersion")
        if model and model != self.model:
            self.model = _text(model)[:200] or self.model
        for place in (value,) if answer is value else (value, answer):
            if error := place.get("error"):
                message = _text(error.get("message") if isinstance(error, dict) else error)
                self.error = message[:500] or "an error"
            self.service_tier = _service(place) or self.service_tier
            counts = place.get("usage") or place.get("usageMetadata")
            if isinstance(counts, dict):
                self.service_tier = _service(counts) or self.service_tier
                self._counts |= {name: count for name, count in counts.items() if count is not None}
        if reason := _stop_reason(value, answer):
            self.stop_reason = reason[:50]


def usage_at_the_end(content: bytes) -> bytes:
    """Return the usage at the end of an answer that is too long to be parsed whole; empty where there is none."""
    for name in (b"usage", b"usageMetadata"):
        # Quotes within a text would be escaped.
        _, found, rest = content.rpartition(b'"' + name + b'"')
        if not found:
            continue
        try:
            value, _ = json.JSONDecoder().raw_decode(rest.decode("utf-8", "replace").lstrip(" \t\r\n:"))
        except (ValueError, RecursionError):
            continue
        return msgspec.json.encode({name.decode(): value})
    return b""


def _count(values: Any, *names: str) -> int | None:
    for name in names:
        count = values.get(name) if isinstance(values, dict) else None
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1 << 40:
            return count
    return None


def _usage_of(api: Api, given: Json) -> TokenUsage:
    if api is Api.MESSAGES:
        read = _count(given, "cache_read_input_tokens")
        written = _count(given, "cache_creation_input_tokens")
        fresh = _count(given, "input_tokens")
        return TokenUsage(
            input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
            cached_tokens=read,
            cache_write_tokens=written,
            cache_write_hour_tokens=_count(given.get("cache_creation"), "ephemeral_1h_input_tokens"),
            output_tokens=_count(given, "output_tokens"),
            reasoning_tokens=_count(given.get("output_tokens_details"), "thinking_tokens"),
        )
    if "promptTokenCount" in given or "totalTokenCount" in given:
        prompt, total = _count(given, "promptTokenCount"), _count(given, "totalTokenCount")
        tools, thoughts = _count(given, "toolUsePromptTokenCount"), _count(given, "thoughtsTokenCount")
        shown = _count(given, "candidatesTokenCount")
        read_in = None if prompt is None else prompt + (tools or 0)
        # An answer of only thoughts, or of nothing, has no count of candidates, but is complete.
        written_out = None if total is None and shown is None else (shown or 0) + (thoughts or 0)
        return TokenUsage(
            input_tokens=read_in,
            cached_tokens=_count(given, "cachedContentTokenCount"),
            output_tokens=written_out,
            reasoning_tokens=thoughts,
        )
    details = given.get("prompt_tokens_details") or given.get("input_tokens_details")
    answer_details = given.get("completion_tokens_details") or given.get("output_tokens_details")
    outgoing = _count(given, "completion_tokens", "output_tokens")
    return TokenUsage(
        input_tokens=_count(given, "prompt_tokens", "input_tokens"),
        cached_tokens=_count(details, "cached_tokens"),
        cache_write_tokens=_count(details, "cache_write_tokens"),
        output_tokens=0 if outgoing is None and api is Api.EMBEDDINGS else outgoing,
        reasoning_tokens=_count(answer_details, "reasoning_tokens"),
    )


def _stop_reason(value: Json, answer: Json) -> str:
    """Return why an answer ended, wherever its dialect reports that."""
    delta = value.get("delta")
    for place in (value, answer, delta):
        if isinstance(place, dict) and isinstance(place.get("stop_reason"), str):
            return str(place["stop_reason"])
    for name, key in (("choices", "finish_reason"), ("candidates", "finishReason")):
        listed = answer.get(name)
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            return _text(listed[0].get(key))
    details = answer.get("incomplete_details")
    if isinstance(details, dict):
        return _text(details.get("reason"))
    return _text(answer.get("status")) if answer.get("object") == "response" else ""


_TEXTS = (
    *(b'"text"', b'"content"', b'"reasoning"', b'"reasoning_content"', b'"thinking"', b'"partial_json"'),
    *(b'"arguments"', b'"delta"'),
)
_PATTERNS_OF_TEXTS = tuple(
    (name, re.compile(name + rb'\s*+:\s*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"')) for name in _TEXTS
)
# Quotes within a text would be escaped.
_MORE_THAN_TEXT = (
    *(b'"usage"', b'"usageMetadata"', b'"error"', b'"response"', b'"message"'),
    *(b'"finish_reason"', b'"stop_reason"', b'"finishReason"'),
)


def _contain_only_text(events: bytes) -> bool:
    """Return whether events contain only text, or null in the fields that report more."""
    for name in _MORE_THAN_TEXT:
        found = events.count(name)
        if found and found != events.count(name + b":null") + events.count(name + b": null"):
            return False
    return True


def _characters(content: bytes) -> int:
    """Count roughly the characters of text in an answer or in events, in the fields of any dialect."""
    return sum(
        sum(map(len, pattern.findall(content))) for name, pattern in _PATTERNS_OF_TEXTS if name in content
    )


class EventStream:
    """Reads a stream of server-sent events as whole events; those longer than `limit` are forwarded unread."""

    def __init__(self, reader: AnswerReader, limit: int) -> None:
        self._reader = reader
        self._limit = limit
        self._held = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """Read the next chunk, and return the events that are now complete, except those with only usage."""
        if self._held or not chunk.endswith(b"\n\n"):
            searched = max(0, len(self._held) - _LONGEST_BLANK)
            self._held += chunk
            found = [(self._held.rfind(blank, searched), blank) for blank in _BLANKS]
            end = max((place + len(blank) for place, blank in found if place >= 0), default=0)
            chunk = bytes(self._held[:end])
            del self._held[:end]
        passed = self._reader.read_events(chunk)
        if len(self._held) > self._limit:
            passed += self._held
            self._held.clear()
        return passed

    def rest(self) -> bytes:
        """Read what came after the last whole event, and return it unless it contains only usage."""
        return self._reader.read_events(bytes(self._held))


_BLANKS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_LONGEST_BLANK = 3  # bytes of a separator that an earlier chunk may have ended with


def _end_of_an_event(block: bytes) -> int:
    """Return the end of an event near the middle of a block; 0 where there is none but the block's own."""
    middle = len(block) // 2
    for blank in _BLANKS:
        for found in (block.find(blank, middle), block.rfind(blank, 0, middle + len(blank))):
            end = found + len(blank)
            if found >= 0 and end < len(block):
                return end
    return 0


def _event_data(event: bytes) -> bytes:
    lines = event.splitlines()
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
