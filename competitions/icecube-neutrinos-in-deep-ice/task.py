"""IceCube Neutrinos: a split of batches of events in parquet files, scored by the mean angle between directions."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, placing, splits
from mlebench_console.competitions.kit.tables import labelled_table, parquet
from mlebench_console.competitions.task import Grading, Preparation

Numbers = npt.NDArray[np.float64]

BATCH, ID = "batch_id", "event_id"
ANGLES = ["azimuth", "zenith"]
SHOWN = [BATCH, ID, "first_pulse_index", "last_pulse_index"]


def prepare(job: Preparation) -> None:
    """Split the batches; events and pulses follow their batch."""
    events = job.source("train_meta.parquet")
    batches = parquet.distinct(events, BATCH)
    split = splits.by_row(job, len(batches))
    train, test = batches[split.train], batches[split.test]
    for name, chosen, columns in (("train", train, [*SHOWN, *ANGLES]), ("test", test, SHOWN)):
        target = job.public / f"{name}_meta.parquet"
        parquet.write(job, target, parquet.rows_with(events, BATCH, chosen, columns))
    held_out = parquet.rows_with(events, BATCH, test, [ID, *ANGLES])
    answers = pd.concat([rows.to_pandas() for rows in held_out], ignore_index=True)
    sample = answers[[ID]].assign(azimuth=1, zenith=1)
    labelled_table.write_answers(job, answers, sample)
    placing.copy_file(job, job.source("sensor_geometry.csv"), job.public / "sensor_geometry.csv")
    pulses = job.source("train")
    for chosen, name in ((train, "train"), (test, "test")):
        files = [f"batch_{number}.parquet" for number in chosen]
        placing.place_named(job, files, pulses, job.public / name)


def grade(case: Grading) -> np.float64:
    """Return the mean angle in radians between true and predicted direction."""
    checks.columns_exactly(case.submission, [ID, *ANGLES])
    rows = checks.matched_rows(case.submission, case.answers, ID)
    for name in ANGLES:
        column = case.submission[name]
        if len(column) and pd.api.types.is_bool_dtype(column):
            raise checks.InvalidCell(0, name, column.iloc[0], "is not a number", "an angle in radians")
    given = checks.numbers(case.submission, ANGLES, spelt="refused")
    azimuth, zenith = ((case.answers[name].to_numpy(), given[rows, k]) for k, name in enumerate(ANGLES))
    return np.float64(angles_between(azimuth, zenith).mean())


def angles_between(azimuth: tuple[Numbers, Numbers], zenith: tuple[Numbers, Numbers]) -> Numbers:
    """Return per row the angle between two directions, all in radians."""
    flat = np.cos(azimuth[0]) * np.cos(azimuth[1]) + np.sin(azimuth[0]) * np.sin(azimuth[1])
    products = np.sin(zenith[0]) * np.sin(zenith[1]) * flat + np.cos(zenith[0]) * np.cos(zenith[1])
    angles: Numbers = np.arccos(np.clip(products, -1, 1))
    return angles
