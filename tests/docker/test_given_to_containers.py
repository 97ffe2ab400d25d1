"""What containers are given beside the dataset: the obfuscated texts, a competition of the user's own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.descriptions import obfuscated_description
from mlebench_console.engine.places import Places
from mlebench_console.environment import __path__ as environment_path
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import RunState
from tests.docker.conftest import having_the_daemon
from tests.docker.harness import DockerHarness
from tests.engine.harness import COMPETITION, SUBMIT, lines

OWN = Path(__file__).parents[1] / "competitions" / "own"
OWN_ID = "harbour-tides"


def test_an_obfuscated_run_finds_both_texts_in_their_usual_places(docker: DockerHarness) -> None:
    docker.agent("reader", f'cp /home/data/description.md /home/instructions.txt "$LOGS_DIR"; {SUBMIT}')
    docker.start()
    docker.launch("reader", obfuscated=True)
    (run,) = docker.ended()
    assert run.state is RunState.FINISHED, docker.log(run)
    logs = docker.folder(run) / protocol.LOGS
    told = Path(environment_path[0], "instructions_obfuscated.txt").resolve()
    assert (logs / "instructions.txt").read_text() == told.read_text()
    assert (logs / "description.md").read_text() == obfuscated_description(registry.get(COMPETITION), "v1")
    docker.until_clean()


def test_the_grader_serves_a_competition_of_the_users_own(
    tmp_path: Path, empty_state: Path, images: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(registry.OWN_VARIABLE, str(OWN))
    raw = tmp_path / "raw"
    raw.mkdir()
    rows = [(number, f"H{number // 25}", number % 25, number / 100) for number in range(200)]
    pd.DataFrame(rows, columns=["id", "harbour", "hour", "height"]).to_csv(raw / "tides.csv", index=False)
    prepare_competition(OWN_ID, data_dir=tmp_path / "data", raw=raw)
    places = Places(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state")
    docker = DockerHarness(places, tmp_path / "agents", empty_state)
    docker.agent("checker", f'{SUBMIT}; /home/validate_submission.sh "$SUBMISSION_DIR/submission.csv"')
    with having_the_daemon():
        docker.start()
        docker.launch("checker", competitions=(OWN_ID,))
        (run,) = docker.ended()
        (call,) = lines(docker.folder(run) / protocol.VALIDATIONS)
        assert call["valid"], docker.log(run)
        assert run.state is RunState.FINISHED
        docker.until_clean()
        docker.close()
