"""Paddy Doctor: a row split of rice leaf photos in class folders, scored by accuracy of class names."""

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the photos; test photos are published without their class folders.

    In edition v1 their order follows from the raw table, which is sorted by class.
    """
    needs = ["image_id", "label", "variety", "age"]
    table = labelled_table.read(job, "train.csv", needs=needs, text=["image_id", "label"])
    train, test = labelled_table.divided(job, table)
    if job.corrected:
        test = test.sort_values("image_id", kind="stable")
    labelled_table.write_labels(job, train, test, sample=test[["image_id"]].assign(label=""))
    photos = job.source("train_images")
    paths = train["label"] + "/" + train["image_id"]
    placing.place_named(job, paths, photos, job.public / "train_images")
    pairs = zip(test["label"], test["image_id"], strict=True)
    shown = [(photos / label / image, job.public / "test_images" / image) for label, image in pairs]
    placing.place(job, shown, "test_images", anew=True)


def grade(case: Grading) -> float:
    """Return the share of photos whose class is named right; a missing name is wrong."""
    return graders.name_accuracy(case, id_column="image_id", target="label", all_missing_ok=True)
