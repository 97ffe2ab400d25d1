"""What v1 and corrected say to one submission where they differ, for each case of `verdicts`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.competitions.mended.editions import mends
from tests.competitions.mended.verdicts import CASES, Case


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, marks=mends(case.of, *case.defects) if case.defects else (), id=f"{case.of}: {case.shows}"
        )
        for case in CASES
    ],
)
def test_both_editions_say_what_the_table_says(case: Case, tmp_path: Path) -> None:
    v1, corrected = case.judged(tmp_path)
    case.v1.check(v1)
    case.corrected.check(corrected)
