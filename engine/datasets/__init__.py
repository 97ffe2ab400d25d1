"""Datasets: downloading, preparing and verifying them, in steps that report progress and survive kills."""

from mlebench_console.engine.datasets.plans import (
    Plan,
    is_ready,
    options_of,
    plan,
    record_prepared,
    request,
)
from mlebench_console.engine.datasets.queue import Capacity, DatasetQueue
from mlebench_console.engine.datasets.steps import STEPS

__all__ = [
    "STEPS",
    "Capacity",
    "DatasetQueue",
    "Plan",
    "is_ready",
    "options_of",
    "plan",
    "record_prepared",
    "request",
]
