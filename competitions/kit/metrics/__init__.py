"""Metrics over arrays, written directly in numpy so that no library version changes a score.

They expect valid input: `checks` has refused invalid submissions before.
"""

from mlebench_console.competitions.kit.metrics.classification import (
    accuracy,
    macro_f1,
    quadratic_weighted_kappa,
)
from mlebench_console.competitions.kit.metrics.detection import (
    envelope_average_precision,
    sampled_average_precision,
    step_average_precision,
)
from mlebench_console.competitions.kit.metrics.label_sets import LabelSets, mean_row_f1, pooled_f1
from mlebench_console.competitions.kit.metrics.probability import log_loss, log_losses, probabilistic_f1
from mlebench_console.competitions.kit.metrics.ranking import banded_auc, map_at_k, mean_column_auc, roc_auc
from mlebench_console.competitions.kit.metrics.regression import mean_absolute_error, rmse, rmsle

__all__ = [
    "LabelSets",
    "accuracy",
    "banded_auc",
    "envelope_average_precision",
    "log_loss",
    "log_losses",
    "macro_f1",
    "map_at_k",
    "mean_absolute_error",
    "mean_column_auc",
    "mean_row_f1",
    "pooled_f1",
    "probabilistic_f1",
    "quadratic_weighted_kappa",
    "rmse",
    "rmsle",
    "roc_auc",
    "sampled_average_precision",
    "step_average_precision",
]
