"""What detectors and people say of runs stands in the row, on the page and in the bundle, and excludes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.export import RowFormat, disclose, row_text, write_bundle
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.engine.scoreboard.page import page_of
from mlebench_console.state import integrity, runs, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import DetectorResult, Excerpt, Finding, Layer, Severity
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.records import Run
from tests.engine.scoreboard.worlds import SPEC, finish, sweep

COPIED = Finding(
    Severity.HIGH,
    "its code is like the public kernel ann/best",
    (Excerpt("code/a.py", 1, 2, "own text"), Excerpt("kaggle.com/code/ann/best", 3, 4, "text of ann")),
)
CLIENT = Finding(Severity.SUSPICIOUS, "code/a.py imports a client of models: openai")


def swept(database: Database) -> list[Run]:
    """Three runs that have ended."""
    members = sweep(database, "dummy-1", replace(SPEC, seeds=3))
    for run in members:
        finish(database, run, Outcome.GOLD, score=0.01)
    return members


def found(
    database: Database, run: Run, layer: Layer, *findings: Finding, usd: float | None = 0.0, problem: str = ""
) -> None:
    attempt = runs.latest_attempt(database, run.id)
    assert attempt is not None
    model = "gpt-x" if layer is Layer.JUDGE else ""
    result = DetectorResult(
        f"of {layer}", layer, 1, "00", 5.0, findings, problem=problem, model=model, usd=usd
    )
    integrity.replace_results(database, attempt.id, layer, [result])


def told(database: Database) -> dict[str, str]:
    evidence = find_evidence(database, "dummy-1")
    return dict(disclose(evidence, row_of(evidence)).facts())


def test_a_row_says_that_nobody_has_looked(state: Database) -> None:
    swept(state)
    assert told(state)["integrity"] == "not looked at"


def test_what_could_not_be_looked_at_is_not_called_clean(state: Database) -> None:
    for run in swept(state):
        found(state, run, Layer.PLAGIARISM, problem="no public kernels are here")
    assert told(state)["integrity"] == "plagiarism 0/3 looked at"


def test_a_cost_is_told_as_not_known_where_any_price_is(state: Database) -> None:
    first, second, third = swept(state)
    found(state, first, Layer.JUDGE, usd=0.0)
    found(state, second, Layer.JUDGE, usd=0.0)
    assert "judge 2/3 judged by gpt-x at 0.00 $" in told(state)["integrity"]
    found(state, third, Layer.JUDGE, usd=None)
    assert "judge 3/3 judged by gpt-x at a cost that is not known" in told(state)["integrity"]


def test_a_row_tells_what_was_found_by_layer_and_what_a_person_said(state: Database) -> None:
    first, second, third = swept(state)
    for run in (first, second, third):
        found(state, run, Layer.FACTS)
        found(state, run, Layer.JUDGE, usd=4.1)
    found(state, first, Layer.PLAGIARISM, COPIED)
    found(state, second, Layer.PLAGIARISM, CLIENT)
    facts = told(state)
    assert facts["integrity"] == (
        "facts 3/3 clean; plagiarism 2/3 looked at, 2 flagged; judge 3/3 judged by gpt-x at 12.30 $, 0 flagged"
    )
    assert facts["runs that detectors flag, none of them excluded"].startswith(
        "2: leaf-classification, seed 1"
    )
    before = row_of(find_evidence(state, "dummy-1")).own
    integrity.add_review(
        state, first.id, COPIED, cleared=True, reason="its own author", author="eve@host", now=6.0
    )
    facts = told(state)
    assert "plagiarism 2/3 looked at, 1 flagged" in facts["integrity"]
    assert facts["integrity"].endswith("reviewed by hand: 1 cleared")
    assert "seed 1: cleared by eve@host: its own author" in facts["findings reviewed by hand"]
    assert row_of(find_evidence(state, "dummy-1")).own == before, "nothing is excluded"


def test_bundle_and_page_hold_the_findings_but_no_text_of_a_kernel(state: Database, tmp_path: Path) -> None:
    first, *_ = swept(state)
    found(state, first, Layer.PLAGIARISM, COPIED)
    evidence = find_evidence(state, "dummy-1")
    row = row_of(evidence)
    write_bundle(tmp_path / "bundle", evidence, row, now=9.0)
    (one,) = json.loads((tmp_path / "bundle" / "integrity.json").read_text())
    own, kernel = one["results"][0]["findings"][0]["excerpts"]
    assert (one["seed"], own["text"], kernel["text"]) == (1, "own text", "")
    assert kernel["source"] == "kaggle.com/code/ann/best"
    assert "plagiarism 1/3 looked at, 1 flagged" in page_of(evidence, row)
    document = json.loads(row_text(row, disclose(evidence, row), RowFormat.JSON))
    assert document["disclosure"]["integrity"]["layers"][0]["flagged"] == 1


def test_a_run_that_was_relaunched_has_not_been_looked_at(state: Database) -> None:
    first, *_ = swept(state)
    found(state, first, Layer.FACTS, CLIENT)
    transitions.requeued(state, first.id, by="eve", now=7.0)
    transitions.launch(state, first.id, directory="again", runtime="process", now=8.0)
    assert integrity.of_runs(state, [first.id])[first.id].results == ()
