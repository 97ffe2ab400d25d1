"""What detectors find is kept, looked up, reviewed and looked at again only where something has changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mlebench_console.engine.integrity import facts
from mlebench_console.engine.integrity.material import examined_runs
from mlebench_console.engine.integrity.results import IntegrityRequests, saved_results
from mlebench_console.engine.requests import RecordIntegrity, ReviewFinding
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.state import events, integrity, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import Layer, RunIntegrity, Severity
from tests.console.world import FrozenClock
from tests.engine.integrity.made_runs import SPEC, MadeRun, add_run

CLOCK = FrozenClock()


@pytest.fixture
def borrowed(state: Database) -> tuple[Database, int]:
    """A run that has handed in what another one had."""
    add_run(state, MadeRun(submissions=["id,y\n1,2\n"]), "first")
    borrowing = MadeRun(submissions=["id,y\n1,2\n"], spec=replace(SPEC, agent_id="thief"))
    return state, add_run(state, borrowing, "second")


def look_at(database: Database, run_id: int) -> int:
    """Look at a run, take what was found into the state, and return how many runs were looked at."""
    known = integrity.of_runs(database, [run_id])
    done = tuple(facts.examine(examined_runs(database, [run_id]), known, CLOCK))
    if done:
        IntegrityRequests(database, CLOCK).record(RecordIntegrity(results=done), "me")
    return len(done)


def known_of(database: Database, run_id: int) -> RunIntegrity:
    return integrity.of_runs(database, [run_id])[run_id]


def test_what_is_found_comes_back_from_the_state_as_it_was(borrowed: tuple[Database, int]) -> None:
    database, run_id = borrowed
    assert look_at(database, run_id) == 1
    known = known_of(database, run_id)
    assert known.severity is Severity.HIGH
    result = known.result_of("borrowed-submission")
    assert result is not None
    (examined,) = examined_runs(database, [run_id])
    assert result in saved_results(examined.folder, Layer.FACTS)
    assert "byte for byte" in result.findings[0].statement


def test_the_same_agent_s_same_submission_is_less_grave(borrowed: tuple[Database, int]) -> None:
    database, _ = borrowed
    again = add_run(database, MadeRun(submissions=["id,y\n1,2\n"]), "third")
    look_at(database, again)
    result = known_of(database, again).result_of("borrowed-submission")
    assert result is not None
    assert [one.severity for one in result.findings] == [Severity.SUSPICIOUS, Severity.HIGH]


def test_a_run_is_looked_at_again_only_when_something_of_it_has_changed(
    borrowed: tuple[Database, int],
) -> None:
    database, run_id = borrowed
    assert [look_at(database, run_id), look_at(database, run_id)] == [1, 0]
    (examined,) = examined_runs(database, [run_id])
    (examined.folder / "code" / "late.py").write_text("x = 1\n")
    assert look_at(database, run_id) == 1


def test_a_review_is_kept_with_its_reason_and_survives_another_look(
    borrowed: tuple[Database, int],
) -> None:
    database, run_id = borrowed
    look_at(database, run_id)
    (finding,) = known_of(database, run_id).result_of("borrowed-submission").findings  # type: ignore[union-attr]
    requests = IntegrityRequests(database, CLOCK)
    with pytest.raises(UsageProblem, match="needs a reason"):
        requests.review(ReviewFinding(run_id=run_id, finding=finding.key, cleared=True, reason=" "), "eve")
    with pytest.raises(UsageProblem, match="has no finding"):
        requests.review(ReviewFinding(run_id=run_id, finding="zz", cleared=True, reason="why"), "eve")
    requests.review(
        ReviewFinding(run_id=run_id, finding=finding.key[:5], cleared=True, reason="the same model"), "eve"
    )
    (examined,) = examined_runs(database, [run_id])
    (examined.folder / "code" / "late.py").write_text("x = 1\n")
    look_at(database, run_id)
    known = known_of(database, run_id)
    assert known.is_cleared(finding)
    assert known.severity is not Severity.HIGH
    assert "the same model" in events.newest(database)[0].text
    requests.review(
        ReviewFinding(run_id=run_id, finding=finding.key, cleared=False, reason="looked again"), "eve"
    )
    assert known_of(database, run_id).severity is Severity.HIGH
    assert len(known_of(database, run_id).reviews) == 2


def test_what_is_damaged_beside_a_run_is_refused(borrowed: tuple[Database, int]) -> None:
    database, run_id = borrowed
    (done,) = facts.examine(examined_runs(database, [run_id]), {}, CLOCK)
    (examined,) = examined_runs(database, [run_id])
    path = examined.folder / "integrity" / "facts.json"
    path.write_text(json.dumps([{"detector": 1}]))
    with pytest.raises(DataProblem, match="can't be read"):
        IntegrityRequests(database, CLOCK).record(RecordIntegrity(results=(done,)), "me")


def test_a_removed_sweep_takes_its_findings_and_reviews_along(borrowed: tuple[Database, int]) -> None:
    database, run_id = borrowed
    look_at(database, run_id)
    (finding,) = known_of(database, run_id).result_of("borrowed-submission").findings  # type: ignore[union-attr]
    with database.transaction():
        integrity.add_review(database, run_id, finding, cleared=True, reason="x", author="eve", now=1.0)
    sweeps.remove(database, "second")
    assert not known_of(database, run_id).results
    assert not known_of(database, run_id).reviews
