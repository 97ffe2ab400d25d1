"""Tricks of an agent that hunts for the operator's key: none gets it, or leads a call elsewhere."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from tests.environment.gateway import hunter
from tests.environment.gateway.provider import KEY
from tests.environment.gateway.test_server import TOKEN, Start, asking, start

__all__ = ["start"]

TRICKS = hunter.tricks(TOKEN)


async def test_no_trick_makes_the_gateway_tell_its_key_or_call_elsewhere(start: Start) -> None:
    between = await start()
    url = urlsplit(between.url)
    assert url.hostname
    assert url.port
    for name, request in TRICKS.items():
        answer = await asyncio.to_thread(hunter.answer_to, (url.hostname, url.port), request)
        assert KEY.encode() not in answer, name
        assert answer.startswith(b"HTTP/") or not answer, name
        for asked in between.provider.asked:
            assert (asked.method, asked.target) == ("POST", "/v1/chat/completions"), name
            assert "evil" not in str(asked.headers), name
            assert not {"X-Injected", "Cookie", "Via", "Range"} & set(asked.headers), name
            assert TOKEN not in str(asked), name
        between.provider.asked.clear()
    async with between.post(*asking("chat", "plain", stream=False)) as answer_after_all:
        assert answer_after_all.status == 200
