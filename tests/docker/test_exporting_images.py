"""An image is written into one file with all that a host without a daemon has to know of it."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.images import connect, export, exported
from mlebench_console.environment.runner.process import image_cache
from mlebench_console.foundation.problems import EnvironmentProblem
from tests.docker.conftest import having_the_daemon
from tests.environment.runner.small_image import small_image

NAME = "mlebench-test-small"


@pytest.fixture
def small() -> Iterator[str]:
    """A small image at the daemon."""
    changes = ["ENV OWN=value=with=signs", 'LABEL mlebench.recipe="abc" mlebench.environment="def"']
    with having_the_daemon():
        connect().import_image(src=small_image().path, repository=NAME, tag="latest", changes=changes)
        yield NAME
        connect().remove_image(NAME, force=True)


def test_an_exported_image_tells_what_it_is_and_unpacks_to_what_the_daemon_has(
    small: str, tmp_path: Path
) -> None:
    folder = tmp_path / "images"
    one = export(connect(), small, folder)
    assert one.image == connect().inspect_image(small)["Id"]
    assert dict(one.labels)["mlebench.recipe"] == "abc"
    assert dict(one.variables)["OWN"] == "value=with=signs"
    assert (one.user, one.uid, one.gid, one.home) == ("nonroot", 1000, 1000, "/home/nonroot")
    root = image_cache.unpacked(one, tmp_path / "cache")
    assert (root / "etc/mark").read_text() == "as it was built\n"
    assert (root / "usr/bin/bash").stat().st_mode & 0o111
    assert sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) < one.unpacked_bytes
    assert json.loads(Path(f"{one.path}.json").read_text())["sha256"] == one.sha256
    assert [known.path for known in exported(folder)] == [one.path]
    with tarfile.open(small_image().path) as archive:
        assert {path.name for path in root.iterdir()} >= {
            name for name in archive.getnames() if "/" not in name
        }
    assert connect().containers(all=True, filters={"name": "mlebench-export-"}) == []


def test_an_image_without_the_agents_user_is_not_exported(small: str, tmp_path: Path) -> None:
    other = replace(small_image(), name="other")
    with tarfile.open(tmp_path / "empty.tar", "w") as archive:
        archive.add(other.path, "file")
    connect().import_image(src=str(tmp_path / "empty.tar"), repository=f"{NAME}-empty", tag="latest")
    try:
        with pytest.raises(EnvironmentProblem):
            export(connect(), f"{NAME}-empty", tmp_path / "images")
    finally:
        connect().remove_image(f"{NAME}-empty", force=True)
    assert exported(tmp_path / "images") == []
