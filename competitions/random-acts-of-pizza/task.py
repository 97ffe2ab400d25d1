"""Random Acts of Pizza: a split of JSON records, scored by ROC AUC."""

from typing import Any

import pandas as pd

from mlebench_console.competitions.kit import archives, splits
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

ID, TARGET = "request_id", "requester_received_pizza"
GIVER = "giver_username_if_known"  # anything but N/A in it means that a pizza was given


def prepare(job: Preparation) -> None:
    """Split Kaggle's train requests; those for test keep the fields of Kaggle's own test requests."""
    labelled, unlabelled = (_requests(job, name) for name in ("train.json", "test.json"))
    fields = [name for name in unlabelled[0] if not (job.corrected and name == GIVER)]
    if any(request.keys() != labelled[0].keys() for request in labelled) or not {ID, TARGET, *fields} <= set(
        labelled[0]
    ):
        raise job.unexpected(job.source("train.json"), "its requests lack fields")
    share = len(unlabelled) / (len(labelled) + len(unlabelled))
    split = splits.shuffled(len(labelled), share, job.integer("seed"))
    test = [labelled[row] for row in split.test]
    parts = {
        "train": [labelled[row] for row in split.train],
        "test": [{name: request[name] for name in fields} for request in test],
    }
    for name, requests in parts.items():
        path = job.public / f"{name}.json"
        json_files.write_json(path, requests, indent=4)
        with archives.new_member(job.public / f"{name}.zip", path.name) as stream:
            stream.write(path.read_bytes())
    answers = pd.DataFrame(
        {ID: [request[ID] for request in test], TARGET: [int(request[TARGET]) for request in test]}
    )
    labelled_table.write_answers(job, answers, answers.assign(**{TARGET: 0}))


def _requests(job: Preparation, name: str) -> list[dict[str, Any]]:
    requests = json_files.read_records(job.source(name))
    if not requests:
        raise job.unexpected(job.source(name), "it has no requests")
    return requests


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of a pizza."""
    return graders.auc(case, id_column=ID, target=TARGET)
