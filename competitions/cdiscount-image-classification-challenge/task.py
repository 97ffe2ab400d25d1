"""Cdiscount: a split of products in one huge BSON file, scored by accuracy."""

from contextlib import ExitStack

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import placing, splits
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

from . import bson

FIELDS = ["_id", "category_id"]
EXAMPLES = 100
BLOCK = 1 << 20  # bytes written at a time
DUMMY = 1000010653


def prepare(job: Preparation) -> None:
    """Split the products; their documents are copied unchanged, those for test without the category."""
    path = job.source("train.bson")
    products = pd.DataFrame(bson.whole_numbers(job, path, FIELDS), columns=FIELDS)
    if products["_id"].duplicated().any():
        raise job.unexpected(path, "an _id occurs twice")
    split = splits.by_row(job, len(products))
    in_test = np.zeros(len(products), dtype=bool)
    in_test[split.test] = True
    examples = 0
    with ExitStack() as stack:
        train, example, test = (
            stack.enter_context((job.public / f"{name}.bson").open("xb", BLOCK))
            for name in ("train", "train_example", "test")
        )
        for document, held_out in zip(bson.documents(job, path), in_test.tolist(), strict=True):
            if held_out:
                test.write(bson.without(document, "category_id"))
                continue
            train.write(document)
            if examples < EXAMPLES:
                example.write(document)
                examples += 1
    answers = products[in_test].sort_values("_id")
    labelled_table.write_answers(job, answers, answers.assign(category_id=DUMMY))
    names = "category_names.csv"
    placing.copy_file(job, job.source(names), job.public / names)


def grade(case: Grading) -> float:
    """Return the share of products whose category is predicted right."""
    return graders.accuracy(case, id_column="_id", target="category_id")
