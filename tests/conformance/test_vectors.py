"""Edition v1 makes of known raw data the known bytes, and of known submissions the known scores."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from tests.competitions.prepared import judgements, prepared
from tests.conformance.trees import VECTORS, Case, Vector, describe, parquet_facts

# Whose metrics return numpy's floats in MLE-bench, as observed with all these cases.
ROUNDED_BY_NUMPY = {
    "3d-object-detection-for-autonomous-vehicles",
    "alaska2-image-steganalysis",
    "billion-word-imputation",
    "bms-molecular-translation",
    "champs-scalar-coupling",
    "google-quest-challenge",
    "google-research-identify-contrails-reduce-global-warming",
    "h-and-m-personalized-fashion-recommendations",
    "hms-harmful-brain-activity-classification",
    "hotel-id-2021-fgvc8",
    "hubmap-kidney-segmentation",
    "icecube-neutrinos-in-deep-ice",
    "multi-modal-gesture-recognition",
    "osic-pulmonary-fibrosis-progression",
    "plant-pathology-2020-fgvc7",
    "ranzcr-clip-catheter-line-classification",
    "rsna-2022-cervical-spine-fracture-detection",
    "rsna-breast-cancer-detection",
    "siim-covid19-detection",
    "smartphone-decimeter-2022",
    "stanford-covid-vaccine",
    "tgs-salt-identification-challenge",
    "us-patent-phrase-to-phrase-matching",
    "uw-madison-gi-tract-image-segmentation",
    "vesuvius-challenge-ink-detection",
    "vinbigdata-chest-xray-abnormalities-detection",
    "whale-categorization-playground",
}

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
        same &= judgement.rounded == case.rounded or math.isnan(case.score)
    else:
        same = judgement.outcome in ("rejected", "not_csv", "too_large") and bool(judgement.message)
    return None if same else f"{judgement.outcome} {judgement.score} {judgement.message} {judgement.detail}"


def test_a_metric_returns_the_kind_of_number_that_mle_benchs_returns(
    made: tuple[Vector, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numpy rounds by another rule than Python, and what the metric returns is rounded."""
    vector, folder = made
    returned: list[float] = []
    scored = Judgement.scored

    def noting(score: float, message: str) -> Judgement:
        returned.append(score)
        return scored(score, message)

    monkeypatch.setattr(Judgement, "scored", noting)
    case = next(case for case in vector.cases() if case.expect == "score")
    judge(
        GradeRequest(vector.id, case.submission, folder, parameters=vector.parameters, answers=case.answers)
    )
    assert [isinstance(score, np.float64) for score in returned] == [vector.id in ROUNDED_BY_NUMPY]


def test_a_tie_is_rounded_as_its_metrics_kind_of_number_is() -> None:
    assert Judgement.scored(np.float64(0.000625), "").rounded == 0.00062
    assert Judgement.scored(0.000625, "").rounded == 0.00063
