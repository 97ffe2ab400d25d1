"""Edition v1 makes of known raw data the known bytes, and of known submissions the known scores."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import Judgement
from tests.competitions.prepared import judgements, prepared
from tests.conformance.trees import VECTORS, Case, Vector, describe, parquet_facts

AVAILABLE = [
    Vector(VECTORS / competition_id)
    for competition_id in registry.all_ids()
    if registry.get(competition_id).available
]


@pytest.fixture(params=AVAILABLE, ids=lambda vector: vector.id)
def made(request: pytest.FixtureRequest) -> tuple[Vector, Path]:
    vector: Vector = request.param
    return vector, prepared(vector.id)


def test_every_competition_has_vectors() -> None:
    assert sorted(path.name for path in VECTORS.iterdir()) == sorted(registry.all_ids())


def test_prepared_files_are_equal_to_the_byte(made: tuple[Vector, Path]) -> None:
    vector, folder = made
    expected = vector.expected
    found = describe(folder, expected)
    for name in expected.get("nondeterministic", []):
        side, _, path = name.partition("/")
        facts = expected[side].get(path, {})
        if not {"zip", "tar", "7z"} & set(facts):
            assert (path in found[side]) == (path in expected[side]), name
            found[side].pop(path, None)
            expected[side].pop(path, None)
    for name, facts in expected.get("parquet_content", {}).items():
        held = parquet_facts(folder / name)
        assert held == {key: facts[key] for key in held}, name
    assert found == {side: expected[side] for side in ("public", "private")}


def test_scores_are_equal(made: tuple[Vector, Path]) -> None:
    vector, _ = made
    wrong = [
        f"{case.submission.name}: expected {case.expect} {case.score}, got {told}"
        for case, judgement in zip(vector.cases(), judgements(vector.id), strict=True)
        if not case.unstable and (told := _disagreement(case, judgement))
    ]
    assert not wrong


def _disagreement(case: Case, judgement: Judgement) -> str | None:
    if case.expect == "score":
        assert case.score is not None
        same = judgement.score is not None and (
            math.isclose(judgement.score, case.score, rel_tol=1e-9, abs_tol=1e-12)
            or (math.isnan(judgement.score) and math.isnan(case.score))
        )
    else:
        same = judgement.outcome in ("rejected", "not_csv", "too_large") and bool(judgement.message)
    return None if same else f"{judgement.outcome} {judgement.score} {judgement.message} {judgement.detail}"
