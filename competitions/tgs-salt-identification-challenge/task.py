"""TGS Salt: a row split of small images with masks, scored by IoU at ten thresholds."""

import numpy as np

from mlebench_console.competitions.kit import archives, checks, tables
from mlebench_console.competitions.kit.formats import run_lengths
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

PIXELS = 101 * 101
THRESHOLDS = np.arange(0.5, 1.0, 0.05)


def prepare(job: Preparation) -> None:
    """Split the images; every table is sorted by id."""
    archive = job.source("competition_data.zip")
    table = labelled_table.read(
        job, archive.name, member="train.csv", needs=["id", "rle_mask"], words=["rle_mask"]
    ).fillna({"rle_mask": ""})
    train, test = (part.sort_values("id", kind="stable") for part in labelled_table.divided(job, table))
    depths = labelled_table.read(job, "depths.csv", needs=["id", "z"]).sort_values("id", kind="stable")
    labelled_table.write_labels(job, train, test, sample=test[["id"]].assign(rle_mask="1 1"))
    tables.write_csv(depths[depths["id"].isin(train["id"])], job.public / "depths.csv")
    shown = [f"train/{kind}/{id_}.png" for kind in ("images", "masks") for id_ in train["id"]]
    targets = {f"competition_data/{path}": job.public / path for path in shown}
    for id_ in test["id"]:
        targets[f"competition_data/train/images/{id_}.png"] = job.public / "test" / "images" / f"{id_}.png"
    archives.extract_as(job, archive, targets)


def grade(case: Grading) -> np.float64:
    """Return the mean over images of the share of IoU thresholds that a mask passes."""
    checks.columns_exactly(case.submission, ["id", "rle_mask"])
    predicted, truth = run_lengths.predicted_and_true_masks(
        case, "id", predicted="rle_mask", true="rle_mask", sizes=PIXELS, missing_ok=True
    )
    common, salt, claimed = run_lengths.overlaps(truth, predicted), truth.areas(), predicted.areas()
    if not case.corrected:
        # MLE-bench treats an empty prediction as a mask of all pixels where there is salt
        common, claimed = np.where(claimed == 0, salt, common), np.where(claimed == 0, PIXELS, claimed)
    iou = common / np.maximum(salt + claimed - common, 1)
    passed = (iou[:, None] > THRESHOLDS).mean(axis=1)
    return np.float64(np.where(salt == 0, predicted.areas() == 0, passed).mean())
