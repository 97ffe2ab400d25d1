"""Rows are written in another order than they come in, and never take more room than what comes of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from competitions.kit.tables import reordering

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ALIKE = [f'{number},"{"x" * number}\n""{number}"""\n'.encode() for number in range(40)]
UNLIKE = [*ALIKE[:20], b"x" * 2000 + b"\n", *ALIKE[21:]]  # one row is much longer than the others


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


@pytest.mark.parametrize("all_rows", [ALIKE, UNLIKE], ids=["alike", "unlike"])
@pytest.mark.parametrize("piece", [1, 64, 1 << 20])
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_rows_are_written_in_order_within_the_room_of_the_output(
    order: str, piece: int, all_rows: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reordering, "_PIECE", piece)
    monkeypatch.setattr(reordering, "_MOST_PIECES", 7)
    chosen = np.random.RandomState(0).permutation(len(all_rows))[:30]
    if order == "sorted":
        chosen.sort()
    places = np.full(len(all_rows), -1)
    places[chosen] = np.arange(len(chosen))
    target = Watched(tmp_path)
    with reordering.writer(chosen, sum(map(len, all_rows)), target, tmp_path) as add:
        for start in range(0, len(all_rows), 9):
            coming = np.arange(start, min(start + 9, len(all_rows)))
            coming = coming[places[coming] >= 0]
            coming = coming[np.argsort(places[coming])]
            add(start, b"".join(all_rows[number] for number in coming), places[coming])
    written = b"".join(all_rows[number] for number in chosen)
    assert target.getvalue() == written
    assert target.most == len(written)
    assert not list(tmp_path.iterdir())
