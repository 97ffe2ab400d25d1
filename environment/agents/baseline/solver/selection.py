"""Selection of models by their loss on held-out rows; only an improvement becomes the submission."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from . import workplace
from .features import Matrix
from .problem import LearningTask


@dataclass
class ModelSelection:
    """One round: the truth of the held-out rows, the models so far, and what earlier rounds selected."""

    problem: LearningTask
    truth: Matrix
    earlier: list[Matrix]
    lowest: float = np.inf
    entries: list[tuple[float, Matrix, Matrix]] = field(default_factory=list)

    def add(self, name: str, held_out: Matrix, test: Matrix) -> None:
        """Score a model by its predictions for the held-out rows; in the first round the best so far is submitted."""
        loss = self._loss(held_out)
        self.entries.append((loss, held_out, test))
        leads = loss < self.lowest
        self.lowest = min(loss, self.lowest)
        submitted = leads and not self.earlier
        workplace.say(
            f"round {len(self.earlier) + 1}, {name}: held-out {self._loss_name} {loss:.5f}"
            f"{', submitted' if submitted else ', leads' if leads else ''}"
        )
        if submitted:
            workplace.submit(filled(self.problem, test))

    def finish(self) -> Matrix:
        """Add the mean of the three best too, and return the best one's predictions for the test rows."""
        best = sorted(self.entries, key=lambda entry: entry[0])[:3]
        held_out = np.mean([entry[1] for entry in best], axis=0)
        test = np.mean([entry[2] for entry in best], axis=0)
        self.add("mean of the three best", held_out, test)
        return min(self.entries, key=lambda entry: entry[0])[2]

    @property
    def _loss_name(self) -> str:
        names = {"label": "error rate", "chance": "1 - AUC", "classes": "log loss", "numbers": "RMSE"}
        return names[self.problem.goal]

    def _loss(self, predicted: Matrix) -> float:
        from sklearn import metrics

        if self.problem.goal == "numbers":
            return float(metrics.root_mean_squared_error(self.truth, predicted))
        if self.problem.goal == "label":
            return float(metrics.zero_one_loss(self.truth, predicted.argmax(axis=1)))
        if self.problem.goal == "classes":
            return float(metrics.log_loss(self.truth, predicted, labels=range(predicted.shape[1])))
        return 1 - float(metrics.roc_auc_score(self.truth, predicted[:, 1]))


def filled(problem: LearningTask, predicted: Matrix) -> pd.DataFrame:
    """Return the sample submission with predictions in place of its constants."""
    table = problem.sample.copy()
    if problem.goal == "numbers":
        numbers = np.expm1(predicted) if problem.logarithmic else predicted
        if (problem.train[list(problem.targets)] >= 0).all(axis=None):
            numbers = np.maximum(numbers, 0)
        for place, target in enumerate(problem.targets):
            table[target] = numbers[:, place]
    elif problem.goal == "classes":
        classes = class_names(problem)
        for target in problem.targets:
            table[target] = predicted[:, classes.index(target)] if target in classes else 0.0
    elif problem.goal == "chance":
        table[problem.targets[0]] = predicted[:, 1]
    else:
        table[problem.targets[0]] = np.array(class_names(problem), dtype=object)[predicted.argmax(axis=1)]
    return table


def class_names(problem: LearningTask) -> list[str]:
    """Return the classes as a submission names them, in the order of a model's columns, the positive one last."""
    return sorted(problem.train[problem.label].map(str).unique())
