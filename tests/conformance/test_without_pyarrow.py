"""A default install has no pyarrow, and pandas then keeps texts in another way: bytes and scores must not change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench_console.competitions import registry

_ROOT = Path(__file__).parents[2]
_NEEDING_IT = "icecube-neutrinos-in-deep-ice"  # its tables are parquet files
_WITHOUT = """
import sys
sys.modules["pyarrow"] = None
import pandas as pd
assert pd.Series(["a"]).dtype.storage == "python"
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.mark.timeout(900)
def test_files_and_scores_are_the_same_without_pyarrow_and_any_submission_gets_one_or_a_reason() -> None:
    count = 3 * (len(registry.all_ids()) - 1)
    files = ["tests/conformance/test_vectors.py", "tests/competitions/test_hostile_submissions.py"]
    chosen = f"(prepared_files or scores or (any_file and v1)) and not {_NEEDING_IT}"
    arguments = [*files, "-q", "-p", "no:cacheprovider", "-k", chosen]
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT, *arguments],
        cwd=_ROOT,
        env={**os.environ, "HOSTILE_EXAMPLES": "3"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr
    assert f"{count} passed" in run.stdout
