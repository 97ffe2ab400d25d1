"""Freesound Audio Tagging 2019: Kaggle's own test clips with the labels published later, scored by lwlrap."""

import pandas as pd

from mlebench_console.competitions.kit import checks, placing, tables
from mlebench_console.competitions.kit.metrics.ranking import label_ranking_precision
from mlebench_console.competitions.kit.placing import pseudonyms
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation
from mlebench_console.foundation.problems import DataProblem

ID, SAMPLE = "fname", "sample_submission.csv"
LABELS, LABELS_TABLE = "FSDKaggle2019.meta", "test_post_competition.csv"


def prepare(job: Preparation) -> None:
    """Publish everything but the labels; edition corrected gives the test clips new names."""
    classes = list(job.competition.classes)
    sample = labelled_table.read(job, SAMPLE, needs=[ID, *classes])
    clips = _labels(job)
    clips = clips[clips["usage"] == "Private"]
    labels = clips["labels"].fillna("").str.split(",")
    marks = pd.DataFrame(
        {name: [int(name in held) for held in labels] for name in classes}, index=clips.index
    )
    answers = pd.concat([clips[[ID]], marks], axis=1)
    if set(sample.columns) != {ID, *classes} or sorted(sample[ID]) != sorted(answers[ID]):
        raise DataProblem(
            f"{job.source(SAMPLE)} is not in the expected form",
            f"its clips and classes are not those of {LABELS_TABLE}",
            "Download the competition's data and its label archive again.",
        )
    for folder in ("train_curated", "train_noisy"):
        listed = labelled_table.read(job, f"{folder}.csv", needs=[ID, "labels"])[ID]
        placing.expect(job, (job.raw / folder / clip for clip in listed))
    placing.expect(job, (job.raw / "test" / clip for clip in sample[ID]))
    published = [path for path in sorted(job.raw.iterdir()) if LABELS not in path.name]
    if job.corrected:
        # other files there, such as a packed copy of the clips, contain their old names
        published = [path for path in published if path.name.startswith("train_")]
        renamed = pseudonyms.file_names(answers[ID], answers.to_csv(index=False).encode())
        clips_folder = job.source("test")
        pairs = [(clips_folder / old, job.public / "test" / new) for old, new in renamed.items()]
        placing.place(job, pairs, "test", anew=True)
        answers = answers.assign(**{ID: answers[ID].map(renamed)}).sort_values(ID)
        tables.write_csv(answers.assign(**dict.fromkeys(classes, 0)), job.public / SAMPLE)
    tables.write_csv(answers, job.private / "test.csv")
    placing.place(job, [(path, job.public / path.name) for path in published if path.is_file()])
    folders = [path for path in published if path.is_dir()]
    placing.place_trees(job, [(path, job.public / path.name) for path in folders])


def _labels(job: Preparation) -> pd.DataFrame:
    unpacked, packed = f"{LABELS}/{LABELS_TABLE}", f"{LABELS}.zip"
    member = LABELS_TABLE if job.source(unpacked, packed).name == packed else None
    return labelled_table.read(job, unpacked, packed, member=member, needs=[ID, "labels", "usage"])


def grade(case: Grading) -> float:
    """Return the label-weighted label-ranking average precision."""
    classes = list(case.competition.classes)
    checks.columns_exactly(case.submission, [ID, *classes])
    for place, (found, wanted) in enumerate(
        zip(case.submission.columns, [ID, *classes], strict=True), start=1
    ):
        if found != wanted:
            raise InvalidSubmission(
                f"Column {place} is {found}, expected {wanted}: {ID} comes first, then the classes as in {SAMPLE}."
            )
    rows = checks.matched_rows(case.submission, case.answers, ID)
    if all(kind.kind == "b" for kind in case.submission[classes].dtypes):
        raise InvalidSubmission(
            "The classes' columns hold True and False only, which cannot be ranked; write 1 and 0."
        )
    scores = checks.numbers(case.submission, classes, spelt="refused")[rows]
    return label_ranking_precision(case.answers[classes].to_numpy(), scores)
