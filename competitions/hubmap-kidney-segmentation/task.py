"""HuBMAP: fifteen microscope images, three of them held out, scored by the mean Dice of their masks."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import placing, tables
from mlebench_console.competitions.kit.formats import run_lengths
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation, PublicData
from mlebench_console.foundation.problems import DataProblem

INFORMATION = "HuBMAP-20-dataset_information.csv"
IMAGE, OUTLINES, REGIONS = ".tiff", ".json", "-anatomical-structure.json"


def prepare(job: Preparation) -> None:
    """Hold out three images; edition corrected keeps the outlines of their targets private."""
    table = labelled_table.read(job, "train.csv", needs=["id", "encoding"])
    if len(table) != job.integer("images"):
        raise DataProblem(f"train.csv has {len(table)} rows, expected {job.integer('images')}")
    train, test = labelled_table.divided(job, table)
    information = labelled_table.read(job, INFORMATION, needs=["image_file", "width_pixels", "height_pixels"])
    information["id"] = information["image_file"].astype(str).str.removesuffix(IMAGE)
    information = information[information["id"].isin(table["id"])]
    answers = test.merge(information[["id", "width_pixels", "height_pixels"]], on="id", how="left")
    if answers["width_pixels"].isna().any():
        raise DataProblem(f"{INFORMATION} is incomplete", "it lacks an image of train.csv")
    tables.write_csv(train, job.public / "train.csv")
    tables.write_csv(information.drop(columns="id"), job.public / INFORMATION)
    tables.write_csv(
        test.rename(columns={"encoding": "predicted"})[["id", "predicted"]],
        job.private / "gold_submission.csv",
    )
    sample = test[["id"]].assign(predicted="")
    labelled_table.write_answers(job, answers, sample)
    tables.write_csv(sample, job.public / "test" / "sample_submission.csv")
    shown = (IMAGE, REGIONS) if job.corrected else (IMAGE, OUTLINES, REGIONS)
    for part, name, kinds in ((train, "train", (IMAGE, OUTLINES, REGIONS)), (test, "test", shown)):
        files = [f"{id_}{kind}" for id_ in part["id"] for kind in kinds]
        placing.place_named(job, files, job.raw / "train", job.public / name)


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the images with their sizes, which are public, and empty masks."""
    sizes = data.table(INFORMATION, columns=("image_file", "width_pixels", "height_pixels"))
    sizes["id"] = sizes["image_file"].astype(str).str.removesuffix(IMAGE)
    return data.sample()[["id"]].merge(sizes, on="id", how="left").assign(encoding="")


def grade(case: Grading) -> np.float64:
    """Return the mean Dice of the images; two empty masks agree."""
    sizes = case.answers["width_pixels"] * case.answers["height_pixels"]
    predicted, truth = run_lengths.predicted_and_true_masks(
        case, "id", predicted="predicted", true="encoding", sizes=sizes, missing_ok=True
    )
    return np.float64(np.nan_to_num(run_lengths.dice(truth, predicted), nan=1.0).mean())
