"""Datasets: from Kaggle to prepared data, as steps that show their progress and survive any kill."""

from engine.datasets.plans import (
    Plan,
    is_ready,
    plan,
    record_prepared,
    request,
)
from engine.datasets.queue import Capacity, DatasetQueue
from engine.datasets.steps import STEPS

__all__ = ["STEPS", "Capacity", "DatasetQueue", "Plan", "is_ready", "plan", "record_prepared", "request"]
