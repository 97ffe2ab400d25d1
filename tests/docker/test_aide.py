"""AIDE, the real package, in a container without network: from a model's scripted answers to a graded submission.

Its calls go by the model gateway, so that the board tells what they cost.
"""

from __future__ import annotations

import http.server
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from mlebench_console.engine.agents import find_agents
from mlebench_console.engine.images import build, connect, recipes_for
from mlebench_console.engine.places import own_agents_folder
from mlebench_console.engine.providers import model_prices
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.own_runs import own_evidence
from mlebench_console.environment.gateway import records
from mlebench_console.environment.gateway.records import CallOutcome
from mlebench_console.environment.runner import protocol
from mlebench_console.state import database
from mlebench_console.state.lifecycle import Outcome
from tests.docker.conftest import CHOICES
from tests.docker.harness import DockerHarness, serving

KEY = "sk-a-key-for-the-scripted-model"
BROKEN = "raise RuntimeError('a first try that fails')"
WORKING = """
import pandas
sample = pandas.read_csv("input/sample_submission.csv")
sample.to_csv("working/submission.csv", index=False)
print("accuracy 0.5")
"""


class ScriptedModel:
    """Speaks as much of OpenAI's chat API as AIDE uses: programs, then reviews of how they ran."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        prompt = request["messages"][0]["content"]
        if not request.get("tools"):
            programs = sum(not one.get("tools") for one in self.asked)
            code = BROKEN if programs == 1 else WORKING
            return {"role": "assistant", "content": f"A plan in a sentence.\n```python\n{code}\n```\n"}
        failed = "a first try that fails" in prompt.rpartition("Execution output")[2]
        review = {"is_bug": failed, "summary": "seen", "metric": 0.5, "lower_is_better": False}
        call = {"name": "submit_review", "arguments": json.dumps(review)}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call", "type": "function", "function": call}],
        }


@contextmanager
def scripted(model: ScriptedModel, address: str) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            model.keys.add(self.headers["Authorization"])
            message = model.answer(json.loads(content))
            body = {
                "id": "answer",
                "object": "chat.completion",
                "created": 1,
                "model": "scripted",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
            }
            answer = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(address, Handler) as port:
        yield port


@pytest.fixture
def aide_image(images: None) -> None:
    """AIDE's image with the package and what it imports, without torch."""
    (recipe,) = recipes_for(["aide"], find_agents([own_agents_folder()]).agents)
    small = replace(recipe, arguments=(*recipe.arguments, ("AIDE_DEPENDENCIES", "imported")))
    build(connect(), small, CHOICES, lambda _line: None)


def test_aide_writes_programs_runs_them_and_hands_in_the_best(
    docker: DockerHarness, aide_image: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = docker.agents_dir / "aide"
    shutil.copytree(own_agents_folder() / "aide", own)
    text = (own / "config.yaml").read_text().replace("agent.steps: 500", "agent.steps: 2")
    (own / "config.yaml").write_text(text)
    address, model = "127.0.0.1", ScriptedModel()
    with scripted(model, address) as port:
        there = f"http://{address}:{port}/v1"
        docker.places.config_file.write_text(
            f'[engine]\ncpus = 2\n[providers.openai]\nurl = "{there}"\n'
            "[model_prices.scripted]\ninput = 1\noutput = 10\n"
        )
        monkeypatch.setenv("OPENAI_BASE_URL", there)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("MODEL_NAME", "scripted")
        docker.start()
        docker.launch("aide/own-server", network="none", gateway=["openai"], time_limit_seconds=240, cpus=1)
        (run,) = docker.ended()
    assert run.outcome is Outcome.BELOW_MEDIAN, docker.log(run)
    assert "2 steps, 1 of them worked" in docker.log(run)
    folder = docker.folder(run)
    assert "working/submission.csv" in (folder / protocol.CODE / "solution.py").read_text()
    assert (folder / protocol.CODE / "journal" / "journal.json").is_file()
    assert model.keys == {f"Bearer {KEY}"}
    assert "Spaceship" in model.asked[0]["messages"][0]["content"]
    calls = records.read_calls(folder / protocol.MODEL_CALLS)
    assert [call.outcome for call in calls] == [CallOutcome.OK] * len(model.asked)
    state = database.open_for_reading(docker.places.state_dir)
    (evidence,) = own_evidence(state, model_prices(docker.places.config_file))
    state.close()
    row = row_of(evidence)
    assert row.costs is not None
    assert row.costs.total == pytest.approx(len(calls) * (1000 * 1 + 100 * 10) / 1_000_000)
    assert (row.costs.measured, row.costs.priced, row.costs.own_prices) == (1, 1, ("scripted",))
    docker.until_clean()
