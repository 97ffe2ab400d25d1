"""`make test ARGS="-k name"` reads only the files in which such a test can be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.keywords import may_hold, sought_names

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("test_medals", ("test_medals",)),
        ("test_Medals or (test_a and test_b)", ("test_medals", "test_a", "test_b")),
        ("medals", ()),
        ("test_medals or spaceship-titanic", ()),
        ("test_medals and not test_a", ()),
        ("not test_medals", ()),
        ("", ()),
    ],
)
def test_only_names_of_functions_and_files_narrow_what_is_read(
    expression: str, names: tuple[str, ...]
) -> None:
    assert sought_names(expression) == names


def test_a_name_is_found_in_a_file_or_in_its_path(tmp_path: Path) -> None:
    file = tmp_path / "test_medals.py"
    file.write_text("def test_Gold(): ...")
    assert may_hold(file, ("test_gold",))
    assert may_hold(file, ("test_other", "test_med"))
    assert not may_hold(file, ("test_silver",))


def test_what_is_not_named_is_not_even_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-k", "test_medals", "tests/competitions"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "tests/competitions/test_medals.py::" in done.stdout
    assert "deselected" not in done.stdout
