"""What the reader's thread tells the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from console.views.condition import Condition

if TYPE_CHECKING:
    from engine.control import EngineStatus


class ConditionChanged(Message):
    """The state can be read again, or no longer."""

    def __init__(self, condition: Condition) -> None:
        super().__init__()
        self.condition = condition


class EngineSeen(Message):
    """The engine's status has been read."""

    def __init__(self, status: EngineStatus | None) -> None:
        super().__init__()
        self.status = status

    def can_replace(self, message: Message) -> bool:
        """Only the newest counts."""
        return isinstance(message, EngineSeen)
