"""Starting, stopping, watching and asking the engine: all that a command or a console may do with it.

The engine itself is `engine.supervisor`; nothing here imports it or anything heavy.
"""

from engine.control.answers import Answer, RefusedRequest
from engine.control.client import ask, ensure_running
from engine.control.lifecycle import start, stop
from engine.control.status import EngineStatus, status
from engine.control.unit import unit_text

__all__ = [
    "Answer",
    "EngineStatus",
    "RefusedRequest",
    "ask",
    "ensure_running",
    "start",
    "status",
    "stop",
    "unit_text",
]
