"""Checks of a submission's form; each raises `InvalidSubmission` with what to correct, without revealing answers.

Rows are counted from 1, the header left out.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit.checks.ids import mismatch, pair_up
from mlebench_console.competitions.task import OTHER_SEPARATORS, Grading, InvalidSubmission, SubmissionSource
from mlebench_console.foundation.problems import DataProblem

Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Spelling = Literal["refused", "objects", "pandas", "python"]

_SHOWN = 60
_SHOWN_IN_LISTS = 32
_LISTED = 110  # characters of a list of names
_NAMED_IDS = 3
_BOOLEANS = [True, False, "True", "False", "TRUE", "FALSE", "true", "false"]  # as pandas spells them
_UNNAMED = re.compile(r"Unnamed: (\d+)")  # what pandas calls a column without a name
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


def quoted(value: object, most: int = _SHOWN) -> str:
    """Return a cell as it may appear in a message: quoted, control characters escaped, cut."""
    text = ascii(value.item() if isinstance(value, np.generic) else value)
    if len(text) <= most:
        return text
    return f"{text[: most - 4]}...{text[0] if text[0] in _QUOTES else ''}"


_QUOTES = "'\""


class InvalidCell(InvalidSubmission):
    """A cell is wrong; `str()` quotes it as it was read, `message_quoting` as it stands in the file."""

    def __init__(
        self, row: int | np.intp, column: str, value: object, fault: str, expected: str = ""
    ) -> None:
        """Compose the message.

        Args:
            row: the row's position, from 0.
            column: the column's name.
            value: the cell as it was read; a missing one is called empty.
            fault: what is wrong with it, as the predicate after the value.
            expected: what the cell should be.
        """
        self._row, self._column, self._value = int(row), column, value
        self._fault, self._expected = fault, expected
        super().__init__(self._message(value))

    def message_quoting(self, source: SubmissionSource) -> str:
        """Return the message with the cell as it stands in the file."""
        table = source.read(text=())
        if self._column not in table.columns:  # a key made of several columns
            return str(self)
        return self._message(table[self._column].iloc[self._row])

    def _message(self, cell: object) -> str:
        needs = self._expected
        if _is_empty(cell):
            what = "is empty"
        elif _is_empty(self._value):
            what = f"{quoted(cell)} counts as an empty cell"
        else:
            what = f"{quoted(cell)} {self._fault}"
            needs = "" if self._fault == f"is not {needs}" else needs
        expected = f"; expected {needs}" if needs else ""
        return f"Row {self._row + 1}: {_label(self._column)} {what}{expected}."


def _is_empty(cell: object) -> bool:
    return cell == "" if isinstance(cell, str) else bool(pd.isna(cell))  # type: ignore[call-overload]  # a scalar


def _label(name: str) -> str:
    """Return a column's name as it may appear in a message, since an agent may have made it up."""
    if unnamed := _UNNAMED.fullmatch(name):
        return f"column {int(unnamed[1]) + 1}, which has no name,"
    return name if name.isascii() and name.isprintable() and len(name) <= _SHOWN else quoted(name)


def _listed(names: Iterable[object], many: int) -> str:
    """Return the first of `many` names as they may appear in a message."""
    shown: list[str] = []
    for name in names:
        if isinstance(name, str) and _UNNAMED.fullmatch(name):
            text = "one without a name"
        elif isinstance(name, str) and name.isascii() and name.isidentifier() and len(name) <= _SHOWN:
            text = name
        else:
            text = quoted(name, _SHOWN_IN_LISTS)
        if shown and sum(map(len, shown)) + len(text) > _LISTED:
            break
        shown.append(text)
    return ", ".join(shown) + (f" and {many - len(shown):,} more" if many > len(shown) else "")


@contextmanager
def reading_answers() -> Iterator[None]:
    """Raise `DataProblem` instead of `InvalidSubmission` inside: the answers are at fault, not the submission.

    Raises:
        DataProblem: a check has refused the answers.
    """
    try:
        yield
    except InvalidSubmission as error:
        raise DataProblem("The answers cannot be read", str(error), "Prepare the dataset again.") from error


def columns_present(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table that lacks any of these columns."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InvalidSubmission(_missing_columns([str(name) for name in table.columns], columns, missing))


def _missing_columns(found: Sequence[str], columns: Sequence[str], missing: Sequence[str]) -> str:
    wanted = _listed(columns, len(columns))
    if not found:
        return f"The file holds no table; expected a CSV whose first line names the columns {wanted}."
    separator = next((name for sign, name in OTHER_SEPARATORS.items() if sign in found[0]), None)
    if len(found) == 1 and separator is not None:
        return (
            f"The first line {quoted(found[0])} has {separator} between its names; "
            f"expected commas between the columns {wanted}."
        )
    alike = {_bare(name): name for name in found}
    instead = alike.get(_bare(missing[0]))
    if instead is not None:
        return (
            f"Column {quoted(missing[0])} is missing; there is {quoted(instead)} instead, and names must be "
            f"equal to the letter (columns found: {_listed(found, len(found))})."
        )
    if len(missing) == len(columns) > 1:
        return (
            f"The first line must name the columns {wanted}; it holds {_listed(found, len(found))}, which are "
            "other columns, or data without a header."
        )
    which = f"Column {quoted(missing[0])} is" if len(missing) == 1 else f"{len(missing)} columns are"
    lacking = "" if len(missing) == 1 else f": {_listed(missing, len(missing))}"
    return f"{which} missing{lacking}; found {_listed(found, len(found))}; expected {wanted}."


def _bare(name: str) -> str:
    """Return a name without what hides that two are alike: case, surrounding blanks, byte order marks, quotes."""
    return name.strip(" \t\ufeff\"'").casefold()


def columns_exactly(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table that does not have exactly these columns, in any order."""
    columns_present(table, columns)
    extra = [name for name in table.columns if name not in set(columns)]
    if not extra:
        return
    unnamed = _UNNAMED.fullmatch(str(extra[0]))
    which = f"{int(unnamed[1]) + 1} has no name and" if unnamed else quoted(str(extra[0]))
    hint = "; write the table without an index" if unnamed and unnamed[1] == "0" else ""
    wanted = _listed(columns, len(columns))
    raise InvalidSubmission(f"Column {which} is not expected{hint}; only these are: {wanted}.")


def row_count(submission: pd.DataFrame, answers: pd.DataFrame, column: str) -> None:
    """Refuse a submission with another number of rows; the column of ids, if present, shows which are wrong."""
    if len(submission) == len(answers):
        return
    if column in submission.columns:
        raise unmatched(submission[column], answers[column], column)
    raise InvalidSubmission(_other_row_count(len(submission), len(answers)))


def _other_row_count(found: int, expected: int) -> str:
    if not found:
        return f"The submission has a header and no rows, expected {expected}."
    return f"The submission has {found} rows, expected {expected}."


def matched_rows(
    submission: pd.DataFrame, answers: pd.DataFrame, column: str, *, answers_column: str | None = None
) -> Positions:
    """Return for each row of the answers the position of the submission's row with the same id.

    The row counts must be equal and each id must occur as often as in the answers; rows with the
    same id are paired in file order. A missing id matches nothing.
    """
    columns_present(submission, [column])
    given, wanted = submission[column], answers[answers_column or column]
    if len(given) and not given.isna().any() and not wanted.isna().any():
        paired = pair_up(wanted, given)
        if paired is not None:
            return paired
    raise unmatched(given, wanted, column)


def paired_rows(case: Grading, id_column: str, *needs: str) -> Positions:
    """Return `matched_rows` of a submission, which must have the needed columns too."""
    columns_present(case.submission, [id_column, *needs])
    return matched_rows(case.submission, case.answers, id_column)


def unmatched(
    given: pd.Series, wanted: pd.Series, column: str, *, repeats: bool = False, partial: bool = False
) -> InvalidSubmission:
    """Return why a submission's ids do not match the expected ones: which row is wrong, and which ids have no row.

    Args:
        given: the ids of the submission.
        wanted: the expected ids.
        column: their name in the submission.
        repeats: whether an id may occur more often than expected.
        partial: whether ids may be left out.
    """
    count = (
        "" if repeats or partial or len(given) == len(wanted) else _other_row_count(len(given), len(wanted))
    )
    if not len(given):
        return InvalidSubmission(_other_row_count(0, len(wanted)))
    empty = given.isna().to_numpy()
    if empty.any():
        row = int(np.argmax(empty))
        return _InvalidId(count, row, column, given.iloc[row], "", "one of the ids asked for")
    foreign, surplus, left = mismatch(wanted.dropna(), given)
    lacking = "" if partial else ids_without_rows(left, repeated=not wanted.is_unique)
    if len(foreign):
        row, others = foreign[0], len(foreign) - 1
        more = f", nor are those of {others:,} other row{'s' * (others > 1)}" if others else ""
        fault = f"is not among the ids asked for{more}"
    elif len(surplus) and not repeats:
        row = surplus[-1]
        first = int(np.argmax((given == given.iloc[row]).to_numpy())) + 1
        fault = f"stands in row {first} already" if wanted.is_unique else "stands there too often"
    else:
        what = " ".join(filter(None, [count, lacking]))
        return InvalidSubmission(what or f"The ids in {_label(column)} are not those asked for.")
    return _InvalidId(count, row, column, given.iloc[row], fault, behind=lacking)


class _InvalidId(InvalidCell):
    """A row has an unexpected id; the message also gives the row count before and the missing ids after it."""

    def __init__(
        self,
        count: str,
        row: int | np.intp,
        column: str,
        value: object,
        fault: str,
        expected: str = "",
        behind: str = "",
    ) -> None:
        self._count, self._behind = count, behind
        super().__init__(row, column, value, fault, expected)

    def _message(self, cell: object) -> str:
        return " ".join(filter(None, [self._count, super()._message(cell), self._behind]))


def ids_without_rows(ids: npt.NDArray[Any], *, repeated: bool = False) -> str:
    """Return a sentence with how many ids lack a row and the smallest of them; empty where none does.

    Args:
        ids: those that lack a row.
        repeated: whether ids are expected more than once, so that one may have rows, but too few.
    """
    if not len(ids):
        return ""
    have = "id has" if len(ids) == 1 else "ids have"
    lack = "too few rows" if repeated else "no row"
    # numbers before texts, since ids may be of both
    least = heapq.nsmallest(_NAMED_IDS, ids.tolist(), key=lambda each: (isinstance(each, str), each))
    first = ", ".join(quoted(each, _SHOWN_IN_LISTS) for each in least)
    more = f" and {len(ids) - _NAMED_IDS:,} more" if len(ids) > _NAMED_IDS else ""
    return f"{len(ids):,} {have} {lack}: {first}{more}."


def rows_asked_for(
    submission: pd.DataFrame, answers: pd.DataFrame, column: str, *, all_needed: bool = True
) -> Positions:
    """Return for each row of the submission the position of the answers' only row with the same id.

    Ids may be repeated; unless `all_needed` is false, all ids of the answers must occur.
    """
    columns_present(submission, [column])
    wanted, given = answers[column], submission[column]
    rows = np.asarray(pd.Index(wanted).get_indexer(pd.Index(given)), dtype=np.intp)
    found = np.zeros(len(answers), dtype=np.bool_)
    found[rows[rows >= 0]] = True
    if (rows < 0).any() or (all_needed and not found.all()):
        raise unmatched(given, wanted, column, repeats=True, partial=not all_needed)
    return rows


def numbers(
    table: pd.DataFrame,
    columns: str | Sequence[str],
    *,
    low: float = -np.inf,
    high: float = np.inf,
    above: float | None = None,
    missing_ok: bool = False,
    infinite_ok: bool = False,
    ignored: Flags | None = None,
    spelt: Spelling = "pandas",
) -> Numbers:
    """Return columns as doubles, one row per row (one-dimensional for a single name).

    Text, missing cells, infinities and values outside `low` to `high` or not `above` a limit are refused,
    each with the first row that has one. Rows flagged as `ignored` may hold anything and become 0.

    Args:
        table: the table with the columns.
        columns: one name, or several.
        low: the smallest value allowed.
        high: the greatest value allowed.
        above: a limit that every value must exceed.
        missing_ok: whether a cell may be missing.
        infinite_ok: whether a value may be infinite.
        ignored: which rows may hold anything.
        spelt: how to treat a column that was read as text, because one of its cells is not a number of any
            dtype: refuse it, accept what `pandas.to_numeric` accepts, or what `float` accepts, which is more,
            such as "1_0", or only cells that are no texts, such as booleans beside missing cells.
    """
    columns_present(table, [columns] if isinstance(columns, str) else columns)
    if not len(table):
        raise InvalidSubmission("The submission has a header and no rows.")
    expected = _expected_number(low, high, above)

    def read(name: str) -> Numbers:
        column: pd.Series[Any] = table[name]

        def refuse(bad: Flags, fault: str) -> None:
            _refuse(bad, table[name], fault, expected)

        if not pd.api.types.is_numeric_dtype(column):
            converted = _converted(column, spelt)
            refused = (converted.isna() & column.notna()).to_numpy()
            if ignored is not None:
                refused = refused & ~ignored
            if refused.any():
                comma = _DECIMAL_COMMA.fullmatch(str(column.iloc[int(np.argmax(refused))]))
                refuse(refused, "is not a number" + (" (decimals are written with a point)" if comma else ""))
            if spelt == "refused" or (
                spelt == "objects" and column.map(lambda cell: isinstance(cell, str)).any()
            ):
                largest = int(np.argmax(converted.abs().to_numpy(na_value=-1.0)))
                fault = "is beyond what a column of numbers can hold"
                raise InvalidCell(largest, name, column.iloc[largest], fault, expected)
            column = converted
        if pd.api.types.is_complex_dtype(column):
            raise InvalidSubmission(f"{_label(name)} holds complex numbers; expected {expected}.")
        values: Numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if ignored is not None:
            values = np.where(ignored, 0.0, values)
        if not missing_ok:
            refuse(np.isnan(values), "is not a number")
        if not infinite_ok:
            refuse(np.isinf(values), "is not finite")
        refuse((values < low) | (values > high), "is out of range")
        if above is not None:
            refuse(values <= above, "is out of range")
        return values

    return read(columns) if isinstance(columns, str) else np.column_stack([read(name) for name in columns])


def _expected_number(low: float, high: float, above: float | None) -> str:
    if np.isfinite(high):
        return f"a number from {low:g} to {high:g}"
    if above is not None:
        return f"a number above {above:g}"
    return f"a number of at least {low:g}" if np.isfinite(low) else "a number"


def _converted(column: pd.Series[Any], spelt: Spelling) -> pd.Series[Any]:
    """Convert a column of text to numbers, missing where a cell is not one."""
    converted = pd.to_numeric(column, errors="coerce").astype("float64")
    if spelt == "python":
        for row in np.flatnonzero((converted.isna() & column.notna()).to_numpy()).tolist():
            try:
                converted.iloc[row] = float(column.iloc[row])
            except (ValueError, TypeError):
                continue  # it stays missing
    return converted


def _refuse(bad: Flags, cells: pd.Series, fault: str, expected: str) -> None:
    """Refuse the first bad cell of a column, if there is one."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidCell(row, str(cells.name), cells.iloc[row], fault, expected)


def sorted_rows(table: pd.DataFrame, column: str) -> Positions:
    """Return the positions of the rows sorted by a column, missing cells last.

    Equal texts come in the order in which pandas leaves them by default, which is that of numpy's quicksort for
    objects; equal numbers in file order, as numpy's order of those depends on the processor. It serves graders that
    pair rows by rank without comparing ids; the others use `matched_rows`.
    """
    columns_present(table, [column])
    cells = table[column].reset_index(drop=True)
    is_there = cells.notna().to_numpy()
    there = np.flatnonzero(is_there)
    objects = cells.to_numpy(dtype=object)[there]
    try:
        order = np.argsort(objects, kind="stable" if pd.api.types.is_numeric_dtype(cells) else "quicksort")
        return np.concatenate([there[order], np.flatnonzero(~is_there)])
    except TypeError:
        is_text = cells.dropna().map(lambda cell: isinstance(cell, str))
        row = (is_text != is_text.iloc[0]).idxmax()
        fault = "makes this a column of both numbers and text, by which rows cannot be sorted"
        raise InvalidCell(row, column, cells[row], fault) from None


def texts(table: pd.DataFrame, column: str, *, missing: str | None = None) -> list[str]:
    """Return a column of text; numbers, booleans, and missing cells without a replacement are refused."""
    columns_present(table, [column])
    cells: list[Any] = table[column].tolist()
    for row, cell in enumerate(cells):
        if isinstance(cell, str):
            continue
        if not pd.isna(cell):
            raise InvalidCell(row, column, cell, "is not text, but a number or True/False")
        if missing is None:
            raise InvalidCell(row, column, cell, "is not text", "text")
        cells[row] = missing
    return cells


def whole_numbers(table: pd.DataFrame, column: str) -> Numbers:
    """Return a column of class numbers or booleans as doubles; it must be numeric, complete and whole."""
    columns_present(table, [column])
    if not len(table):
        raise InvalidSubmission("The submission has a header and no rows.")
    cells, expected = table[column], "a whole number or True/False"
    if not pd.api.types.is_numeric_dtype(cells):
        row = _least_like_a_label(cells)
        raise InvalidCell(row, column, cells.iloc[row], "is not a label", expected)
    values = numbers(table, column)
    _refuse(values != np.floor(values), cells, "is not a whole number", expected)
    if pd.api.types.is_float_dtype(cells):  # MLE-bench takes those beyond 64 bits for fractions
        _refuse((values < -(2**63)) | (values >= 2**63), cells, "is too large for a label", expected)
    return values


def _least_like_a_label(cells: pd.Series) -> int:
    """Return the row of a cell that is not a number, or of the largest number, which no dtype can hold.

    Where most cells are booleans, the others are at fault.
    """
    sizes = pd.to_numeric(cells, errors="coerce").astype("float64").abs().to_numpy(na_value=np.inf)
    booleans = cells.isin(_BOOLEANS).to_numpy()
    if 2 * int(booleans.sum()) > len(cells):
        sizes = np.where(booleans, -1, sizes)
    return int(sizes.argmax())


def rows_sum_to_one(
    values: Numbers, *, tolerance: float = 1e-6 + 1e-5, decimals: int | None = None, hint: str = ""
) -> None:
    """Refuse rows whose probabilities do not sum to one, within a tolerance or rounded to some decimals.

    The default tolerance is that of numpy's isclose with atol 1e-6; a hint is appended to the message.
    """
    sums = values.sum(axis=1)
    off = ~(np.abs(sums - 1) <= tolerance) if decimals is None else np.round(sums, decimals) != 1
    if off.any():
        row = int(np.argmax(off))
        raise InvalidSubmission(f"Row {row + 1}: the probabilities sum to {sums[row]:.9g}, expected 1{hint}.")


def rescaled_rows(values: Numbers) -> Numbers:
    """Divide each row by its sum, as Kaggle's log loss does; a row of zeros is refused."""
    sums: Numbers = values.sum(axis=1, keepdims=True)
    empty = ~(sums[:, 0] > 0)
    if empty.any():
        raise InvalidSubmission(f"Row {int(np.argmax(empty)) + 1}: no class has a probability above zero.")
    return values / sums


ClassNumbers = npt.NDArray[Any]

_LONGEST = np.iinfo(np.int64)


def truncated_class_numbers(table: pd.DataFrame, column: str) -> ClassNumbers:
    """Return a column of class numbers with fractions cut off; text is accepted where `int` can read it."""
    columns_present(table, [column])
    cells: pd.Series[Any] = table[column]
    if cells.dtype.kind in "iub":
        return _whole(cells, "a class number")
    if pd.api.types.is_numeric_dtype(cells):
        values: ClassNumbers = np.trunc(numbers(table, column))
        _refuse(_is_beyond_64_bits(values), cells, "is too large for a class number", "a class number")
        return values
    return _read_numbers(cells, int, "a class number")


def first_class_numbers(table: pd.DataFrame, column: str) -> ClassNumbers:
    """Return the first class number of each cell, which holds one number or several separated by blanks."""
    columns_present(table, [column])
    cells: pd.Series[Any] = table[column]
    expected = "class numbers separated by blanks"
    if cells.dtype.kind in "iub":
        return _whole(cells, expected)
    # one cell that is not a whole number has turned the whole column into floats
    if cells.dtype.kind == "f" and len(cells):
        row = int(np.argmax(~(cells == np.floor(cells)) | np.isinf(cells)))
        raise InvalidCell(row, column, cells.iloc[row], "cannot be read", expected)
    return _read_numbers(cells, _first_number, expected)


def _whole(cells: pd.Series[Any], expected: str) -> ClassNumbers:
    values = np.asarray(cells.to_numpy())
    if values.dtype.kind == "u":
        _refuse(_is_beyond_64_bits(values), cells, "is too large for a class number", expected)
    return values


def _first_number(cell: Any) -> int:
    if isinstance(cell, str):
        return int(cell.split()[0])
    if isinstance(cell, int):  # a column that pandas read in chunks may mix both
        return cell
    raise ValueError


def _read_numbers(cells: pd.Series[Any], reader: Callable[[Any], int], expected: str) -> ClassNumbers:
    """Read each distinct cell once and return the number for every row."""
    _refuse(cells.isna().to_numpy(), cells, "cannot be read", expected)
    codes, names = pd.factorize(cells.to_numpy(dtype=object), use_na_sentinel=False)
    values: list[int] = []
    for code, name in enumerate(names):
        try:
            values.append(reader(name))
        except (ValueError, TypeError, IndexError, OverflowError):
            row = int(np.argmax(codes == code))
            raise InvalidCell(row, str(cells.name), name, "cannot be read", expected) from None
    read = np.array(values, dtype=object)
    _refuse(_is_beyond_64_bits(read)[codes], cells, "is too large for a class number", expected)
    huge = any(value > _LONGEST.max for value in values)
    return (read if huge else read.astype(np.int64))[codes]


def _is_beyond_64_bits(values: ClassNumbers) -> Flags:
    """Return which numbers no integers of 64 bits hold; unsigned ones hold them only where all are large.

    MLE-bench refuses those: numpy makes an array of floats or objects of a list of such integers, in which scikit-learn
    finds no classes.
    """
    end = 2**64 if (values >= 2**63).all() else 2**63
    return np.asarray((values < -(2**63)) | (values >= end), dtype=bool)
