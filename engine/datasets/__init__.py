"""Datasets: downloading, preparing and verifying them, in steps that report progress and survive kills."""

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
