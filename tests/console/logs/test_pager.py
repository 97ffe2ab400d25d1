"""A pager follows a growing log, stands still when asked to, and says how much it missed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlebench_console.console.logs import pager
from mlebench_console.console.logs.pager import LogCursor, LogPager, Page, _pause_after, read_moment
from mlebench_console.console.logs.reader import LogFile, LogLine
from mlebench_console.console.logs.search import ERRORS, Pattern, search
from mlebench_console.foundation.problems import UsageProblem
from tests.console.world import NOW

HEIGHT = 10


class Reader:
    """Takes pages until one is as wanted."""

    def __init__(self, path: Path) -> None:
        self.pages: queue.SimpleQueue[Page] = queue.SimpleQueue()
        self.pager = LogPager(LogFile(path), self.pages.put, height=HEIGHT)
        self.pager.start()

    def search(self, expression: str = "", *, back: bool = False) -> None:
        pattern = Pattern(expression) if expression else None
        self.pager.run(lambda cursor: cursor.search(pattern, back=back), long=True)

    def until(self, wanted: Callable[[Page], bool]) -> Page:
        page = self.pages.get(timeout=30)
        while not wanted(page):
            page = self.pages.get(timeout=30)
        return page


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text("".join(f"line {number}\n" for number in range(1000)))
    return path


@pytest.fixture
def reader(log: Path) -> Iterator[Reader]:
    made = Reader(log)
    yield made
    made.pager.stop()


def texts(page: Page) -> list[str]:
    return [line.text for line in page.lines]


def append(log: Path, text: str) -> None:
    with log.open("a") as stream:
        stream.write(text)


def test_it_opens_at_the_end_and_follows(log: Path, reader: Reader) -> None:
    assert texts(reader.until(lambda page: bool(page.size))) == [f"line {n}" for n in range(990, 1000)]
    append(log, "new\n")
    assert reader.until(lambda page: texts(page)[-1] == "new").following


def test_going_up_stops_following_and_counts_what_is_added(log: Path, reader: Reader) -> None:
    reader.until(lambda page: bool(page.size))
    reader.pager.run(lambda cursor: cursor.move(-3))
    paused = reader.until(lambda page: not page.following)
    assert texts(paused)[0] == "line 987" and paused.behind == 0
    append(log, "a\nb\nc\n")
    later = reader.until(lambda page: page.behind == 3)
    assert texts(later) == texts(paused)
    reader.pager.run(LogCursor.to_end)
    assert texts(reader.until(lambda page: page.following))[-1] == "c"


def test_top_and_bottom(reader: Reader) -> None:
    reader.pager.run(LogCursor.to_begin)
    page = reader.until(lambda page: not page.following)
    assert texts(page)[0] == "line 0" and page.share < 0.02
    reader.pager.run(lambda cursor: cursor.move(995))
    assert reader.until(lambda page: page.following).share == 1.0


def test_search_goes_forward_and_back_and_on_from_the_other_end_which_it_says(reader: Reader) -> None:
    reader.pager.run(LogCursor.to_begin)
    reader.search(r"line 5\d\d$")
    first = reader.until(lambda page: page.hit is not None)
    assert next(line.text for line in first.lines if line.start == first.hit) == "line 500"
    reader.search()
    second = reader.until(lambda page: page.hit != first.hit)
    assert next(line.text for line in second.lines if line.start == second.hit) == "line 501"
    reader.search(back=True)
    assert reader.until(lambda page: page.hit == first.hit).note == ""
    reader.search(back=True)
    last = reader.until(lambda page: bool(page.note))
    assert last.note == "from the end again"
    assert next(line.text for line in last.lines if line.start == last.hit) == "line 599"
    reader.search("nowhere")
    assert reader.until(lambda page: page.note == "no hit").hit == last.hit


def test_a_log_that_vanishes_and_comes_back_is_shown_again(log: Path, reader: Reader) -> None:
    reader.until(lambda page: bool(page.size))
    log.unlink()
    reader.until(lambda page: not page.size)
    log.write_text("again\n")
    assert texts(reader.until(lambda page: bool(page.size))) == ["again"]


@pytest.mark.parametrize(
    "line", ["ValueError: x", "Traceback (most recent call last):", "CUDA out of memory", "error: y"]
)
def test_what_looks_like_an_error_is_found(line: str) -> None:
    assert ERRORS.first(line.encode()) is not None


def test_ordinary_lines_are_no_errors() -> None:
    assert ERRORS.first(b"epoch 3 loss 0.1, terror in the corpus, 0 issues") is None


def page_of(first: int, count: int) -> Page:
    return Page(lines=tuple(LogLine(n * 100, n * 100 + 100, b"x" * 99) for n in range(first, first + count)))


def test_a_page_stays_the_longer_the_more_of_it_changed() -> None:
    """A page that moved costs a terminal some 6 kB, at four a second more than a slow link has."""
    assert _pause_after(page_of(0, 40), page_of(0, 40)) == 0
    assert _pause_after(page_of(0, 10), page_of(0, 11)) < 0.1
    assert 1 < _pause_after(page_of(0, 40), page_of(1, 40)) <= 2
    assert _pause_after(page_of(0, 400), page_of(9, 400)) == 2


def test_a_new_size_does_not_stop_a_search_and_going_elsewhere_does(
    log: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The field that a search is typed into closes as it begins, and the page grows by its line."""
    searching, go_on = threading.Event(), threading.Event()

    def slow(
        file: LogFile, pattern: Pattern, start: int, *, back: bool, wanted: Callable[[], bool]
    ) -> LogLine | None:
        searching.set()
        assert go_on.wait(30)
        return search(file, pattern, start, back=back, wanted=wanted)

    monkeypatch.setattr(pager, "search", slow)
    reader.pager.run(LogCursor.to_begin)
    reader.search("line 7")
    assert searching.wait(30)
    reader.pager.run(lambda cursor: cursor.resize(HEIGHT + 1), moves=False)
    go_on.set()
    first = reader.until(lambda page: page.hit is not None)
    assert first.note == ""
    searching.clear()
    go_on.clear()
    reader.search()
    assert searching.wait(30)
    reader.pager.run(LogCursor.to_begin)
    go_on.set()
    assert reader.until(lambda page: texts(page)[0] == "line 0").hit == first.hit


def test_whoever_goes_elsewhere_searches_from_there(reader: Reader) -> None:
    reader.search("line .*00$", back=True)
    last = reader.until(lambda page: page.hit is not None)
    reader.pager.run(LogCursor.to_begin)
    reader.search()
    assert (
        reader.until(lambda page: page.hit not in (None, last.hit)).hit
        == len("line x\n") * 10 + len("line xx\n") * 90
    )


@pytest.mark.parametrize(
    ("text", "moment"),
    [("+0:30", NOW - 5400), ("+90", NOW - 1800), ("03:10", NOW - 240)],
)
def test_moments_are_read(text: str, moment: float) -> None:
    assert read_moment(text, NOW - 7200, NOW) == moment


def test_a_moment_after_the_last_line_shows_a_full_page_and_says_so(log: Path) -> None:
    size = log.stat().st_size
    log.with_suffix(".times").write_text(f"0 {NOW - 100}\n{size - 20} {NOW}\n")
    file = LogFile(log)
    file.refresh()
    cursor = LogCursor(file, HEIGHT, lambda: True)
    cursor.to_moment("+1:00")
    page = cursor.page()
    assert len(page.lines) == HEIGHT and texts(page)[-1] == "line 999"
    assert page.note == "that is after the last line"
    cursor.to_moment("+0:00")
    page = cursor.page()
    assert texts(page)[0] == "line 0" and not page.note


def test_a_time_of_day_after_the_end_means_the_day_before() -> None:
    assert read_moment("03:20", NOW - 90_000, NOW) == NOW + 360 - 86400


@pytest.mark.parametrize("text", ["", "25:00", "noon", "+", "3:7"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        read_moment(text, 0.0, NOW)


def test_what_is_taken_of_a_filtered_log_reads_no_more_than_what_is_selected(
    tmp_path: Path, bytes_read: Callable[[], int]
) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(f"{'hit' if number < 40 else 'line'} {number}\n" for number in range(200_000)))
    file = LogFile(log)
    file.refresh()
    cursor = LogCursor(file, HEIGHT, lambda: True)
    cursor.only_lines_with(Pattern("hit"))
    cursor.to_begin()
    cursor.page()
    bytes_read()
    taken, is_cut = cursor.take_selection()
    assert taken.decode().splitlines() == [f"hit {number}" for number in range(HEIGHT)]
    assert bytes_read() < file.end // 4 and not is_cut
    cursor.toggle_mark()
    cursor.only_lines_with(None)
    cursor.move(100_000)
    cursor.page()
    bytes_read()
    assert cursor.take_selection(20) == (b"hit 0\nhit 1\nhit 2\nhi", True)
    assert bytes_read() < 1000
    file.close()


def test_a_log_that_is_begun_anew_is_counted_anew(log: Path) -> None:
    file = LogFile(log)
    file.refresh()
    cursor = LogCursor(file, HEIGHT, lambda: True)
    cursor.with_numbers(True)
    cursor.to_begin()
    cursor.search(Pattern("line 9"))
    while cursor.is_counting():
        cursor.count_on(1.0)
    assert cursor.page().hits == 111
    log.write_text("line 9\nline 10\nline 99\n")
    file.refresh()
    cursor.to_end()
    while cursor.page().counting:
        cursor.count_on(1.0)
    page = cursor.page()
    assert (page.hits, page.hit, page.numbers) == (2, None, (1, 2, 3))
    file.close()
