"""Two experiments are compared by competition, and what decides is told with an exact probability."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from mlebench_console.engine.scoreboard.comparison import compare, permutation_p_value
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from tests.engine.scoreboard.making import CACTUS, LEAF, SPOOKY, evidence


def by_enumeration(values: list[Fraction]) -> float:
    nothing = Fraction(0)
    observed = abs(sum(values, nothing))
    sums = [
        abs(sum((sign * value for sign, value in zip(signs, values, strict=True)), nothing))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    return sum(total >= observed for total in sums) / len(sums)


def test_the_permutation_test_is_that_of_trying_every_way() -> None:
    draw = random.Random(3)
    for _ in range(30):
        values = [Fraction(draw.randint(-3, 3), draw.choice((1, 2, 3))) for _ in range(draw.randint(1, 9))]
        assert permutation_p_value(values) == pytest.approx(by_enumeration(values))


def test_nothing_but_ties_decides_nothing() -> None:
    assert permutation_p_value([Fraction(0)] * 5) == 1.0


def test_seventy_five_decisive_competitions_are_counted_without_drawing_by_lot() -> None:
    assert permutation_p_value([Fraction(1, 3)] * 75) == pytest.approx(2 / 2**75)


def test_what_decides_stands_first() -> None:
    ours = evidence("ours", {LEAF: "++-", SPOOKY: "+++", CACTUS: "---"})
    theirs = evidence("theirs", {LEAF: "+--", SPOOKY: "---", CACTUS: "---"})
    found = compare(ours, theirs)
    assert [duel.competition_id for duel in found.deciding] == [SPOOKY, LEAF]
    assert found.deciding[0].difference == pytest.approx(100.0)
    assert found.overall.points == pytest.approx((100 + 100 / 3) / 3)
    assert found.overall.p_value == pytest.approx(0.5)
    assert (found.overall.competitions, found.overall.deciding) == (3, 2)
    assert set(found.by_column) == {"low", "all"}


def test_only_seeds_that_count_and_competitions_in_common_are_compared() -> None:
    found = compare(
        evidence("a", {LEAF: "+.", SPOOKY: "+"}), evidence("b", {LEAF: "-", CACTUS: "-", SPOOKY: "."})
    )
    assert [duel.competition_id for duel in found.duels] == [LEAF]
    assert found.duels[0].first.seeds == 1
    assert found.left_out == (CACTUS, SPOOKY)
    with pytest.raises(DataProblem, match="no competition with results in common"):
        compare(evidence("a", {LEAF: "+"}), evidence("b", {CACTUS: "+"}))


def test_editions_are_never_compared_and_other_differences_are_told() -> None:
    ours = evidence("a", {LEAF: "+"}, hours=24.0, agent="x")
    with pytest.raises(UsageProblem, match="mixed editions: corrected, v1"):
        compare(ours, evidence("b", {LEAF: "+"}, edition="corrected"))
    with pytest.raises(UsageProblem, match="mixed kinds of data"):
        compare(ours, evidence("b", {LEAF: "+"}, data="demo"))
    assert compare(ours, evidence("b", {LEAF: "+"}, hours=12.0, agent="y")).caveats == (
        "mixed time limits: 12 h, 24 h",
    )


def test_further_conditions_that_differ_are_told_unless_they_are_unknown() -> None:
    ours = evidence("a", {LEAF: "+"}, further=(("gateway", "openai"), ("budget_usd", "2.5")))
    theirs = evidence("b", {LEAF: "+"}, further=(("gateway", "openai"), ("disk_gb", "9")))
    assert compare(ours, theirs).caveats == ("mixed budget_usd: 2.5, none", "mixed disk_gb: 9, none")
    assert compare(ours, evidence("imported", {LEAF: "+"})).caveats == ()


def test_without_names_it_is_told_what_names_are_worth() -> None:
    usual = evidence("usual", {LEAF: "++", SPOOKY: "++", CACTUS: "--"}, descriptions="usual")
    blind = evidence("blind", {LEAF: "--", SPOOKY: "+-", CACTUS: "--"}, descriptions="obfuscated")
    found = compare(usual, blind)
    assert found.caveats == ("mixed descriptions: obfuscated, usual",)
    assert "worth +50.0 points of any medal over 3 competitions" in found.worth_of_names
    assert f"(p = {found.overall.p_value:.3f})" in found.worth_of_names
    assert "+50.0 points" in compare(blind, usual).worth_of_names
    assert compare(usual, usual).worth_of_names == ""
    assert compare(usual, evidence("imported", {LEAF: "+"})).worth_of_names == ""
