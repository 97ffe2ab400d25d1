"""Hotel-ID 2021: a row split of room photos, scored by MAP@5 of ranked hotel ids."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation, PublicData

DUPLICATE = "ce27d36c9147cc19.jpg"
SAMPLE = "36363 53586 18807 64314 60181"
GUESSES = 5


def prepare(job: Preparation) -> None:
    """Split the photos; the chain, by which train folders are named, is withheld for test photos."""
    needs = ["image", "chain", "hotel_id", "timestamp"]
    table = labelled_table.read(job, "train.csv", needs=needs, text=["image"])
    table = table[table["image"] != DUPLICATE]
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(job, train, test, sample=test[["image"]].assign(hotel_id=SAMPLE))
    photos, public = job.source("train_images"), job.public
    placing.place_named(job, _paths(train), photos, public / "train_images")
    shown = dict(zip(_paths(test), test["image"], strict=True))
    pairs = [(photos / name, public / "test_images" / image) for name, image in shown.items()]
    placing.place(job, pairs, "test_images", anew=True)


def _paths(part: pd.DataFrame) -> list[str]:
    return [f"{chain}/{image}" for chain, image in zip(part["chain"], part["image"], strict=True)]


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the photos to predict, each with one hotel."""
    return data.sample().assign(hotel_id=0)


def grade(case: Grading) -> np.float64:
    """Return MAP@5: edition v1 compares the text between single blanks, edition corrected numbers."""
    rows = checks.paired_rows(case, "image", "hotel_id")
    truth = [{hotel} for hotel in case.answers["hotel_id"].astype("int64").map(str)]
    if case.corrected:
        guesses = _hotels(case.source.read(text=("hotel_id",))["hotel_id"].tolist())
    else:
        guesses = [str(cell).split(" ") for cell in case.submission["hotel_id"].tolist()]
    return np.float64(metrics.map_at_k(truth, [guesses[row] for row in rows], GUESSES))


def _hotels(cells: list[str]) -> list[list[str]]:
    rows = []
    for row, cell in enumerate(cells):
        ids = cell.split()
        if not ids or not all(id_.isascii() and id_.isdigit() for id_ in ids[:GUESSES]):
            expected = f"one to {GUESSES} whole numbers separated by blanks"
            raise checks.InvalidCell(row, "hotel_id", cell, "cannot be read", expected)
        rows.append([id_.lstrip("0") or "0" for id_ in ids[:GUESSES]])
    return rows
