"""Synthetic raw data for the six competitions of the demo, each a folder that appears whole or not at all."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mlebench_console.foundation.problems import UsageProblem

if TYPE_CHECKING:
    import numpy as np

# One module each, with `write(folder, random)`; imported when asked for, since they need numpy and pandas.
_MODULES = {
    "aerial-cactus-identification": "cactus",
    "detecting-insults-in-social-commentary": "insults",
    "leaf-classification": "leaves",
    "nomad2018-predict-transparent-conductors": "conductors",
    "spaceship-titanic": "spaceship",
    "spooky-author-identification": "authors",
}
DEMO_COMPETITIONS = tuple(_MODULES)
# A file in every folder of demo data, also in copies of it; datasets prepared from such a folder are marked as demo.
NOTICE = "SYNTHETIC-DEMO-DATA.txt"
_NOTICE_TEXT = "This is made up for the demo of mlebench-console. Nothing that is scored on it is a result.\n"


def generate(competition_id: str, raw_folder: Path) -> None:
    """Write made-up raw data to `raw_folder`; an existing folder is complete and stays.

    Raises:
        UsageProblem: there is no demo data for that competition.
    """
    if competition_id not in _MODULES:
        raise UsageProblem(
            f"there is no demo data for '{competition_id}'",
            next_step=f"demo competitions are: {', '.join(DEMO_COMPETITIONS)}",
        )
    if raw_folder.is_dir():
        return
    raw_folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{raw_folder.name}.", suffix=".partial", dir=raw_folder.parent))
    try:
        module = importlib.import_module(f"mlebench_console.engine.demo_data.{_MODULES[competition_id]}")
        module.write(scratch, _random(competition_id))
        (scratch / NOTICE).write_text(_NOTICE_TEXT, encoding="utf-8")
        scratch.chmod(0o755)
        scratch.rename(raw_folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _random(competition_id: str) -> np.random.Generator:
    """Return a generator with the same numbers for a competition on every machine and in every run."""
    import numpy as np

    return np.random.default_rng(list(competition_id.encode()))
