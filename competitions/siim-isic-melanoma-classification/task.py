"""SIIM-ISIC Melanoma: a split given by two TFRecord files, images in three formats, scored by ROC AUC."""

import pandas as pd

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.formats import tfrecords
from mlebench_console.competitions.kit.splits import duplicates
from mlebench_console.competitions.kit.tables import labelled_table, pandas2
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

SHOWN = ["image_name", "patient_id", "sex", "age_approx", "anatom_site_general_challenge"]
COLUMNS = [*SHOWN, "diagnosis", "benign_malignant", "target"]
HELD_OUT = ["train00-2071.tfrec", "train06-2071.tfrec"]


def prepare(job: Preparation) -> None:
    """Hold out the images of two record files; edition corrected holds out whole patients instead."""
    table = labelled_table.read(job, "train.csv", needs=COLUMNS, text=["image_name"])
    labelled_table.expect_width(job, table, len(COLUMNS), "train.csv")
    table = pandas2.with_former_floats(table, job.source("train.csv"))
    train, test = _by_patient(job, table) if job.corrected else _by_records(job, table)
    labelled_table.write_parts(
        job,
        train,
        test[SHOWN],
        sample=test[["image_name"]].assign(target=0),
        answers=test[["image_name", "target"]],
    )
    for part, name in ((train, "train"), (test, "test")):
        for source, target, suffix in (("train", name, ".dcm"), ("jpeg/train", f"jpeg/{name}", ".jpg")):
            names = part["image_name"] + suffix
            placing.place_named(job, names, job.source(source), job.public / target)


def _by_records(job: Preparation, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    files = sorted(job.source("tfrecords").glob("train*.tfrec"))
    held_out = [job.source(f"tfrecords/{name}") for name in HELD_OUT]
    kept = [path for path in files if path not in held_out]
    for part, paths in (("train", kept), ("test", held_out)):
        for number, path in enumerate(paths):
            name = f"{part}{number:02d}-{path.stem.partition('-')[2]}.tfrec"
            placing.copy_file(job, path, job.public / "tfrecords" / name)
    in_test = table["image_name"].isin(
        {name for path in held_out for name in tfrecords.texts(path, "image_name")}
    )
    return table[~in_test], table[in_test]


def _by_patient(job: Preparation, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    # the record files are not published: each mixes patients, and its records contain their labels
    photos = job.source("jpeg/train")
    same = duplicates.same_content(job, [photos / f"{name}.jpg" for name in table["image_name"]])
    patient = pd.factorize(table["patient_id"], use_na_sentinel=False)[0]
    groups = duplicates.linked(patient, same)
    return labelled_table.divided(job, table, groups)


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of a melanoma."""
    return graders.auc(case, id_column="image_name", target="target")
