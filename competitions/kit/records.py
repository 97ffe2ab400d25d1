"""Reading and writing JSON documents and JSON lines; tables of them are `tables`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_json(path: Path, *, encoding: str = "utf-8") -> Any:
    """Read one JSON document."""
    with path.open(encoding=encoding) as stream:
        return json.load(stream)


def write_json(path: Path, value: Any, *, indent: int | None = None, sort_keys: bool = False) -> None:
    """Write one JSON document as `json.dump` does: ASCII escapes, no newline at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        json.dump(value, stream, indent=indent, sort_keys=sort_keys)


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file, one at a time, blank lines skipped."""
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)
