"""Long recordings are cut into whole pieces."""

from __future__ import annotations

import wave
from pathlib import Path

import pytest

from mlebench_console.competitions.registry import get, load_task
from mlebench_console.foundation.problems import DataProblem

sounds = load_task(get("tensorflow-speech-recognition-challenge")).sounds


def recording(path: Path, frames: int) -> Path:
    with wave.open(str(path), "wb") as made:
        made.setparams((1, 2, 100, 0, "NONE", "not compressed"))
        made.writeframes(bytes(range(200)) * (frames // 100) + b"\1\2" * (frames % 100))
    return path


def frames(path: Path) -> bytes:
    with wave.open(str(path)) as read:
        assert read.getframerate() == 100
        content: bytes = read.readframes(read.getnframes())
        return content


def test_whole_seconds_are_cut_and_the_rest_is_left_out(tmp_path: Path) -> None:
    pieces = sounds.cut(recording(tmp_path / "x.wav", 350), tmp_path / "made")
    assert [path.name for path in pieces] == ["x_0000.wav", "x_0001.wav", "x_0002.wav"]
    assert {frames(path) for path in pieces} == {bytes(range(200))}
    assert not (tmp_path / "x.wav").exists()


def test_a_shorter_recording_stays_whole(tmp_path: Path) -> None:
    (piece,) = sounds.cut(recording(tmp_path / "x.wav", 30), tmp_path / "made")
    assert frames(piece) == b"\1\2" * 30


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no sound at all, but long enough to be one perhaps"])
def test_what_is_no_recording_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(content)
    with pytest.raises(DataProblem, match=r"x\.wav cannot be read as a WAV"):
        sounds.cut(tmp_path / "x.wav", tmp_path / "made")
