"""SETI Breakthrough Listen: a row split of spectrograms in folders by first character, scored by ROC AUC."""

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the samples; edition corrected omits the leaky data of the withdrawn version."""
    table = labelled_table.read(job, "train_labels.csv", needs=["id", "target"], text=["id"])
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(
        job, train, test, sample=test.assign(target=0.5), train_name="train_labels.csv"
    )
    for part, folder in ((train, "train"), (test, "test")):
        paths = part["id"].str[0] + "/" + part["id"] + ".npy"
        placing.place_named(job, paths, job.source("train"), job.public / folder)
    if not job.corrected:
        leaky = job.source("old_leaky_data")
        placing.place_tree(job, leaky, job.public / leaky.name, leaky.name)


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of a signal."""
    return graders.auc(case, id_column="id", target="target")
