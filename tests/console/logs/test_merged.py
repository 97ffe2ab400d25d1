"""Several logs are read as one, by time, however they grow; every line knows whose it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.console.logs import merged
from mlebench_console.console.logs.merged import MergedLog, Source
from mlebench_console.console.logs.pager import LogCursor, LogPager, Page
from mlebench_console.console.logs.pattern import Pattern
from mlebench_console.environment.container.run_log import CUT_MARK


class Growing:
    """A log and its index, as a warden writes them."""

    def __init__(self, folder: Path, name: str) -> None:
        (folder / name).mkdir()
        self.source = Source(name, folder / name / "run.log")
        self.length = 0

    def prints(self, moment: float, text: bytes) -> None:
        with self.source.log.open("ab") as log:
            log.write(text)
        with self.source.log.with_suffix(".times").open("a") as times:
            times.write(f"{self.length} {moment}\n")
        self.length += len(text)


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Growing, Growing]:
    return Growing(tmp_path, "a"), Growing(tmp_path, "b")


def opened(*sources: Source) -> MergedLog:
    file = MergedLog(sources)
    file.refresh()
    return file


def told(file: MergedLog) -> list[str]:
    lines = file.forward(0, 100_000)
    assert file.backward(file.end, 100_000) == lines
    labels = [file.label_of(line.start) for line in lines]
    return [f"{label.text if label else None}:{line.text}" for label, line in zip(labels, lines, strict=True)]


def test_lines_come_in_the_order_in_which_they_were_printed(
    logs: tuple[Growing, Growing], tmp_path: Path
) -> None:
    a, b = logs
    a.prints(1.0, b"one\n")
    b.prints(2.0, b"two\nmore\n")
    a.prints(3.0, b"three\n")
    file = opened(a.source, b.source, Source("gone", tmp_path / "gone" / "run.log"))
    assert told(file) == ["a:one", "b:two", "b:more", "a:three"]
    b.prints(4.0, b"four\n")
    a.prints(5.0, b"five\n")
    assert file.refresh() and not file.refresh()
    assert told(file)[4:] == ["b:four", "a:five"]
    found = file.search(Pattern("fo"), 0, wanted=lambda: True)
    assert found is not None and found.text == "four"
    assert file.position_at(4.0) == found.start
    file.close()


def test_a_line_that_is_not_whole_yet_waits(logs: tuple[Growing, Growing]) -> None:
    a, b = logs
    a.prints(1.0, b"half")
    b.prints(2.0, b"whole\n")
    file = opened(a.source, b.source)
    assert told(file) == ["b:whole"]
    a.prints(3.0, b" and half\nnext\n")
    file.refresh()
    assert told(file) == ["b:whole", "a:half and half", "a:next"]
    file.close()


def test_a_log_whose_middle_is_dropped_is_read_anew(logs: tuple[Growing, Growing]) -> None:
    a, b = logs
    b.prints(1.0, b"b\n")
    a.prints(2.0, b"head\n")
    a.source.log.write_bytes(b"head\n" + CUT_MARK)
    for start in (5, 11):
        a.source.log.with_name(f"run.log.{start}").write_bytes(b"seg%02d\n" % start)
    file = opened(a.source, b.source)
    assert told(file) == ["b:b", "a:head", "a:seg05", "a:seg11"]
    a.source.log.with_name("run.log.5").unlink()
    a.source.log.with_name("run.log.17").write_bytes(b"seg17\n")
    file.refresh()
    assert told(file) == ["b:b", "a:head", "a:seg11", "a:seg17"]
    file.close()


@given(
    printed=st.lists(
        st.tuples(st.integers(0, 2), st.text(alphabet="xy\n", min_size=1, max_size=8), st.booleans()),
        max_size=25,
    )
)
def test_nothing_is_lost_or_torn_whatever_is_printed_when(
    tmp_path_factory: pytest.TempPathFactory, printed: list[tuple[int, str, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    growing = [Growing(folder, name) for name in "abc"]
    file = opened(*(each.source for each in growing))
    whole = ["", "", ""]
    for moment, (who, text, look) in enumerate(printed):
        growing[who].prints(float(moment + 1), text.encode())
        whole[who] += text
        if look:
            file.refresh()
    file.refresh()
    lines = told(file)
    for who, name in enumerate("abc"):
        assert [line[2:] for line in lines if line.startswith(name)] == whole[who].split("\n")[:-1]
    file.close()


@given(
    printed=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.text(alphabet="xy\n", min_size=1, max_size=8),
            st.floats(-3, 40, allow_nan=False),
        ),
        min_size=1,
        max_size=30,
    ),
    chunks=st.integers(1, 12),
    positions=st.lists(st.integers(0, 200), max_size=8),
)
def test_what_was_printed_before_the_opening_reads_the_same_from_anywhere(
    tmp_path_factory: pytest.TempPathFactory,
    printed: list[tuple[int, str, float]],
    chunks: int,
    positions: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    growing = [Growing(folder, name) for name in "abc"]
    whole = ["", "", ""]
    moment = 100.0
    for who, text, later in printed:
        moment += later  # clocks are set back, too
        growing[who].prints(moment, text.encode())
        whole[who] += text
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(merged, "_CHUNKS", chunks)
        patched.setattr(merged, "_MOST_STRETCHES", 2)
        file = opened(*(each.source for each in growing))
        for position in positions:  # stretches are read in any order
            if position < file.end:
                start = file.line_start(position)
                assert start <= position < file.forward(start, 1)[0].end
        lines = told(file)
        for who, name in enumerate("abc"):
            assert [line[2:] for line in lines if line.startswith(name)] == whole[who].split("\n")[:-1]
        assert b"".join(file.blocks(0, file.end)).decode().split("\n")[:-1] == [line[2:] for line in lines]
        starts = [line.start for line in file.forward(0, 1000)]
        moments = [at or 0.0 for at in file.moments_of(starts)]
        if all(later >= 0 for _who, _text, later in printed):
            assert moments == sorted(moments)
        file.close()


def test_a_day_of_many_logs_is_opened_at_its_end_without_reading_what_is_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_read: Callable[[], int]
) -> None:
    monkeypatch.setattr(merged, "_CHUNKS", 40)
    growing = [Growing(tmp_path, name) for name in "abcd"]
    for each in growing:
        text = "".join(f"line {second}".ljust(49) + "\n" for second in range(4000))
        index = "".join(f"{50 * second} {second}.5\n" for second in range(4000))
        each.source.log.write_text(text)
        each.source.log.with_suffix(".times").write_text(index)
    file = opened(*(each.source for each in growing))
    assert file.end == 4 * 200_000
    tail = file.backward(file.end, 40)
    assert [line.text.strip() for line in tail[-5:]] == ["line 3998", *["line 3999"] * 4]
    assert bytes_read() < file.end // 3
    assert file.position_at(2000.5) == 4 * 50 * 2001 - 50
    file.close()


@pytest.mark.parametrize(
    "index", ["", "x\n", "5\n", "nan nan\n1 1e400\n", "9 9\n8 8\n-1 5\n99999 3\n", "0" * 9000]
)
def test_an_index_that_makes_no_sense_hides_no_line(logs: tuple[Growing, Growing], index: str) -> None:
    a, b = logs
    a.prints(1.0, b"one\n")
    b.prints(2.0, b"two\n")
    a.source.log.with_suffix(".times").write_text(index)
    file = opened(a.source, b.source)
    assert sorted(told(file)) == ["a:one", "b:two"]
    b.prints(4.0, b"four\n")
    file.refresh()
    assert sorted(told(file)) == ["a:one", "b:four", "b:two"]
    file.close()


def test_a_pager_on_several_logs_has_no_limit(logs: tuple[Growing, Growing]) -> None:
    import queue

    a, b = logs
    for second in range(3000):
        (a if second % 2 else b).prints(float(second), b"line %d\n" % second)
    pages: queue.SimpleQueue[Page] = queue.SimpleQueue()
    pager = LogPager(MergedLog([a.source, b.source]), pages.put, height=10)
    pager.start()
    page = pages.get(timeout=30)
    assert [line.text for line in page.lines] == [f"line {n}" for n in range(2990, 3000)]
    assert [label and label.text for label in page.labels] == ["b", "a"] * 5
    pager.run(LogCursor.to_begin)
    page = pages.get(timeout=30)
    assert page.lines[0].text == "line 0"
    pager.stop()
