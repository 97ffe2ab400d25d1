"""Metrics over arrays, written directly in numpy so that no library version changes a score.

They take clean input: what a submission may hold wrong is refused before, in `checks`.
"""

from competitions.kit.metrics.classification import accuracy, f1_scores, quadratic_weighted_kappa
from competitions.kit.metrics.probability import log_loss
from competitions.kit.metrics.ranking import mean_column_auc, roc_auc
from competitions.kit.metrics.regression import mean_absolute_error, rmse, rmsle
from competitions.kit.metrics.retrieval import map_at_k

__all__ = [
    "accuracy",
    "f1_scores",
    "log_loss",
    "map_at_k",
    "mean_absolute_error",
    "mean_column_auc",
    "quadratic_weighted_kappa",
    "rmse",
    "rmsle",
    "roc_auc",
]
