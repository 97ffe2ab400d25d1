"""Worker processes: tasks that may crash, run out of memory or never end, each in a child with limits."""

from engine.workers.pool import Ended, Progressed, WorkerPool
from engine.workers.tasks import GradeTask, Limits, PrepareTask, Task

__all__ = ["Ended", "GradeTask", "Limits", "PrepareTask", "Progressed", "Task", "WorkerPool"]
