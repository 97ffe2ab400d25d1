"""Right Whale Redux: recordings of a zip split by date into two zips, scored by ROC AUC."""

import re
from pathlib import PurePosixPath

import pandas as pd

from mlebench_console.competitions.kit import archives
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

DAYS = 4  # the first two are train
NUMBER = re.compile(r"TRAIN\d+")


def prepare(job: Preparation) -> None:
    """Hold out the last two of four dates; clips are renumbered in the order of their names."""
    source = job.source("train2.zip")
    clips = [name for name in archives.files_in(source) if PurePosixPath(name).match("train2/*.aif")]
    members = {PurePosixPath(name).name: name for name in clips}
    days = sorted({name.partition("_")[0] for name in members})
    if len(days) != DAYS or not all(map(NUMBER.search, members)):
        raise job.unexpected(
            source, f"expected TRAIN clips of {DAYS} dates, found {len(members)} clips of {len(days)}"
        )
    train, test = (
        sorted(name for name in members if name.partition("_")[0] in part)
        for part in (days[: DAYS // 2], days[DAYS // 2 :])
    )
    named = {
        "train2": [NUMBER.sub(f"TRAIN{number}", name, count=1) for number, name in enumerate(train)],
        "test2": [f"{name.partition('TRAIN')[0]}Test{number}.aif" for number, name in enumerate(test)],
    }
    for folder, old in (("train2", train), ("test2", test)):
        renamed = {members[name]: f"{folder}/{new}" for name, new in zip(old, named[folder], strict=True)}
        archives.repack(job, source, job.public / f"{folder}.zip", renamed)
    calls = [int(name.removesuffix(".aif").endswith("_1")) for name in test]
    answers = pd.DataFrame({"clip": named["test2"], "probability": calls})
    labelled_table.write_answers(job, answers, answers.assign(probability=0))


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of a call."""
    return graders.auc(case, id_column="clip", target="probability")
