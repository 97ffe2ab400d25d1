"""NFL Player Contact Detection: a split of whole plays with their videos, scored by Matthews correlation."""

import pandas as pd

from mlebench_console.competitions.kit import checks, placing, tables
from mlebench_console.competitions.kit.metrics.classification import matthews_correlation
from mlebench_console.competitions.kit.tables import labelled_table, pandas2
from mlebench_console.competitions.task import Grading, Preparation

PLAY, TARGET = "game_play", "contact"
VIEWS = ("All29", "Endzone", "Sideline")


def prepare(job: Preparation) -> None:
    """Split the plays, with their table rows and videos."""
    labels = labelled_table.read(job, "train_labels.csv", needs=["contact_id", PLAY, TARGET])
    train, test = labelled_table.divided(job, labels, labels[PLAY])
    sample = test[["contact_id"]].assign(**{TARGET: 0})
    labelled_table.write_labels(job, train, test, sample=sample, train_name="train_labels.csv")
    plays = {"train": train[PLAY].drop_duplicates(), "test": test[PLAY].drop_duplicates()}
    for table in ("baseline_helmets", "player_tracking", "video_metadata"):
        _divide_rows(job, f"{table}.csv", plays)
    for part, chosen in plays.items():
        videos = [f"{play}_{view}.mp4" for play in chosen for view in VIEWS]
        placing.place_named(job, videos, job.source("train"), job.public / part)


def _divide_rows(job: Preparation, name: str, plays: dict[str, pd.Series]) -> None:
    rows = labelled_table.read(job, f"train_{name}", needs=[PLAY])
    rows = pandas2.with_former_floats(rows, job.source(f"train_{name}"))
    for part, chosen in plays.items():
        tables.write_csv(rows[rows[PLAY].isin(chosen)], job.public / f"{part}_{name}")


def grade(case: Grading) -> float:
    """Return the Matthews correlation; edition v1 treats other whole numbers as further classes."""
    checks.columns_present(case.submission, ["contact_id", TARGET])
    answers = case.read_answers(columns=("contact_id", TARGET))
    rows = checks.matched_rows(case.submission, answers, "contact_id")
    predicted = checks.whole_numbers(case.submission, TARGET)
    if case.corrected and not ((predicted == 0) | (predicted == 1)).all():
        row = int(((predicted != 0) & (predicted != 1)).argmax())
        raise checks.InvalidCell(row, TARGET, case.submission[TARGET].iloc[row], "is neither 0 nor 1")
    return matthews_correlation(checks.whole_numbers(answers, TARGET), predicted[rows])
