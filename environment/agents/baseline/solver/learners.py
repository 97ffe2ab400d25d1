"""The models, weakest first; each is fitted before the next one is requested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

MANY_CLASSES = 12
"""With so many classes boosting takes too long: it grows a tree for each of them in each round."""

Models = Iterator[tuple[str, Any]]
"""Models by their names."""


def class_models(classes: int, seed: int) -> Models:
    """Models that give the chances of each class, for a matrix of numbers."""
    if classes > MANY_CLASSES:
        yield "nearest centres", LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.9)
        for strength in (0.05, 1.0):
            model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=200))
            yield f"logistic regression, C={strength}", model
        model = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"))
        yield "discriminant analysis", model
        return
    yield "logistic regression", make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
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
        yield f"boosting, {rounds} rounds", boosting.set_params(max_iter=rounds)


def text_models(seed: int) -> Models:
    """Models that give the chances of each class, for running text."""
    yield "word counts", make_pipeline(TfidfVectorizer(sublinear_tf=True), MultinomialNB(alpha=0.3))
    for strength in (1.0, 6.0):
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        model = make_pipeline(words, LogisticRegression(C=strength, max_iter=300, random_state=seed))
        yield f"words and pairs, C={strength}", model
    letters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True, max_features=40_000
    )
    yield "letters", make_pipeline(letters, LogisticRegression(C=8.0, max_iter=300, random_state=seed))


def number_models(columns: int, seed: int) -> Models:
    """Models that give one number for each target, for a matrix of so many columns."""
    yield "linear regression", make_pipeline(StandardScaler(), Ridge(1.0))
    if columns <= 40:
        model = make_pipeline(StandardScaler(), PolynomialFeatures(2), StandardScaler(), Ridge(20.0))
        yield "quadratic regression", model
    yield "random trees", ExtraTreesRegressor(120, min_samples_leaf=3, max_features=0.5, random_state=seed)
    for rounds in (40, 120):
        boosting = HistGradientBoostingRegressor(
            learning_rate=0.07,
            max_iter=rounds,
            max_leaf_nodes=10,
            l2_regularization=2.0,
            max_features=0.6,
            early_stopping=False,
            random_state=seed,
        )
        yield f"boosting, {rounds} rounds", MultiOutputRegressor(boosting)
