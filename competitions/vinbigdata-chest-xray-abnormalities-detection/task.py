"""VinBigData: a split of chest X-rays with radiologists' boxes, scored by mean average precision at IoU 0.4."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing, splits, tables
from mlebench_console.competitions.kit.checks import detections
from mlebench_console.competitions.kit.metrics import detection, geometry, matching
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation, PublicData

COORDINATES = ["x_min", "y_min", "x_max", "y_max"]
COLUMNS = ["image_id", "class_id", "class_name", "rad_id", *COORDINATES]
COLUMN = "PredictionString"
FORM = detections.ObjectSyntax(
    ("class_id", "confidence", *COORDINATES), name=None, single_blanks=True, missing_ok=False
)
NO_FINDING = 14
MIN_IOU = 0.4
MOST_BOXES = 100  # per image and class, by COCO's rules
MOST_AREA = 1e10

Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


def prepare(job: Preparation) -> None:
    """Split the images; merge the radiologists' boxes of each held-out image into one set of answers."""
    table = labelled_table.read(job, "train.csv", needs=COLUMNS, numbers=["class_id", *COORDINATES])
    images = table["image_id"].unique()
    split = splits.by_row(job, len(images))
    train_images, test_images = images[split.train], images[split.test]
    rows = table[table["image_id"].isin(test_images)]
    if job.corrected:
        rows = pd.concat([_fused(boxes) for _, boxes in rows.groupby(["image_id", "class_id"])])
    else:  # the first row of each image and class
        rows = rows.groupby(["image_id", "class_id"]).first().reset_index()
    answers = rows.fillna(dict.fromkeys(COORDINATES, 0.0)).astype(dict.fromkeys(COORDINATES, "float64"))
    answers.loc[answers["class_id"] == NO_FINDING, ["x_max", "y_max"]] = 1.0
    texts = [
        f"{class_} 1.0 {' '.join(map(repr, corners))}"
        for class_, corners in zip(answers["class_id"], answers[COORDINATES].to_numpy().tolist(), strict=True)
    ]
    gold = pd.Series(texts, name=COLUMN).groupby(answers["image_id"].to_numpy()).agg(" ".join)
    tables.write_csv(table[table["image_id"].isin(train_images)], job.public / "train.csv")
    tables.write_csv(gold.rename_axis("image_id").reset_index(), job.private / "gold_submission.csv")
    sample = pd.DataFrame({"image_id": test_images, COLUMN: f"{NO_FINDING} 1 0 0 1 1"})
    labelled_table.write_answers(job, answers[COLUMNS], sample)
    for part, name in ((train_images, "train"), (test_images, "test")):
        placing.place_named(job, [f"{id_}.dicom" for id_ in part], job.raw / "train", job.public / name)


def _fused(boxes: pd.DataFrame) -> pd.DataFrame:
    """Return one row per finding: boxes that overlap the first of their kind are averaged with it."""
    corners = boxes[COORDINATES].to_numpy(dtype=np.float64)
    seeds: list[int] = []
    owner = np.zeros(len(boxes), dtype=np.intp)
    for place, box in enumerate(corners):
        iou = geometry.box_iou(np.broadcast_to(box, (len(seeds), 4)), corners[seeds])
        same = np.flatnonzero(iou > MIN_IOU) if not np.isnan(box).any() else np.arange(len(seeds))
        if not len(same):
            seeds.append(place)
        owner[place] = same[0] if len(same) else len(seeds) - 1
    fused = boxes.iloc[seeds].copy()
    fused[COORDINATES] = [corners[owner == finding].mean(axis=0) for finding in range(len(seeds))]
    return fused


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the images to predict, without a finding."""
    images = data.sample()[["image_id"]].assign(class_id=NO_FINDING)
    return images.assign(**dict(zip(COORDINATES, (0.0, 0.0, 1.0, 1.0), strict=True)))


def grade(case: Grading) -> np.float64:
    """Return the mean over classes of the average precision; edition v1 keeps MLE-bench's reading of boxes and ids."""
    checks.columns_present(case.submission, ["image_id", COLUMN])
    given, wanted = case.submission["image_id"], case.answers["image_id"]
    if case.corrected:
        checks.matched_rows(case.submission, case.answers.drop_duplicates("image_id"), "image_id")
    elif set(given) != set(wanted):
        raise checks.unmatched(given, wanted.drop_duplicates(), "image_id", repeats=True)
    predicted = detections.parse(case.submission[COLUMN], FORM, column=COLUMN)
    class_id, confidence = predicted.numbers[:, 0], predicted.numbers[:, 1]
    if not np.isfinite(class_id).all():
        raise predicted.refused(np.argmax(~np.isfinite(class_id)), "holds a class_id that is not finite")
    true_image, images = pd.factorize(wanted)
    classes = np.unique(case.answers["class_id"])
    true_label = np.searchsorted(classes, case.answers["class_id"])
    label = pd.Index(classes.astype(np.float64)).get_indexer(pd.Index(np.trunc(class_id)))
    image = pd.Index(images).get_indexer(pd.Index(given))[predicted.row]
    # best first, equal confidences in the order of the images and inside an image as they are written
    order = np.lexsort((image, -confidence))
    order = order[label[order] >= 0]
    group, true_group = matching.codes((image[order], label[order]), (true_image, true_label))
    found = CocoBoxes(group, label[order], predicted.numbers[order, 2:], order)
    true_boxes = case.answers[COORDINATES].to_numpy(dtype=np.float64)
    truth = CocoBoxes(true_group, true_label, true_boxes, np.arange(len(wanted)))
    if case.corrected:
        return np.float64(detection.mean_precision(detection.hits(found, truth, above=MIN_IOU), found, truth))
    return np.float64(_coco_score(found, truth))


@dataclass(frozen=True)
class CocoBoxes(detection.Boxes):
    """Boxes with their ids, which COCO's evaluation goes by."""

    id: Positions

    def take(self, positions: Positions) -> "CocoBoxes":
        """Return the boxes at some positions."""
        return CocoBoxes(
            self.group[positions], self.label[positions], self.box[positions], self.id[positions]
        )

    def beyond_measure(self) -> Mask:
        """Flag the boxes that COCO's evaluation leaves out because of their area."""
        with np.errstate(all="ignore"):
            area: Numbers = np.prod(self.box[:, 2:] - self.box[:, :2], axis=1)
        return (area < 0) | (area > MOST_AREA)


def _coco_score(found: CocoBoxes, truth: CocoBoxes) -> float:
    """Return the score of COCO's evaluation as MLE-bench calls it.

    MLE-bench passes corners where sizes are expected, and ids from 0, though 0 means "no partner" there:
    a match with the true box 0 counts as an error, and the predicted box 0 leaves its partner free.
    """
    found = found.take(np.sort(_best_of_groups(found.group)))
    wanted = matching.overlapping(
        found.group,
        truth.group,
        lambda left, right: _coco_iou(found.box[left], truth.box[right]),
        above=float(np.nextafter(MIN_IOU, 0)),
        later_wins=True,
    )[:2]
    ignored = truth.beyond_measure()
    zero = int(np.argmax(found.id == 0)) if (found.id == 0).any() else len(found.id)
    partner = _partners(wanted, ~ignored[wanted[1]], zero, len(found.id), len(truth.id))
    # predicted boxes without a partner may match true boxes that are left out
    rest = ignored[wanted[1]] & (partner[wanted[0]] < 0)
    partner = np.maximum(partner, _partners(wanted, rest, zero, len(found.id), len(truth.id)))
    on_ignored = (partner >= 0) & ignored[partner]
    hits = (partner > 0) & ~on_ignored
    counted = hits | ~(on_ignored | found.beyond_measure())
    positives = np.bincount(truth.label[~ignored], minlength=int(truth.label.max()) + 1)
    scores = [
        metrics.sampled_average_precision(hits[counted & (found.label == label)], int(positives[label]))
        for label in np.flatnonzero(positives)
    ]
    return float(np.mean(scores)) if scores else -1.0


def _best_of_groups(group: Positions) -> Positions:
    by_group = np.argsort(group, kind="stable")
    return by_group[matching.ranks(group[by_group]) < MOST_BOXES]


def _coco_iou(first: Numbers, second: Numbers) -> Numbers:
    """Return COCO's overlap of boxes whose last two numbers it reads as sizes.

    Its minima and maxima skip NaN, and it treats an overlap of NaN as a match.
    """
    with np.errstate(all="ignore"):
        ends = [boxes[:, :2] + boxes[:, 2:] for boxes in (first, second)]
        sides = np.fmin(ends[0], ends[1]) - np.fmax(first[:, :2], second[:, :2])
        common = np.where((sides > 0).all(axis=1), sides[:, 0] * sides[:, 1], 0.0)
        union = first[:, 2] * first[:, 3] + second[:, 2] * second[:, 3] - common
        ratio = np.where(common > 0, common / union, 0.0)
    return np.where(np.isnan(ratio), np.inf, ratio)


def _partners(wanted: matching.Pairs, allowed: Mask, zero: int, firsts: int, seconds: int) -> Positions:
    left, right = wanted[0][allowed], wanted[1][allowed]
    others = left != zero
    partner = matching.greedy([(left[others], right[others])], firsts, seconds)
    own = right[~others]
    free = own[~np.isin(own, partner[:zero])]
    if len(free):
        partner[zero] = free[0]
    return partner
