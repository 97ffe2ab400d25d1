"""The first frame: the lines around the body, seen while the wanted screen and what it asks for are being imported."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from console.screens.base import ConsoleScreen


class OpeningScreen(ConsoleScreen):
    """A frame around nothing."""

    AUTO_FOCUS = ""

    def body(self) -> Iterable[Widget]:
        """Nothing yet."""
        return ()
