"""ML2021Spring homework 2: a split of windows of speech frames in numpy files, scored by accuracy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import splits
from mlebench_console.competitions.kit.formats import npy
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

FOLDER = "timit_11/timit_11"
FRAMES = 11  # in a window; the next window of an utterance begins one frame later


def prepare(job: Preparation) -> None:
    """Hold out the share of labelled windows that Kaggle's test set has of all windows.

    Edition corrected holds out whole utterances, because neighbouring windows share ten of their frames.
    """
    source, target = job.source(FOLDER), job.public / FOLDER
    windows = npy.read_npy(source / "train_11.npy")
    labels = npy.read_npy(source / "train_label_11.npy")
    count, unlabelled = len(windows), len(npy.read_npy(source / "test_11.npy"))
    if len(labels) != count:
        raise job.unexpected(
            source / "train_label_11.npy", f"it has {len(labels)} labels for {count} windows"
        )
    share = unlabelled / (count + unlabelled)
    if job.corrected:
        split = splits.shuffled_groups(_utterances(windows), share, job.integer("seed"))
    else:
        split = splits.shuffled(count, share, job.integer("seed"))
    target.mkdir(parents=True)
    np.save(target / "train_11.npy", windows[split.train])
    np.save(target / "test_11.npy", windows[split.test])
    np.save(target / "train_label_11.npy", labels[split.train])
    answers = pd.DataFrame({"Id": np.arange(len(split.test)), "ClassId": labels[split.test]})
    labelled_table.write_answers(job, answers, answers.assign(ClassId=0))


def _utterances(windows: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Number the windows by utterance: a new one begins where a window is not the previous one shifted by a frame."""
    frame = max(1, windows.shape[1] // FRAMES)
    same = (windows[1:, :-frame] == windows[:-1, frame:]).all(axis=1)
    return np.cumsum(np.append(True, ~same))


def grade(case: Grading) -> float:
    """Return the share of windows whose phoneme is predicted right."""
    return graders.accuracy(case, id_column="Id", target="ClassId")
