"""Plant Pathology 2021: a row split of leaf photos with several diseases each, scored by F1."""

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.checks import labels
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the labelled photos."""
    table = labelled_table.read(job, "train.csv", needs=["image", "labels"], words=["image", "labels"])
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(job, train, test, sample=test.assign(labels="healthy"))
    for part, folder in ((train, "train_images"), (test, "test_images")):
        placing.place_named(job, part["image"], job.source("train_images"), job.public / folder)


def grade(case: Grading) -> float:
    """Return the F1 of the named diseases.

    Edition v1 pools all pairs of photo and disease, leaving out names that no test photo has;
    edition corrected averages over photos and counts every name, as Kaggle does.
    """
    checks.columns_present(case.submission, ["image", "labels"])
    answers = case.read_answers(text=("labels",))
    rows = checks.matched_rows(case.submission, answers, "image")
    labels.require_text(case.submission, "labels", all_missing_ok=True)
    truth, predicted = labels.coded_sets(answers["labels"], case.submission["labels"].iloc[rows])
    if case.corrected:
        return metrics.mean_row_f1(truth, predicted)
    return metrics.pooled_f1(truth, predicted.among(truth))
