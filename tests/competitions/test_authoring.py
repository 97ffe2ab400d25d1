"""Authors of competitions get hostile submissions, a new folder to begin with, and checks of what they write."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.authoring.hostile import hostile_forms
from mlebench_console.engine import authoring
from mlebench_console.engine.authoring import check
from mlebench_console.engine.checks import Check, Health
from mlebench_console.engine.datasets.steps import no_report
from mlebench_console.foundation.workers import WorkerPool
from tests.competitions.test_own_competition import ID, OWN

RIGHT = b"id,site,height\n" + b"".join(b"r%d,H%d,0.5\n" % (number, number // 4) for number in range(12))


def test_hostile_submissions_come_in_at_least_sixty_forms_that_all_differ() -> None:
    forms = hostile_forms(RIGHT, random.Random(1))
    assert len(set(forms.values())) == len(forms) >= 60
    assert RIGHT not in forms.values()
    assert forms == hostile_forms(RIGHT, random.Random(1))


def test_a_sample_of_one_row_or_none_has_its_hostile_forms_too() -> None:
    lines = RIGHT.splitlines(keepends=True)
    assert len(hostile_forms(b"".join(lines[:2]), random.Random(1))) >= 60
    assert len(hostile_forms(lines[0], random.Random(1))) >= 30


GRADED = 'metrics.rmse(case.answers["height"].to_numpy(), checks.numbers(case.submission, "height")[rows])'
PREPARED = (
    'labelled_table.write_parts(job, train, test, hidden=["height"], sample=test[["id"]].assign(height=0))'
)
BETTER_IF_LOWER = """"lower"
formula = "sqrt(mean of (predicted - true)^2)"

[thresholds]
gold = 0.05
silver = 0.1
bronze = 0.2
median = 0.5"""
BETTER_IF_HIGHER = """"higher"
formula = "sqrt(mean of (predicted - true)^2)"

[thresholds]
gold = 5
silver = 2
bronze = 1
median = 0.5"""
NEEDS_HARBOURS = 'case.answers.groupby("harbour")["height"].count() is None or ' + GRADED


@pytest.fixture
def harbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harbours:
    """A copy of a competition that passes every check, into which a test puts a fault."""
    shutil.copytree(OWN / ID, tmp_path / "own" / ID)
    (tmp_path / "raw").mkdir()
    rows = (f"{number},H{number // 6},{number % 6},{number / 8}\n" for number in range(72))
    (tmp_path / "raw" / "tides.csv").write_text("id,harbour,hour,height\n" + "".join(rows))
    monkeypatch.setenv(registry.OWN_VARIABLE, str(tmp_path / "own"))
    return Harbours(tmp_path)


@pytest.fixture
def in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepare the second time in this process too, and try a few hostile submissions only."""

    def prepare(pool: WorkerPool, **arguments: Any) -> Path:
        return Path(authoring.prepare_in_worker(**arguments, report_progress=no_report))

    monkeypatch.setattr(authoring, "_prepare_elsewhere", prepare)
    monkeypatch.setattr(authoring, "hostile_forms", few)


def few(right: bytes, rng: random.Random) -> Mapping[str, bytes]:
    """Each twelfth of the hostile submissions."""
    return dict(sorted(hostile_forms(right, rng).items())[::12])


@dataclass(frozen=True)
class Harbours:
    """Where the copy and its raw data lie."""

    folder: Path

    def change(self, name: str, before: str, after: str) -> None:
        path = self.folder / "own" / ID / name
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after, 1))
        registry.clear_caches()

    def fault(self) -> Check:
        """The first thing that is wrong."""
        return next(each for each in check(ID, self.folder / "raw") if each.health is not Health.OK)


@pytest.mark.parametrize(
    ("file", "before", "after", "what", "found", "detail"),
    [
        (
            "description.md",
            "noted.",
            "noted. TODO",
            "facts",
            r"TODO is left in description\.md, line 3",
            "",
        ),
        (
            "task.py",
            "from mlebench_console.competitions.kit import",
            "import sklearn.metrics\nfrom mlebench_console.competitions.kit import",
            "imports",
            "grading containers have no sklearn: import it inside prepare",
            "",
        ),
        ("task.py", "def grade", "def score", "task", r"task\.py has no function grade", ""),
        (
            "task.py",
            "import checks",
            "import cheques",
            "task",
            r"task\.py can't be imported: ImportError",
            "Traceback",
        ),
        (
            "task.py",
            'needs=["id"',
            'needs=["port"',
            "prepare, edition v1",
            r"tides\.csv is not in the expected form: it has no column port",
            "",
        ),
        (
            "task.py",
            'table["harbour"] if job.corrected else None',
            'table["port"]',
            "prepare, edition v1",
            r"KeyError: 'port' \(task\.py, line 11\)",
            'in prepare\n    train, test = labelled_table.divided(job, table, table["port"])',
        ),
        (
            "task.py",
            PREPARED,
            PREPARED + '\n    (job.private / "test.csv").unlink()',
            "prepare, edition v1",
            r"private/test\.csv was not prepared: .* declares it as files\.answers",
            "",
        ),
        (
            "task.py",
            PREPARED,
            PREPARED + '\n    import time\n    (job.public / "made").write_text(str(time.monotonic_ns()))',
            "prepare, edition v1",
            r"public/made differs when the same data are prepared twice",
            "",
        ),
        (
            "task.py",
            'hidden=["height"]',
            "hidden=[]",
            "secrecy, edition v1",
            r"public/test\.csv reveals the height of 18 test rows",
            "",
        ),
        (
            "competition.toml",
            BETTER_IF_LOWER,
            BETTER_IF_HIGHER,
            "perfect submission, edition v1",
            r"private/test\.csv scores 0, which earns no medal: the cut-offs, metric\.direction or grade are wrong",
            "",
        ),
        (
            "task.py",
            GRADED,
            f"1 / 0 if case.form_only is None else {GRADED} / len(case.submission.columns[9:])",
            "grade, edition v1",
            r"the perfect submission \(private/test\.csv\) is not graded: ZeroDivisionError.*\(task\.py, line 19\)",
            "Traceback",
        ),
        (
            "task.py",
            'checks.numbers(case.submission, "height")[rows]',
            'case.submission["height"].astype(float).to_numpy()[rows]',
            "hostile submissions, edition v1",
            r"of 10 get neither a score nor a one-line reason: .*ValueError: .*\(task\.py, line 19\)",
            "Traceback",
        ),
        (
            "description.md",
            "17,1.25",
            "17,high",
            "description, edition v1",
            r"the values of its example are not valid in the first rows: .*'high' is not a number",
            "",
        ),
        (
            "description.md",
            "id,height\n",
            "id,depth\n",
            "description, edition v1",
            r"its example has the columns depth, which the sample submission does not have",
            "",
        ),
    ],
)
def test_a_fault_of_an_author_is_found_and_named_with_its_place(
    harbours: Harbours,
    in_short: None,
    file: str,
    before: str,
    after: str,
    what: str,
    found: str,
    detail: str,
) -> None:
    harbours.change(file, before, after)
    fault = harbours.fault()
    assert fault.name == what
    assert re.search(found, fault.text), fault.text
    assert detail in fault.next_step


def test_the_order_of_a_set_in_what_is_prepared_is_found(harbours: Harbours) -> None:
    harbours.change(
        "task.py",
        PREPARED,
        PREPARED + '\n    (job.public / "harbours").write_text(" ".join(set(table["harbour"])))',
    )
    assert harbours.fault().text.startswith("public/harbours differs when the same data are prepared twice")


def test_a_grade_that_needs_more_of_the_answers_gets_the_function_to_write_which_then_helps(
    harbours: Harbours, in_short: None
) -> None:
    harbours.change("task.py", GRADED, NEEDS_HARBOURS)
    fault = harbours.fault()
    assert fault.name == "validation, edition v1"
    assert "that the sample submission, which replaces them, does not have: KeyError: 'harbour'" in fault.text
    advice, _, function = fault.next_step.partition("\n\n")
    assert advice.endswith("import PublicData from mlebench_console.competitions.task:")
    assert 'data.table("test.csv", columns=' in function
    harbours.change("task.py", "def grade(", f"{function}\n\ndef grade(")
    harbours.change(
        "task.py",
        "import Grading, Preparation",
        "import Grading, Preparation, PublicData\nimport pandas as pd",
    )
    assert [each for each in check(ID, harbours.folder / "raw") if each.health is Health.FAIL] == []


def test_verdicts_that_depend_on_the_answers_are_found(harbours: Harbours, in_short: None) -> None:
    harbours.change(
        "task.py",
        'checks.columns_present(case.submission, ["id", "height"])',
        'lines = len((case.private / "test.csv").read_text().splitlines())\n'
        '    checks.row_count(case.submission, case.submission.reindex(range(lines - 1)), "none")',
    )
    fault = harbours.fault()
    assert fault.name == "secrecy of answers, edition v1"
    assert "the validation for agents depends on the answers" in fault.text


def test_a_preparation_that_writes_to_the_raw_data_is_found(harbours: Harbours, in_short: None) -> None:
    harbours.change("task.py", PREPARED, PREPARED + '\n    (job.raw / "notes.txt").write_text("seen")')
    assert harbours.fault().text == "prepare has written to the raw folder: notes.txt"
