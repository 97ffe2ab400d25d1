"""Whatever an agent writes, every available competition answers with a score or with a reason.

And what agents are told follows from their file and from public data alone, never from the answers.
"""

from __future__ import annotations

import csv
import io
import math
import os
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlebench_console.competitions import registry
from mlebench_console.competitions.authoring.hostile import hostile_forms
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.model import EDITIONS, Competition, Edition
from tests.competitions.prepared import judgements, prepared
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

SEED = int(os.environ.get("ANSWERS_SEED") or random.SystemRandom().randrange(1 << 32))
LARGE_BYTES, FEW_ROWS = 200_000, 500
FROM_VECTORS = 8  # submissions of each competition, beside the hostile forms
# Of each competition and edition, others in each run. There are about 110 forms.
FORMS = int(os.environ.get("HOSTILE_FORMS") or 6)
EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES") or 8)

# Submissions that MLE-bench's grader scores or refuses by what the answers are, which agents are not told: these are
# checked as if every row, customer and object were scored, and the metric's own limits are not known beforehand.
TOLD_OTHERWISE = {
    "3d-object-detection-for-autonomous-vehicles": {"negative_size_absent_class.csv"},
    "h-and-m-personalized-fashion-recommendations": {"missing_answer_customer.csv", "perfect.csv"},
    "jigsaw-toxic-comment-classification-challenge": {
        "nan_in_unscored_row.csv",
        "text_value_unscored_row.csv",
    },
    "jigsaw-unintended-bias-in-toxicity-classification": {"inverted.csv"},
    "osic-pulmonary-fibrosis-progression": {"duplicate_unscored_row.csv"},
}

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
        b"," * 300,
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
    assert found.outcome in {"scored", "rejected", "not_csv", "too_large"}, found.detail
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


def told(competition: Competition, edition: Edition, submission: Path, folder: Path) -> tuple[bool, str]:
    """What an agent is told about a file."""
    found = judge(GradeRequest(competition.id, submission, folder, edition, form_only=True))
    assert found.outcome in {"scored", "rejected", "not_csv", "too_large"}, found.detail
    assert found.score is None
    return found.outcome == "scored", found.message


@pytest.mark.parametrize("competition", AVAILABLE, ids=lambda competition: competition.id)
def test_agents_are_told_what_the_grader_says_wherever_answers_have_no_part_in_it(
    competition: Competition,
) -> None:
    folder = prepared(competition.id)
    others = {
        case.submission.name
        for case, graded in zip(
            Vector(VECTORS / competition.id).cases(), judgements(competition.id), strict=True
        )
        if case.answers is None  # other ones are not those of the public data
        and told(competition, "v1", case.submission, folder) != (graded.score is not None, graded.message)
    }
    assert others == TOLD_OTHERWISE.get(competition.id, set())


def read_rows(path: Path) -> list[list[str]]:
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        return list(csv.reader(stream))


def write_rows(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def cut_short(competition: Competition, folder: Path, target: Path) -> Path:
    """A prepared folder with a few rows of a large table, because reading it so often would take minutes."""
    names = competition.sample_submission, competition.answers
    if (folder / names[0]).stat().st_size < LARGE_BYTES:
        return folder
    heads = {name: read_rows(folder / name)[: FEW_ROWS + 1] for name in names}
    assert [row[0] for row in heads[names[0]]] == [row[0] for row in heads[names[1]]]
    place = target / "short"
    for side in ("public", "private"):
        (place / side).mkdir(parents=True)
        for path in (folder / side).iterdir():
            (place / side / path.name).symlink_to(path)
    for name, rows in heads.items():
        (place / name).unlink()
        write_rows(place / name, rows)
    return place


def changed_answers(competition: Competition, folder: Path, target: Path, rng: random.Random) -> list[Path]:
    """Prepared folders with the same public part and other answers: labels permuted, fewer rows, more rows, none."""
    answers = folder / competition.answers
    lines = answers.read_text("utf-8").splitlines(keepends=True)
    folders = []
    for name in ("permuted", "fewer", "more", "none"):
        place = target / name
        place.mkdir()
        (place / "public").symlink_to(folder / "public")
        folders.append(place)
        if name == "none":
            continue
        shutil.copytree(folder / "private", place / "private")
        path = place / competition.answers
        if answers.suffix != ".csv":
            kept = lines if name == "permuted" else lines[::2] if name == "fewer" else lines * 2
            path.write_text("".join(rng.sample(kept, len(kept))), "utf-8")
            continue
        head, *body = read_rows(answers)
        # a third of the rows go, or stand for new ones; values move from row to row, ids stay
        ids = id_columns(read_rows(folder / competition.sample_submission), [head, *body])
        values = rng.sample(body, len(body))
        mixed = [
            [cell if at in ids else other[at] for at, cell in enumerate(row)]
            for row, other in zip(body, values, strict=True)
        ]
        third = len(mixed) // 3
        if name == "fewer":
            mixed = rng.sample(mixed, len(mixed) - third)
        elif name == "more":
            more = rng.sample(mixed, third)
            mixed += [[f"{cell}9" if at in ids else cell for at, cell in enumerate(row)] for row in more]
        write_rows(path, [head, *mixed])
    return folders


def id_columns(sample: list[list[str]], answers: list[list[str]]) -> set[int]:
    """The columns of the answers that the sample submission has too, with the same cells."""
    known = {name: {row[at] for row in sample[1:]} for at, name in enumerate(sample[0])}
    return {
        at
        for at, name in enumerate(answers[0])
        if name in known and known[name] >= {row[at] for row in answers[1:]}
    }


@pytest.mark.parametrize(("competition", "edition"), PAIRS)
def test_what_agents_are_told_does_not_change_with_the_answers(
    competition: Competition, edition: Edition, tmp_path: Path
) -> None:
    rng = random.Random(f"{SEED} {competition.id} {edition}")
    folder = cut_short(competition, prepared(competition.id, edition), tmp_path)
    others = changed_answers(competition, folder, tmp_path, rng)
    right = folder / competition.sample_submission
    cases = [case.submission for case in Vector(VECTORS / competition.id).cases()]
    submissions = [right, *rng.sample(cases, min(FROM_VECTORS, len(cases)))]
    forms = hostile_forms(right.read_bytes(), rng)
    for name in rng.sample(sorted(forms), min(FORMS, len(forms))):
        submissions.append(tmp_path / f"{name}.csv")
        submissions[-1].write_bytes(forms[name])
    for place, submission in enumerate(submissions):
        other = others[(place + rng.randrange(2)) % len(others)]
        now = told(competition, edition, submission, folder)
        assert told(competition, edition, submission, other) == now, (
            f"{submission.name} with {other.name} answers; ANSWERS_SEED={SEED}"
        )
