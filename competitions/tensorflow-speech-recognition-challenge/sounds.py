"""Cut long WAV recordings into short ones; nothing is decoded or resampled."""

from __future__ import annotations

import io
import wave
from pathlib import Path

from mlebench_console.competitions.raw import read_as


def cut(path: Path, folder: Path, seconds: int = 1) -> list[Path]:
    """Replace a recording by pieces of `seconds` in a folder and return them; the rest at its end is dropped.

    A shorter recording becomes one piece.

    Raises:
        DataProblem: the file is not a WAV, or is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces: list[Path] = []
    content = io.BytesIO(path.read_bytes())
    path.unlink()
    with read_as("a WAV", path.name, wave.Error, EOFError), wave.open(content) as recording:
        size = recording.getframerate() * seconds
        for number in range(max(1, recording.getnframes() // size)):
            piece = folder / f"{path.stem}_{number:04d}.wav"
            with piece.open("xb") as made, wave.open(made, "wb") as written:
                written.setparams(recording.getparams())
                written.writeframes(recording.readframes(size))
            pieces.append(piece)
    return pieces
