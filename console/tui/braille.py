"""Lines on a canvas of braille dots, two across and four down in every cell, or of plain characters."""

from __future__ import annotations

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


class Canvas:
    """Dots in cells; (0, 0) is the lower left corner of a square of 1 by 1."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = max(1, width), max(1, height)
        self._cells = [[0] * self._width for _ in range(self._height)]

    def dot(self, x: float, y: float) -> None:
        """Set one dot; what is outside is moved to the edge."""
        across, down = self._place(x, y)
        self._set(across, down)

    def line(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Set the dots of a straight line."""
        (x0, y0), (x1, y1) = self._place(*start), self._place(*end)
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            share = step / steps
            self._set(round(x0 + share * (x1 - x0)), round(y0 + share * (y1 - y0)))

    def rows(self, *, ascii_only: bool = False) -> list[str]:
        """The cells as text; empty ones are spaces."""
        if ascii_only:
            return ["".join("*" if cell else " " for cell in row) for row in self._cells]
        return ["".join(chr(_BLANK + cell) if cell else " " for cell in row) for row in self._cells]

    def _place(self, x: float, y: float) -> tuple[int, int]:
        across, down = 2 * self._width - 1, 4 * self._height - 1
        return (
            min(max(round(x * across), 0), across),
            min(max(round((1 - y) * down), 0), down),
        )

    def _set(self, across: int, down: int) -> None:
        self._cells[down // 4][across // 2] |= _DOTS[down % 4][across % 2]
