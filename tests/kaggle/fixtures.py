"""The loopback Kaggle as a fixture; its port is fixed by the client, so tests of several processes take turns."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition
from mlebench_console.engine.datasets import facts
from mlebench_console.foundation.locks import FileLock
from tests.kaggle.loopback import KEY, USERNAME, Loopback

_PATIENCE_SECONDS = 240.0
LOSS = "spooky-author-identification"  # lower is better


# Where Kaggle's client looks for the loopback one.
ENVIRONMENT = {"KAGGLE_API_ENVIRONMENT": "TEST", "NO_PROXY": "localhost,127.0.0.1"}


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch, clean_environment: Path) -> Iterator[Loopback]:
    """Kaggle, with credentials that it knows in the test's home."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with loopback_kaggle(clean_environment) as server:
        yield server


@contextmanager
def loopback_kaggle(home: Path) -> Iterator[Loopback]:
    """Serve Kaggle when it is our turn, with credentials that it knows in a home."""
    # A file for each user: another's can't be opened.
    turn = FileLock(Path(tempfile.gettempdir()) / f"mlebench-loopback-kaggle-{os.getuid()}.lock")
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while not turn.acquire():
        assert time.monotonic() < give_up, "another test holds the loopback Kaggle's port"
        time.sleep(0.05)
    with turn:
        login(home)
        server = Loopback()
        try:
            yield server
        finally:
            server.close()


@pytest.fixture
def competition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Competition:
    """A copy of a competition whose facts may be changed."""
    folder = tmp_path / LOSS
    folder.mkdir()
    shutil.copy(registry.get(LOSS).folder / "competition.toml", folder)
    copy = dataclasses.replace(registry.get(LOSS), folder=folder)
    monkeypatch.setattr(facts, "registry", type("Registry", (), {"get": staticmethod(lambda _: copy)}))
    return copy


def login(home: Path, username: str = USERNAME, key: str = KEY) -> None:
    """Put credentials where Kaggle's client looks for them."""
    folder = home / ".kaggle"
    folder.mkdir(exist_ok=True)
    (folder / "kaggle.json").write_text(json.dumps({"username": username, "key": key}))
    (folder / "kaggle.json").chmod(0o600)
