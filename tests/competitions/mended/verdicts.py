"""Submissions that editions v1 and corrected judge differently: a table for `test_verdicts`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.judging import Judgement
from mlebench_console.competitions.model import Edition
from tests.competitions.mended.editions import (
    answers,
    from_answers,
    grade_in_both,
    judged_against,
    sample,
    table,
    with_cell,
)

Make = Callable[[Edition], pd.DataFrame]
NAN = math.nan


@dataclass(frozen=True)
class Verdict:
    """What an edition says; what is not given may be anything.

    Attributes:
        outcome: such as `scored`.
        score: approximately.
        above: what the score is above.
        below: what it is below.
        says: how the message begins.
        holds: what it contains.
    """

    outcome: str = ""
    score: float | None = None
    above: float | None = None
    below: float | None = None
    says: str = ""
    holds: str = ""

    def check(self, judgement: Judgement) -> None:
        """Fail if a judgement is another one."""
        score = judgement.score
        assert not self.outcome or judgement.outcome == self.outcome
        assert self.score is None or score == pytest.approx(self.score, rel=1e-12, abs=0, nan_ok=True)
        assert self.above is None or (score is not None and score > self.above)
        assert self.below is None or (score is not None and score < self.below)
        assert judgement.message.startswith(self.says)
        assert self.holds in judgement.message


SCORED, REJECTED = Verdict("scored"), Verdict("rejected")


def score(value: float) -> Verdict:
    return Verdict("scored", value)


def both(verdict: Verdict) -> tuple[Verdict, Verdict]:
    """The same for both editions."""
    return verdict, verdict


def says(text: str, holds: str = "") -> Verdict:
    return Verdict("rejected", says=text, holds=holds)


@dataclass(frozen=True)
class Case:
    """A submission, and what both editions say to it.

    Attributes:
        shows: what it shows, in words.
        of: the competition.
        defects: which of its defects it shows; none where both editions agree.
        v1: what edition v1 says.
        corrected: what edition corrected says.
        make: makes the submission for an edition, if it is graded against the prepared answers.
        truth: answers of our own otherwise.
        told: the columns in which the submission differs from them, or all of it, if it has another number of rows.
        order: the rows that the submission has of these, by number; all in their order, if none are given.
    """

    shows: str
    of: str
    defects: tuple[str, ...]
    v1: Verdict
    corrected: Verdict
    make: Make | None = None
    truth: Mapping[str, Any] | None = None
    told: Mapping[str, Any] | None = None
    order: tuple[int, ...] = ()

    def judged(self, folder: Path) -> tuple[Judgement, Judgement]:
        """Return what both editions say."""
        if self.make is not None:
            return grade_in_both(self.of, self.make, folder)
        truth = pd.DataFrame(self.truth)
        told = self.told or {}
        length = max((len(cells) for cells in told.values() if isinstance(cells, list)), default=0)
        submission = truth.assign(**told) if length in (0, len(truth)) else pd.DataFrame(told)
        if self.order:
            submission = submission.iloc[list(self.order)]
        return judged_against(truth, submission, self.of, folder)


def of_answers(
    competition_id: str, change: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows
) -> Make:
    """Answers, changed."""
    return lambda edition: change(answers(competition_id, edition))


def of_sample(
    competition_id: str, change: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows
) -> Make:
    """Sample submissions, changed."""
    return lambda edition: change(sample(competition_id, edition))


def of_table(competition_id: str, name: str) -> Make:
    """A prepared table."""
    return lambda edition: table(competition_id, edition, name)


# pictures

APTOS = "aptos2019-blindness-detection"
HOTEL = "hotel-id-2021-fgvc8"
LEAVES_2021 = "plant-pathology-2021-fgvc8"
WHALES = "whale-categorization-playground"
BREAST = "rsna-breast-cancer-detection"
CAMERAS_2020 = "iwildcam-2020-fgvc7"
SPINE = "rsna-2022-cervical-spine-fracture-detection"
INATURALIST = "inaturalist-2019-fgvc6"
SPINES = ["1.2_patient_overall", "1.2_C1", "1.3_patient_overall", "1.3_C1"]

PICTURES = [
    Case(
        "kappa is over all five grades, of which 2 and 3 occur on neither side",
        APTOS,
        ("kappa-over-occurring-grades",),
        score(0.8),
        score(0.625),
        truth={"id_code": list("abcd"), "diagnosis": [0, 1, 4, 4]},
        told={"diagnosis": [0, 1, 4, 1]},
    ),
    *(
        Case(
            f"grade {grade} is off the scale",
            APTOS,
            ("grades-off-the-scale-taken",),
            Verdict("scored", below=1),
            says(f"Row 2: diagnosis '{grade}' is out of range; expected a number from 0 to 4."),
            make=with_cell(APTOS, "diagnosis", grade, row=1, base=answers),
        )
        for grade in (9, -3)
    ),
    Case(
        # weights 14 and 1 of the first study, 7 and 1 of the second, which is right
        "losses of spines are averaged over all rows",
        SPINE,
        ("loss-averaged-per-study",),
        score(np.log(2) / 2),
        score(np.log(2) * 15 / 23),
        truth={"row_id": SPINES, "fractured": [1, 0, 0, 0]},
        told={"fractured": [0.5, 0.5, 0.0, 0.0]},
    ),
    Case(
        "hotel ids count however they are written",
        HOTEL,
        ("ids-compared-as-text",),
        score(0),
        score(1),
        make=from_answers(HOTEL, "hotel_id", lambda truth: "  0" + truth["hotel_id"].map(str) + "  7"),
    ),
    Case(
        # the empty cell makes pandas read the others as 36363.0
        "right hotel ids beside an empty cell are not scored wrong silently",
        HOTEL,
        ("ids-compared-as-text",),
        score(0),
        says("Row 5: hotel_id"),
        make=with_cell(HOTEL, "hotel_id", None, row=4, base=lambda *of: answers(*of)[["image", "hotel_id"]]),
    ),
    *(
        Case(
            f"{cell!r} is no hotel id",
            HOTEL,
            ("ids-compared-as-text",),
            SCORED,
            says("Row 1: hotel_id"),
            make=with_cell(HOTEL, "hotel_id", cell),
        )
        for cell in ("the Ritz", "36363.0", "1,2")
    ),
    Case(
        # of three pairs two are found, and one is told that is none; of two photos one is right and one is wrong
        "every leaf photo has the same weight",
        LEAVES_2021,
        ("pooled-f1",),
        score(2 * 2 / (3 + 3)),
        score(0.5),
        truth={"image": ["a.jpg", "b.jpg"], "labels": ["scab", "rust complex"]},
        told={"labels": ["rust", "rust complex"]},
    ),
    *(
        Case(
            f"blanks between guesses take up no rank: {guesses!r}",
            WHALES,
            ("missing-guesses-and-blanks",),
            score((v1 + 1) / 2),
            score((corrected + 1) / 2),
            truth={"Image": ["a.jpg", "b.jpg"], "Id": ["w_2", "w_3"]},
            told={"Id": [guesses, "w_3"]},
        )
        for guesses, v1, corrected in (
            ("w_1  w_2", 1 / 3, 1 / 2),
            (" w_2", 1 / 2, 1),
            ("w_1\tw_2", 0, 1 / 2),
            (None, 0, 0),
        )
    ),
    Case(
        "only negative cancer probabilities are refused",
        BREAST,
        ("odd-probabilities-crash",),
        *both(says("Every cancer value is negative; expected probabilities from 0 to 1.")),
        make=from_answers(BREAST, "cancer", lambda truth: -0.5),
    ),
    Case(
        "the column of older texts is taken too",
        CAMERAS_2020,
        ("header-of-the-text-refused",),
        Verdict("rejected", holds="'Category' is missing"),
        score(1),
        make=of_answers(CAMERAS_2020, lambda rows: rows.rename(columns={"Category": "Predicted"})),
    ),
    Case(
        "whole guesses written as fractions are refused",
        INATURALIST,
        ("odd-guesses-crash",),
        says("Row 1: predicted"),
        says("Row 1: predicted"),
        make=from_answers(INATURALIST, "predicted", lambda truth: truth["predicted"].astype(float)),
    ),
    *(
        Case(
            "fractions of classes are cut off or refused",
            competition_id,
            (defect_id,),
            score(1),
            says(f"Row 1: {target}", "is not a whole number"),
            make=from_answers(competition_id, target, lambda truth: truth.iloc[:, 1] + 0.75),
        )
        for competition_id, defect_id, target in (
            ("herbarium-2020-fgvc7", "odd-class-numbers-crash", "Predicted"),
            ("herbarium-2021-fgvc8", "fractions-cut-off", "Predicted"),
            ("herbarium-2022-fgvc9", "fractions-cut-off", "Predicted"),
            ("iwildcam-2019-fgvc6", "odd-class-numbers-crash", "Category"),
        )
    ),
]

# boxes and masks

COVID = "siim-covid19-detection"
XRAY = "vinbigdata-chest-xray-abnormalities-detection"
DRIVING = "3d-object-detection-for-autonomous-vehicles"
CONTRAILS = "google-research-identify-contrails-reduce-global-warming"
SALT = "tgs-salt-identification-challenge"
SCANS = "uw-madison-gi-tract-image-segmentation"

CAR, FARTHER_CAR, BUS = "5 5 0 2 4 1.5 0.3 car", "50 50 0 2 4 1.5 0.3 car", "9 9 0 2 4 1.5 0.3 bus"


def cells(**by_id: str) -> dict[str, list[str]]:
    return {"id": list(by_id), "PredictionString": list(by_id.values())}


def xrays(*rows: tuple[str, int, float, float, float, float]) -> dict[str, Any]:
    columns = ["image_id", "class_id", "x_min", "y_min", "x_max", "y_max"]
    found = pd.DataFrame(rows, columns=columns).assign(class_name="x", rad_id="R1")
    return {str(name): found[name].tolist() for name in found}


def predicted(**by_image: str) -> dict[str, list[str]]:
    return {"image_id": list(by_image), "PredictionString": list(by_image.values())}


def samples(*boxes: str) -> dict[str, list[str]]:
    return {"Id": [f"s{number}" for number in range(len(boxes))], "PredictionString": list(boxes)}


def scans(organs: Mapping[str, str]) -> dict[str, Any]:
    """Answers of a slice: the mask of each organ, and the size of the picture."""
    many = len(organs)
    return {
        "id": ["case1_day1_slice_0001"] * many,
        "class": list(organs),
        "predicted": list(organs.values()),
        "image_width": [6.0] * many,
        "image_height": [4.0] * many,
    }


TWO_ORGANS = scans({"large_bowel": "1 3", "stomach": "9 2"})
ODD_BOX = xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 10, 10, 20, 20))

SHAPES = [
    Case(
        "a label that is never found earns credit in v1",
        COVID,
        ("pseudo-pairs-instead-of-envelope",),
        score((1 + 2 / 3) / 2),
        score(0.5),
        truth=cells(a_study="typical 1 0 0 1 1", b_study="typical 1 0 0 1 1", b_image="none 1 0 0 1 1"),
        told=cells(a_study="x 1 0 0 1 1", b_study="x 1 0 0 1 1", b_image="none 1 0 0 1 1"),
    ),
    Case(
        "precision is raised to the best at higher recall in corrected alone",
        COVID,
        ("pseudo-pairs-instead-of-envelope",),
        score(((1 / 2 + 2 / 3) / 2 + 1) / 2),
        score((2 / 3 + 1) / 2),
        truth=cells(a_study="typical 1 0 0 1 1", b_study="typical 1 0 0 1 1", c_study="negative 1 0 0 1 1"),
        told=cells(
            a_study="typical 0.5 0 0 1 1",
            b_study="typical 0.4 0 0 1 1",
            c_study="typical 0.9 0 0 1 1 negative 1 0 0 1 1",
        ),
    ),
    *(
        Case(
            f"{what}: an error in v1, not rated in corrected",
            COVID,
            ("labels-of-the-other-kind-of-row",),
            score(v1),
            score(1),
            truth=cells(a_study="typical 1 0 0 1 1", a_image="none 1 0 0 1 1"),
            told=cells(a_study=study, a_image=image),
        )
        for what, study, image, v1 in (
            (
                "study label on an image",
                "typical 0.5 0 0 1 1",
                "none 1 0 0 1 1 typical 0.9 0 0 1 1",
                (0.5 + 1) / 2,
            ),
            (
                "image label on a study",
                "typical 1 0 0 1 1 none 0.9 0 0 1 1",
                "none 0.5 0 0 1 1",
                (1 + 0.5) / 2,
            ),
        )
    ),
    Case(
        "boxes overlap as if corners were sizes in v1",
        XRAY,
        ("corners-taken-for-sizes",),
        score((0 + 1) / 2),
        score(0),
        truth=xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 1000, 1000, 1100, 1100)),
        told=predicted(z="0 1 0 0 1 1", a="3 1 1100 1100 1200 1200"),
    ),
    Case(
        "the first box cannot be found in v1",
        XRAY,
        ("matches-with-id-zero-lost",),
        score(0.5),
        score(1),
        truth=ODD_BOX,
        told=predicted(z="14 1 0 0 1 1", a="3 1 10 10 20 20"),
    ),
    Case(
        "a perfect submission of xrays is perfect in corrected alone",
        XRAY,
        ("matches-with-id-zero-lost",),
        Verdict("scored", below=1),
        score(1),
        make=of_table(XRAY, "private/gold_submission.csv"),
    ),
    Case(
        "precision is read at 101 recalls in v1",
        XRAY,
        ("coco-instead-of-voc-precision",),
        score(51 / 101 / 2),
        score(0.5 / 2),
        truth=xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 10, 10, 20, 20), ("b", 3, 10, 10, 20, 20)),
        told=predicted(z="0 1 0 0 1 1", a="3 1 10 10 20 20", b="0 1 0 0 1 1"),
    ),
    Case(
        "boxes beyond the hundredth count in corrected alone",
        XRAY,
        ("coco-instead-of-voc-precision",),
        score(0),
        score(1 / 101 / 2),
        truth=ODD_BOX,
        told=predicted(z="0 1 0 0 1 1", a=" ".join(["3 0.9 500 500 600 600"] * 100 + ["3 0.1 10 10 20 20"])),
    ),
    Case(
        "an overlap of just the limit counts in v1",
        XRAY,
        ("coco-instead-of-voc-precision",),
        score(0.5),
        score(0),
        truth=xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 0, 0, 10, 10)),
        told=predicted(z="0 1 0 0 1 1", a="3 1 0 0 10 4"),
    ),
    Case(
        "an image that stands there twice scores in v1",
        XRAY,
        ("repeated-images-accepted",),
        SCORED,
        REJECTED,
        make=of_sample(XRAY, lambda rows: pd.concat([rows, rows.iloc[:1]])),
    ),
    Case(
        "objects of a class that is not there cost nothing in v1",
        DRIVING,
        ("absent-classes-cost-nothing",),
        score(1),
        score(0.5),
        truth=samples(f"1.0 {CAR}"),
        told=samples(f"1.0 {CAR} 0.2 {BUS}"),
    ),
    Case(
        "objects that are all there are perfect",
        DRIVING,
        ("absent-classes-cost-nothing",),
        score(1),
        score(1),
        truth=samples(f"1.0 {CAR}"),
    ),
    Case(
        "an impossible box of a class that is not there is refused in corrected alone",
        DRIVING,
        ("malformed-boxes-crash",),
        SCORED,
        says("Row 1: PredictionString "),
        make=with_cell(DRIVING, "PredictionString", "0.5 1 1 1 0 4 2 0.1 unicorn"),
    ),
    Case(
        "a sample without objects is NaN in v1",
        DRIVING,
        ("samples-without-objects-crash",),
        score(NAN),
        score(0.5),
        truth=samples(f"1.0 {CAR}", ""),
    ),
    Case(
        "no contrail anywhere is NaN in v1",
        CONTRAILS,
        ("nan-when-all-masks-empty",),
        score(NAN),
        REJECTED,
        truth={"record_id": ["a", "b"], "encoded_pixels": "-", "height": 256, "width": 256},
    ),
    Case(
        "an empty prediction of all salt earns everything in v1",
        SALT,
        ("empty-mask-read-as-all-salt",),
        score(0.5),
        score(0),
        truth={"id": ["a", "b"], "rle_mask": ["1 10201", "1 10"]},
        told={"rle_mask": ""},
    ),
    Case(
        "right masks of salt earn everything",
        SALT,
        ("empty-mask-read-as-all-salt",),
        score(1),
        score(1),
        truth={"id": ["a", "b"], "rle_mask": ["1 10201", "1 10"]},
    ),
    Case(
        # no slice overlaps, but both organs are one volume
        "rows of scans pair by position in v1",
        SCANS,
        ("rows-never-aligned",),
        score(0.6),
        score(1),
        truth=TWO_ORGANS,
        order=(1, 0),
    ),
    *(
        Case(
            f"rows of others score in v1: {what}",
            SCANS,
            ("rows-never-aligned",),
            score(1),
            REJECTED,
            truth=TWO_ORGANS,
            told=told,
        )
        for what, told in (
            ("another slice", {"id": "case2_day1_slice_0001"}),
            ("other organs", {"class": ["heart", "liver"]}),
            ("an organ twice", {"class": "stomach"}),
        )
    ),
    Case(
        "a wrong organ is as near as the right one in v1",
        SCANS,
        ("organs-merged-to-one-volume",),
        score(0.6),
        Verdict("scored", below=0.6),
        truth=TWO_ORGANS,
        told=scans({"large_bowel": "9 2", "stomach": "1 3"}),
    ),
    Case(
        # pixels 1 and 2 against 1 and 5, six wide and four high: four pixels down the column or along the row; the
        # farthest: v1 2 -> 1 is a quarter of the height and 5 -> 1 one of six columns; corrected 5 -> 2: 3/6
        "masks run down columns in v1 and along rows in corrected",
        SCANS,
        ("masks-read-down-columns",),
        score(0.4 * 0.5 + 0.6 * (1 - 0.25 / 3**0.5)),
        score(0.4 * 0.5 + 0.6 * (1 - 0.5 / 3**0.5)),
        truth=scans({"stomach": "1 2"}),
        told=scans({"stomach": "1 1 5 1"}),
    ),
]

# texts

ARENA = "lmsys-chatbot-arena"
BASKETS = "h-and-m-personalized-fashion-recommendations"
CHAII = "chaii-hindi-and-tamil-question-answering"
ESSAYS = "learning-agency-lab-automated-essay-scoring-2"
INSULTS = "detecting-insults-in-social-commentary"
DRAWINGS = "bms-molecular-translation"
NOTEBOOKS = "AI4Code"
PATENTS = "us-patent-phrase-to-phrase-matching"
QUEST = "google-quest-challenge"
SPOOKY = "spooky-author-identification"
TAGS = "facebook-recruiting-iii-keyword-extraction"
TWEETS = "tweet-sentiment-extraction"
WIKI = "tensorflow2-question-answering"
WORDS = "billion-word-imputation"


def in_words(truth: pd.DataFrame) -> pd.Series:
    """Ratings whose words "x", "xx" and "xxx" stand in the order of the ratings."""
    return truth["answer_helpful"].rank(method="dense").map(lambda rank: "x" * int(rank))


def third(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(**dict.fromkeys(rows.columns.drop("id"), 0.33))


TEXTS = [
    Case(
        # told as the third of the four grades that occur, the second is one step off; on the scale it is two
        "grades of essays are weighed on the fixed scale",
        ESSAYS,
        ("kappa-on-label-positions",),
        score(0.9),
        score(1 - 16 / 114),
        truth={"essay_id": list("abcd"), "score": [1, 2, 4, 6]},
        told={"score": [1, 4, 4, 6]},
    ),
    *(
        Case(
            f"grade {grade} is off the scale",
            ESSAYS,
            ("grades-off-the-scale",),
            SCORED,
            says(f"Row 1: score '{grade}' is out of range"),
            make=with_cell(ESSAYS, "score", grade),
        )
        for grade in (0, 7)
    ),
    Case(
        "preferences are rescaled as on Kaggle",
        ARENA,
        ("rows-not-rescaled",),
        Verdict("rejected", holds="the probabilities sum to 0.99"),
        score(math.log(3)),
        make=of_sample(ARENA, third),
    ),
    Case(
        "the example on Kaggle of three equal authors is scored",
        SPOOKY,
        ("rows-must-sum-to-one",),
        REJECTED,
        score(np.log(3)),
        make=of_sample(SPOOKY, lambda rows: rows.assign(EAP=0.33, HPL=0.33, MWS=0.33)),
    ),
    Case(
        "columns of authors are taken by name in any order",
        SPOOKY,
        ("id-not-first-crashes",),
        says("The first column must be 'id', not 'EAP'."),
        Verdict("scored", below=1e-12),
        make=of_answers(SPOOKY, lambda rows: rows[["EAP", "HPL", "MWS", "id"]]),
    ),
    Case(
        "the sample of similarities has a score",
        PATENTS,
        ("constant-sample-scores-nan",),
        score(NAN),
        Verdict("scored", above=np.nextafter(-1, -2), below=np.nextafter(1, 2)),
        make=of_sample(PATENTS),
    ),
    Case(
        "a constant similarity has no score",
        PATENTS,
        ("constant-sample-scores-nan",),
        score(NAN),
        says("score is the same in every row"),
        make=from_answers(PATENTS, "score", lambda truth: 0.5),
    ),
    *(
        Case(
            f"a similarity that {why} is refused",
            PATENTS,
            ("missing-and-infinite-give-nan",),
            score(NAN),
            says(f"Row 1: score {why}"),
            make=with_cell(PATENTS, "score", value, base=answers),
        )
        for value, why in ((None, "is empty"), (np.inf, "'inf' is not finite"))
    ),
    Case(
        "ratings are matched by id",
        QUEST,
        ("ids-not-compared",),
        score(1),
        Verdict("rejected", holds="is not among the ids asked for"),
        make=from_answers(QUEST, "qa_id", lambda truth: truth["qa_id"] + 10**6),
    ),
    Case(
        "a constant rating costs its own share only",
        QUEST,
        ("nan-hides-the-other-ratings",),
        score(NAN),
        score(29 / 30),
        make=from_answers(QUEST, "answer_helpful", lambda truth: 0.5),
    ),
    Case(
        "a missing rating is refused",
        QUEST,
        ("nan-hides-the-other-ratings",),
        score(NAN),
        says("Row 1: answer_helpful is empty"),
        make=with_cell(QUEST, "answer_helpful", None, base=answers),
    ),
    Case(
        "ratings in words are refused",
        QUEST,
        ("text-ranked-as-strings",),
        score(1),
        says("Row 1: answer_helpful 'x"),
        make=from_answers(QUEST, "answer_helpful", in_words),
    ),
    Case(
        "the bought articles are a perfect submission",
        BASKETS,
        ("answers-with-repetitions",),
        Verdict("scored", below=1),
        score(1),
        make=of_table(BASKETS, "private/answers.csv"),
    ),
    Case(
        "customers are taken in any order",
        BASKETS,
        ("repeated-customers-misalign-rows",),
        score(1),
        score(1),
        truth={"customer_id": ["a", "b", "c"], "prediction": ["10", "20", "30"]},
    ),
    Case(
        # b and c are given what the row before theirs says
        "repeated customers are refused",
        BASKETS,
        ("repeated-customers-misalign-rows",),
        score(1 / 3),
        says("Row 2: customer_id ", "has a row before it"),
        truth={"customer_id": ["a", "b", "c"], "prediction": ["10", "20", "30"]},
        order=(0, 0, 1, 2),
    ),
    *(
        Case(
            "further columns are ignored",
            competition_id,
            (defect_id,),
            says("Column 'note' is not expected"),
            SCORED,
            make=of_sample(competition_id, lambda rows: rows.assign(note=1)),
        )
        for competition_id, defect_id in (
            (BASKETS, "extra-columns-refused"),
            (WHALES, "surplus-columns-refused"),
        )
    ),
    Case(
        "a changed comment matters only where it is the key",
        INSULTS,
        ("comments-are-the-key",),
        Verdict("rejected", holds="Comment"),
        score(1),
        make=lambda edition: (
            table(INSULTS, edition, "private/gold_submission.csv")
            .assign(Comment="normalised")
            .sample(frac=1, random_state=0)
        ),
    ),
    Case(
        # the word nan is 0 and 4 changes away, one letter being in common; the empty text 3 and 5
        "an empty cell is the empty text and not the word nan",
        DRAWINGS,
        ("empty-cells-read-as-nan",),
        score(2),
        score(4),
        truth={"image_id": ["a", "b"], "InChI": ["nan", "InChI"]},
        told={"InChI": ""},
    ),
    Case(
        "words that stand for missing cells are texts",
        DRAWINGS,
        ("empty-cells-read-as-nan",),
        score(4),
        score(1),
        truth={"image_id": ["a", "b"], "InChI": ["None1", "None2"]},
        told={"image_id": ["b", "a"], "InChI": ["None", "None"]},
    ),
    Case(
        "notebooks without an order are not scored",
        NOTEBOOKS,
        (),
        *both(Verdict("rejected", holds="no order to compare")),
        truth={"id": ["a", "b"], "cell_order": ["x", "y"]},
    ),
    Case(
        "an endless sentence is refused",
        WORDS,
        (),
        *both(says("Row 2: sentence is longer than 100,000 characters.")),
        make=with_cell(WORDS, "sentence", "x" * 100_001, row=1),
    ),
    Case(
        "a piece that reads like a missing cell can be met",
        TWEETS,
        ("texts-like-missing-cells-lost",),
        says("Row 2: selected_text holds no word"),
        score(1),
        truth={"textID": list("ab"), "selected_text": ["so happy", "null"]},
    ),
    Case(
        "another word than that of a missing cell is wrong",
        TWEETS,
        ("texts-like-missing-cells-lost",),
        Verdict(),
        score(0),
        truth={"textID": list("ab"), "selected_text": ["so happy", "null"]},
        told={"selected_text": "na"},
    ),
    Case(
        "a tweet without words on both sides is right",
        TWEETS,
        ("rows-without-words-crash",),
        says("Row 2: selected_text holds no word; write at least one in each row."),
        score((1 / 3 + 1 + 1) / 3),
        truth={"textID": list("abc"), "selected_text": ["so happy", "", "ugh"]},
        told={"selected_text": ["so sad", "", "UGH"]},
    ),
    Case(
        "the refusal names a row of the submission, not of the answers",
        TWEETS,
        (),
        says("Row 1:"),
        SCORED,
        truth={"textID": list("ab"), "selected_text": ["so happy", ""]},
        told={"selected_text": ""},
    ),
    *(
        Case(
            f"answer {value} looks like a number and is text",
            CHAII,
            ("numeric-answers-crash",),
            says("Row 1: PredictionString ", " is not text, but a number or True/False."),
            score(right),
            make=of_sample(CHAII, lambda rows, value=value: rows.assign(PredictionString=value)),  # type: ignore[misc]
        )
        for value, right in (("1686", 1 / 12), ("1e3", 0), ("True", 0))  # one answer is the year 1686
    ),
    *(
        Case(
            what,
            TAGS,
            (defect_id,),
            score(pooled),
            score(mean),
            truth={"Id": [1, 2], "Tags": ["a b c d", "e"]},
            told={"Tags": guesses},
        )
        for what, defect_id, guesses, pooled, mean in (
            # of five tags two are told; of the first question's four just one, of the other's one all
            ("tags: by question", "pooled-f1-instead-of-mean", ["a", "e"], 4 / 7, (2 / 5 + 1) / 2),
            ("unknown tags count", "unknown-tags-ignored", ["a b c d x", "e"], 1, (8 / 9 + 1) / 2),
        )
    ),
    Case(
        "tags that look like numbers are text",
        TAGS,
        ("numeric-tags-crash",),
        Verdict(holds="the column holds numbers or True/False only; expected names as text."),
        score(0),
        make=of_sample(TAGS, lambda rows: rows.assign(Tags=7)),
    ),
    Case(
        "claiming nothing earns half in v1 and nothing in corrected",
        WIKI,
        ("accuracy-instead-of-f1",),
        Verdict("scored", above=0.4),
        score(0),
        make=of_sample(WIKI),
    ),
]

# measurements and tables

DRIVES = "smartphone-decimeter-2022"
ICE = "icecube-neutrinos-in-deep-ice"
LUNGS = "osic-pulmonary-fibrosis-progression"
NOMAD = "nomad2018-predict-transparent-conductors"
RNA = "stanford-covid-vaccine"
TAXI = "new-york-city-taxi-fare-prediction"
COUPLINGS = "champs-scalar-coupling"
VOLCANO = "predict-volcanic-eruptions-ingv-oe"


def with_capacity(value: float | None) -> Make:
    return of_answers(LUNGS, lambda rows: rows[["Patient_Week", "FVC", "Confidence"]].assign(FVC=value))


NUMBERS = [
    Case(
        "a missing capacity is NaN in v1",
        LUNGS,
        ("nan-capacity-scores-nan",),
        score(NAN),
        says("Row 1: FVC"),
        make=with_capacity(None),
    ),
    Case(
        "an infinite capacity scores in v1",
        LUNGS,
        ("nan-capacity-scores-nan",),
        Verdict("scored", below=0),
        says("Row 1: FVC"),
        make=with_capacity(math.inf),
    ),
    Case(
        "times beyond all measure are refused",
        VOLCANO,
        (),
        Verdict("rejected", holds="too large"),
        Verdict("rejected", holds="too large"),
        make=of_sample(VOLCANO, lambda rows: rows.assign(time_to_eruption=1.7e308)),
    ),
    Case(
        "points are paired by order in v1 and by time in corrected",
        DRIVES,
        ("times-never-matched",),
        Verdict("scored", above=1),
        score(0),
        make=of_answers(DRIVES, lambda rows: rows.iloc[::-1]),
    ),
    Case(
        "other times are not noticed in v1",
        DRIVES,
        ("times-never-matched",),
        score(0),
        Verdict("rejected", holds="is not among the ids asked for"),
        make=of_answers(DRIVES, lambda rows: rows.assign(UnixTimeMillis=0)),
    ),
    *(
        Case(
            f"a place that is {value} is NaN in v1",
            DRIVES,
            ("missing-places-score-nan",),
            score(NAN),
            says("Row 2: LatitudeDegrees"),
            make=with_cell(DRIVES, "LatitudeDegrees", value, row=1),
        )
        for value in (None, math.inf)
    ),
    Case(
        "rows of molecules in another order score otherwise in v1",
        RNA,
        ("rows-matched-by-file-order",),
        Verdict("scored", above=0.1),
        score(0),
        make=of_answers(RNA, lambda rows: rows.sample(frac=1, random_state=1)),
    ),
    Case(
        "angles are numbers",
        ICE,
        (),
        *both(says("Row 1: azimuth ", "is not a number")),
        make=of_sample(ICE, lambda rows: rows.assign(azimuth=True)),
    ),
    Case(
        "shuffled materials are matched by id",
        NOMAD,
        ("ids-never-looked-at",),
        Verdict("scored", above=0),
        score(0),
        make=of_answers(NOMAD, lambda rows: rows.sample(frac=1, random_state=3)),
    ),
    *(
        Case(
            f"{what} ids of materials are refused",
            NOMAD,
            ("ids-never-looked-at",),
            score(0),
            Verdict("rejected", holds=message),
            make=of_answers(NOMAD, change),
        )
        for what, change, message in (
            ("repeated", lambda rows: rows.assign(id=1), "Row 13: id '1' stands in row 1 already"),
            ("wrong", lambda rows: rows.assign(id=rows["id"] + 1), " is not among the ids"),
            ("missing", lambda rows: rows.drop(columns="id"), "Column 'id' is missing"),
        )
    ),
    Case(
        "rides are matched by key",
        TAXI,
        ("keys-not-compared",),
        score(0),
        says("Row 1: key 'x"),
        make=from_answers(TAXI, "key", lambda truth: "x" + truth["key"]),
    ),
    Case(
        "rides with the key of another are refused",
        TAXI,
        ("keys-not-compared",),
        SCORED,
        Verdict("rejected", holds="stands in row 1 already"),
        make=from_answers(TAXI, "key", lambda truth: truth["key"].where(truth.index != 1, truth["key"][0])),
    ),
    Case(
        "couplings told exactly count as on Kaggle",
        COUPLINGS,
        ("no-floor-for-exact-types",),
        score(-math.inf),
        score(math.log(1e-9)),
        make=of_answers(COUPLINGS),
    ),
    Case(
        "repeated couplings are refused",
        COUPLINGS,
        ("repeated-ids-count-again",),
        score(math.log((3 + 1 + 1) / 3)),
        says("The submission has 3 rows, expected 2."),
        truth={"id": [1, 2], "type": "1JHC", "scalar_coupling_constant": [3.0, 5.0]},
        told={"id": [1, 2, 2], "scalar_coupling_constant": [0.0, 4.0, 4.0]},
    ),
]

CASES = [*PICTURES, *SHAPES, *TEXTS, *NUMBERS]
