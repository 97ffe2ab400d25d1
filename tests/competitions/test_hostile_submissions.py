"""Whatever an agent writes, every available competition answers with a score or with a reason."""

from __future__ import annotations

import csv
import io
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from competitions import registry
from competitions.judging import GradeRequest, judge
from competitions.model import EDITIONS, Competition, Edition
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector

AVAILABLE = [
    registry.get(competition_id)
    for competition_id in registry.all_ids()
    if registry.get(competition_id).available
]
PAIRS = [
    pytest.param(competition, edition, id=f"{competition.id}-{edition}")
    for competition in AVAILABLE
    for edition in EDITIONS
    if edition == "v1" or not competition.excluded
]

EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", "25"))  # of each competition and edition

CELLS = st.sampled_from(
    [
        *("", " ", "NA", "nan", "NaN", "null", "None", "inf", "-inf", "1e999", "-1e999", "1e-999"),
        *("0", "1", "-1", "2", "0.5", "1.0000001", "007", "1_000", "1,5", "0x10", "1e5", "5%", "1:2"),
        *("True", "false", "yes", "9" * 30, "-" + "9" * 30, "1+2j", "2020-01-01", "a b c", "1 2 3 4"),
        *('"', '""', "'", "\n", "\r\n", "\t", ";", "[1, 2]", "{'a': 1}", "\\", "é", "\u202e", "😀", "\ufeff"),
        *("=1+1", "<script>", "../../etc/passwd", "id", "x" * 5000, "1 " * 2000, "(1, 2)", "0 0 0 0 0 0"),
    ]
)
FILES = st.sampled_from(
    [
        b"",
        b"\n",
        b",",
        b"\xef\xbb\xbf",
        b"\xff\xfe\x00",
        b"\x00",
        b'"',
        b"a,a\n1,2\n",
        b"id\n",
        b"," * 3000,
        b"\x1f\x8b\x08\x00",
        b"PK\x03\x04",
        b"\n" * 3000,
        b"id,id.1\n\n\n1,2\n",
    ]
)


@dataclass(frozen=True)
class Starting:
    """A submission in the right form, and the answers against which it is graded."""

    rows: list[list[str]]
    answers: Path | None


def starting_point(competition: Competition, edition: Edition) -> Starting:
    """The sample submission, or a small file where the split keeps its real size."""
    small = [case for case in Vector(VECTORS / competition.id).cases() if case.answers and case.score]
    path = small[0].submission if small else prepared(competition.id, edition) / competition.sample_submission
    with path.open(newline="", encoding="utf-8") as stream:
        csv.field_size_limit(1 << 30)
        return Starting(list(csv.reader(stream)), small[0].answers if small else None)


@st.composite
def mangled(draw: st.DrawFn, rows: list[list[str]]) -> bytes:
    """The sample submission with a few things done to it."""
    table = [list(row) for row in rows]
    for _ in range(draw(st.integers(0, 4))):
        row = draw(st.integers(0, len(table) - 1))
        cells = table[row]
        column = draw(st.integers(0, max(0, len(cells) - 1)))
        match draw(st.integers(0, 8)):
            case 0 | 1 if cells:
                cells[column] = draw(CELLS)
            case 2 if cells:
                value = draw(CELLS)
                for other in table[1:]:
                    if column < len(other):
                        other[column] = value
            case 3 if len(table) > 1:
                del table[row]
            case 4:
                table.append(list(table[row]))
            case 5:
                cells.append(draw(CELLS))
            case 6 if cells:
                del cells[column]
            case 7:
                table[1:] = reversed(table[1:])
            case 8:
                for other in table:
                    if column < len(other):
                        del other[column]
        if not table:
            break
    text = io.StringIO()
    csv.writer(text, lineterminator=draw(st.sampled_from(["\n", "\r\n", "\r"]))).writerows(table)
    content = text.getvalue().encode("utf-8", "surrogatepass")
    prefix = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\n"]))
    return prefix + content


def check(competition: Competition, edition: Edition, content: bytes, answers: Path | None) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "submission.csv")
        path.write_bytes(content)
        folder = prepared(competition.id, edition)
        found = judge(GradeRequest(competition.id, path, folder, edition, answers=answers))
    assert found.outcome in {"scored", "rejected", "not_csv"}, found.detail
    assert found.message and "\n" not in found.message and len(found.message) < 500
    assert (found.score is None) == (found.outcome != "scored")
    if edition == "corrected" and found.score is not None:
        assert not math.isnan(found.score)


@pytest.mark.parametrize(("competition", "edition"), PAIRS)
def test_any_file_gets_a_score_or_a_reason(competition: Competition, edition: Edition) -> None:
    start = starting_point(competition, edition)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(FILES, mangled(start.rows), mangled(start.rows)))
    def holds(content: bytes) -> None:
        check(competition, edition, content, start.answers)

    holds()


@pytest.mark.parametrize("competition", AVAILABLE, ids=lambda competition: competition.id)
def test_the_sample_submission_is_graded_in_every_edition(competition: Competition) -> None:
    for edition in EDITIONS:
        if edition == "corrected" and competition.excluded:
            continue
        folder = prepared(competition.id, edition)
        found = judge(GradeRequest(competition.id, folder / competition.sample_submission, folder, edition))
        # a sample of empty predictions may be refused, but never for its columns or ids
        assert found.outcome in {"scored", "rejected"}, (edition, found)
        assert "is missing; expected the columns" not in found.message
