"""A pattern is found line by line, in time linear in the text; what can't be searched so is refused."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlebench_console.console.logs.reader import LogFile
from mlebench_console.console.logs.search import ERRORS, LineCount, Pattern, search
from mlebench_console.foundation.problems import UsageProblem

EXPRESSIONS = [
    r"foo",
    r"(?i)fOo",
    r"(?i:foo)bar",
    r"^foo.*bar$",
    r"foo|bar",
    r"(foo|oba)+r?",
    r"(?:foo){0,2}bar",
    r"\bfoo\b",
    r"[fo]{3}",
    r"[^f]bar",
    r"f.o",
    r"foo\s*bar",
]
PIECES = st.sampled_from([b"foo", b"FOO", b"bar", b"Bar", b"oba", b"r", b" ", b"\n", b"f", b"o", b"."])


def lines_with(expression: str, flags: int, block: bytes) -> list[tuple[int, int]]:
    """Return where each line with a match, and the first match in it, begins, found by Python's own expressions."""
    pattern, found, start = re.compile(expression.encode(), flags), [], 0
    for line in block.split(b"\n"):
        match = pattern.search(line)
        if match is not None:
            found.append((start, start + match.start()))
        start += len(line) + 1
    return found


@pytest.mark.parametrize("any_case", [False, True], ids=["as typed", "any case"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
@given(parts=st.lists(PIECES, max_size=40))
@example(parts=[b"foo", b"\n", b"bar", b"foo"])
def test_a_pattern_is_found_in_the_same_lines_as_line_by_line(
    expression: str, any_case: bool, parts: list[bytes]
) -> None:
    block = b"".join(parts)
    pattern = Pattern(expression, any_case=any_case)
    expected = lines_with(expression, re.IGNORECASE if any_case else 0, block)
    assert pattern.first(block) == (expected[0][1] if expected else None)
    assert pattern.last(block) == (expected[-1][1] if expected else None)
    assert pattern.count(block) == len(expected)


def test_bytes_that_are_not_utf8_hide_nothing() -> None:
    assert Pattern("foo").first(b"\xff\xfe foo") == 3
    assert Pattern("É", any_case=True).first("l'été".encode()) == 2


def test_lines_with_errors_are_counted() -> None:
    assert ERRORS.count(b"fine\nValueError: x\nOut Of Memory\nterrors\nNameException\n") == 3


def test_matches_in_a_line_are_found_for_highlighting() -> None:
    assert Pattern("o*").spans(b"foo boo") == [(1, 3), (5, 7)]


def test_without_a_capital_letter_capitals_match_too() -> None:
    assert Pattern.typed("needle").first(b"a NEEDLE") == 2
    assert Pattern.typed("Needle").first(b"a NEEDLE") is None


@pytest.mark.parametrize("expression", ["(a+)+b", "(a|aa)+$", "(.*)*x"])
def test_no_expression_takes_for_ever(expression: str) -> None:
    began = time.monotonic()
    Pattern.typed(expression).first(b"a" * 90_000 + b"!")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("(", r"'\(' is not a regular expression: missing \)"),
        ("x**y*+", "is not a regular expression"),
        ("foo(?=bar)", "Look-around, atomic groups and back-references are not supported"),
        ("(?<!foo)bar", "Look-around"),
        (r"(a)\1", "back-references"),
        ("(?>a)", "atomic groups"),
    ],
)
def test_what_can_not_be_searched_for_is_refused_with_the_reason(expression: str, message: str) -> None:
    with pytest.raises(UsageProblem, match=message):
        Pattern.typed(expression)


def opened(path: Path) -> LogFile:
    file = LogFile(path)
    file.refresh()
    return file


def test_search_goes_both_ways_and_over_block_edges(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    filler = b"nothing here\n" * 100_000
    log.write_bytes(b"needle 1\n" + filler + b"needle 2\n" + filler + b"needle 3")
    file = opened(log)
    pattern = Pattern(r"needle \d")
    found, start = [], 0
    while (hit := search(file, pattern, start, wanted=lambda: True)) is not None:
        found.append(hit.text)
        start = hit.end
    assert found == ["needle 1", "needle 2", "needle 3"]
    end, back = file.end, []
    while (hit := search(file, pattern, end, back=True, wanted=lambda: True)) is not None:
        back.append(hit.text)
        end = hit.start
    assert back == found[::-1]
    file.close()


def test_a_search_that_nobody_wants_any_more_ends(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"line\n" * 1_000_000)
    file = opened(log)
    assert search(file, Pattern("absent"), 0, wanted=lambda: False) is None
    file.close()


def test_counting_in_slices_counts_everything_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlebench_console.console.logs.search._COUNT_SLICE", 100)
    path = tmp_path / "run.log"
    path.write_text("".join(f"line {number}\n" for number in range(500)))
    file, lines, hits = opened(path), LineCount(), LineCount(Pattern(r"line \d*7$"))
    while lines.is_behind(file) or hits.is_behind(file):
        lines.advance(file, 0.0)
        hits.advance(file, 0.0)
    assert (lines.count, hits.count) == (500, 50)
    for place, line in enumerate(file.forward(0, 500)):
        assert lines.before(file, line.start) == place
        assert hits.before(file, line.start) == (place + 2) // 10
    with path.open("a") as stream:
        stream.write("line 507\n")
    file.refresh()
    hits.advance(file, 0.0)
    assert hits.count == 51
    file.close()
