"""WAV recordings taken out of raw data: long ones cut into short ones; nothing is decoded or resampled."""

from __future__ import annotations

import io
import wave
from pathlib import Path

from competitions.raw import RawDataProblem


def cut(path: Path, folder: Path, seconds: int = 1) -> list[Path]:
    """Write whole pieces of so many seconds into a folder, the rest left out; a shorter recording stays whole.

    The recording itself goes before.

    Raises:
        DataProblem: the file is no WAV, or damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces: list[Path] = []
    content = io.BytesIO(path.read_bytes())
    path.unlink()
    try:
        with wave.open(content) as recording:
            size = recording.getframerate() * seconds
            for number in range(max(1, recording.getnframes() // size)):
                piece = folder / f"{path.stem}_{number:04d}.wav"
                with piece.open("xb") as made, wave.open(made, "wb") as written:
                    written.setparams(recording.getparams())
                    written.writeframes(recording.readframes(size))
                pieces.append(piece)
    except (wave.Error, EOFError) as error:
        raise RawDataProblem(f"{path.name} cannot be read as a WAV", str(error)) from error
    return pieces
