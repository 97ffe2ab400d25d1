"""iMet Collection 2020: a row split of artworks with several attributes each, scored by pooled F1."""

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.checks import labels
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation


def prepare(job: Preparation) -> None:
    """Split the tagged images."""
    columns = ["id", "attribute_ids"]
    table = labelled_table.read(job, "train.csv", needs=columns, text=columns)
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(job, train, test, sample=test.assign(attribute_ids="0 1 2"))
    placing.copy_file(job, job.source("labels.csv"), job.public / "labels.csv")
    for part, folder in ((train, "train"), (test, "test")):
        placing.place_named(job, part["id"] + ".png", job.source("train"), job.public / folder)


def grade(case: Grading) -> float:
    """Return the F1 over all pairs of image and attribute.

    Edition v1 leaves out attributes that no test image has, and cannot read a column in which
    every image has a single attribute; edition corrected counts the former and reads the latter.
    """
    checks.columns_present(case.submission, ["id", "attribute_ids"])
    answers = case.read_answers(text=("attribute_ids",))
    rows = checks.matched_rows(case.submission, answers, "id")
    if case.corrected:
        given = case.source.read(text=("attribute_ids",))["attribute_ids"]
        truth, predicted = labels.coded_sets(answers["attribute_ids"], given.iloc[rows])
        return metrics.pooled_f1(truth, predicted)
    try:
        labels.require_text(case.submission, "attribute_ids", all_missing_ok=True)
    except InvalidSubmission as error:
        raise InvalidSubmission(
            "attribute_ids reads as a column of plain numbers, because no row has several attributes; "
            'repeat the attribute in at least one row ("51 51"), which changes nothing else.'
        ) from error
    truth, predicted = labels.coded_sets(
        answers["attribute_ids"], case.submission["attribute_ids"].iloc[rows]
    )
    return metrics.pooled_f1(truth, predicted.among(truth))
