"""SIIM-FISABIO-RSNA COVID-19: studies and their images in one table of boxes, scored by mean average precision."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import metrics, placing, tables
from mlebench_console.competitions.kit.checks import detections
from mlebench_console.competitions.kit.metrics import detection, matching
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation

STUDY_LABELS = ("negative", "typical", "indeterminate", "atypical")
STUDY = "_study"
DUMMY_BOX = " 1 0 0 1 1"
COLUMN = "PredictionString"
FORM = detections.ObjectSyntax(
    ("label", "confidence", "xmin", "ymin", "xmax", "ymax"), name=0, single_blanks=False, missing_ok=False
)
MIN_IOU = 0.5

Hits = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


def prepare(job: Preparation) -> None:
    """Split the studies with their images and folders."""
    studies = labelled_table.read(job, "train_study_level.csv", needs=["id"])
    images = labelled_table.read(
        job, "train_image_level.csv", needs=["id", "label", "StudyInstanceUID"]
    ).sort_values("id", kind="stable")
    labelled_table.expect_width(job, studies, 1 + len(STUDY_LABELS), "train_study_level.csv")
    train, test = (part.sort_values("id", kind="stable") for part in labelled_table.divided(job, studies))
    owner = images["StudyInstanceUID"] + STUDY
    test_images = images[owner.isin(test["id"])]
    tables.write_csv(train, job.public / "train_study_level.csv")
    tables.write_csv(images[owner.isin(train["id"])], job.public / "train_image_level.csv")
    names = np.array(STUDY_LABELS)[test.iloc[:, 1 : 1 + len(STUDY_LABELS)].to_numpy().argmax(axis=1)]
    for path, study_texts, image_texts in (
        (job.private / "test.csv", names + DUMMY_BOX, test_images["label"]),
        (job.public / "sample_submission.csv", "negative" + DUMMY_BOX, "none" + DUMMY_BOX),
    ):
        parts = [(test, study_texts), (test_images, image_texts)]
        table = pd.concat([part[["id"]].assign(**{COLUMN: texts}) for part, texts in parts])
        tables.write_csv(table, path)
    folders = [
        (job.raw / "train" / study.removesuffix(STUDY), job.public / name / study.removesuffix(STUDY))
        for part, name in ((train, "train"), (test, "test"))
        for study in part["id"]
    ]
    placing.place_trees(job, folders, "studies")


def grade(case: Grading) -> np.float64:
    """Return the mean average precision over labels; edition corrected uses PASCAL VOC's definition."""
    predicted, truth = detections.predicted_and_true_masks(case, "id", COLUMN, FORM)
    labels, true_label = np.unique(truth.names.astype(str), return_inverse=True)
    label = pd.Index(labels.astype(object)).get_indexer(pd.Index(predicted.names))
    confidence = predicted.numbers[:, 0]
    counted = label >= 0
    wrong = ~np.isfinite(confidence) & (counted | case.corrected | case.form_only)
    if wrong.any():
        raise predicted.refused(np.argmax(wrong), "holds a confidence that is not finite")
    if case.corrected:  # study labels count only in rows of studies, image labels only in rows of images
        on_study = case.answers["id"].str.endswith(STUDY).to_numpy(dtype=bool)[predicted.row]
        counted &= on_study == np.isin(labels, STUDY_LABELS)[label]
    order = np.flatnonzero(counted)
    order = order[np.argsort(-confidence[order], kind="stable")]
    row, label, confidence = predicted.row[order], label[order], confidence[order]
    group, true_group = matching.codes((row, label), (truth.row, true_label))
    found = detection.Boxes(group, label, predicted.numbers[order, 1:])
    true_boxes = detection.Boxes(true_group, true_label, truth.numbers[:, 1:])
    hits = detection.hits(found, true_boxes, above=MIN_IOU)
    if case.corrected:
        return np.float64(detection.mean_precision(hits, found, true_boxes))
    scores = []
    for code, count in enumerate(np.bincount(true_label)):
        of_label = label == code
        concerned = np.union1d(row[of_label], truth.row[true_label == code])
        missed, untouched = count - hits[of_label].sum(), len(case.answers) - len(concerned)
        scores.append(_with_pseudo_pairs(hits[of_label], confidence[of_label], missed, untouched))
    return np.float64(np.mean(scores))


def _with_pseudo_pairs(hits: Hits, confidence: Numbers, missed: int, untouched: int) -> float:
    """Return MLE-bench's average precision: missed boxes as hits, rows without the label as errors, at score 0."""
    judged = np.concatenate([hits, np.ones(missed, dtype=bool), np.zeros(untouched, dtype=bool)])
    if judged.all():
        raise InvalidSubmission("The metric is not defined for these predictions.")
    return metrics.step_average_precision(judged, np.concatenate([confidence, np.zeros(missed + untouched)]))
