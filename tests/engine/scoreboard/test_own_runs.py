from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.competitions.registry import get, splits
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.export import RowFormat, disclose, row_text, trials_frame
from mlebench_console.engine.scoreboard.model import Cell, Measure, Row
from mlebench_console.engine.scoreboard.own_runs import own_evidence
from mlebench_console.engine.scoreboard.page import page_of
from mlebench_console.state import database as state_database
from mlebench_console.state import experiments, transitions
from mlebench_console.state.annotations import Annotation, annotate
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import SweepSpec
from tests.conditions import changed
from tests.engine.scoreboard.worlds import SPEC, fail, finish, start, sweep


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = state_database.open_for_writing(tmp_path)
    yield opened
    opened.close()


def only_row(database: Database, *, pad_missing: bool = False) -> Row:
    (found,) = own_evidence(database)
    return row_of(found, pad_missing=pad_missing)


def test_a_sweep_over_a_part_of_a_split_says_how_much_and_gives_no_column(database: Database) -> None:
    for run in sweep(database, "dummy-1", SPEC):
        finish(database, run, Outcome.GOLD, score=0.0)
    row = only_row(database)
    assert row.columns["low"].cell is None
    assert (row.columns["low"].covered, row.columns["low"].of) == (1, 22)
    assert (row.columns["high"].covered, row.columns["high"].of) == (0, 15)
    assert row.own is not None
    assert row.own.cell == Cell(100.0, 0.0, 1)
    assert (row.own.covered, row.own.of) == (1, 1)


def test_a_covered_split_gets_its_column(database: Database) -> None:
    low = splits()["low"]
    for run in sweep(database, "dummy-1", replace(SPEC, competitions=low)):
        finish(database, run, Outcome.SILVER if run.competition_id == low[0] else Outcome.NO_SUBMISSION)
    cell = only_row(database).columns["low"].cell
    assert cell is not None
    assert cell.mean == pytest.approx(100 / 22)
    assert only_row(database).columns["all"].cell is None


def test_a_running_experiment_shows_its_complete_seeds_only(database: Database) -> None:
    queued = sweep(database, "dummy-1", replace(SPEC, seeds=3))
    finish(database, queued[0], Outcome.BRONZE, score=0.01)
    finish(database, queued[1], Outcome.INVALID)
    start(database, queued[2])
    row = only_row(database)
    assert (row.seeds_done, row.seeds_planned, row.running) == (2, 3, True)
    assert row.own is not None
    assert row.own.cell is not None
    assert row.own.cell.n == 2
    assert row.own.measures[Measure.SUBMISSION].mean == 100.0
    assert row.own.measures[Measure.VALID].mean == 50.0


def test_a_seed_lost_to_infrastructure_is_dropped_or_counts_as_no_medal_with_padding(
    database: Database,
) -> None:
    gold, failed = sweep(database, "dummy-1", replace(SPEC, seeds=2))
    finish(database, gold, Outcome.GOLD, score=0.0)
    fail(database, failed, FailureClass.INFRASTRUCTURE)
    dropped, padded = only_row(database), only_row(database, pad_missing=True)
    assert dropped.own is not None
    assert padded.own is not None
    assert dropped.own.cell == Cell(100.0, 0.0, 1)
    assert padded.own.cell == Cell(50.0, 50.0, 2)
    assert (dropped.padded, padded.padded) == (False, True)


@pytest.mark.parametrize("kind", [kind for kind in FailureClass if kind is not FailureClass.INFRASTRUCTURE])
def test_an_agents_own_failure_is_a_result_without_a_submission(
    database: Database, kind: FailureClass
) -> None:
    """Otherwise an agent that crashes would lose the seed and not the medal."""
    gold, failed = sweep(database, "dummy-1", replace(SPEC, seeds=2))
    finish(database, gold, Outcome.GOLD, score=0.0)
    fail(database, failed, kind)
    row = only_row(database)
    assert row.own is not None
    assert row.own.cell == Cell(50.0, 50.0, 2)
    assert row.own.measures[Measure.SUBMISSION].mean == 50.0


def test_sweeps_of_an_experiment_make_one_row_and_add_up_their_seeds(database: Database) -> None:
    for number, name in enumerate(("first", "second")):
        for run in sweep(database, name, replace(SPEC, seeds=2), now=float(number)):
            finish(database, run, Outcome.ABOVE_MEDIAN)
        experiments.assign(database, "together", name, now=4.0)
    row = only_row(database)
    assert (row.name, row.seeds_done, row.seeds_planned) == ("together", 4, 4)
    assert row.own is not None
    assert row.own.measures[Measure.ABOVE_MEDIAN] == Cell(100.0, 0.0, 4)


def test_conditions_without_words_of_their_own_are_named_by_their_options(database: Database) -> None:
    asked = changed(SPEC, model_grants=("mcp",), gateway=("openai",), budget_usd=2.5, idle_limit_seconds=1800)
    sweep(database, "asked", asked)
    (found,) = own_evidence(database)
    assert found.conditions.further == (
        ("gateway", "openai"),
        ("model_grant", "mcp"),
        ("budget_usd", "2.5"),
        ("idle_minutes", "30m"),
    )
    sweep(database, "usual", SPEC, now=9.0)
    assert own_evidence(database)[0].conditions.further == ()


@pytest.mark.parametrize(
    ("other", "version", "said"),
    [
        (changed(SPEC, edition="corrected"), "1", "mixed editions: corrected, v1"),
        (changed(SPEC, time_limit_seconds=3600), "1", "mixed time limits: 1 h, 2 h"),
        (SPEC, "2", "mixed agent versions: 1, 2"),
        (changed(SPEC, network="open"), "1", "mixed network policies: none, open"),
        (
            changed(SPEC, gpus=1),
            "1",
            "mixed hardware: 1 CPU + no memory limit + 1 GPU + runtime process,"
            " 1 CPU + no memory limit + runtime process",
        ),
    ],
)
def test_what_must_not_be_mixed_is_named_and_gives_no_number(
    database: Database, other: SweepSpec, version: str, said: str
) -> None:
    for name, spec, used in (("first", SPEC, "1"), ("second", other, version)):
        for run in sweep(database, name, spec, version=used):
            finish(database, run, Outcome.GOLD, score=0.0)
        experiments.assign(database, "together", name, now=4.0)
    row = only_row(database)
    assert row.conflict == said
    assert row.own is not None
    assert row.own.cell is None
    assert all(standing.cell is None for standing in row.columns.values())


def test_a_demo_and_rerolled_seeds_are_marked(database: Database) -> None:
    (run,) = sweep(database, "dummy-1", SPEC, demo=True)
    fail(database, run)
    transitions.requeued(database, run.id, by="me", now=4.0)
    row = only_row(database)
    assert row.demo
    assert row.rerolled == 1


def test_the_data_make_a_demo_and_no_option_does(database: Database) -> None:
    (asked,) = sweep(database, "asked", replace(SPEC, demo=True))
    finish(database, asked, Outcome.GOLD, score=0.0)
    (given,) = sweep(database, "given", SPEC, demo=True)
    finish(database, given, Outcome.GOLD, score=0.0)
    assert {found.name: row_of(found).demo for found in own_evidence(database)} == {
        "asked": False,
        "given": True,
    }


def test_runs_on_demo_data_and_on_real_data_make_no_row_together(database: Database) -> None:
    for name, demo in (("real", False), ("made-up", True)):
        for run in sweep(database, name, SPEC, demo=demo):
            finish(database, run, Outcome.GOLD, score=0.0)
        experiments.assign(database, "together", name, now=4.0)
    row = only_row(database)
    assert row.conflict == "mixed kinds of data: demo, real"
    assert row.own is not None and row.own.cell is None


def test_a_tie_with_the_median_is_a_medal_but_not_above_it(database: Database) -> None:
    """In herbarium-2020 the cut-off of bronze is the median itself."""
    competition = get("herbarium-2020-fgvc7")
    assert competition.thresholds.bronze == competition.thresholds.median
    (run,) = sweep(database, "dummy-1", replace(SPEC, competitions=(competition.id,)))
    finish(database, run, Outcome.BRONZE, score=competition.thresholds.bronze)
    row = only_row(database)
    assert row.own is not None
    assert row.own.measures[Measure.ANY_MEDAL].mean == 100.0
    assert row.own.measures[Measure.ABOVE_MEDIAN].mean == 0.0


def test_a_users_split_is_a_column_like_any_other(database: Database) -> None:
    (run,) = sweep(database, "dummy-1", SPEC)
    finish(database, run, Outcome.GOLD, score=0.0)
    (found,) = own_evidence(database)
    row = row_of(found, user_splits={"mine": ("leaf-classification",)})
    assert row.columns["mine"].cell == Cell(100.0, 0.0, 1)


def test_notes_and_tags_are_exported_with_runs_and_stay_out_of_the_row(database: Database) -> None:
    (run,) = sweep(database, "dummy-1", SPEC)
    finish(database, run, Outcome.GOLD, score=0.0)
    noted = Annotation("a <b>lucky</b> seed", ("night",))
    annotate(database, run, noted, by="me@here", now=1.0)
    (evidence,) = own_evidence(database)
    frame = trials_frame(evidence)
    assert (frame["note"][0], frame["tags"][0]) == ("a <b>lucky</b> seed", "night")
    page = page_of(evidence, row_of(evidence))
    assert "a &lt;b&gt;lucky&lt;/b&gt; seed" in page and "night" in page
    row = row_of(evidence)
    texts = [row_text(row, disclose(evidence, row), form) for form in RowFormat]
    assert texts and not any("lucky" in text or "night" in text for text in texts)
