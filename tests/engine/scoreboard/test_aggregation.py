import csv
import math
import random
import statistics
from pathlib import Path

import pytest

from mlebench_console.competitions.registry import splits
from mlebench_console.engine.scoreboard.aggregation import aggregate, interim_of, over_seeds
from mlebench_console.engine.scoreboard.model import COLUMNS, Cell, Measure, Results, Trial, results_of
from mlebench_console.foundation.problems import DataProblem, UsageProblem

MEDAL = frozenset({Measure.SUBMISSION, Measure.VALID, Measure.ABOVE_MEDIAN, Measure.GOLD, Measure.ANY_MEDAL})
NOTHING: frozenset[Measure] = frozenset()


def operand_results() -> Results:
    """The per-seed outcomes behind a published row, in the order of their seeds."""
    with (Path(__file__).parent / "operand_row.csv").open() as stream:
        entries = sorted(csv.DictReader(stream), key=lambda entry: int(entry["seed"]))
    results = []
    for entry in entries:
        earned = {Measure.SUBMISSION}
        earned |= {Measure.VALID} if entry["valid_submission"] == "1" else set()
        earned |= {Measure.ABOVE_MEDIAN} if entry["above_median"] == "1" else set()
        for medal in (Measure.GOLD, Measure.SILVER, Measure.BRONZE):
            earned |= {medal, Measure.ANY_MEDAL} if entry[f"{medal}_medal"] == "1" else set()
        results.append((entry["competition_id"], frozenset(earned)))
    return results_of(results)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("low", "63.64 ± 0.00"),
        ("medium", "33.33 ± 0.88"),
        ("high", "20.00 ± 0.00"),
        ("all", "39.56 ± 0.44"),
    ],
)
def test_a_published_row_is_reproduced_from_its_outcomes(column: str, expected: str) -> None:
    row = aggregate(operand_results(), splits()[COLUMNS[column]], pad_missing=True)
    assert str(row[Measure.ANY_MEDAL]) == expected
    assert row[Measure.ANY_MEDAL].n == 3


def test_without_padding_a_split_with_an_unfinished_competition_is_refused_by_name() -> None:
    with pytest.raises(DataProblem) as caught:
        aggregate(operand_results(), splits()["split75"])
    assert "fewer than 1 results" in caught.value.what
    assert any(competition in caught.value.why for competition in splits()["split75"])


def test_only_seeds_that_every_competition_finished_count() -> None:
    results = {"a": [MEDAL, NOTHING, NOTHING], "b": [NOTHING, MEDAL]}
    row = aggregate(results, ["a", "b"])
    assert row[Measure.ANY_MEDAL] == Cell(50.0, 0.0, 2)


def test_padding_counts_missing_reports_as_no_medal() -> None:
    results = {"a": [MEDAL, MEDAL], "b": [MEDAL]}
    row = aggregate(results, ["a", "b", "c"], pad_missing=True)
    assert row[Measure.ANY_MEDAL].n == 2
    assert row[Measure.ANY_MEDAL].mean == pytest.approx((200 / 3 + 100 / 3) / 2)
    assert row[Measure.SUBMISSION] == row[Measure.ANY_MEDAL]


@pytest.mark.parametrize("padded", [False, True])
def test_asking_for_more_seeds_than_there_are_is_refused_as_by_mle_bench(padded: bool) -> None:
    results = {"a": [MEDAL, MEDAL], "b": [MEDAL, MEDAL]}
    with pytest.raises(DataProblem):
        aggregate(results, ["a", "b"], seeds=3, pad_missing=padded)
    assert aggregate(results, ["a"], seeds=1, pad_missing=padded)[Measure.ANY_MEDAL] == Cell(100.0, 0.0, 1)


@pytest.mark.parametrize("padded", [False, True])
def test_no_seed_at_all_is_refused(padded: bool) -> None:
    with pytest.raises(UsageProblem, match="at least 1"):
        aggregate({"a": [MEDAL]}, ["a"], seeds=0, pad_missing=padded)


def test_nothing_at_all_is_refused_even_with_padding() -> None:
    with pytest.raises(DataProblem):
        aggregate({"elsewhere": [MEDAL]}, ["a"], pad_missing=True)


def test_the_error_is_that_of_the_mean_with_the_sample_deviation() -> None:
    values = [40.0, 44.0, 36.0, 42.0]
    cell = over_seeds(values)
    assert cell.sem == pytest.approx(statistics.stdev(values) / math.sqrt(4))
    low, high = cell.interval()
    assert (low, high) == pytest.approx((40.5 - 1.96 * cell.sem, 40.5 + 1.96 * cell.sem))
    assert over_seeds([12.5]) == Cell(12.5, 0.0, 1)


def test_the_order_of_competitions_changes_nothing() -> None:
    results = operand_results()
    by_competition = dict(sorted(results.items()))
    members = list(splits()["split75"])
    random.Random(0).shuffle(members)
    assert aggregate(results, splits()["split75"], pad_missing=True) == aggregate(
        by_competition, members, pad_missing=True
    )


def trial(competition: str, seed: int, earned: frozenset[Measure] | None, *, ended: bool = True) -> Trial:
    return Trial(competition, seed, earned, ended=ended)


def test_before_all_runs_have_a_result_the_final_figure_is_bounded_from_both_sides() -> None:
    """One medal, one failure that counts, one loss that does not, one live run: between 1 and 3 of 4."""
    found = interim_of(
        [
            trial("a", 1, MEDAL),
            trial("a", 2, NOTHING),
            trial("b", 1, None),
            trial("b", 2, None, ended=False),
            trial("elsewhere", 1, MEDAL),
        ],
        ["a", "b"],
    )
    assert found is not None
    assert (found.medals, found.ended, found.counted, found.runs, found.seeds) == (1, 3, 2, 4, 2)
    assert (found.low, found.high) == (25.0, 75.0)
    assert not found.is_final


@pytest.mark.parametrize("fill", [NOTHING, MEDAL])
def test_the_bounds_hold_whatever_comes_and_meet_in_the_end(fill: frozenset[Measure]) -> None:
    chosen = random.Random(1)
    members = list("abcdef")
    trials = [
        trial(name, seed, chosen.choice([MEDAL, NOTHING, None]), ended=chosen.random() < 0.7)
        for name in members
        for seed in (1, 2, 3)
    ]
    interim = interim_of(trials, members)
    final = [trial(one.competition_id, one.seed, one.earned if one.counts else fill) for one in trials]
    cell = aggregate(results_of((one.competition_id, one.earned) for one in final), members)[
        Measure.ANY_MEDAL
    ]
    decided = interim_of(final, members)
    assert interim is not None and decided is not None and decided.is_final
    assert cell.mean == pytest.approx(interim.low if fill is NOTHING else interim.high)
    assert decided.low == decided.high == pytest.approx(cell.mean)


def test_one_seed_has_no_error_to_write_but_an_interval_of_its_runs() -> None:
    """Wilson's interval for 5 of 6, as other programs have it: 43.6 to 97.0 %."""
    results = results_of([(name, MEDAL if name != "f" else NOTHING) for name in "abcdef"])
    cell = aggregate(results, list("abcdef"))[Measure.ANY_MEDAL]
    assert cell.figures(1) == "83.3" and str(cell) == "83.33 ± 0.00"
    assert cell.wilson() == pytest.approx((43.65, 96.99), abs=0.01)
    assert over_seeds([0.0, 50.0]).figures(1) == "25.0 ± 25.0"
    assert over_seeds([0.0]).wilson() is None


@pytest.mark.parametrize("won", [0, 6])
def test_no_interval_of_shares_leaves_0_to_100(won: int) -> None:
    results = results_of([(str(number), MEDAL if number < won else NOTHING) for number in range(6)])
    low, high = aggregate(results, [str(number) for number in range(6)])[Measure.ANY_MEDAL].wilson() or (
        -1,
        -1,
    )
    assert 0 <= low < high <= 100
