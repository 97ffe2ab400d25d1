"""The models, weakest first: each gives predictions for any rows once it has seen the labelled ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from .features import Matrix

MANY_CLASSES = 12
"""From so many classes on boosting takes too long: it grows a tree for each of them in each round."""


@dataclass(frozen=True)
class Fitted:
    """A trained model: its name and its predictions, one row a row of input."""

    name: str
    predict: Callable[[Any], Matrix]


def class_learners(rows: Any, labels: Matrix, classes: int, seed: int) -> Iterator[Fitted]:
    """Models that give the chances of each class, for a matrix of numbers."""
    if classes > MANY_CLASSES:
        yield _fit("nearest centres", LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.9), rows, labels)
        for strength in (0.05, 1.0):
            model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=200))
            yield _fit(f"logistic regression, C={strength}", model, rows, labels)
        model = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"))
        yield _fit("discriminant analysis", model, rows, labels)
        return
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
    yield _fit("logistic regression", model, rows, labels)
    boosting = HistGradientBoostingClassifier(
        learning_rate=0.06,
        max_leaf_nodes=12,
        min_samples_leaf=25,
        l2_regularization=2.0,
        max_features=0.6,
        early_stopping=False,
        warm_start=True,
        random_state=seed,
    )
    for rounds in (15, 60, 140):
        yield _fit(f"boosting, {rounds} rounds", boosting.set_params(max_iter=rounds), rows, labels)


def text_learners(texts: Any, labels: Matrix, seed: int) -> Iterator[Fitted]:
    """Models that give the chances of each class, for running text."""
    yield _fit(
        "word counts",
        make_pipeline(TfidfVectorizer(sublinear_tf=True), MultinomialNB(alpha=0.3)),
        texts,
        labels,
    )
    for strength in (1.0, 6.0):
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        model = make_pipeline(words, LogisticRegression(C=strength, max_iter=300, random_state=seed))
        yield _fit(f"words and pairs, C={strength}", model, texts, labels)
    letters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True, max_features=40_000
    )
    model = make_pipeline(letters, LogisticRegression(C=8.0, max_iter=300, random_state=seed))
    yield _fit("letters", model, texts, labels)


def number_learners(rows: Any, targets: Matrix, seed: int) -> Iterator[Fitted]:
    """Models that give one number for each target."""
    yield _fit("linear regression", make_pipeline(StandardScaler(), Ridge(1.0)), rows, targets)
    if rows.shape[1] <= 40:
        model = make_pipeline(StandardScaler(), PolynomialFeatures(2), StandardScaler(), Ridge(20.0))
        yield _fit("quadratic regression", model, rows, targets)
    trees = ExtraTreesRegressor(120, min_samples_leaf=3, max_features=0.5, random_state=seed)
    yield _fit("random trees", trees, rows, targets)
    for rounds in (40, 120):
        each = [
            HistGradientBoostingRegressor(
                learning_rate=0.07,
                max_iter=rounds,
                max_leaf_nodes=10,
                l2_regularization=2.0,
                max_features=0.6,
                early_stopping=False,
                random_state=seed,
            ).fit(rows, column)
            for column in targets.T
        ]
        yield Fitted(
            f"boosting, {rounds} rounds",
            lambda some, models=each: np.column_stack([model.predict(some) for model in models]),  # type: ignore[misc]  # default binds
        )


def _fit(name: str, model: Any, rows: Any, labels: Matrix) -> Fitted:
    model.fit(rows, labels)
    return Fitted(name, model.predict_proba if hasattr(model, "predict_proba") else model.predict)
