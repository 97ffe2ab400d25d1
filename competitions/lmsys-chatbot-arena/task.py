"""LMSYS Chatbot Arena: a row split of paired conversations, scored by log loss over who is preferred."""

from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]
HIDDEN = ["model_a", "model_b", *OUTCOMES]


def prepare(job: Preparation) -> None:
    """Split the judged conversations; the models' names are withheld for the test part."""
    table = labelled_table.read(job, "train.csv", needs=["id", "prompt", "response_a", "response_b", *HIDDEN])
    train, test = labelled_table.divided(job, table)
    sample = test[["id"]].assign(**dict.fromkeys(OUTCOMES, 1 / 3))
    labelled_table.write_parts(job, train, test, hidden=HIDDEN, sample=sample)


def grade(case: Grading) -> float:
    """Return the mean log loss; edition v1 requires sums of 1 to six decimals, edition corrected rescales."""
    return graders.class_log_loss(case, id_column="id", classes=OUTCOMES, sum_decimals=6)
