"""Datasets: from what lies on disk or is asked for to prepared data, as steps that show their progress."""

from engine.datasets.desk import DatasetDesk
from engine.datasets.planning import STEPS, Plan, is_ready, note_prepared, plan, request

__all__ = ["STEPS", "DatasetDesk", "Plan", "is_ready", "note_prepared", "plan", "request"]
