"""A submission means the same however its CSV is written: line ends, quotes and blank lines change no score."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, judge
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Case, Vector

_BOM = b"\xef\xbb\xbf"
VECTORS_OF_ALL = [Vector(VECTORS / competition_id) for competition_id in registry.all_ids()]


def _rows(content: bytes) -> list[list[str]]:
    csv.field_size_limit(1 << 30)
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def _written(content: bytes, *, quoting: Literal[0, 1], ends: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator=ends).writerows(_rows(content))
    return text.getvalue().encode()


def carriage_returns(content: bytes) -> bytes:
    return _written(content, quoting=csv.QUOTE_MINIMAL, ends="\r\n")


def everything_quoted(content: bytes) -> bytes:
    return _written(content, quoting=csv.QUOTE_ALL, ends="\n")


def blank_lines_behind(content: bytes) -> bytes:
    return content.removesuffix(b"\n") + b"\n\n\n"


def no_last_line_end(content: bytes) -> bytes:
    return content.removesuffix(b"\n")


def a_byte_order_mark(content: bytes) -> bytes:
    return _BOM + content


WAYS = (carriage_returns, everything_quoted, blank_lines_behind, no_last_line_end, a_byte_order_mark)


def _cases(vector: Vector) -> list[Case]:
    """Some that are scored and some that are refused, of those that are a table of more than one column."""
    kept = [
        case
        for case in vector.cases()
        if not case.unstable
        and b"\r" not in (content := case.submission.read_bytes())
        and not content.startswith(_BOM)
        and b"," in content
    ]
    scored = [case for case in kept if case.expect == "score"]
    return scored[:2] + [case for case in kept if case.expect != "score"][:1]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("vector", VECTORS_OF_ALL, ids=lambda vector: vector.id)
def test_the_way_of_writing_changes_no_score(
    vector: Vector, way: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    cases = _cases(vector)
    assert cases
    rewritten = tmp_path / "submission.csv"
    wrong = []
    for case in cases:
        rewritten.write_bytes(way(case.submission.read_bytes()))
        found = judge(
            GradeRequest(
                vector.id, rewritten, prepared(vector.id), parameters=vector.parameters, answers=case.answers
            )
        )
        if not _as_known(case, found.score):
            wrong.append(f"{case.submission.name}: {case.expect} {case.score}, got {found}")
    assert not wrong


def _as_known(case: Case, score: float | None) -> bool:
    if case.expect != "score" or case.score is None or score is None:
        return (case.expect == "score") == (score is not None)
    both_nan = math.isnan(case.score) and math.isnan(score)
    return both_nan or math.isclose(case.score, score, rel_tol=1e-9, abs_tol=1e-12)
