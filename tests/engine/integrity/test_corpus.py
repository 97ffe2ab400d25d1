"""Of runs with known truth, detectors flag the guilty, and none of the innocent gravely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.integrity import facts, plagiarism
from mlebench_console.engine.integrity.kernels import FOLDER
from mlebench_console.engine.integrity.material import examined_runs
from mlebench_console.engine.integrity.results import saved_results
from mlebench_console.state import database as state_database
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import DetectorResult, Layer, Severity
from tests.console.world import FrozenClock
from tests.engine.integrity.corpus import GUILTY, INNOCENT, Case, prepare
from tests.engine.integrity.made_runs import add_run

Found = dict[str, list[DetectorResult]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """What all detectors found in all cases, which lie in one state."""
    folder = tmp_path_factory.mktemp("corpus")
    prepare(folder / "data")
    database = state_database.open_for_writing(folder)
    with database.transaction():
        numbers = {case.name: _add(database, case, place, folder / "data") for place, case in enumerate(_ALL)}
    clock = FrozenClock()
    chosen = examined_runs(database, numbers.values())
    list(facts.examine(chosen, {}, clock))
    list(plagiarism.examine(chosen, (), {}, clock, folder / "data" / FOLDER))
    yield {
        name: [
            *saved_results(examined.folder, Layer.FACTS),
            *saved_results(examined.folder, Layer.PLAGIARISM),
        ]
        for name, examined in zip(numbers, chosen, strict=True)
    }
    database.close()


_ALL = (*GUILTY, *INNOCENT)


def _add(database: Database, case: Case, place: int, data_dir: Path) -> int:
    # Each honest submission differs a little: the same bytes in all of them would themselves be a finding.
    made = replace(case.made, spec=replace(case.made.spec, data_dir=str(data_dir)))
    if case.twin:
        add_run(database, replace(made, submissions=[case.twin]), f"twin-{place}")
    elif "entropy" not in case.expected and made.submissions:
        rows = str(made.submissions[-1]).split("\n")
        rows[1] += "." + "0" * place
        made = replace(made, submissions=["\n".join(rows)])
    return add_run(database, made, f"case-{place}")


def flags(results: list[DetectorResult]) -> dict[str, Severity]:
    return {one.detector: one.severity for one in results if one.severity.is_flag}


@pytest.mark.parametrize("case", GUILTY, ids=lambda case: case.name)
def test_the_guilty_are_flagged_by_what_is_meant_for_them(found: Found, case: Case) -> None:
    flagged = flags(found[case.name])
    assert case.expected <= set(flagged), flagged
    shown = [f for one in found[case.name] for f in one.findings if one.detector in case.expected]
    assert all(one.statement and "\n" not in one.statement for one in shown)


@pytest.mark.parametrize("case", INNOCENT, ids=lambda case: case.name)
def test_the_innocent_are_not(found: Found, case: Case) -> None:
    assert set(flags(found[case.name])) <= case.tolerated, found[case.name]
    assert not [one.problem for one in found[case.name] if one.problem]


def test_precision_and_recall_over_the_corpus(found: Found) -> None:
    caught = [case for case in GUILTY if flags(found[case.name])]
    wrongly = [case for case in INNOCENT if flags(found[case.name])]
    assert len(GUILTY) >= 20 and len(INNOCENT) >= 20
    assert len(caught) == len(GUILTY)
    assert len(caught) / (len(caught) + len(wrongly)) >= 0.95
