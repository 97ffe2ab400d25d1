"""The ruler puts a score where it falls, better always on the left."""

from __future__ import annotations

import pytest

from competitions.model import Thresholds
from console.tui.painting import width_of
from console.tui.theme import UNICODE
from console.tui.widgets.ruler import distances, ruler

LOWER = Thresholds(0.16506, 0.26996, 0.29381, 0.418785, True, "high", 1242)
HIGHER = Thresholds(0.95, 0.93, 0.90, 0.80, False, "high", 100)


def pointer(cuts: Thresholds, score: float, width: int) -> tuple[str, int]:
    drawn = ["".join(text for text, _ in line) for line in ruler(cuts, score, width, UNICODE)]
    return drawn[0], drawn[1].index(UNICODE.pointer)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize(
    ("cuts", "scores"), [(LOWER, (0.1, 0.2, 0.28411, 0.3, 0.9)), (HIGHER, (0.99, 0.94, 0.91, 0.85, 0.1))]
)
def test_better_scores_are_further_left_and_between_their_cuts(
    cuts: Thresholds, scores: tuple[float, ...], width: int
) -> None:
    places = [pointer(cuts, score, width)[1] for score in scores]
    assert places == sorted(places) and len(set(places)) == len(places)
    line = pointer(cuts, scores[0], width)[0]
    marks = [line.index(" G ") + 1, line.index(" S ") + 1, line.index(" B ") + 1, line.index(" median") + 1]
    assert (
        places[0]
        < marks[0]
        <= places[1]
        <= marks[1]
        <= places[2]
        <= marks[2]
        <= places[3]
        <= marks[3]
        < places[4]
    )


@pytest.mark.parametrize("width", range(30, 200, 7))
def test_it_never_is_wider_than_its_room(width: int) -> None:
    assert all(width_of(line) <= max(width, 60) for line in ruler(LOWER, None, width, UNICODE))


def test_ties_and_equal_cuts_are_drawn() -> None:
    equal = Thresholds(1.0, 1.0, 1.0, 1.0, False, "low")
    assert ruler(equal, 1.0, 120, UNICODE) and ruler(equal, 0.5, 120, UNICODE)
    assert ruler(LOWER, float("nan"), 120, UNICODE)


def test_the_next_cut_is_told() -> None:
    assert distances(LOWER, 0.28411) == "0.0097 better than bronze needs, 0.01415 short of silver"
    assert distances(HIGHER, 0.93) == "exactly what silver needs, 0.02 short of gold"
    assert distances(HIGHER, 0.1) == "0.7 short of median"
