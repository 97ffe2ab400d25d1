"""Rows are written in another order than they come in, and never take more room than what comes of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from competitions.kit import reordering

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ROWS = [f'{number},"{"x" * number}\n""{number}"""\n'.encode() for number in range(40)]
TOTAL = sum(map(len, ROWS))


class Watched(io.BytesIO):
    """An output that sees how much waits on the disk whenever it grows."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self._scratch = scratch
        self.most = 0

    def write(self, content: ReadableBuffer, /) -> int:
        count = super().write(content)
        waiting = sum(path.stat().st_size for path in self._scratch.iterdir())
        self.most = max(self.most, waiting + self.tell())
        return count


@pytest.mark.parametrize("piece", [1, 64, 1 << 20])
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_rows_are_written_in_order_within_the_room_of_the_output(
    order: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reordering, "_PIECE", piece)
    monkeypatch.setattr(reordering, "_MOST_PIECES", 7)
    chosen = np.random.RandomState(0).permutation(len(ROWS))[:30]
    if order == "sorted":
        chosen.sort()
    places = np.full(len(ROWS), -1)
    places[chosen] = np.arange(len(chosen))
    target = Watched(tmp_path)
    with reordering.writer(chosen, TOTAL, target, tmp_path) as add:
        for start in range(0, len(ROWS), 9):
            coming = np.arange(start, min(start + 9, len(ROWS)))
            coming = coming[places[coming] >= 0]
            coming = coming[np.argsort(places[coming])]
            add(start, b"".join(ROWS[number] for number in coming), places[coming])
    written = b"".join(ROWS[number] for number in chosen)
    assert target.getvalue() == written
    assert target.most == len(written)
    assert not list(tmp_path.iterdir())
