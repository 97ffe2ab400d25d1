"""Datasets: from Kaggle to prepared data, as steps that show their progress and survive any kill."""

from engine.datasets.desk import DatasetDesk, Room
from engine.datasets.planning import Plan, is_ready, note_prepared, plan, request
from engine.datasets.sources import STEPS

__all__ = ["STEPS", "DatasetDesk", "Plan", "Room", "is_ready", "note_prepared", "plan", "request"]
