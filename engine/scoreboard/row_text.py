"""A row as text that others take over: Markdown, CSV, JSON or LaTeX, each with its disclosure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from engine.scoreboard.disclosure import Disclosure
from engine.scoreboard.model import COLUMNS, Cell, Measure, Row, Standing
from foundation.text import visible


class RowFormat(StrEnum):
    """What a row can be written as; the value is also the file's ending."""

    MARKDOWN = "md"
    CSV = "csv"
    JSON = "json"
    LATEX = "tex"


# The headings of the published leaderboard, with its own wording.
_HEADINGS = (
    "Agent",
    "LLM(s) used",
    "Low == Lite (%)",
    "Medium (%)",
    "High (%)",
    "All (%)",
    "Running Time (hours)",
    "Date",
    "Source Code Available",
    "Grading Reports Available",
)
_LATEX_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
    }
)
PADDED_FOOTNOTE = "Computed by padding incomplete seeds with failing scores."


def row_text(row: Row, disclosure: Disclosure, form: RowFormat = RowFormat.MARKDOWN) -> str:
    """Write a row with the headings of the published leaderboard, and what must be told with it."""
    return {
        RowFormat.MARKDOWN: _markdown,
        RowFormat.CSV: _csv,
        RowFormat.JSON: _json,
        RowFormat.LATEX: _latex,
    }[form](row, disclosure)


def row_cells(row: Row) -> tuple[str, ...]:
    """The row under the headings of the published leaderboard."""
    return (
        row.name if row.agent == row.name or not row.agent else f"{row.agent} ({row.name})",
        row.llms,
        *(_cell(row.columns.get(column)) for column in COLUMNS),
        "" if row.hours is None else f"{row.hours:.4g}",
        row.date,
        _mark(row.source_available),
        _mark(row.reports_available),
    )


def _cell(standing: Standing | None) -> str:
    if standing is None or standing.cell is None:
        return "-" if standing is None or not standing.covered else f"{standing.covered}/{standing.of} run"
    return str(standing.cell)


def _mark(available: bool | None) -> str:
    return {True: "✓", False: "X", None: ""}[available]


def _extra(row: Row) -> tuple[tuple[str, str], ...]:
    """The columns beyond the published ones: user-made splits, and exactly what a partial row has runs of."""
    made = [(name, _cell(standing)) for name, standing in row.columns.items() if name not in COLUMNS]
    whole = all(standing.cell is not None for standing in row.columns.values())
    if row.own is not None and row.own.cell is not None and not whole:
        made.append((f"Its own {row.own.of} competitions (%)", str(row.own.cell)))
    return tuple(made)


def _notes(row: Row) -> tuple[str, ...]:
    notes = []
    if row.padded:
        notes.append(PADDED_FOOTNOTE)
    if row.demo:
        notes.append("Synthetic data: a demo, not a result.")
    if row.conflict:
        notes.append(f"No numbers: {row.conflict}.")
    if row.running:
        notes.append("Still running: complete seeds only.")
    return tuple(notes)


def _markdown(row: Row, disclosure: Disclosure) -> str:
    extra = _extra(row)
    headings = (*_HEADINGS, *(name for name, _ in extra))
    cells = (*row_cells(row), *(value for _, value in extra))
    lines = [_table_line(headings), _table_line(["---"] * len(headings)), _table_line(cells), ""]
    lines += [f"*{note}*" for note in _notes(row)]
    lines += ["", "<details><summary>How this row came about</summary>", ""]
    lines += [f"- {name}: {_markdown_safe(text)}" for name, text in disclosure.facts()]
    return "\n".join([*lines, "", "</details>", ""])


def _table_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_markdown_safe(cell).replace("|", r"\|") for cell in cells) + " |"


def _markdown_safe(text: str) -> str:
    return visible(text).replace("<", "&lt;")


def _csv(row: Row, disclosure: Disclosure) -> str:
    """One line as in the published leaderboard.csv's columns, the disclosure as comment lines above it."""
    stream = io.StringIO()
    for name, text in disclosure.facts():
        stream.write(f"# {name}: {visible(text)}\n")
    writer = csv.writer(stream, lineterminator="\n")
    names = ["table", "agent", "llms"]
    values: list[object] = [row.table, visible(row.agent or row.name), visible(row.llms)]
    for column in COLUMNS:
        cell = row.columns[column].cell
        names += [f"{column}_mean", f"{column}_sem"]
        values += ["", ""] if cell is None else [f"{cell.mean:.2f}", f"{cell.sem:.2f}"]
    names += ["hours", "date", "source_available", "reports_available", "padded_missing_seeds", "note"]
    hours = "" if row.hours is None else f"{row.hours:g}"
    values += [hours, row.date, _yes_no(row.source_available), _yes_no(row.reports_available)]
    values += [_yes_no(row.padded), visible(row.note)]
    writer.writerow(names)
    writer.writerow(values)
    return stream.getvalue()


def _yes_no(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def row_document(row: Row, disclosure: Disclosure) -> dict[str, object]:
    """The row with full precision, every measure and 95 % interval, and its disclosure, for `json`."""
    columns = dict(row.columns) | ({} if row.own is None else {"own": row.own})
    return {
        "agent": row.agent,
        "name": row.name,
        "llms": row.llms,
        "hours": row.hours,
        "date": row.date,
        "source_available": row.source_available,
        "reports_available": row.reports_available,
        "conflict": row.conflict,
        "columns": {
            name: {
                "covered": standing.covered,
                "of": standing.of,
                "measures": measures_document(_measures(standing)),
            }
            for name, standing in columns.items()
        },
        "disclosure": asdict(disclosure),
    }


def measures_document(measures: Mapping[Measure, Cell]) -> dict[str, Any]:
    """Percentages as JSON has them, by the measures' names."""
    return {
        measure.value: {
            "mean": cell.mean,
            "sem": cell.sem,
            "seeds": cell.n,
            "interval_95": list(cell.interval()),
        }
        for measure, cell in measures.items()
    }


def _measures(standing: Standing) -> dict[Measure, Cell]:
    if standing.measures or standing.cell is None:
        return dict(standing.measures)
    return {Measure.ANY_MEDAL: standing.cell}


def _json(row: Row, disclosure: Disclosure) -> str:
    return json.dumps(row_document(row, disclosure), ensure_ascii=False, indent=1) + "\n"


def _latex(row: Row, disclosure: Disclosure) -> str:
    """A table body line for the columns up to the date, the disclosure as comments."""
    told = [f"% {name}: {visible(text)}" for name, text in disclosure.facts()]
    headings = " & ".join(heading.replace("%", r"\%") for heading in _HEADINGS[:8])
    cells = " & ".join(visible(cell).translate(_LATEX_SPECIAL) for cell in row_cells(row)[:8])
    notes = [f"% {note}" for note in _notes(row)]
    return "\n".join([*told, *notes, f"% {headings}", rf"{cells} \\", ""])
