"""Streams of events as they are read while they pass: however they are cut, whatever their line ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.environment.gateway.dialects import AnswerReader, Api, EventStream, TokenUsage
from tests.environment.gateway import provider

_LIMIT = 1 << 20
_STREAMS = {
    Api.CHAT: provider.chat({"stream_options": {"include_usage": True}}, "m", usage=True)[1],
    Api.RESPONSES: provider.responses("m", usage=True)[1],
    Api.MESSAGES: provider.messages("m", usage=True)[1],
    Api.GENERATE: provider.gemini("m", usage=True)[1],
}
_USAGE = TokenUsage(input_tokens=20, cached_tokens=5, output_tokens=9, reasoning_tokens=4)


@given(
    api=st.sampled_from(tuple(_STREAMS)),
    line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 3000), max_size=30),
)
def test_a_stream_passes_whole_but_for_its_usage_wherever_it_is_cut(
    api: Api, line_end: bytes, cuts: list[int]
) -> None:
    events = [event.replace(b"\n", line_end) for event in _STREAMS[api]]
    content = b"".join(events)
    places = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    reader = AnswerReader(api)
    stream = EventStream(reader, _LIMIT)
    passed = [stream.feed(content[start:end]) for start, end in pairwise(places)]
    expected = [event for event in events if b'"choices": []' not in event]
    assert b"".join([*passed, stream.rest()]) == b"".join(expected)
    assert reader.usage == (TokenUsage(20, 5, 3, 2, 9) if api is Api.MESSAGES else _USAGE)
    assert reader.model == "m-2026"
    assert reader.characters >= len(provider.TEXT)


def test_counts_that_a_later_event_leaves_out_stay() -> None:
    reader = AnswerReader(Api.MESSAGES)
    reader.read(b'{"usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}')
    reader.read(b'{"usage": {"input_tokens": 10, "cache_read_input_tokens": null, "output_tokens": 7}}')
    assert reader.usage == TokenUsage(input_tokens=15, cached_tokens=5, output_tokens=7)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_an_event_that_is_too_long_passes_unread_and_the_next_one_is_read(size: int) -> None:
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}\n\n'
    long = b'data: {"padding": "' + b"x" * 5000 + b'"}\n\n'
    reader = AnswerReader(Api.CHAT)
    stream = EventStream(reader, 1000)
    content = long + usage + b"data: [DONE]"
    passed = [stream.feed(content[start : start + size]) for start in range(0, len(content), size)]
    assert b"".join([*passed, stream.rest()]) == long + b"data: [DONE]"
    assert (reader.usage.input_tokens, reader.usage.output_tokens) == (3, 2)
