"""The providers of models that config.toml names, and what an agent gets in place of their keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.engine.providers import all_providers, keys_of, providers_of, without_keys
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem


def test_a_known_provider_is_changed_and_another_one_is_added(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[providers.openai]\nkey = "TEAM"\n[providers.vllm]\nurl = "http://h:1/v1"\ninclude_usage = false\n'
    )
    found = all_providers(config)
    assert found["openai"] == ModelProvider("openai", "openai", "https://api.openai.com/v1", "TEAM")
    assert found["vllm"] == ModelProvider("vllm", "openai", "http://h:1/v1", "", include_usage=False)
    assert found["anthropic"].key == "ANTHROPIC_API_KEY"


@pytest.mark.parametrize(
    "text",
    [
        "[providers]\nopenai = 1\n",
        '[providers.openai]\nurl = "ftp://x"\n',
        '[providers.openai]\nurl = "https://user:word@x/v1"\n',
        '[providers.other]\nkey = "K"\n',
        '[providers.openai]\ndialect = "latin"\n',
        '[providers.openai]\ntoken = "x"\n',
        '[providers.openai]\nkey = "K"\nkey_file = "/k"\n',
        '[providers.openai]\nheaders = {"a b" = "c"}\n',
        '[providers.openai]\nheaders = {Host = "evil.example"}\n',
        '[providers.openai]\nheaders = {x-team = "a\\r\\nb: c"}\n',
        '[providers.openai]\nkey_header = "Content-Length"\n',
        '[providers."../x"]\nurl = "https://x"\n',
    ],
)
def test_what_is_no_provider_is_refused_only_where_one_is_asked_for(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    with pytest.raises(UsageProblem, match="providers"):
        providers_of(["openai"], config)
    assert providers_of([], config) == ()


def test_an_agent_gets_the_token_wherever_it_asks_for_a_key(tmp_path: Path) -> None:
    providers = providers_of(["openai", "openai", "gemini"], tmp_path / "none.toml")
    assert len(providers) == 2
    operator = {"OPENAI_API_KEY": "real", "GEMINI_API_KEY": "real too", "OTHER": "own"}
    assert without_keys(providers, operator, "token") == {
        "OPENAI_API_KEY": "token",
        "GEMINI_API_KEY": "token",
        "OTHER": "own",
    }
    assert keys_of(providers, operator) == {"OPENAI_API_KEY": "real", "GEMINI_API_KEY": "real too"}
    with pytest.raises(EnvironmentProblem, match="GEMINI_API_KEY is not set"):
        keys_of(providers, {"OPENAI_API_KEY": "real"})
    with pytest.raises(UsageProblem, match="no provider 'opnai'"):
        providers_of(["opnai"], tmp_path / "none.toml")


def test_a_key_reaches_no_agent_under_another_name(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[providers.openai]\nkey = "TEAM"\n')
    operator = {
        "TEAM": "sk-of-the-team",
        "MINE": "sk-of-the-team",
        "HEADER": "Authorization: Bearer sk-of-the-team",
        "OPENAI_API_KEY": "sk-of-my-own",
        "COPY": "sk-of-my-own",
        "GOOGLE_API_KEY": "of gemini, which also is served",
        "GEMINI_API_KEY": "k",
        "SHORT": "k",
        "OTHER": "talks of k",
        "EMPTY": "",
    }
    given = without_keys(providers_of(["openai", "gemini"], config), operator, "token")
    assert given == {
        **dict.fromkeys(operator, "token"),
        "HEADER": "Authorization: Bearer token",
        "OTHER": "talks of k",
        "EMPTY": "",
    }
