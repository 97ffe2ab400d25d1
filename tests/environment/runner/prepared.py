"""A small prepared dataset as the engine makes them: public data, an answer, a manifest and a marker."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

from mlebench_console.engine.datasets.prepared import manifest
from mlebench_console.engine.layout import MARKER
from mlebench_console.foundation import files

ANSWER = "the answer"
LARGE = 3_000_000


def make_prepared(folder: Path) -> Path:
    """Make a prepared dataset as the engine does, with a manifest."""
    (folder / "public" / "images").mkdir(parents=True)
    (folder / "public" / "nothing").mkdir()
    (folder / "private").mkdir()
    (folder / "public" / "train.csv").write_text("a,b\n")
    (folder / "public" / "images" / "1.bin").write_bytes(os.urandom(LARGE))
    (folder / "private" / "test.csv").write_text(ANSWER)
    seal = manifest.write(folder, folder.parent.name, "v1", {})
    files.write_json(folder / MARKER, {"manifest": asdict(seal)})
    return folder
