"""What screens share that show one list in which things are marked, to do something with all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from console.screens.filtered import FilteredScreen
from console.views.marks import Key, Marks


class MarkedScreen(FilteredScreen, Generic[Key]):
    """A filtered list whose `redraw` shows which keys have `marks`."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: Marks[Key] = Marks()

    def mark(self, marks: Marks[Key]) -> None:
        """Let these be the marks."""
        self.marks = marks
        self.redraw()

    def mark_more(self, found: Iterable[Key] | None) -> None:
        """Mark a range too; where it has no other end, tell how it gets one."""
        if found is None:
            self.app.say("mark one end of the range first")
        else:
            self.mark(self.marks.adding(found))

    def action_back(self) -> None:
        """Take the marks away, then the filter."""
        if self.marks:
            self.mark(Marks())
        else:
            super().action_back()
