"""A pattern is found where it is, and only there, however the words in it are used to be quick."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.logs.logpager import ERRORS
from console.logs.needles import Needle, needle_of

PATTERNS = [
    rb"foo",
    rb"(?i)fOo",
    rb"(?i:foo)bar",
    rb"^foo.*bar$",
    rb"foo|bar",
    rb"(foo|oba)+r?",
    rb"(?:foo){0,2}bar",
    rb"foo(?!bar)",
    rb"\bfoo\b",
    rb"[fo]{3}",
    rb"(?=.*bar)foo",
    rb"f.o",
    rb"foo\s*bar",
]
PIECES = st.sampled_from(
    [b"foo", b"FOO", b"bar", b"Bar", b"oba", b"r", b" ", b"\n", b"f", b"o", b"\xff", b"."]
)


def by_lines(pattern: re.Pattern[bytes], block: bytes) -> list[int]:
    """Where it is, found line by line and in no hurry."""
    found, start = [], 0
    for line in block.split(b"\n"):
        found += [match.start() for match in pattern.finditer(block, start, start + len(line))]
        start += len(line) + 1
    return found


@pytest.mark.parametrize("flags", [re.MULTILINE, re.MULTILINE | re.IGNORECASE], ids=["as typed", "any case"])
@pytest.mark.parametrize("source", PATTERNS)
@given(parts=st.lists(PIECES, max_size=40))
@example(parts=[b"foo", b"\n", b"bar", b"foo"])
def test_a_needle_finds_what_the_pattern_finds_in_each_line(
    source: bytes, flags: int, parts: list[bytes]
) -> None:
    # What may match a line feed is another thing in a block than in its lines.
    pattern, block = re.compile(source.replace(rb"\s", rb"[ ]"), flags), b"".join(parts)
    needle, expected = Needle(pattern), by_lines(re.compile(pattern.pattern, flags), block)
    assert needle.first(block) == (expected[0] if expected else None)
    assert needle.last(block) == (expected[-1] if expected else None)
    assert needle.count(block) == len(expected)


def test_errors_are_looked_for_by_their_words() -> None:
    assert {b"killed", b"traceback"} < needle_of(ERRORS)._words
    assert needle_of(ERRORS).count(b"fine\nValueError: x\nOut Of Memory\nterrors\nNameException\n") == 3


def test_what_has_no_words_is_found_all_the_same() -> None:
    needle = needle_of(re.compile(rb"\d+|ab"))
    assert not needle._words
    assert (needle.first(b"xx 12 ab"), needle.last(b"xx 12 ab"), needle.count(b"xx 12 ab")) == (3, 6, 2)
