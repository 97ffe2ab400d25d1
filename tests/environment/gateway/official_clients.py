"""Calls by the official client libraries, which are installed apart from the project (tools/test-clients.sh).

python official_clients.py LIBRARY GATEWAY TOKEN: make all calls of one library, print a JSON line for each: its name
and what came of it. One process for all, since these libraries take seconds to import.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MESSAGES: Any = [{"role": "user", "content": "Say hello, please."}]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}
MODELS = ("plain", "no-usage", "pings", "huge")

# By name; each is made before the next one is asked for.
Calls = Iterator[tuple[str, Callable[[], Any]]]


def openai_calls(gateway: str, token: str) -> Calls:
    """Chat, responses, embeddings and what can go wrong, by `openai`."""
    import openai

    # As in a sandbox: by its variables alone.
    os.environ.update(OPENAI_BASE_URL=f"{gateway}/openai/v1", OPENAI_API_KEY=token)
    client = openai.OpenAI(max_retries=0)
    create = client.chat.completions.create

    def streamed(model: str, **more: Any) -> Any:
        return create(model=model, messages=MESSAGES, stream=True, **more)

    def text(chunks: Iterable[Any]) -> str:
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    def with_usage() -> Any:
        *chunks, last = streamed("plain", stream_options={"include_usage": True})
        return text(chunks), last.usage.completion_tokens

    def cancelled() -> Any:
        with streamed("hang") as stream:
            return next(iter(stream)).choices[0].delta.role

    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": WEATHER}}
    picture: Any = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    seen: Any = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}]

    def called(answer: Any) -> Any:
        function = answer.choices[0].message.tool_calls[0].function
        return function.name, json.loads(function.arguments)

    def called_in_stream() -> Any:
        pieces = [chunk.choices[0].delta.tool_calls for chunk in streamed("tools", tools=[tool])]
        functions = [piece[0].function for piece in pieces if piece]
        arguments = "".join(function.arguments or "" for function in functions)
        return functions[0].name, json.loads(arguments)

    for model in MODELS:
        yield (
            f"whole {model}",
            lambda: create(model=model, messages=MESSAGES).choices[0].message.content,
        )
        yield f"stream {model}", lambda: text(streamed(model))
    yield "stream with usage", with_usage
    yield "tools", lambda: called(create(model="tools", messages=MESSAGES, tools=[tool]))
    yield "stream tools", called_in_stream
    yield "image", lambda: create(model="plain", messages=seen).choices[0].message.content
    yield "responses", lambda: client.responses.create(model="plain", input="Hello?").output_text
    yield (
        "stream responses",
        lambda: "".join(
            event.delta
            for event in client.responses.create(model="plain", input="Hello?", stream=True)
            if event.type == "response.output_text.delta"
        ),
    )
    yield (
        "embeddings",
        lambda: len(client.embeddings.create(model="plain", input=["a"], encoding_format="float").data),
    )
    yield "models", lambda: [model.id for model in client.models.list()]
    again = client.with_options(max_retries=2).chat.completions.create
    yield "retried", lambda: again(model="once-busy", messages=MESSAGES).choices[0].message.content
    yield "busy", lambda: create(model="busy", messages=MESSAGES)
    yield "broken", lambda: create(model="broken", messages=MESSAGES)
    yield "cut", lambda: text(streamed("cut"))
    yield "cancelled", cancelled
    yield (
        "web search",
        lambda: client.responses.create(model="plain", input="Hi", tools=[{"type": "web_search"}]),
    )
    yield "wrong key", lambda: openai.OpenAI(api_key="sk-other", max_retries=0).models.list()


def anthropic_calls(gateway: str, token: str) -> Calls:
    """Messages and what can go wrong, by `anthropic`."""
    import anthropic

    os.environ.update(ANTHROPIC_BASE_URL=f"{gateway}/anthropic", ANTHROPIC_API_KEY=token)
    client = anthropic.Anthropic(max_retries=0)
    usual: Any = {"max_tokens": 100, "messages": MESSAGES}

    def whole(model: str, client: Any = client, **more: Any) -> Any:
        return client.messages.create(model=model, **{**usual, **more})

    def text(model: str) -> str:
        with client.messages.stream(model=model, **usual) as stream:
            return "".join(stream.text_stream)

    def called(message: Any) -> Any:
        return message.content[0].name, message.content[0].input

    def called_in_stream() -> Any:
        with client.messages.stream(model="tools", tools=[tool], **usual) as stream:
            return called(stream.get_final_message())

    def cancelled() -> Any:
        with client.messages.stream(model="hang", **usual) as stream:
            return next(iter(stream)).type

    tool: Any = {"name": "weather", "input_schema": WEATHER}
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    seen: Any = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    for model in MODELS:
        if model != "no-usage":  # without which this client can't read a message
            yield f"whole {model}", lambda: whole(model).content[0].text
            yield f"stream {model}", lambda: text(model)
    yield "tools", lambda: called(whole("tools", tools=[tool]))
    yield "stream tools", called_in_stream
    yield "image", lambda: whole("plain", messages=seen).content[0].text
    yield (
        "count",
        lambda: client.messages.count_tokens(model="plain", messages=MESSAGES).input_tokens,
    )
    yield "models", lambda: [model.id for model in client.models.list()]
    yield "retried", lambda: whole("once-busy", client.with_options(max_retries=2)).content[0].text
    yield "busy", lambda: whole("busy")
    yield "broken", lambda: whole("broken")
    yield "cut", lambda: text("cut")
    yield "cancelled", cancelled
    yield (
        "web search",
        lambda: whole("plain", tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    )
    yield "wrong key", lambda: anthropic.Anthropic(api_key="sk-other", max_retries=0).models.list()


def genai_calls(gateway: str, token: str) -> Calls:
    """Content generated, embedded and what can go wrong, by `google-genai`."""
    from google import genai
    from google.genai import types

    os.environ.update(GOOGLE_GEMINI_BASE_URL=f"{gateway}/gemini", GEMINI_API_KEY=token)
    client = genai.Client()
    models = client.models

    def streamed(model: str) -> str:
        chunks = models.generate_content_stream(model=model, contents="Hello?")
        return "".join(chunk.text or "" for chunk in chunks)

    def cancelled() -> Any:
        stream = models.generate_content_stream(model="hang", contents="Hello?")
        return next(iter(stream)).text  # and no more: the process closes it at its end

    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=WEATHER)
    own = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    searching = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    pixel = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")

    def called(answer: Any) -> Any:
        return answer.function_calls[0].name, answer.function_calls[0].args

    stranger = genai.Client(api_key="sk-other")
    for model in MODELS:
        yield (
            f"whole {model}",
            lambda: models.generate_content(model=model, contents="Hello?").text,
        )
        if model != "pings":  # comments in streams, which this client does not know
            yield f"stream {model}", lambda: streamed(model)
    yield "tools", lambda: called(models.generate_content(model="tools", contents="Hello?", config=own))
    yield (
        "image",
        lambda: models.generate_content(model="plain", contents=[pixel, "What is it?"]).text,
    )
    yield "count", lambda: models.count_tokens(model="plain", contents="Hello?").total_tokens
    yield "busy", lambda: models.generate_content(model="busy", contents="Hello?")
    yield "broken", lambda: models.generate_content(model="broken", contents="Hello?")
    yield "cut", lambda: streamed("cut")
    yield (
        "web search",
        lambda: models.generate_content(model="plain", contents="Hello?", config=searching),
    )
    yield (
        "wrong key",
        lambda: stranger.models.count_tokens(model="plain", contents="Hello?"),
    )
    yield "cancelled", cancelled


def litellm_calls(gateway: str, token: str) -> Calls:
    """All three dialects by `litellm`."""
    os.environ.update(
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        OPENAI_BASE_URL=f"{gateway}/openai/v1",
        OPENAI_API_BASE=f"{gateway}/openai/v1",
        OPENAI_API_KEY=token,
        ANTHROPIC_BASE_URL=f"{gateway}/anthropic",
        ANTHROPIC_API_BASE=f"{gateway}/anthropic",
        ANTHROPIC_API_KEY=token,
        GEMINI_API_BASE=f"{gateway}/gemini/v1beta",
        GEMINI_API_KEY=token,
    )
    import litellm

    litellm.suppress_debug_info = True

    def ask(model: str, **more: Any) -> Any:
        return litellm.completion(model=model, messages=MESSAGES, num_retries=0, max_retries=0, **more)

    def text(chunks: Iterable[Any]) -> str:
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    for dialect in ("openai", "anthropic", "gemini"):
        name = f"{dialect}/plain"
        yield f"whole {dialect}", lambda: ask(name).choices[0].message.content
        yield f"stream {dialect}", lambda: text(ask(name, stream=True))
        yield f"busy {dialect}", lambda: ask(f"{dialect}/busy")


def calls_while_the_gateway_dies(gateway: str, token: str) -> Calls:
    """A stream in the midst of which the gateway is killed, and a call after it, by `openai`."""
    import openai

    client = openai.OpenAI(base_url=f"{gateway}/openai/v1", api_key=token, max_retries=0)
    patient = client.with_options(max_retries=100)  # half a second to eight seconds between them
    create = client.chat.completions.create
    stream = iter(create(model="hang", messages=MESSAGES, stream=True))
    yield "begun", lambda: next(stream).choices[0].delta.role
    yield "broken", lambda: [chunk.choices[0].delta.content for chunk in stream]
    yield (
        "next",
        lambda: patient.chat.completions.create(model="plain", messages=MESSAGES).choices[0].message.content,
    )


LIBRARIES: dict[str, Callable[[str, str], Calls]] = {
    "openai": openai_calls,
    "anthropic": anthropic_calls,
    "google-genai": genai_calls,
    "litellm": litellm_calls,
}
KILLED = "openai-killed"


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or the name and status of what it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - of several libraries, each with its own
        response = getattr(error, "response", None)
        headers = getattr(response, "headers", None) or {}
        return {
            "error": type(error).__name__,
            "status": getattr(error, "status_code", getattr(error, "code", None)),
            "retry_after": headers.get("retry-after"),
            "text": str(error)[:500],
        }


def main() -> None:
    library, gateway, token = sys.argv[1:]
    for name, call in {**LIBRARIES, KILLED: calls_while_the_gateway_dies}[library](gateway, token):
        print(json.dumps([name, outcome(call)]), flush=True)


if __name__ == "__main__":
    main()
