"""ML2021Spring homework 2: a split of windows of speech frames in numpy files, scored by accuracy."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import arrays, graders, splits, tables
from competitions.task import Grading, Preparation
from foundation.problems import DataProblem

FOLDER = "timit_11/timit_11"
FRAMES = 11  # in a window; the next window of an utterance begins one frame later


def prepare(job: Preparation) -> None:
    """Hold out as large a share of the labelled windows as Kaggle's test has of all windows.

    Edition corrected holds out whole utterances, in which neighbouring windows share ten of their frames.
    """
    source, target = job.source(FOLDER), job.public / FOLDER
    windows, labels = (
        arrays.mapped_npy(source / "train_11.npy"),
        arrays.read_npy(source / "train_label_11.npy"),
    )
    count, unlabelled = len(windows), arrays.npy_shape(source / "test_11.npy")[0]
    if len(labels) != count:
        raise DataProblem(
            f"{source / 'train_label_11.npy'} is not as known",
            f"it has {len(labels)} labels for {count} windows",
            "Download the competition's data again.",
        )
    share = unlabelled / (count + unlabelled)
    if job.corrected:
        split = splits.shuffled_groups(_utterances(windows), share, job.integer("seed"))
    else:
        split = splits.shuffled(count, share, job.integer("seed"))
    arrays.write_rows(job, windows, split.train, target / "train_11.npy")
    arrays.write_rows(job, labels, split.train, target / "train_label_11.npy")
    arrays.write_rows(job, windows, split.test, target / "test_11.npy")
    answers = pd.DataFrame({"Id": np.arange(len(split.test)), "ClassId": labels[split.test]})
    tables.write_csv(answers, job.private / "answers.csv")
    tables.write_csv(answers.assign(ClassId=0), job.public / "sampleSubmission.csv")


def _utterances(windows: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Number the windows so that a new number starts where a window is not the one before, one frame on."""
    step, frame = 1 << 16, max(1, windows.shape[1] // FRAMES)
    begins = np.ones(len(windows), dtype=np.intp)
    for start in range(1, len(windows), step):
        end = min(start + step, len(windows))
        same = windows[start:end, :-frame] == windows[start - 1 : end - 1, frame:]
        begins[start:end] = ~same.all(axis=1)
    return np.cumsum(begins)


def grade(case: Grading) -> float:
    """The share of windows whose phoneme is told right."""
    return graders.accuracy(case, id_column="Id", target="ClassId")
