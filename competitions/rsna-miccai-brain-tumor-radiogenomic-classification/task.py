"""RSNA-MICCAI Brain Tumor: a row split of patients with a folder of scans each, scored by ROC AUC."""

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the patients with their folders."""
    needs = ["BraTS21ID", "MGMT_value"]
    table = labelled_table.read(job, "train_labels.csv", needs=needs, text=["BraTS21ID"])
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(
        job, train, test, sample=test.assign(MGMT_value=0.5), train_name="train_labels.csv"
    )
    scans = job.source("train")
    for part, folder in ((train, job.public / "train"), (test, job.public / "test")):
        placing.place_trees(job, [(scans / id_, folder / id_) for id_ in part["BraTS21ID"]], folder.name)


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of methylation; zeros before an id are ignored."""
    return graders.auc(case, id_column="BraTS21ID", target="MGMT_value")
