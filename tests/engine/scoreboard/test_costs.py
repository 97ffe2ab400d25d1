"""What model calls cost stands beside results: per run, medal and competition, and only as far as it is known."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.scoreboard.aggregation import costs_of, row_of
from mlebench_console.engine.scoreboard.export import (
    RowFormat,
    disclose,
    row_text,
    trials_frame,
    verify_bundle,
    write_bundle,
)
from mlebench_console.engine.scoreboard.insight import insight_of
from mlebench_console.engine.scoreboard.model import Evidence
from mlebench_console.engine.scoreboard.own_runs import find_evidence, own_evidence
from mlebench_console.engine.scoreboard.page import page_of
from mlebench_console.engine.scoreboard.plots import plots_of, svg
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import database as state_database
from mlebench_console.state import runs, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import Run
from mlebench_console.state.usage import model_calls
from mlebench_console.state.usage.model_calls import ModelUse
from tests.conditions import changed
from tests.engine.scoreboard.making import LEAF, SPOOKY, evidence
from tests.engine.scoreboard.worlds import SPEC, fail, finish, start, sweep

PRICES = price_table({"dear": TokenPrice(1000, 2000)})
COUNTED = changed(SPEC, competitions=(LEAF, SPOOKY), seeds=2, gateway=("openai",))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = state_database.open_for_writing(tmp_path)
    yield opened
    opened.close()


def used(database: Database, run: Run, model: str, tokens: int, *, estimated: int = 0) -> None:
    attempt = runs.latest_attempt(database, run.id)
    assert attempt is not None
    use = ModelUse(
        attempt.id, "openai", model, calls=1, input_tokens=tokens, output_tokens=tokens, estimated=estimated
    )
    with database.transaction():
        model_calls.add(database, attempt.id, [use], 1)


def counted(database: Database) -> Evidence:
    """A gold for 30 USD, an empty hand for 3, a model without a price, and a run that the host has taken away."""
    gold, empty, unpriced, lost = sweep(database, "mine", COUNTED)
    finish(database, gold, Outcome.GOLD, score=0.0)
    used(database, gold, "dear", 10_000)
    finish(database, empty, Outcome.NO_SUBMISSION)
    used(database, empty, "dear", 1_000, estimated=1)
    finish(database, unpriced, Outcome.BRONZE, score=0.01)
    used(database, unpriced, "nobody\x1b[2J", 50)
    fail(database, lost, FailureClass.INFRASTRUCTURE)
    used(database, lost, "dear", 2_000)
    return find_evidence(database, "mine", PRICES)


def test_a_row_s_costs_are_of_results_whose_cost_is_known(database: Database) -> None:
    found = row_of(counted(database)).costs
    assert found is not None
    assert (found.runs, found.measured, found.priced, found.estimated, found.medals) == (3, 3, 2, 1, 1)
    assert found.total == pytest.approx(33)
    assert (found.per_run, found.per_medal) == pytest.approx((16.5, 33))
    assert found.medals_per_100_dollars == pytest.approx(100 / 33)
    assert found.tokens_per_run == pytest.approx((20_000 + 2_000 + 100) / 3)
    assert found.aside.cost == pytest.approx(6)
    assert found.own_prices == ("dear",)


def test_a_row_names_the_models_that_only_genai_prices_lists(database: Database) -> None:
    (run, *_others) = sweep(database, "mine", COUNTED)
    finish(database, run, Outcome.GOLD, score=0.01)
    used(database, run, "claude-2.1", 2_000)
    found = row_of(find_evidence(database, "mine", PRICES)).costs
    assert found is not None
    assert found.own_prices == ()
    assert found.cost_in_words().endswith(", of claude-2.1 by genai-prices")


def test_what_earlier_attempts_have_spent_stands_aside(database: Database) -> None:
    (run, *_others) = sweep(database, "mine", COUNTED)
    fail(database, run, FailureClass.INFRASTRUCTURE)
    used(database, run, "dear", 2_000)
    transitions.requeued(database, run.id, by="me", now=4.0)
    attempt = transitions.launch(
        database, run.id, directory="2", runtime="process", now=5.0, token=transitions.new_token()
    )
    transitions.started(database, attempt.id, isolated=True, at=5.0, now=5.0)
    used(database, run, "dear", 1_000)
    transitions.agent_ended(database, attempt.id, EndReason.EXITED, exit_code=0, at=6.0, now=6.0)
    transitions.collected(database, attempt.id, now=6.0)
    transitions.finished(database, attempt.id, Outcome.NO_SUBMISSION, now=6.0)
    evidence = find_evidence(database, "mine", PRICES)
    found = costs_of(evidence.trials, evidence.prices)
    assert found is not None
    assert (found.total, found.aside.cost) == pytest.approx((3, 6))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (changed(COUNTED, gateway=(), network="models"), "counted by bytes only in 1"),
        (changed(COUNTED, gateway=()), "not counted in 1"),
        (COUNTED, "counted by the gateway in 1 of 1 runs"),
    ],
)
def test_a_row_says_how_its_calls_were_counted(database: Database, spec: type[object], words: str) -> None:
    (run, *_others) = sweep(database, "mine", spec)  # type: ignore[arg-type]  # a SweepSpec
    finish(database, run, Outcome.GOLD, score=0.0)
    (found,) = own_evidence(database)
    assert words in dict(disclose(found, row_of(found)).facts())["model calls"]


def test_an_unknown_price_is_named_and_never_nothing(database: Database) -> None:
    found = counted(database)
    told = dict(disclose(found, row_of(found)).facts())
    assert "over 2 of 3 measured runs (no price of nobody" in told["cost of models"]
    assert "of dear the operator's own" in told["cost of models"]
    assert "in 1 of these some tokens are estimated" in told["model calls"]
    for form in RowFormat:
        text = row_text(row_of(found), disclose(found, row_of(found)), form)
        assert "\x1b" not in text
        assert "16.5" in text
    heading, _rule, line, *_rest = row_text(row_of(found), disclose(found, row_of(found))).splitlines()
    assert "Models per medal (USD)" in heading
    assert "33.00 (2/3 runs)" in line


def test_what_was_not_counted_has_no_numbers() -> None:
    found = evidence("e", {LEAF: "G"})
    row = row_of(found)
    assert row.costs is None
    assert dict(disclose(found, row).facts())["model calls"] == "not known"
    assert "Tokens per run" not in row_text(row, disclose(found, row))
    assert insight_of(found).model_costs is None


def test_a_bundle_holds_the_costs_of_each_run_and_verifies(database: Database, tmp_path: Path) -> None:
    found = counted(database)
    folder = tmp_path / "bundle"
    write_bundle(folder, found, row_of(found), now=9.0, state_dir=tmp_path)
    lines = list(csv.DictReader((folder / "model-costs.csv").read_text().splitlines()))
    by_run = {(line["competition_id"], line["seed"]): line for line in lines}
    assert by_run[LEAF, "1"]["cost_usd"] == "30.000000"
    assert by_run[LEAF, "2"]["cost_usd"] == ""
    assert by_run[LEAF, "2"]["unpriced_models"].startswith("nobody")
    assert by_run[SPOOKY, "2"]["result_counts"] == "False"
    document = json.loads((folder / "row.json").read_text())
    assert document["costs"]["cost_per_medal"] == pytest.approx(33)
    assert document["costs"]["spending"]["cost"] is None
    verify_bundle(folder)
    (folder / "model-costs.csv").write_text("cheaper\n")
    with pytest.raises(DataProblem, match="differs"):
        verify_bundle(folder)


def test_insight_tells_medals_for_money_and_tokens_by_competition(database: Database) -> None:
    found = counted(database)
    insight = insight_of(found)
    facts = dict(insight.facts())
    assert facts["medals for 100 dollars"] == "3.0, of 2 runs whose cost is known"
    assert list(insight.model_costs_by_competition) == [LEAF, SPOOKY]
    assert insight.document()["model_costs_by_competition"][SPOOKY]["cost_per_run"] == pytest.approx(3)


def test_costs_are_drawn_and_stand_on_the_page(database: Database) -> None:
    found = counted(database)
    drawn = {plot.key: plot for plot in plots_of(found, row_of(found))}
    assert {"cost", "medals-by-cost", "tokens"} <= drawn.keys()
    gold, empty = drawn["cost"].series
    assert (gold.name, empty.name) == ("gold", "no medal")
    assert 100 <= gold.points[0][1] <= 150
    assert empty.points[0][1] == 0.0
    picture = svg(drawn["cost"])
    assert picture.count("<circle") == 2
    assert "polyline" not in picture
    page = page_of(found, row_of(found))
    assert "Models by competition" in page
    assert "33.00" in page
    assert "\x1b" not in page


def test_a_frame_has_tokens_and_costs_where_they_are_known(database: Database) -> None:
    frame = trials_frame(counted(database)).set_index(["competition_id", "seed"])
    assert frame.loc[(LEAF, 1), "cost"] == pytest.approx(30)
    assert frame["cost"].isna().sum() == 1
    assert frame.loc[(LEAF, 2), "tokens"] == 100


def test_a_live_run_is_not_counted_before_its_end(database: Database) -> None:
    (run, *_others) = sweep(database, "mine", COUNTED)
    start(database, run)
    used(database, run, "dear", 1_000)
    evidence = find_evidence(database, "mine", PRICES)
    found = costs_of(evidence.trials, evidence.prices)
    assert found is not None
    assert (found.runs, found.total, found.aside.calls) == (0, 0.0, 0)
