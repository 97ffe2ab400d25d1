"""Detect from the public data alone what to predict, from which features, and by which kind of metric."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from .workplace import CannotSolveError

Goal = Literal["label", "chance", "classes", "numbers"]
Material = Literal["pictures", "text", "a table"]
MAX_CLASSES = 500


@dataclass(frozen=True)
class LearningTask:
    """The problem to solve.

    Attributes:
        goal: write a class, the chance of the positive one, chances of all, or numbers.
        sample: the sample submission, all cells as text, so that keys are given back as they came.
        train: labelled rows.
        test: rows to predict, in the order of `sample`; only keys when the data are images.
        targets: columns of `sample` to fill.
        label: column of `train` to learn from, unless the goal is numbers.
        features: columns of `train` and `test` to learn from.
        text: the feature that holds running text, if one does.
        logarithmic: errors count on a logarithmic scale.
    """

    goal: Goal
    sample: pd.DataFrame
    train: pd.DataFrame
    test: pd.DataFrame
    targets: tuple[str, ...]
    label: str
    features: tuple[str, ...]
    text: str | None
    logarithmic: bool

    @property
    def material(self) -> Material:
        """What there is to learn from."""
        if not self.features:
            return "pictures"
        return "text" if self.text else "a table"


def read_problem(data: Path) -> LearningTask:
    """Read the tables and return the kind of problem.

    Raises:
        CannotSolveError: it is none that this agent knows.
    """
    sample = _read_sample(data)
    if not (data / "train.csv").is_file():
        raise CannotSolveError("there is no train.csv")
    train = pd.read_csv(data / "train.csv")
    description = _description(data)
    has_test = (data / "test.csv").is_file()
    if has_test:
        test = _in_order_of(sample, pd.read_csv(data / "test.csv"))
        answers = [str(column) for column in train if column not in test]
    else:
        test = sample.iloc[:, :1]
        answers = [str(column) for column in train if column in sample.columns[1:]]
    targets = tuple(str(column) for column in sample if column in answers) or tuple(sample.columns[1:])
    label = _label(train, answers, targets)
    features = tuple(str(c) for c in test if c in train and not _is_key(train[c])) if has_test else ()
    if has_test and not features:
        raise CannotSolveError("test.csv has no column to learn from")
    return LearningTask(
        goal=_goal(train, label, targets, description),
        sample=sample,
        train=train.dropna(subset=[label]).reset_index(drop=True),
        test=test,
        targets=targets,
        label=label,
        features=features,
        text=_text_column(train, features),
        logarithmic=bool(re.search(r"rmsle|logarithmic error", description)),
    )


def _read_sample(data: Path) -> pd.DataFrame:
    found = sorted(data.glob("sample_submission*.csv"))
    if not found:
        raise CannotSolveError("there is no sample_submission.csv")
    return pd.read_csv(found[0], dtype=str, keep_default_na=False)


def _description(data: Path) -> str:
    path = data / "description.md"
    return path.read_text(encoding="utf-8").lower() if path.is_file() else ""


def _in_order_of(sample: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Return the test rows in the order of the sample, by its first column where that identifies each row."""
    if len(test) != len(sample):
        raise CannotSolveError(f"test.csv has {len(test)} rows, the sample submission {len(sample)}")
    key = sample.columns[0]
    if key not in test or test[key].duplicated().any():
        return test
    wanted = pd.Index(sample[key])
    place = pd.Index(test[key].map(str)).get_indexer(wanted)
    if (place < 0).any():
        raise CannotSolveError(f"the sample submission and test.csv disagree about {key}")
    return test.iloc[place].reset_index(drop=True)


def _label(train: pd.DataFrame, answers: list[str], targets: tuple[str, ...]) -> str:
    """Return the column to learn from: a target itself, or one whose values are the names of the targets."""
    if targets[0] in answers:
        return targets[0]
    for column in answers:
        if set(train[column].dropna().map(str)) <= set(targets):
            return str(column)
    raise CannotSolveError(f"train.csv has no column for {', '.join(targets[:3])}")


def _goal(train: pd.DataFrame, label: str, targets: tuple[str, ...], description: str) -> Goal:
    values = train[label].dropna()
    if label not in targets:
        return "classes"
    if len(targets) > 1:
        wrong = [target for target in targets if not pd.api.types.is_numeric_dtype(train[target])]
        if wrong:
            raise CannotSolveError(f"target {wrong[0]} is not a number")
        return "numbers"
    if values.nunique() == 2:
        return "chance" if re.search(r"roc|probabilit|log loss", description) else "label"
    if pd.api.types.is_float_dtype(values) or values.nunique() > MAX_CLASSES:
        if not pd.api.types.is_numeric_dtype(values):
            raise CannotSolveError(f"target {label} is neither a number nor one of a few classes")
        return "numbers"
    return "label"


def _is_key(column: pd.Series) -> bool:
    """Return whether a column only identifies its row: whole numbers or single words, all different."""
    if not column.is_unique or pd.api.types.is_float_dtype(column):
        return False
    return pd.api.types.is_integer_dtype(column) or not column.map(str).str.contains(r"\s|_|/").any()


def _text_column(train: pd.DataFrame, features: tuple[str, ...]) -> str | None:
    words = {
        name: train[name].map(str).str.count(r"\s").mean()
        for name in features
        if not pd.api.types.is_numeric_dtype(train[name]) and train[name].nunique() > len(train) / 2
    }
    best = max(words, key=lambda name: words[name], default=None)
    return best if best is not None and words[best] >= 4 else None
