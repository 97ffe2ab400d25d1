"""Authors of competitions get hostile submissions, a new folder to begin with, and checks of what they write."""

from __future__ import annotations

import random

from competitions.authoring.hostile import hostile_forms

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
