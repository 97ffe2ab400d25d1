"""What an agent can reach from inside its sandbox, and what it can leave for us to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.redaction import MARK
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.code_snapshots import read_kept, read_snapshot
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.state import database, events
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import Run
from tests.engine.harness import COMPETITION, SUBMIT, Harness

pytestmark = pytest.mark.usefixtures("bubblewrap")

LOOK_AROUND = r"""
import json, os, pathlib, socket, urllib.request

def tried(action):
    try:
        return repr(action())
    except Exception as error:
        return type(error).__name__

def writes(path):
    return tried(lambda: pathlib.Path(path, "probe").write_text("x"))

def secret_files():
    for parent, folders, files in os.walk("/"):
        if parent == "/":
            folders[:] = [name for name in folders if name not in ("proc", "usr")]
        for name in files:
            if "private" in parent.split("/") or name in ("answers.csv", "state.db", "run.json"):
                yield os.path.join(parent, name)

facts = {
    "variables": dict(os.environ),
    "user": os.getuid(),
    "answers": list(secret_files()),
    "roots": sorted(os.listdir("/")),
    "home": sorted(os.listdir("/home")),
    "etc": sorted(os.listdir("/etc")),
    "data": writes("/home/data"),
    "system": writes("/usr"),
    "python": writes(os.environ["MLEBENCH_ENV_AGENT"]),
    "root": writes("/"),
    "agent": writes("/home/agent"),
    "temporary": writes("/tmp"),
    "processes": [path.read_text() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")],
    "outside": tried(lambda: socket.create_connection(("192.0.2.1", 80), 2)),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "health": tried(lambda: urllib.request.urlopen(os.environ["VALIDATION_URL"] + "/health", timeout=20).read()),
    "hostname": socket.gethostname(),
}
pathlib.Path(os.environ["LOGS_DIR"], "facts.json").write_text(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def secret_value() -> str:
    return "sk-very-secret-value-of-a-test"


@pytest.fixture
def looked(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, secret_value: str
) -> tuple[Harness, Run, dict[str, Any]]:
    """An agent that has looked around, launched by an engine that has secrets of its own."""
    monkeypatch.setenv("KAGGLE_KEY", "the engine's own key")
    monkeypatch.setenv("MODEL_KEY", secret_value)
    harness.agent(
        "looker",
        'python "$AGENT_DIR/look.py"; echo "$0 was told $*"; printf "key %s" "${API_KEY%test}"; sleep 0.2;'
        ' echo test; echo "${#API_KEY}"; exit 7',
        extra="  kwargs_type: argparse\n  kwargs:\n    words: it's two\n    token: ${{ secrets.MODEL_KEY }}\n"
        "  env_vars:\n    API_KEY: ${{ secrets.MODEL_KEY }}\n    EXTRA: told\n",
    )
    (harness.agents_dir / "looker" / "look.py").write_text(LOOK_AROUND)
    harness.start()
    harness.launch("looker", seeds=1)
    (run,) = harness.ended()
    facts = json.loads((harness.folder(run) / protocol.LOGS / "facts.json").read_text())
    return harness, run, facts


def test_an_agent_in_its_sandbox_reaches_its_own_things_alone(
    looked: tuple[Harness, Run, dict[str, Any]], secret_value: str
) -> None:
    harness, run, facts = looked
    assert run.failure_class is FailureClass.CRASH
    assert "key [secret]" in harness.attempts(run)[0].evidence
    assert (
        harness.log(run) == "/home/agent/start.sh was told --words it's two --token [secret]\nkey [secret]\n"
        f"{len(secret_value)}\n"
    )
    assert facts["processes"]
    assert not any(secret_value in line or MARK in line for line in facts["processes"])
    assert facts["answers"] == []
    assert facts["user"] == 1000
    assert facts["hostname"] == "sandbox"
    assert [name for name in facts["home"] if name != "nonroot"] == [
        "agent",
        "code",
        "data",
        "instructions.txt",
        "instructions_obfuscated.txt",
        "logs",
        "submission",
        "validate_submission.sh",
    ]
    assert "shadow" not in facts["etc"]
    for place in ("data", "system", "python", "root"):
        assert facts[place] in ("OSError", "PermissionError"), place
    assert facts["agent"] == facts["temporary"] == "1"
    assert facts["interfaces"] == ["lo"]
    assert facts["outside"] in ("OSError", "TimeoutError")
    assert "running" in facts["health"]
    assert not any("supervisor" in line or "shim" in line for line in facts["processes"])
    own = facts["variables"]
    assert own.pop("API_KEY") == MARK  # what it wrote is clean, too
    assert own.pop("EXTRA") == "told"
    documented = Path("docs/run-directory.md").read_text()
    shells = {"PWD", "SHLVL", "_", "OLDPWD"}
    for name in set(own) - shells:
        assert f"`{name}`" in documented, f"{name} is not documented"
    assert own["COMPETITION_ID"] == COMPETITION
    assert own["SEED"] == own["ATTEMPT"] == "1"
    written = [path for path in harness.places.state_dir.rglob("*") if path.is_file()]
    assert written
    for path in written:
        assert secret_value.encode() not in path.read_bytes(), path
    with pytest.raises(EnvironmentProblem, match="gone"):
        secrets.path_of(harness.folder(run))


def test_code_is_kept_while_its_agent_works_and_without_its_secrets(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, secret_value: str
) -> None:
    monkeypatch.setenv("MODEL_KEY", secret_value)
    harness.agent(
        "writer",
        'printf "key = %s" "$API_KEY" > "$CODE_DIR/main.py";'
        ' cp /home/data/sample_submission.csv "$SUBMISSION_DIR/submission.csv"; sleep 2; rm "$CODE_DIR/main.py"',
        extra="  env_vars:\n    API_KEY: ${{ secrets.MODEL_KEY }}\n",
    )
    harness.start()
    harness.launch("writer", seeds=1)
    (run,) = harness.ended()
    folder = harness.folder(run)
    found = read_snapshot(folder, 1)
    assert found is not None
    (main,) = (each for each in found.files if each.path == "main.py")
    assert read_kept(folder, main).decode() == f"key = {MARK}"
    with pytest.raises(EnvironmentProblem, match="gone"):
        secrets.read_hidden(folder)


def test_a_key_in_a_submission_is_in_no_message_and_is_told(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, secret_value: str
) -> None:
    monkeypatch.setenv("MODEL_KEY", secret_value)
    submit = 'printf "PassengerId,Transported\\n%s,True\\n" "$API_KEY" > "$SUBMISSION_DIR/submission.csv"'
    harness.agent("leaker", submit, extra="  env_vars:\n    API_KEY: ${{ secrets.MODEL_KEY }}\n")
    harness.start()
    harness.launch("leaker", seeds=1)
    (run,) = harness.ended()
    assert run.outcome is Outcome.INVALID
    state = database.open_for_reading(harness.places.state_dir)
    told = [event.text for event in events.newest(state, run_id=run.id) if event.kind == "run.unsearched"]
    state.close()
    assert len(told) == 1 and "snapshots/1.csv holds a secret" in told[0], told
    for path in harness.places.state_dir.glob("state.db*"):
        assert secret_value.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("trick", "telling"),
    [
        ('ln -s /home/data/sample_submission.csv "$SUBMISSION_DIR/submission.csv"', "symbolic link"),
        ('mkfifo "$SUBMISSION_DIR/submission.csv"', "not a regular file"),
        ('mkdir "$SUBMISSION_DIR/submission.csv"', "not a regular file"),
        (
            "python -c \"import os,socket; os.chdir(os.environ['SUBMISSION_DIR']);"
            " socket.socket(socket.AF_UNIX).bind('submission.csv')\"",
            "not",
        ),
    ],
    ids=["symlink", "fifo", "directory", "socket"],
)
def test_what_is_no_regular_file_is_no_submission(harness: Harness, trick: str, telling: str) -> None:
    harness.agent("trickster", trick)
    harness.start()
    harness.launch("trickster")
    (run,) = harness.ended()
    assert run.outcome is Outcome.NO_SUBMISSION
    ended = protocol.read(harness.folder(run) / protocol.EXIT, Ending)
    assert telling in ended.submission_problem


def test_without_a_sandbox_the_run_says_so_and_still_gets_no_foreign_variables(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_KEY", "the engine's own key")
    check = '"$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv"'
    harness.agent("plain", f'env > "$LOGS_DIR/variables"; {SUBMIT}; {check}')
    harness.start()
    harness.launch("plain", runtime="plain")
    (run,) = harness.ended()
    assert run.state is RunState.FINISHED
    assert "The submission is valid." in harness.log(run)
    (attempt,) = harness.attempts(run)
    assert attempt.isolated is False
    assert "KAGGLE_KEY" not in (harness.folder(run) / protocol.LOGS / "variables").read_text()
    state = database.open_for_reading(harness.places.state_dir)
    try:
        assert any("not isolated" in event.text for event in events.newest(state, run_id=run.id))
    finally:
        state.close()
