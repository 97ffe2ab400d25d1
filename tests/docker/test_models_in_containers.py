"""Model calls from containers: by the run's gateway, and not around it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlebench_console.environment.gateway import records
from mlebench_console.environment.gateway.records import CallOutcome
from mlebench_console.environment.runner import protocol
from tests.docker.harness import DockerHarness
from tests.engine.harness import SUBMIT, eventually, kill_holder
from tests.engine.test_model_gateway import Elsewhere, assert_nothing_holds, elsewhere
from tests.environment.gateway import hunter
from tests.environment.gateway.provider import KEY, TEXT

__all__ = ["elsewhere"]

_BODY = '{"model": "MODEL", "stream": STREAM, "messages": [{"role": "user", "content": "Hello?"}]}'


def ask(model: str, name: str, *, stream: bool = False) -> str:
    body = _BODY.replace("MODEL", model).replace("STREAM", "true" if stream else "false")
    return (
        f"curl -sN -m 60 -H \"Authorization: Bearer $OPENAI_API_KEY\" -d '{body}' "
        f'"$OPENAI_BASE_URL/chat/completions" > "$LOGS_DIR/{name}"; echo "code $?" > "$LOGS_DIR/{name}.code"\n'
    )


def test_a_container_calls_models_by_its_gateway_which_may_be_killed(
    docker: DockerHarness, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    docker.places.config_file.write_text(f'[engine]\ncpus = 2\n[providers.openai]\nurl = "{elsewhere.url}"\n')
    around = f'curl -s -m 10 --noproxy "" {elsewhere.url}/models > "$LOGS_DIR/around"\n'
    hunt = Path(hunter.__file__).read_text()
    hunting = f"python3 - {KEY[::-1]} > \"$LOGS_DIR/hunted\" << 'END'\n{hunt}END\n"
    again = f"for n in 1 2 3 4 5 6 7 8 9; do {ask('plain', 'again').strip()}; "
    again += 'grep -q Hello "$LOGS_DIR/again" && break; sleep 1; done\n'
    docker.agent(
        "caller",
        around + ask("plain", "first") + ask("pause", "broken", stream=True) + again + hunting + SUBMIT,
    )
    docker.start()
    docker.launch(
        "caller", network="models", allowed_hosts=["127.0.0.1", "*.example.org"], gateway=["openai"], cpus=1
    )
    (run,) = docker.all_in("running")
    logs = docker.folder(run) / protocol.LOGS
    eventually(lambda: (logs / "broken").exists() and (logs / "broken").stat().st_size > 0)
    kill_holder(docker.folder(run) / protocol.GATEWAY_LOCK)
    (run,) = docker.ended()
    told = {path.name: path.read_text() for path in logs.iterdir()}
    assert json.loads(told["first"])["choices"][0]["message"]["content"] == TEXT
    assert told["broken.code"] != "code 0\n"
    assert TEXT in told["again"]
    assert "not among the hosts" in told["around"]
    hunted = json.loads(told["hunted"])
    assert hunted["found"] == []
    assert hunted["answered"] > 50
    calls = records.read_calls(docker.folder(run) / protocol.MODEL_CALLS)
    assert [call.outcome for call in calls[:3]] == [CallOutcome.OK, CallOutcome.LOST, CallOutcome.OK]
    assert_nothing_holds(docker.places.state_dir, KEY)
    docker.until_clean()
