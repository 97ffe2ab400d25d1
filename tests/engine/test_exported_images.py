"""Agents in their exported images: the file of a launch is the one that is meant, and the run tells where it ran."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.agents import get_agent
from mlebench_console.engine.control import RefusedRequest
from mlebench_console.engine.images import exported, images_of_runs, import_image
from mlebench_console.engine.places import images_folder
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state.lifecycle import Outcome
from tests.engine.harness import SUBMIT, Harness
from tests.engine.test_model_gateway import Elsewhere, elsewhere
from tests.environment.gateway.provider import KEY, TEXT
from tests.environment.runner.small_image import small_image

__all__ = ["elsewhere"]

pytestmark = pytest.mark.usefixtures("bubblewrap")


def agent_with_image(harness: Harness, script: str) -> ImageFile:
    """Write an agent with a Dockerfile, and return an image for it as it would be exported."""
    extra = f"  dockerfile: boxed/Dockerfile\n  env_vars:\n    SCRIPT: {json.dumps(script)}\n"
    harness.agent("boxed", "exit 99", extra=extra)  # what counts is in the image
    (harness.agents_dir / "boxed" / "Dockerfile").write_text("FROM mlebench-env\n")
    own, _ = images_of_runs(get_agent("boxed", [harness.agents_dir]))
    return replace(small_image(), name=own.name, labels=own.labels)


def exported_elsewhere(image: ImageFile, folder: Path) -> Path:
    """Put an image file where somebody has brought it, with what is known of it beside it."""
    folder.mkdir()
    file = folder / "brought.tar.gz"
    file.hardlink_to(image.path)
    protocol.write(folder / "brought.tar.gz.json", replace(image, path="/where/it/was/made.tar.gz"))
    return file


CALL = """
body='{"model": "plain", "messages": [{"role": "user", "content": "Hello?"}]}'
curl -s -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' -d "$body" \\
    "$OPENAI_BASE_URL/chat/completions"
"""


def test_a_run_in_an_image_that_was_brought_along_ends_as_any_other(
    harness: Harness, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    harness.places.config_file.write_text(
        f'[engine]\ncpus = 2\n[providers.openai]\nurl = "{elsewhere.url}"\n'
    )
    image = agent_with_image(harness, f"{CALL}{SUBMIT}")
    harness.start()
    with pytest.raises(RefusedRequest, match="the image boxed is not exported"):
        harness.launch("boxed", runtime="auto")
    brought = import_image(exported_elsewhere(image, tmp_path / "usb"), images_folder(harness.places))
    assert [one.path for one in exported(images_folder(harness.places))] == [brought.path]
    harness.launch("boxed", runtime="auto", gateway=["openai"])
    (run,) = harness.ended()
    assert TEXT in harness.log(run), "models are reached by the gateway, without their key"
    assert run.outcome is Outcome.BELOW_MEDIAN, harness.attempts(run)
    (attempt,) = harness.attempts(run)
    assert (attempt.runtime, attempt.isolated) == ("bubblewrap", True)
    assert attempt.image == image.image
    assert attempt.recipe == "+".join(value for _, value in image.labels)
    assert not (harness.folder(run) / protocol.SCRATCH).exists()


def test_an_image_of_other_files_is_refused_and_so_is_a_file_that_was_changed(
    harness: Harness, tmp_path: Path
) -> None:
    image = agent_with_image(harness, "exit 0")
    file = exported_elsewhere(image, tmp_path / "usb")
    folder = images_folder(harness.places)
    import_image(file, folder)
    (harness.agents_dir / "boxed" / "more.py").write_text("changed since\n")
    harness.start()
    with pytest.raises(RefusedRequest, match="the image boxed is built from other files than those in"):
        harness.launch("boxed", runtime="bubblewrap")
    changed = tmp_path / "changed.tar.gz"
    changed.write_bytes(b"other")
    protocol.write(tmp_path / "changed.tar.gz.json", image)
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(DataProblem, match=r"is not the file that changed\.tar\.gz\.json describes"):
        import_image(changed, folder)
    assert {path.name for path in folder.iterdir()} == before


def test_what_only_a_daemon_can_do_and_what_can_not_be_held_is_refused(harness: Harness) -> None:
    agent_with_image(harness, "exit 0")
    harness.agent("bare", "exit 0")
    harness.start()
    with pytest.raises(RefusedRequest, match="has no Dockerfile"):
        harness.launch("bare", runtime="apptainer")
    with pytest.raises(RefusedRequest, match="can't be enforced without isolation"):
        harness.launch("bare", runtime="plain", network="models", allowed_hosts=["example.org"])
    with pytest.raises(RefusedRequest, match="the network 'models' has no hosts"):
        harness.launch("bare", runtime="bubblewrap", network="models")
    with pytest.raises(RefusedRequest, match="does not support keep_containers"):
        harness.launch("boxed", runtime="auto", keep_containers=True)
    assert harness.runs() == []
