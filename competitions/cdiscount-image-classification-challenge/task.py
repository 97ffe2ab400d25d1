"""Cdiscount: a split of products in one huge BSON file, scored by accuracy."""

import numpy as np
import pandas as pd

from competitions.kit import placing, splits, tables
from competitions.kit.tasks import graders
from competitions.task import Grading, Preparation
from foundation.problems import DataProblem

from . import bson

EXAMPLES = 100
DUMMY = 1000010653


def prepare(job: Preparation) -> None:
    """Split the products; their documents are moved as they are, for test without the category."""
    path = job.source("train.bson")
    found = bson.index(job, path, ["_id", "category_id"])
    products = pd.DataFrame(found.values, columns=["_id", "category_id"])
    if products["_id"].duplicated().any():
        raise DataProblem(f"{path} was not taken", "an _id stands there twice")
    split = splits.by_row(job, len(products))
    in_test = np.zeros(len(products), dtype=bool)
    in_test[split.test] = True
    examples = ~in_test & (np.cumsum(~in_test) <= EXAMPLES)
    parts = [
        bson.Part(job.public / "train.bson", ~in_test),
        bson.Part(job.public / "train_example.bson", examples),
        bson.Part(job.public / "test.bson", in_test, without=1),
    ]
    bson.divide(job, path, found, parts)
    answers = products[in_test].sort_values("_id")
    tables.write_csv(answers, job.private / "answers.csv")
    tables.write_csv(answers.assign(category_id=DUMMY), job.public / "sample_submission.csv")
    names = "category_names.csv"
    placing.copy_file(job, job.source(names), job.public / names)


def grade(case: Grading) -> float:
    """The share of products whose category is predicted right."""
    return graders.accuracy(case, id_column="_id", target="category_id")
