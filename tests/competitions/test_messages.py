"""A refusal says what is wrong where, with the value as it stands in the file, and what was expected instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.competitions.registry import get
from tests.competitions.prepared import prepared

CACTUS = "aerial-cactus-identification"
CHAMPS = "champs-scalar-coupling"
COVERS = "tabular-playground-series-dec-2021"
CRYSTALS = "nomad2018-predict-transparent-conductors"
ICECUBE = "icecube-neutrinos-in-deep-ice"
LUNGS = "osic-pulmonary-fibrosis-progression"
NATURE = "inaturalist-2019-fgvc6"
PASSENGERS = "spaceship-titanic"
XRAYS = "vinbigdata-chest-xray-abnormalities-detection"
COUNTED = "Rows are counted from 1, without the header."


def told(
    competition_id: str,
    content: str | bytes,
    folder: Path,
    edition: Edition = "v1",
    *,
    form_only: bool = True,
) -> Judgement:
    """What the author of a file is told."""
    path = folder / "submission.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return judge(
        GradeRequest(competition_id, path, prepared(competition_id, edition), edition, form_only=form_only)
    )


def sample(competition_id: str, edition: Edition = "v1") -> list[str]:
    """The lines of a sample submission."""
    path = prepared(competition_id, edition) / get(competition_id).sample_submission
    return path.read_text().splitlines()


def with_value(competition_id: str, value: str, row: int, edition: Edition = "v1") -> str:
    """The sample submission with another value in the last column of a row, counted as messages do."""
    lines = sample(competition_id, edition)
    lines[row] = f"{lines[row].rpartition(',')[0]},{value}"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "ID,has_cactus",
            "Column 'id' is missing; there is 'ID' instead, and names must be equal to the letter",
        ),
        (" id,has_cactus", "there is ' id' instead"),
        ("\ufeff\ufeffid,has_cactus", r"there is '\ufeffid' instead"),
        ("id,label", "Column 'has_cactus' is missing; found id, label; expected id, has_cactus."),
        ("id,", "Column 'has_cactus' is missing; found id, one without a name; expected id, has_cactus."),
        ("a.jpg,0.5", "must name the columns id, has_cactus; it holds 'a.jpg', '0.5'"),
        ("id;has_cactus", "The first line 'id;has_cactus' has semicolons between its names; expected commas"),
        (f"id,{'x' * 5000}", "found id, 'xxx"),
        ("", "The file is empty: it has no header and no rows."),
    ],
)
def test_the_columns_found_are_named_beside_those_expected(header: str, message: str, tmp_path: Path) -> None:
    rows = (
        []
        if not header
        else [";".join(line.split(",")) if ";" in header else line for line in sample(CACTUS)[1:]]
    )
    assert message in told(CACTUS, "\n".join([header, *rows]) + "\n", tmp_path).message


def test_a_column_too_many_is_named(tmp_path: Path) -> None:
    lines = [f"{'' if at == 0 else at - 1},{line}" for at, line in enumerate(sample(ICECUBE))]
    assert told(ICECUBE, "\n".join(lines), tmp_path).message == (
        "Column 1 has no name and is not expected; write the table without an index; "
        "only these are: event_id, azimuth, zenith."
    )


@pytest.mark.parametrize(
    ("competition_id", "value", "message"),
    [
        (CACTUS, "", "has_cactus is empty; expected a number from 0 to 1."),
        (CACTUS, "NaN", "has_cactus 'NaN' counts as an empty cell; expected a number from 0 to 1."),
        (CACTUS, "-1", "has_cactus '-1' is out of range; expected a number from 0 to 1."),
        (CACTUS, "1e999", "has_cactus '1e999' is not finite; expected a number from 0 to 1."),
        (CACTUS, '"0,5"', "has_cactus '0,5' is not a number (decimals are written with a point); expected"),
        (CACTUS, "high\x1b[2J", r"has_cactus 'high\x1b[2J' is not a number; expected a number from 0 to 1."),
        (CRYSTALS, "-1", "bandgap_energy_ev '-1' is out of range; expected a number above -1."),
        (CHAMPS, "x", "scalar_coupling_constant 'x' is not a number."),
        (ICECUBE, "x", "zenith 'x' is not a number."),
        (NATURE, "inf", "predicted 'inf' cannot be read; expected class numbers separated by blanks."),
        (NATURE, "1.5", "predicted '1.5' cannot be read; expected class numbers separated by blanks."),
        (PASSENGERS, "", "Transported is empty; expected a whole number or True/False."),
    ],
)
def test_a_value_is_told_by_its_row_as_it_stands_in_the_file(
    competition_id: str, value: str, message: str, tmp_path: Path
) -> None:
    for edition in EDITIONS:
        found = told(competition_id, with_value(competition_id, value, 3, edition), tmp_path, edition).message
        assert found.startswith(f"Row 3: {message}")
        assert found.endswith(COUNTED)


def test_missing_rows_are_counted_and_the_first_three_named(tmp_path: Path) -> None:
    head, *body = sample(PASSENGERS)
    ids = sorted(line.partition(",")[0] for line in body[:5])
    found = told(PASSENGERS, "\n".join([head, *body[5:]]), tmp_path).message
    assert found == (
        f"The submission has {len(body) - 5} rows, expected {len(body)}. "
        f"5 ids have no row: '{ids[0]}', '{ids[1]}', '{ids[2]}' and 2 more."
    )
    head, *body = sample(CHAMPS)  # whose rows may be repeated, but not left out
    numbers = sorted(int(line.partition(",")[0]) for line in body[:2])
    found = told(CHAMPS, "\n".join([head, *body[2:], *body[2:]]), tmp_path).message
    assert found == f"2 ids have no row: {numbers[0]}, {numbers[1]}."


def test_a_row_too_many_is_told_with_the_one_it_repeats(tmp_path: Path) -> None:
    lines = sample(CACTUS)
    again = told(CACTUS, "\n".join([*lines, lines[2]]), tmp_path).message
    id_ = lines[2].partition(",")[0]
    assert (
        again
        == f"The submission has 15 rows, expected 14. Row 15: id '{id_}' stands in row 2 already. {COUNTED}"
    )


def test_a_word_among_numbers_is_blamed_and_not_the_numbers(tmp_path: Path) -> None:
    lines = sample(COVERS)
    wanted, _, value = lines[3].partition(",")
    lines[3] = f"nobody,{value}"
    found = told(COVERS, "\n".join(lines), tmp_path).message
    assert found == f"Row 3: Id 'nobody' is not among the ids asked for. 1 id has no row: {wanted}. {COUNTED}"


def test_cells_beyond_the_header_are_told(tmp_path: Path) -> None:
    head, *body = sample(CACTUS)
    found = told(CACTUS, "\n".join([head, *(f"{line},1" for line in body)]), tmp_path)
    assert found.message.endswith(
        "The rows have more cells than the header; their first ones were taken for labels."
    )


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("form_only", [True, False])
def test_a_header_alone_is_told_to_have_no_rows(edition: Edition, form_only: bool, tmp_path: Path) -> None:
    for competition_id in (LUNGS, CHAMPS, ICECUBE, XRAYS, CRYSTALS):
        head = sample(competition_id, edition)[0]
        found = told(competition_id, f"{head}\n", tmp_path, edition, form_only=form_only)
        assert (found.outcome, found.detail) == ("rejected", "")
        assert "The submission has a header and no rows" in found.message
