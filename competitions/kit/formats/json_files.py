"""Read and write JSON documents and JSON lines, one by one or as a table."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mlebench_console.competitions.kit.placing import checksummed
from mlebench_console.competitions.raw import RawDataProblem, RawPath, read_as

# all escapes are matched, so that an escaped backslash does not begin another escape
_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.")


def read_json(path: RawPath, *, encoding: str = "utf-8") -> Any:
    """Read one JSON document."""
    return json.loads(path.read_text(encoding))


def read_records(path: RawPath) -> list[dict[str, Any]]:
    """Read a raw JSON document that is a list of objects.

    Raises:
        DataProblem: it is not a list of objects, or is damaged.
    """
    with read_as("JSON", path, ValueError):
        found = read_json(path)
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise RawDataProblem(f"{path} is not in the expected form", "it is not a list of objects")
    return found


def write_json(path: Path, value: Any, *, indent: int | None = None, sort_keys: bool = False) -> None:
    """Write one JSON document as `json.dump` does: ASCII escapes, no newline at the end."""
    with (
        checksummed.created(path) as content,
        io.TextIOWrapper(content, "utf-8", newline="\n") as stream,
    ):
        if indent is None:
            stream.write(json.dumps(value, sort_keys=sort_keys))  # written in C, which json.dump does not use
        else:
            json.dump(value, stream, indent=indent, sort_keys=sort_keys)


def read_jsonl_parts(path: RawPath, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield some members of each object of a JSON lines file, blank lines skipped.

    Where they are the last members of their object, what precedes them is not parsed.
    """
    starts = [f',"{key}":'.encode() for key in keys]
    with path.open("rb") as stream:
        for line in stream:
            if line.strip():
                # quotes inside texts are escaped, so a comma before an unescaped quote separates members
                yield _tail(line, min(map(line.rfind, starts)), keys) or json.loads(line)


def _tail(line: bytes, start: int, keys: Sequence[str]) -> dict[str, Any] | None:
    if start < 0:
        return None
    try:
        found = json.loads(b"{" + line[start + 1 :])
    except ValueError:  # the comma is in a nested object
        return None
    return found if set(keys) <= set(found) else None


def table_of(lines: bytes) -> pd.DataFrame:
    """Read JSON lines as a table, with the dtypes and digits that pandas gives.

    Unpaired surrogates are dropped, because they cannot be written again.

    Raises:
        ValueError: the lines are not JSON.
    """
    if b"\\ud" in lines or b"\\uD" in lines:
        lines = _ESCAPES.sub(lambda found: b"" if found["half"] else found[0], lines)
    return pd.read_json(io.BytesIO(lines), lines=True)


def lines_of(table: pd.DataFrame) -> bytes:
    """Return a table as JSON lines, with the escapes and the ten decimals that pandas writes."""
    text = io.BytesIO()
    table.to_json(text, orient="records", lines=True)
    return text.getvalue()
