"""What an attempt with a model gateway is given, and what keeps its calls from going around it."""

from __future__ import annotations

from pathlib import Path

from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.runner import layout
from mlebench_console.environment.runner.docker.plans import Role, plans
from tests.environment.runner.orders import order_with

PROVIDERS = (
    ModelProvider("openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ModelProvider("gemini", "gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ModelProvider("my-own", "openai", "http://10.0.0.7:8000/v1"),
)


def test_official_clients_find_the_gateway_by_their_variables() -> None:
    order = order_with(providers=PROVIDERS, model_token="sk-run")
    own = (("GEMINI_API_KEY", "its own"),)
    found = layout.variables(order, layout.sandboxed(), own, port=5000, model_port=5001)
    here = "http://localhost:5001"
    expected = {
        "OPENAI_BASE_URL": f"{here}/openai/v1",
        "OPENAI_API_BASE": f"{here}/openai/v1",
        "OPENAI_API_KEY": "sk-run",
        "GOOGLE_GEMINI_BASE_URL": f"{here}/gemini",
        "GEMINI_API_BASE": f"{here}/gemini/v1beta",
        "GOOGLE_API_KEY": "sk-run",
        "GEMINI_API_KEY": "its own",
        "MY_OWN_BASE_URL": f"{here}/my-own/v1",
    }
    assert expected.items() <= found.items()


def test_hosts_of_the_gateway_are_refused_by_the_proxy(tmp_path: Path) -> None:
    order = order_with(providers=PROVIDERS, network="models", allowed_hosts=("*.openai.com",))
    names = {role: role.value for role in Role}
    made = {plan.role: plan for plan in plans(tmp_path, order, names, None, "outside")}
    assert "--deny=api.openai.com" in made[Role.PROXY].command
    assert "--traffic=/run/traffic/traffic.json" in made[Role.PROXY].command
    written = [bind.source.name for bind in made[Role.PROXY].binds if not bind.read_only]
    assert written == ["services", "proxy"]
    reached = {bind.source for bind in (*made[Role.AGENT].binds, *made[Role.VALIDATION].binds)}
    assert tmp_path / "proxy" not in reached, "what an agent has used is counted where it can't reach"
    assert "--relay=5001:/run/services/gateway.sock" in made[Role.VALIDATION].command
    assert not any("KEY" in part for plan in made.values() for part in plan.command)
