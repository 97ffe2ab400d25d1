"""A dataset is worked on by one process at a time, wherever the others run; the dead hold nothing."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench_console.engine import claims
from mlebench_console.engine.claims import Claimed, claimed, claimed_folder
from mlebench_console.engine.space import DiskFull

ELSEWHERE = {"token": "t", "host": "other", "place": "boot:1", "pid": 1, "started": "1"}
HOLD = """
import os, signal, sys
from pathlib import Path
from mlebench_console.engine.claims import claimed
with claimed(Path(sys.argv[1]), "x"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".claim"


def test_the_second_is_told_who_holds_it(path: Path) -> None:
    with claimed(path, "leaves"):
        with (
            pytest.raises(Claimed, match=f"leaves: another process works on it: process {os.getpid()}"),
            claimed(path, "leaves"),
        ):
            pass
        assert path.exists()
    assert list(path.parent.iterdir()) == []
    with claimed(path, "leaves"):
        pass


def test_a_killed_holder_is_known_at_once(path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", HOLD, str(path)])
    assert killed.returncode == -signal.SIGKILL
    assert path.exists()
    with claimed(path, "leaves"):
        pass
    assert list(path.parent.iterdir()) == []


def test_a_holder_on_another_host_is_believed_as_long_as_its_heart_beats(path: Path) -> None:
    path.write_text(json.dumps(ELSEWHERE))
    with pytest.raises(Claimed, match="process 1 on other"), claimed(path, "leaves"):
        pass
    long_ago = path.stat().st_mtime - 2 * claims._STALE_SECONDS
    os.utime(path, (long_ago, long_ago))
    with claimed(path, "leaves"):
        assert json.loads(path.read_bytes())["pid"] == os.getpid()


def test_a_held_claim_is_touched(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "HEARTBEAT_SECONDS", 0.01)
    with claimed(path, "leaves"):
        os.utime(path, (1, 1))
        while path.stat().st_mtime == 1:
            pass


def test_half_a_claim_is_not_taken_for_none(path: Path) -> None:
    path.write_text('{"token": ')
    with pytest.raises(Claimed, match="can't be read"), claimed(path, "leaves"):
        pass


def test_a_disk_that_is_too_full_for_the_claim_itself_is_told_by_name_and_left_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = tmp_path / "leaves"
    monkeypatch.setattr(Path, "write_text", full)
    with (
        pytest.raises(DiskFull, match=f"the disk is full: writing in {folder} failed"),
        claimed_folder(folder, folder / ".claim", "leaves"),
    ):
        pass
    assert list(folder.iterdir()) == []
