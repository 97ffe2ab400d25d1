"""Tables: CSV files read and written, labelled tables divided into the usual files, tables larger than memory."""

from competitions.kit.tables.csv_files import (
    NA_WORDS,
    filled,
    one_hot,
    read_csv,
    write_csv,
)

__all__ = [
    "NA_WORDS",
    "filled",
    "one_hot",
    "read_csv",
    "write_csv",
]
