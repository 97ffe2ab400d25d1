"""Checks of a submission's form; each raises `InvalidSubmission` with what to mend, and says nothing of the answers."""

from competitions.kit.checks.columns import (
    Positions,
    Spelling,
    columns_exactly,
    columns_present,
    matched_rows,
    numbers,
    reading_answers,
    rescaled_rows,
    row_count,
    rows_asked_for,
    rows_sum_to_one,
    shown,
    sorted_rows,
    texts,
    whole_numbers,
)

__all__ = [
    "Positions",
    "Spelling",
    "columns_exactly",
    "columns_present",
    "matched_rows",
    "numbers",
    "reading_answers",
    "rescaled_rows",
    "row_count",
    "rows_asked_for",
    "rows_sum_to_one",
    "shown",
    "sorted_rows",
    "texts",
    "whole_numbers",
]
