"""The engine's client, for commands and consoles: start it, stop it, read its status and send it requests.

The engine itself is `engine.supervisor`; nothing here imports it or anything heavy.
"""

from mlebench_console.engine.control.client import (
    EngineGone,
    WithdrawnRequest,
    answer_to,
    ask,
    author,
    ensure_running,
    file,
    start,
    stop,
    unit_text,
    variables_unknown_to_engine,
    withdraw,
)
from mlebench_console.engine.control.status import Disk, EngineStatus, GpuUse, status
from mlebench_console.engine.requests import Answer, RefusedRequest

__all__ = [
    "Answer",
    "Disk",
    "EngineGone",
    "EngineStatus",
    "GpuUse",
    "RefusedRequest",
    "WithdrawnRequest",
    "answer_to",
    "ask",
    "author",
    "ensure_running",
    "file",
    "start",
    "status",
    "stop",
    "unit_text",
    "variables_unknown_to_engine",
    "withdraw",
]
