"""Whatever is written in whatever pieces, the kept parts are true slices of it, within the limit."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from environment.container.run_log import CUT_MARK, CappedLog, log_parts


@settings(deadline=None)
@given(pieces=st.lists(st.binary(min_size=1, max_size=60), max_size=30), limit=st.integers(8, 400))
def test_kept_parts_are_true_slices_within_the_limit(pieces: list[bytes], limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = CappedLog(Path(folder, "run.log"), limit)
        for piece in pieces:
            log.write(piece)
        log.close()
        data = b"".join(pieces)
        parts = log_parts(Path(folder, "run.log"))
        kept = [part.path.read_bytes()[: part.length] for part in parts]
    assert (log.offset, log.error) == (len(data), "")
    assert kept == [data[part.start : part.start + part.length] for part in parts]
    assert sum(map(len, kept)) <= limit
    assert parts[-1].start + parts[-1].length == len(data)
    if len(data) <= limit // 2:
        assert kept == [data]
    assert all(first.start + first.length <= second.start for first, second in itertools.pairwise(parts))
    assert CUT_MARK not in b"".join(kept)
