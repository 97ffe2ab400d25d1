"""Histopathologic Cancer Detection: a row split of tissue patches, scored by ROC AUC."""

from mlebench_console.competitions.kit import placing, splits
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the labelled patches in the ratio of Kaggle's train and test files."""
    table = labelled_table.read(job, "train_labels.csv", needs=["id", "label"], text=["id"])
    unlabelled = sum(path.name.endswith(".tif") for path in job.source("test").iterdir())
    share = unlabelled / (len(table) + unlabelled)
    split = splits.shuffled(len(table), share, job.integer("seed"))
    ids = table["id"]  # rows are chosen by id, so that a repeated id may be in both parts, as in MLE-bench
    train, test = (table[ids.isin(ids.iloc[part])] for part in (split.train, split.test))
    labelled_table.write_labels(job, train, test, sample=test.assign(label=0), train_name="train_labels.csv")
    for part, folder in ((train, "train"), (test, "test")):
        placing.place_named(job, part["id"] + ".tif", job.source("train"), job.public / folder)


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of a tumour."""
    return graders.auc(case, id_column="id", target="label")
