"""A clock that stands still until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class HandClock:
    moment: float = 1000.0

    def now(self) -> float:
        return self.moment

    def monotonic(self) -> float:
        return self.moment
