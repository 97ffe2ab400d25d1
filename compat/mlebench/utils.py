"""MLE-bench's helpers for reading files and logging."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench_console.foundation.clock import run_group_stamp

if TYPE_CHECKING:
    import pandas as pd


def get_logger(name: str, level: int = logging.INFO, filename: Path | None = None) -> logging.Logger:
    """Return a logger that writes to standard error, or to a file, in MLE-bench's format."""
    form = "[%(asctime)s] [%(filename)s:%(lineno)d] %(message)s"
    logging.basicConfig(level=level, format=form, filename=filename)
    return logging.getLogger(name)


def get_timestamp() -> str:
    """Return the current time in the format of the names of run groups and reports."""
    return run_group_stamp(time.time())


def purple(text: str) -> str:
    """Return text in purple for a terminal."""
    return f"\033[1;35m{text}\033[0m"


def read_csv(path: Path | str) -> pd.DataFrame:
    """Read a table as MLE-bench does: numbers become the nearest double, an empty file an empty table."""
    from mlebench_console.competitions.kit import tables

    return tables.read_csv(Path(path))


def read_jsonl(file_path: Path | str, skip_commented_out_lines: bool = False) -> list[dict[str, Any]]:
    """Read one object per line; lines that begin with `#` or `//`, and blank ones, can be skipped."""
    lines = Path(file_path).read_text(encoding="utf-8").splitlines()
    if skip_commented_out_lines:
        lines = [line for line in map(str.strip, lines) if line and not line.startswith(("#", "//"))]
    return [json.loads(line) for line in lines]


def load_answers(path_to_answers: Path) -> Any:
    """Read the answers of a competition.

    Raises:
        ValueError: they are neither CSV nor JSONL.
    """
    if path_to_answers.suffix == ".csv":
        return read_csv(path_to_answers)
    if path_to_answers.suffix == ".jsonl":
        return read_jsonl(path_to_answers)
    raise ValueError(f"Unsupported file format for answers: {path_to_answers}")
