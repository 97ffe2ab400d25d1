"""Every step of a Dockerfile gets a build's secrets, and an image's recipe covers all that gets into the image."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.images import recipes_for
from mlebench_console.engine.images.dockerfiles import copied, with_secrets

FOREIGN = """\
# syntax=docker/dockerfile:1
ARG BASE=mlebench-env
FROM ${BASE} AS first
# RUN in a comment
RUN apt-get update && \\
    # why
    apt-get install -y x

run --network=none ["pip", "install", "RUN"]
COPY --chmod=644 a.txt b \\
    /opt/
RUN <<EOF
RUN is a word of the script here
EOF
FROM mlebench-env
COPY --from=first /x /y
ADD . /home/agent
"""
MOUNT = "--mount=type=secret,id=pip,target=/run/secrets/pip,mode=0444"
VARIABLE = "ARG PIP_CONFIG_FILE=/run/secrets/pip\n"


def test_every_step_of_every_stage_is_given_the_secrets_and_nothing_else_is_changed() -> None:
    changed = with_secrets(FOREIGN, ["pip"])
    assert changed.count(VARIABLE) == 2
    assert f"FROM ${{BASE}} AS first\n{VARIABLE}" in changed
    assert f"RUN {MOUNT} apt-get update && \\\n    # why\n    apt-get install -y x\n" in changed
    assert f'run {MOUNT} --network=none ["pip", "install", "RUN"]\n' in changed
    assert f"RUN {MOUNT} <<EOF\nRUN is a word of the script here\nEOF\n" in changed
    assert changed.replace(f"{MOUNT} ", "").replace(VARIABLE, "") == FOREIGN


def test_certificates_are_found_by_all_that_fetch() -> None:
    changed = with_secrets("FROM x\nRUN \\\n  curl y\n", ["ca"])
    for variable in ("SSL_CERT_FILE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"):
        assert f"ARG {variable}=/run/secrets/ca\n" in changed
    assert changed.endswith("RUN --mount=type=secret,id=ca,target=/run/secrets/ca,mode=0444 \\\n  curl y\n")


def test_what_is_copied_from_the_context_is_named() -> None:
    assert copied(FOREIGN) == ("a.txt", "b", ".")


@pytest.mark.parametrize("name", ["mlebench-env", "mlebench-grader"])
def test_a_recipe_changes_with_every_file_that_gets_into_the_image(name: str, tmp_path: Path) -> None:
    (recipe,) = recipes_for([name], [])
    folders = tuple(tmp_path / folder.name for folder in recipe.folders)
    for folder, copy in zip(recipe.folders, folders, strict=True):
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    mine = replace(recipe, folders=folders, dockerfile=tmp_path / "environment" / recipe.dockerfile.name)
    before = mine.version()
    assert before == recipe.version()
    named = [part for part in copied(mine.dockerfile.read_text()) if part != "."]
    inside = [tmp_path / "environment" / part for part in named] or [
        tmp_path / "competitions" / "grader.py",
        tmp_path / "environment" / "container" / "services.py",
        tmp_path / "foundation" / "files.py",
    ]
    for file in (mine.dockerfile, *inside):
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert mine.version() != before, file
        file.write_bytes(content)
    # What is not in the image says nothing about it.
    (tmp_path / "environment" / "agents" / "dummy" / "start.sh").write_text("other\n")
    assert mine.version() == before
    if name == "mlebench-env":
        (tmp_path / "environment" / "runner" / "loop.py").write_text("other\n")
        assert mine.version() == before
