"""Plant Pathology 2020: a row split of renamed leaf photos, scored by the mean ROC AUC of four states."""

from competitions.kit import checks, metrics, placing, splits, tables
from competitions.task import Grading, Preparation

STATES = ["healthy", "multiple_diseases", "rust", "scab"]


def prepare(job: Preparation) -> None:
    """Split the photos and number each part from 0; the files follow the new ids."""
    table = tables.read_csv(job.source("train.csv"))
    split = splits.shuffled(len(table), job.number("test_size"), job.integer("seed"))
    renamed: dict[str, str] = {}
    parts = {}
    for name, rows in zip(("Train", "Test"), split.of(table), strict=True):
        ids = {old: f"{name}_{number}" for number, old in enumerate(rows["image_id"].unique())}
        parts[name] = rows.assign(image_id=rows["image_id"].map(ids))
        renamed |= ids
    test = parts["Test"]
    tables.write_csv(parts["Train"], job.public / "train.csv")
    tables.write_csv(test, job.private / "test.csv")
    tables.write_csv(test[["image_id"]], job.public / "test.csv")
    sample = tables.filled(test, dict.fromkeys(STATES, 0.25))
    tables.write_csv(sample, job.public / "sample_submission.csv")
    images, placed = job.source("images"), job.public / "images"
    placing.place(
        job, [(images / f"{old}.jpg", placed / f"{new}.jpg") for old, new in renamed.items()], "images"
    )


def grade(case: Grading) -> float:
    """Mean area under the ROC curve of any finite scores; other columns are refused."""
    checks.columns_exactly(case.submission, ["image_id", *STATES])
    rows = checks.matched_rows(case.submission, case.answers, "image_id")
    scores = checks.numbers(case.submission, STATES)[rows]
    return metrics.mean_column_auc(case.answers[STATES].to_numpy(), scores)
