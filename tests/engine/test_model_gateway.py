"""Model calls of an agent by its gateway, with a real engine, runner and agent, and a provider on localhost."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from mlebench_console.environment.gateway import records
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.records import CallOutcome
from mlebench_console.environment.runner import protocol
from mlebench_console.state import database, events
from mlebench_console.state.usage import model_calls
from mlebench_console.state.usage.model_calls import ModelUse
from tests.engine.harness import SUBMIT, Harness, eventually, kill_holder, lines
from tests.environment.gateway import hunter
from tests.environment.gateway.provider import KEY, TEXT, Provider

# It may not hold the key itself, or it would find it in its own files and arguments.
AGENT = f"""
cat > "$CODE_DIR/agent.py" <<'PYTHON'
import json, os, time, urllib.error, urllib.request

CODE = os.environ["CODE_DIR"]

def ask(model, stream=False):
    body = {{"model": model, "messages": [{{"role": "user", "content": "Hello?"}}], "stream": stream}}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {{"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}},
    )
    return urllib.request.urlopen(request)

def note(name, value):
    with open(CODE + "/" + name + ".tmp", "w") as stream:
        json.dump(value, stream)
    os.rename(CODE + "/" + name + ".tmp", CODE + "/" + name)

note("first", json.load(ask("plain"))["choices"][0]["message"]["content"])

try:
    answer = ask("pause", stream=True)
    note("pausing", answer.readline().decode())
    while answer.readline():
        pass
    note("broke", "")
except Exception as error:
    note("broke", type(error).__name__)
while True:
    try:
        note("second", json.load(ask("plain"))["choices"][0]["message"]["content"])
        break
    except (OSError, ValueError):
        time.sleep(0.1)
PYTHON
"$MLEBENCH_ENV_AGENT/bin/python" "$CODE_DIR/agent.py"
"$MLEBENCH_ENV_AGENT/bin/python" "$AGENT_DIR/hunter.py" {KEY[::-1]} > "$CODE_DIR/hunted"
{SUBMIT}
"""


class Elsewhere:
    """A provider on a thread of its own."""

    def __init__(self) -> None:
        self.provider: Provider
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._served = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self._served.wait()

    def _serve(self) -> None:
        async def begin() -> web.AppRunner:
            self.provider = Provider()
            runner = web.AppRunner(self.provider.app(), shutdown_timeout=1.0)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            return runner

        runner = self._loop.run_until_complete(begin())
        self._served.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self.provider.go_on.set)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    made = Elsewhere()
    yield made
    made.close()


def test_an_agent_reaches_models_without_a_key_and_a_killed_gateway_counts_no_call_twice(
    harness: Harness, elsewhere: Elsewhere, bubblewrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    harness.places.config_file.write_text(
        f'[engine]\ncpus = 2\n[providers.openai]\nurl = "{elsewhere.url}"\n'
    )
    monkeypatch.setenv("MY_HEADER", f"Bearer {KEY}")
    extra = (
        "  env_vars:\n    OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}\n    MINE: ${{ secrets.MY_HEADER }}\n"
    )
    agent = harness.agent("caller", AGENT, extra=extra)
    shutil.copy(hunter.__file__, harness.agents_dir / "caller" / "hunter.py")
    harness.start()
    harness.launch(agent, gateway=["openai"], runtime="bubblewrap", cpus=1)
    (run,) = harness.until_started()
    code = harness.folder(run) / protocol.CODE
    eventually((code / "pausing").exists)
    kill_holder(harness.folder(run) / protocol.GATEWAY_LOCK)
    (run,) = harness.ended()
    assert run.state == "finished"

    assert json.loads((code / "first").read_text()) == TEXT
    hunted = json.loads((code / "hunted").read_text())
    assert hunted["found"] == []
    assert hunted["answered"] > 50
    assert json.loads((code / "second").read_text()) == TEXT
    folder = harness.folder(run)
    calls = records.read_calls(folder / protocol.MODEL_CALLS)
    assert [call.outcome for call in calls[:3]] == [CallOutcome.OK, CallOutcome.LOST, CallOutcome.OK]
    assert calls[0].usage == TokenUsage(20, 5, None, None, 9, 4)
    whole = sum(call.outcome is CallOutcome.OK and call.model == "plain-2026" for call in calls)
    assert 2 < whole < len(calls)
    uses = {use.model: use for use in used(harness, run.id)}
    counted = {name: (use.calls, use.errors, use.estimated) for name, use in uses.items()}
    assert (counted["plain-2026"], counted["pause"]) == ((whole, 0, 0), (1, 1, 1))
    assert (uses["plain-2026"].input_tokens, uses["plain-2026"].output_tokens) == (20 * whole, 9 * whole)
    assert not (folder / protocol.OPEN_CALLS).exists()
    told = [line["text"] for line in lines(folder / protocol.EVENTS) if line["kind"] == "restarted"]
    assert told == ["was killed by SIGKILL; it is started again"]
    assert_nothing_holds(harness.places.state_dir, KEY)
    assert "Error handling request" not in (folder / protocol.GATEWAY_LOG).read_text()


BUDGET_AGENT = """
ask() {
  curl -s -H "x-api-key: $ANTHROPIC_API_KEY" -d '{"model": "'$2'", "max_tokens": 5, "messages": []}' \
    "$ANTHROPIC_BASE_URL/v1/messages" > "$CODE_DIR/$1"
}
ask 1 busy; ask 2 busy
for n in 3 4 5 6 7; do ask $n plain; done
exit 3
"""


def test_a_budget_ends_an_agent_s_calls_and_is_told(
    harness: Harness, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    root = elsewhere.url.removesuffix("/v1")
    harness.places.config_file.write_text(
        f'[engine]\ncpus = 2\n[providers.anthropic]\nurl = "{root}"\nkey = "TEAM_KEY"\n'
    )
    harness.agent("caller", BUDGET_AGENT)
    harness.start()
    harness.launch("caller", gateway=["anthropic"], budget_calls=5, runtime="plain")
    (run,) = harness.ended()
    code = harness.folder(run) / protocol.CODE
    assert TEXT in (code / "5").read_text()
    assert "used up: 5 calls" in (code / "6").read_text()
    assert len(elsewhere.provider.asked) == 5
    state = database.open_for_reading(harness.places.state_dir)
    assert (run.state, run.failure_class) == ("failed", "budget")
    told = {event.kind: event for event in events.newest(state, run_id=run.id)}
    state.close()
    assert {"run.budget", "run.budget_used_up"} <= set(told)
    assert "anthropic answers 429: slow down" in told["run.provider"].text
    assert told["run.provider"].times == 2


SPENDER = """
while true; do
  curl -sf -H "Authorization: Bearer $OPENAI_API_KEY" -d '{"model": "plain", "messages": []}' \
    "$OPENAI_BASE_URL/chat/completions" >> "$CODE_DIR/answers" || exit 3
  sleep 0.2
done
"""


def test_a_shared_budget_ends_for_all_runs_also_when_engine_and_gateways_are_killed(
    harness: Harness, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    harness.places.config_file.write_text(
        f'[engine]\ncpus = 2\n[providers.openai]\nurl = "{elsewhere.url}"\n'
    )
    harness.agent("spender", SPENDER)
    harness.start()
    harness.launch(
        "spender",
        seeds=2,
        gateway=["openai"],
        runtime="plain",
        sweep_budget_calls=20,
        over_budget="relaunch",
    )
    found = harness.until_started()
    eventually(lambda: len(elsewhere.provider.asked) >= 4)
    harness.kill_engine()
    # A gateway that is killed leaves its agent without an answer, and so ended: the other one goes on.
    kill_holder(harness.folder(found[0]) / protocol.GATEWAY_LOCK)
    harness.start()
    ended = harness.ended()
    counted = sum(use.calls for run in ended for use in used(harness, run.id))
    # Those that were under way when the gateway was killed are counted, and may not have reached the provider.
    assert 20 <= len(elsewhere.provider.asked) <= counted
    assert (ended[1].failure_class, ended[1].excused) == ("budget", True)


def used(harness: Harness, run_id: int) -> list[ModelUse]:
    state = database.open_for_reading(harness.places.state_dir)
    try:
        uses = model_calls.of_run(state, run_id)
    finally:
        state.close()
    return uses


def assert_nothing_holds(folder: Path, key: str) -> None:
    """What the state, logs and run directories hold can be given to anybody."""
    for path in folder.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
