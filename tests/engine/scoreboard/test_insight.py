"""What is told beyond a row agrees with counting by hand."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.scoreboard.insight import (
    ENDINGS,
    Effort,
    Insight,
    TimePoint,
    cost_of,
    effort_of,
    ending_of,
    endings_by_split,
    flags_of,
    pass_at_k,
    shorter_limits,
    stability_of,
)
from mlebench_console.engine.scoreboard.model import Cell, Measure
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.engine.settings import Prices, read_table
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import database as state_database
from mlebench_console.state import submissions, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import Grade
from tests.conditions import changed
from tests.engine.scoreboard.making import CACTUS, LEAF, SPOOKY, evidence
from tests.engine.scoreboard.worlds import SPEC, fail, finish, start, sweep


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = state_database.open_for_writing(tmp_path)
    yield opened
    opened.close()


def test_pass_at_k_is_the_share_of_draws_that_hold_a_medal() -> None:
    outcomes = {LEAF: "+--G-", SPOOKY: "-----", CACTUS: "++++-"}
    for found in pass_at_k(evidence("e", outcomes)):
        shares = [
            statistics.fmean(
                any(sign in "+G" for sign in draw) for draw in itertools.combinations(signs, found.k)
            )
            for signs in outcomes.values()
        ]
        assert found.percent == pytest.approx(100 * statistics.fmean(shares))
        assert found.competitions == 3


def test_pass_at_k_says_how_many_competitions_have_enough_seeds() -> None:
    found = pass_at_k(evidence("e", {LEAF: "+.-", SPOOKY: "-"}), measure=Measure.ANY_MEDAL)
    assert [(one.k, one.percent, one.competitions) for one in found] == [(1, 25.0, 2), (2, 100.0, 1)]
    assert pass_at_k(evidence("e", {LEAF: "."})) == ()


def test_the_deviation_of_a_seed_is_that_of_drawing_seeds_anew() -> None:
    outcomes = {LEAF: "++--", SPOOKY: "+---", CACTUS: "++++"}
    found = stability_of(evidence("e", outcomes))
    assert found is not None
    assert (found.competitions, found.flipping) == (3, (LEAF, SPOOKY))
    assert found.seed_rates == pytest.approx((100.0, 200 / 3, 100 / 3, 100 / 3))
    draw = random.Random(1)
    rates = [
        100 * statistics.fmean(draw.random() < signs.count("+") / 4 for signs in outcomes.values())
        for _ in range(20_000)
    ]
    # The estimate is unbiased for the variance that these four seeds were drawn from: times n / (n - 1).
    assert found.seed_deviation == pytest.approx(statistics.stdev(rates) * (4 / 3) ** 0.5, rel=0.03)


def test_what_can_be_detected_is_detected_in_four_of_five_experiments() -> None:
    """By simulation: two agents whose rates differ by that much, tested at 5 %."""
    outcomes = dict.fromkeys((LEAF, SPOOKY, CACTUS), "+-+-+-+-+-+-+-+-+-+-")
    found = stability_of(evidence("e", outcomes))
    assert found is not None
    (at_twenty,) = (one for one in found.detectable if one.seeds == 20)
    error = found.seed_deviation * (2 / 20) ** 0.5
    normal = random.Random(2)
    noticed = [abs(at_twenty.points + normal.gauss(0, error)) > 1.96 * error for _ in range(20_000)]
    assert statistics.fmean(noticed) == pytest.approx(0.8, abs=0.01)


def test_one_seed_tells_nothing_of_noise() -> None:
    assert stability_of(evidence("e", {LEAF: "+", SPOOKY: "-."})) is None


def test_endings_are_counted_by_split(database: Database) -> None:
    high = "3d-object-detection-for-autonomous-vehicles"
    planned = sweep(database, "mine", replace(SPEC, competitions=(LEAF, high), seeds=6))
    endings: list[Outcome | FailureClass | None] = [
        *Outcome,
        FailureClass.TIMEOUT,
        FailureClass.INFRASTRUCTURE,
    ]
    for run, ending in zip(planned, endings, strict=False):
        if isinstance(ending, Outcome):
            finish(database, run, ending)
        elif ending is not None:
            fail(database, run, ending)
    transitions.stopped(database, planned[9].id, by="me", now=5.0)
    found = {part.split: part for part in endings_by_split(find_evidence(database, "mine"))}
    assert set(found) == {"low", "high", "all"}
    assert found["all"].runs == 12
    assert found["low"].counts == {
        "gold": 1,
        "bronze": 1,
        "below median": 1,
        "no submission": 1,
        "infrastructure": 1,
        "not ended": 1,
    }
    assert found["high"].counts["stopped"] == 1
    assert list(found["all"].counts) == [ending for ending in ENDINGS if ending in found["all"].counts]


def test_every_ending_has_its_name() -> None:
    trials = evidence("e", {LEAF: "G+^vx-."}).trials
    assert [ending_of(trial) for trial in trials] == [
        "gold",
        "bronze",
        "above median",
        "below median",
        "invalid",
        "no submission",
        "stopped",
    ]


def snapshot(database: Database, attempt_id: int, number: int, elapsed: float, standing: Outcome) -> None:
    taken = submissions.Snapshot(number, 2.0 + elapsed, elapsed, "00", 1, f"{number}.csv")
    submissions.add(database, attempt_id, taken)
    newest = submissions.of_attempt(database, attempt_id)[-1].id
    grade = Grade(newest, 3.0, "v1", 0.5, standing is not Outcome.INVALID, standing, "")
    submissions.add_grade(database, grade, now=3.0)


def test_a_shorter_limit_gives_what_stood_then(database: Database) -> None:
    """Gold after half an hour, spoilt after an hour and a half, bronze at the end of five hours."""
    (run,) = sweep(database, "mine", changed(SPEC, time_limit_seconds=6 * 3600))
    attempt_id = start(database, run)
    for number, (hours, standing) in enumerate(
        [(0.5, Outcome.GOLD), (1.5, Outcome.INVALID), (4.5, Outcome.BRONZE)], start=1
    ):
        snapshot(database, attempt_id, number, hours * 3600, standing)
    transitions.agent_ended(database, attempt_id, EndReason.EXITED, exit_code=0, at=2, now=2)
    transitions.collected(database, attempt_id, now=2)
    transitions.finished(database, attempt_id, Outcome.BRONZE, now=2.0 + 5 * 3600)
    found = find_evidence(database, "mine")
    points = shorter_limits(found)
    assert [(point.hours, point.cell.mean, point.full) for point in points] == [
        (1.0, 100.0, False),
        (2.0, 0.0, False),
        (4.0, 0.0, False),
        (6, 100.0, True),
    ]


def test_limits_below_an_hour_are_asked_about_in_parts(database: Database) -> None:
    (run,) = sweep(database, "mine", changed(SPEC, time_limit_seconds=600))
    finish(database, run, Outcome.GOLD, score=0.0)
    found = find_evidence(database, "mine")
    hours = [point.hours for point in shorter_limits(found)]
    assert hours == pytest.approx([600 / 3600 * part for part in (0.125, 0.25, 0.5, 0.75, 1)])


def test_reports_have_no_history() -> None:
    assert shorter_limits(evidence("e", {LEAF: "+"}, hours=24.0)) == ()


def test_saturation_needs_three_seeds() -> None:
    three = evidence("a", {SPOOKY: "GGG", LEAF: "--^", CACTUS: "G"})
    told = {(flag.competition_id, flag.kind) for flag in flags_of(three) if flag.kind != "defect"}
    assert told == {(SPOOKY, "saturated"), (LEAF, "out of reach"), (CACTUS, "no gradation")}
    two = evidence("b", {SPOOKY: "GG.", LEAF: "--"})
    assert not [flag for flag in flags_of(two) if flag.kind in ("saturated", "out of reach")]


def test_defects_are_those_that_the_edition_does_not_mend() -> None:
    v1 = flags_of(evidence("a", {"spaceship-titanic": "+"}))
    corrected = flags_of(evidence("a", {"spaceship-titanic": "+"}, edition="corrected"))
    assert {flag.kind for flag in v1} == {"defect"}
    assert corrected == ()


def test_effort_counts_hours_and_says_nothing_of_what_it_does_not_know() -> None:
    found = effort_of(evidence("e", {LEAF: "+-.", SPOOKY: "-"}, seconds=7200))
    assert (found.runs, found.run_hours, found.medals) == (4, 8.0, 1)
    assert found.gpu_hours is None
    assert found.gpu_hours_per_medal is None
    with_gpus = effort_of(replace(evidence("e", {LEAF: "++"}, seconds=3600), gpus=0.5))
    assert (with_gpus.gpu_hours, with_gpus.gpu_hours_per_medal, with_gpus.run_hours_per_medal) == (
        1.0,
        0.5,
        1.0,
    )
    assert effort_of(evidence("e", {LEAF: "-"}, seconds=3600)).run_hours_per_medal is None


EFFORT = Effort(runs=4, run_hours=100.0, gpu_hours=50.0, medals=2)


def test_hours_times_prices_is_the_cost() -> None:
    cost = cost_of(EFFORT, Prices(0.5, 2.0, "EUR"))
    assert cost is not None
    assert (cost.total, cost.per_medal, str(cost)) == (150.0, 75.0, "150.00 EUR, 75.00 for a medal")


def test_without_a_price_or_known_hours_nothing_is_told() -> None:
    assert cost_of(EFFORT, Prices()) is None
    assert cost_of(Effort(4, 100.0, None, 2), Prices(0.5, 2.0)) is None
    assert cost_of(Effort(0, 0.0, 0.0, 0), Prices(0.5)) is None


def test_without_a_medal_there_is_no_price_of_one() -> None:
    cost = cost_of(Effort(4, 100.0, None, 0), Prices(0.5))
    assert cost is not None and cost.per_medal is None and str(cost) == "50.00 USD"


def test_prices_are_read_from_config_toml(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    assert read_table(config, Prices) == Prices()
    config.write_text('[prices]\ngpu_hour = 2\ncurrency = "EUR"\n')
    assert read_table(config, Prices) == Prices(None, 2, "EUR")


@pytest.mark.parametrize(
    "text",
    ["[prices]\ngpu_hour = -1\n", "[prices]\ncurrency = 3\n", "prices = 1\n", "["],
)
def test_prices_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    with pytest.raises(UsageProblem):
        read_table(config, Prices)


def test_a_statistic_of_one_seed_has_no_error() -> None:
    limits = (TimePoint(12.0, Cell(0.0, 0.0, 1)), TimePoint(24.0, Cell(50.0, 0.0, 1), full=True))
    told = Insight((), limits, (), None, Effort(0, 0.0, None, 0), None, ()).facts()
    assert told == (("any medal % at shorter limits", "12 h: 0.00, 24 h (real): 50.00"),)
