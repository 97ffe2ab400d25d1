"""Providers as companies have them: where their keys come from, and what their calls look like."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mlebench_console.engine.providers import all_providers
from mlebench_console.environment.gateway.keys import read_key
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.foundation.problems import EnvironmentProblem
from tests.environment.gateway.provider import KEY
from tests.environment.gateway.test_official_clients import _calls_by
from tests.environment.gateway.test_server import Start, asking, start

__all__ = ["start"]

DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"
# By provider: the API of a call, where it arrives, and in which header the key.
EXAMPLES = {
    "azure": ("chat", "/openai/v1/chat/completions?api-version=preview", {"api-key": KEY}),
    "vertex": (
        "chat",
        "/v1/projects/PROJECT/locations/us-central1/endpoints/openapi/chat/completions",
        {"authorization": f"Bearer {KEY}"},
    ),
    "bedrock": ("chat", "/openai/v1/chat/completions", {"authorization": f"Bearer {KEY}"}),
    "openrouter": (
        "chat",
        "/api/v1/chat/completions",
        {"authorization": f"Bearer {KEY}", "x-title": "MLE-bench"},
    ),
    "proxy": (
        "messages",
        "/anthropic/v1/messages",
        {"authorization": f"Bearer {KEY}", "x-team": "research"},
    ),
}


def as_documented(folder: Path, name: str) -> Callable[[ModelProvider], ModelProvider]:
    """Return what gives a provider on localhost all that the documentation's example of a name has."""
    (examples,) = re.findall(r"```toml\n(\[providers.azure\].*?)```", DOCS.read_text(), re.DOTALL)
    (folder / "config.toml").write_text(examples)
    example = all_providers(folder / "config.toml")[name]

    def changed(provider: ModelProvider) -> ModelProvider:
        host = urlsplit(provider.url).netloc
        here = urlsplit(example.url)._replace(scheme="http", netloc=host).geturl()
        own = provider.dialect == example.dialect
        return replace(example, name=provider.name, url=here) if own else provider

    return changed


@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_documented_examples_reach_their_providers(start: Start, tmp_path: Path, name: str) -> None:
    api, target, headers = EXAMPLES[name]
    between = await start(changed=as_documented(tmp_path, name))
    async with between.post(*asking(api, "plain", stream=False)) as answer:
        assert answer.status == 200
    (asked,) = between.provider.asked
    assert asked.target == target
    assert headers.items() <= {name.lower(): value for name, value in asked.headers.items()}.items()


@pytest.mark.parametrize("name", ["azure", "vertex", "bedrock", "openrouter"])
async def test_the_official_client_works_with_the_documented_examples(
    start: Start, tmp_path: Path, official_clients: Path, name: str
) -> None:
    between = await start(changed=as_documented(tmp_path, name), drain_seconds=0.0)
    told = await _calls_by(official_clients, "openai", between.url)
    assert (told["whole plain"], told["stream plain"]) == ("Hello, world", "Hello, world")


@pytest.mark.parametrize("source", ["file", "command"])
async def test_a_key_that_has_expired_is_read_again_and_the_call_sent_again(
    start: Start, tmp_path: Path, source: str
) -> None:
    path = tmp_path / "key"
    path.write_text("old-key\n")

    def changed(provider: ModelProvider) -> ModelProvider:
        if source == "file":
            return replace(provider, key_file=str(path))
        return replace(provider, key_command=f"cat '{path}'")

    between = await start(changed=changed, key="old-key")
    async with between.post(*asking("chat", "plain", stream=False)) as answer:
        assert answer.status == 401
    assert len(between.provider.asked) == 1, "the key is the same"
    path.write_text(f"{KEY}\n")
    between.gateway._renewed_at.clear()
    for _ in range(2):
        async with between.post(*asking("chat", "plain", stream=True)) as answer:
            assert answer.status == 200
    assert len(between.provider.asked) == 4
    left = [one for one in tmp_path.rglob("*") if one != path and one.is_file()]
    assert not any(KEY in one.read_text() for one in left)


@pytest.mark.parametrize(
    "source",
    [
        ("key_file", "FOLDER/none"),
        ("key_file", "FOLDER/two-lines"),
        ("key_file", "FOLDER/foreign"),
        ("key_command", "exit 3"),
        ("key_command", "true"),
        ("key_command", "echo a; echo b"),
    ],
)
def test_what_is_no_key_is_refused_without_its_text(tmp_path: Path, source: tuple[str, str]) -> None:
    (tmp_path / "two-lines").write_text("secret-1\nsecret-2\n")
    (tmp_path / "foreign").write_text("secret-ü")
    kind, value = source
    provider = ModelProvider("p", "openai", "https://x")
    value = value.replace("FOLDER", str(tmp_path))
    provider = (
        replace(provider, key_file=value) if kind == "key_file" else replace(provider, key_command=value)
    )
    with pytest.raises(EnvironmentProblem, match="the key of the provider 'p' can't be read") as refused:
        read_key(provider)
    assert "secret" not in str(refused.value)
