"""A widget of lines that don't scroll, such as a header; redraws only the lines that have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from mlebench_console.console.pieces import Line
from mlebench_console.console.tui.painting import strip
from mlebench_console.console.tui.widgets.blocks import Block, laid_out

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp


class Painted(Widget):
    """Blocks, laid out for its width; as high as they have lines, unless the stylesheet sets a height."""

    DEFAULT_CSS = """
    Painted { height: auto; width: 1fr; }
    """
    app: BaseApp

    def __init__(self, *content: Block, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._content = content
        self._lines: list[Line] = []
        # The width that the lines are laid out for; 0 before the first layout.
        self._width = 0

    @property
    def text(self) -> str:
        """The text shown, without roles."""
        return "\n".join("".join(text for text, _role in line.pieces) for line in self._lines)

    def show(self, *content: Block) -> None:
        """Show this; only lines that differ are redrawn."""
        before, self._content = self._lines, content
        self._lines = laid_out(content, self.app.drawing.within(self._width or self.app.size.width))
        if len(before) != len(self._lines):
            self.refresh(layout=True)
            self.call_after_refresh(self._check_height)
            return
        changed = [y for y, (old, new) in enumerate(zip(before, self._lines, strict=True)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _lay_out(self, width: int) -> list[Line]:
        """Return the lines in a width."""
        if width != self._width:
            self._width, self._lines = width, laid_out(self._content, self.app.drawing.within(width))
        return self._lines

    def _check_height(self) -> None:
        # If a layout was already pending when the lines changed, Textual keeps the height measured before.
        height = self.styles.height
        if height is not None and height.is_auto and self.display and self.size.height != len(self._lines):
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 Textual asks
        """Return the number of lines in a width."""
        return len(self._lay_out(width))

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        lines = self._lay_out(self.size.width)
        pieces = lines[y].pieces if y < len(lines) else ()
        return strip(pieces, self.size.width, self.app.palette, raised=self.screen.is_modal)
