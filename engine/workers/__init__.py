"""Worker processes: tasks that may crash, run out of memory or never end, each in a child with limits."""

from engine.workers.pool import Ended, Progressed, WorkerPool
from engine.workers.tasks import (
    CheckTask,
    FetchTask,
    GradeTask,
    Limits,
    PrepareTask,
    PruneTask,
    Task,
    VerifyTask,
)

__all__ = [
    "CheckTask",
    "Ended",
    "FetchTask",
    "GradeTask",
    "Limits",
    "PrepareTask",
    "Progressed",
    "PruneTask",
    "Task",
    "VerifyTask",
    "WorkerPool",
]
