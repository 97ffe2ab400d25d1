"""A widget of fixed lines of pieces, such as a header; redraws only the lines that have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from mlebench_console.console.roles import Pieces
from mlebench_console.console.tui.painting import strip

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp


class Painted(Widget):
    """Lines of pieces; as high as it has lines, unless the stylesheet sets a height."""

    DEFAULT_CSS = """
    Painted { height: auto; width: 1fr; }
    """
    app: BaseApp

    def __init__(self, *lines: Pieces, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines = lines

    @property
    def text(self) -> str:
        """The text shown, without roles."""
        return "\n".join("".join(text for text, _role in line) for line in self._lines)

    def show(self, *lines: Pieces) -> None:
        """Show these lines; only those that differ are redrawn."""
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.refresh(layout=True)
            self.call_after_refresh(self._check_height)
            return
        changed = [y for y, (old, new) in enumerate(zip(before, lines, strict=True)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _check_height(self) -> None:
        # If a layout was already pending when the lines changed, Textual keeps the height measured before.
        height = self.styles.height
        if height is not None and height.is_auto and self.display and self.size.height != len(self._lines):
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 Textual asks
        """Return the number of lines."""
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        pieces = self._lines[y] if y < len(self._lines) else ()
        return strip(pieces, self.size.width, self.app.palette, raised=self.screen.is_modal)
