"""A log is read by position: the same lines from either side, whatever its size and whoever wrote it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.console.logs.reader import LONGEST_LINE, LogFile
from mlebench_console.console.logs.search import Pattern, search
from mlebench_console.environment.container.run_log import CUT_MARK

lines_of_bytes = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=60)


def always() -> bool:
    return True


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


def opened(path: Path) -> LogFile:
    file = LogFile(path)
    file.refresh()
    return file


def contents(path: Path) -> list[bytes]:
    file = opened(path)
    try:
        return [line.content for line in file.forward(file.begin, 10_000)]
    finally:
        file.close()


@given(lines=lines_of_bytes, ended=st.booleans(), place=st.integers(0, 60))
def test_forward_and_backward_give_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ended: bool, place: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "run.log"
    whole = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    path.write_bytes(whole)
    expected = whole.split(b"\n")
    expected = expected[:-1] if expected[-1] == b"" else expected
    file = opened(path)
    forward = file.forward(0, 1000)
    assert [line.content for line in forward] == expected
    assert file.backward(file.end, 1000) == forward
    if forward:
        chosen = forward[min(place, len(forward) - 1)]
        assert file.line_start(chosen.end - 1) == chosen.start
    file.close()


def test_an_endless_line_is_cut_at_the_same_places_from_both_sides(log: Path) -> None:
    log.write_bytes(b"first\n" + b"x" * (5 * LONGEST_LINE) + b"\nlast\n")
    file = opened(log)
    forward = file.forward(0, 100)
    assert file.backward(file.end, 100) == forward
    assert b"".join(line.content for line in forward[1:-1]) == b"x" * (5 * LONGEST_LINE)
    assert max(len(line.content) for line in forward) <= 2 * LONGEST_LINE
    file.close()


def test_what_is_added_is_found(log: Path) -> None:
    log.write_bytes(b"one\n")
    file = opened(log)
    assert not file.refresh()
    with log.open("ab") as stream:
        stream.write(b"two\n")
    assert file.refresh()
    assert [line.content for line in file.backward(file.end, 5)] == [b"one", b"two"]
    file.close()


def test_a_log_that_comes_later_is_found(log: Path) -> None:
    file = opened(log)
    assert file.end == 0 and file.forward(0, 5) == [] and file.backward(0, 5) == []
    log.write_bytes(b"one\n")
    assert file.refresh() and file.end == 4
    file.close()


def test_the_gap_of_a_log_over_its_limit_is_told(log: Path) -> None:
    head = b"head\n"

    log.write_bytes(head + CUT_MARK)
    log.with_name("run.log.1000").write_bytes(b"tail 1\n")
    log.with_name("run.log.1007").write_bytes(b"tail 2\n")
    file = opened(log)
    forward = file.forward(0, 100)
    texts = [line.text for line in forward]
    assert texts[0] == "head" and texts[-2:] == ["tail 1", "tail 2"]
    assert texts[-3] == f"[{1000 - len(head)} bytes of the log were cut here]"
    assert file.backward(file.end, 100) == forward
    file.close()


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_only_a_regular_file_is_read(log: Path, tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"answers\n")
    if kind == "fifo":
        os.mkfifo(log)
    elif kind == "link":
        log.symlink_to(secret)
    else:
        log.mkdir()
    assert contents(log) == []


def test_lines_are_counted(log: Path) -> None:
    log.write_bytes(b"a\nb\nc\n")
    file = opened(log)
    assert file.count_lines(2, file.end) == 2
    file.close()


def test_a_line_that_goes_on_in_the_next_segment_is_one_line(log: Path) -> None:
    """The warden begins a segment at a number of bytes, wherever in a line that is."""
    text = b"".join(b"line %d of a log\n" % number for number in range(300))
    for start in range(0, len(text), 50):
        log.with_name(f"run.log.{start}").write_bytes(text[start : start + 50])
    log.write_bytes(CUT_MARK)
    file = opened(log)
    lines = file.forward(0, 1000)
    assert [line.content for line in lines] == text.split(b"\n")[:-1]
    assert file.backward(file.end, 1000) == lines
    found = search(file, Pattern(r"e 1\d\d of"), 0, wanted=always)
    assert found is not None and found.content == b"line 100 of a log"
    last = search(file, Pattern(r"line 2\d\d "), file.end, back=True, wanted=always)
    assert last is not None and last.content == b"line 299 of a log"
    assert file.count_lines(0, file.end) == 300
    file.close()


@pytest.mark.parametrize(
    "index", ["", "x\n", "5\n", "nan nan\n1 1e400\n", "9 9\n8 8\n-1 5\n99999 3\n", "0" * 9000]
)
def test_an_index_that_makes_no_sense_hides_no_line(log: Path, index: str) -> None:
    log.write_bytes(b"one\ntwo\n")
    log.with_suffix(".times").write_text(index)
    file = opened(log)
    lines = file.forward(0, 10)
    assert [line.text for line in lines] == ["one", "two"]
    assert len(file.moments_of([line.start for line in lines])) == 2
    assert file.position_at(4.0) >= 0
    file.time_span()
    file.close()
