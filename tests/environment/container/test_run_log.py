"""Whatever is written in whatever pieces, the kept parts are true slices of it, within the limit."""

from __future__ import annotations

import itertools
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench_console.environment.container import run_log
from mlebench_console.environment.container.run_log import CUT_MARK, GAP_MARK, CappedLog, log_parts


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


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file take another byte; a write fails with EFBIG in place of ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@settings(deadline=None)
@given(
    pieces=st.lists(st.tuples(st.binary(min_size=1, max_size=60), st.booleans()), max_size=40),
    limit=st.integers(8, 400),
)
def test_what_a_full_disk_does_not_take_is_missing_and_nothing_else(
    pieces: list[tuple[bytes, bool]], limit: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.multiple(run_log, _RETRY_SECONDS=0.0, _MOST_WAITING=20),
    ):
        path = Path(folder, "run.log")
        log = CappedLog(path, limit)
        for piece, is_full in pieces:
            with full_disk() if is_full else nullcontext():
                log.write(piece)
        log.close()
        data = b"".join(piece for piece, _ in pieces)
        parts = log_parts(path)
        kept = [part.path.read_bytes()[: part.length] for part in parts]
        index = path.with_suffix(".times")
        entries = index.read_text().splitlines() if index.exists() else []
    refused = sum(len(piece) for piece, is_full in pieces if is_full)
    lost = int(log.error.split()[0].replace(",", "")) if log.error else 0
    assert log.offset == len(data)
    assert lost <= refused
    assert kept == [data[part.start : part.start + part.length] for part in parts]
    assert sum(map(len, kept)) <= limit
    assert parts[-1].start + parts[-1].length == len(data)
    if len(data) <= limit // 4 and len(pieces) < 10:
        assert sum(map(len, kept)) == len(data) - lost
    offsets = [int(line.split()[0]) for line in entries]
    assert offsets == sorted(offsets)


def test_a_gap_is_told_in_the_log_and_as_little_as_possible_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    log = CappedLog(path, 1 << 20)
    log.write(b"before\n")
    with full_disk():
        for _ in range(3):
            log.write(b"x" * 40_000)
    log.write(b"last words\n")
    log.close()
    lost = 3 * 40_000 + len(b"last words\n") - (64 << 10)
    assert path.read_bytes() == b"before\n" + GAP_MARK
    assert (tmp_path / f"run.log.{7 + lost:016d}").read_bytes().endswith(b"xxxlast words\n")
    assert log.error.startswith(f"{lost:,} bytes of output were not kept: ")
    assert len(GAP_MARK) == len(CUT_MARK)


def test_a_full_disk_is_not_asked_for_each_line_and_short_trouble_leaves_no_gap(tmp_path: Path) -> None:
    log = CappedLog(tmp_path / "run.log", 4000)
    with full_disk():
        log.write(b"one\n")
    log.write(b"two\n")
    assert (tmp_path / "run.log").read_bytes() == b""
    later = time.monotonic() + 10
    with mock.patch("time.monotonic", lambda: later):
        log.write(b"three\n")
    assert (tmp_path / "run.log").read_bytes() == b"one\ntwo\nthree\n"
    log.close()
    assert log.error == ""


def test_a_log_that_can_not_be_opened_begins_when_it_can(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "run.log"
    log = CappedLog(path, 4000)
    log.write(b"first\n")
    path.parent.mkdir()
    log.close()
    assert path.read_bytes() == b"first\n"
