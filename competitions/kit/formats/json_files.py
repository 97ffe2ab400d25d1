"""Reading and writing JSON documents and JSON lines, one by one or as a table."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from competitions.kit.placing import checksummed
from competitions.raw import RawDataProblem, RawPath

_BATCH = 10_000
# all escapes are matched, so that a backslash which is itself escaped starts none
_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.")
_NESTED = {dict, list}


def read_json(path: RawPath, *, encoding: str = "utf-8") -> Any:
    """Read one JSON document."""
    return json.loads(path.read_text(encoding))


def read_records(path: RawPath) -> list[dict[str, Any]]:
    """Read a raw JSON document that is a list of objects.

    Raises:
        DataProblem: it is something else, or damaged.
    """
    try:
        found = read_json(path)
    except ValueError as error:
        raise RawDataProblem(f"{path} cannot be read as JSON", str(error)) from error
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise RawDataProblem(f"{path} was not taken", "it is no list of objects")
    return found


def write_json(path: Path, value: Any, *, indent: int | None = None, sort_keys: bool = False) -> None:
    """Write one JSON document as `json.dump` does: ASCII escapes, no newline at the end."""
    with (
        checksummed.created(path) as content,
        io.TextIOWrapper(content, "utf-8", newline="\n") as stream,
    ):
        if indent is None:
            stream.write(json.dumps(value, sort_keys=sort_keys))  # in C, which json.dump does not use
        else:
            stream.writelines(_Indented(indent, sort_keys).pieces(value, 0))


class _Indented:
    """Gives what `json.dump` gives with an indent, which it does in Python, a token at a time.

    Lists of flat records are encoded in C, many in one go, with an indented line break as part of
    the separator: less than half of the time for the annotations of a million images. Line breaks inside
    texts are escaped, so that one between two records can be told from all others.
    """

    def __init__(self, indent: int, sort_keys: bool) -> None:
        self._indent = indent
        self._sort_keys = sort_keys

    def pieces(self, value: Any, level: int) -> Iterator[str]:
        """The text of a value that stands at a level of the document."""
        if not isinstance(value, dict | list) or not value:
            yield json.dumps(value)
            return
        here, inside = self._break(level), self._break(level + 1)
        if isinstance(value, list) and all(map(_is_flat, value)):
            yield from self._flat_records(value, level)
            return
        if isinstance(value, dict):
            members = sorted(value.items()) if self._sort_keys else value.items()
            named = ((f"{json.dumps(name)}: ", member) for name, member in members)
        else:
            named = (("", member) for member in value)
        before, after = "{}" if isinstance(value, dict) else "[]"
        for name, member in named:
            yield f"{before}{inside}{name}"
            yield from self.pieces(member, level + 1)
            before = ","
        yield f"{here}{after}"

    def _flat_records(self, values: list[dict[str, Any]], level: int) -> Iterator[str]:
        outer, inner = self._break(level + 1), self._break(level + 2)
        encoder = json.JSONEncoder(separators=("," + inner, ": "), sort_keys=self._sort_keys)
        before = "["
        for start in range(0, len(values), _BATCH):
            text = encoder.encode(values[start : start + _BATCH])[2:-2]
            text = text.replace(f"}},{inner}{{", f"{outer}}},{outer}{{{inner}")
            yield f"{before}{outer}{{{inner}{text}{outer}}}"
            before = ","
        yield f"{self._break(level)}]"

    def _break(self, level: int) -> str:
        return "\n" + " " * (self._indent * level)


def _is_flat(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and _NESTED.isdisjoint(map(type, value.values()))


def read_jsonl(path: RawPath) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file, one at a time, blank lines skipped."""
    with path.open("rb") as content, io.TextIOWrapper(content, "utf-8", newline="\n") as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)


def read_jsonl_parts(path: RawPath, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Some members of each object of a JSON lines file, blank lines skipped.

    What stands before the members is not parsed when they are the last ones of their object.
    """
    starts = [f',"{key}":'.encode() for key in keys]
    with path.open("rb") as stream:
        for line in stream:
            if line.strip():
                # a quote inside of a text is escaped, so a comma before a bare one is between members
                yield _tail(line, min(map(line.rfind, starts)), keys) or json.loads(line)


def _tail(line: bytes, start: int, keys: Sequence[str]) -> dict[str, Any] | None:
    if start < 0:
        return None
    try:
        found = json.loads(b"{" + line[start + 1 :])
    except ValueError:  # the comma stands deeper inside of the object
        return None
    return found if set(keys) <= set(found) else None


def table_of(lines: bytes) -> pd.DataFrame:
    """JSON lines as a table, with the types and the digits that pandas makes of them.

    Halves of surrogate pairs are dropped: what stands for no character cannot be written again.

    Raises:
        ValueError: they are not JSON.
    """
    if b"\\ud" in lines or b"\\uD" in lines:
        lines = _ESCAPES.sub(lambda found: b"" if found["half"] else found[0], lines)
    return pd.read_json(io.BytesIO(lines), lines=True)


def lines_of(table: pd.DataFrame) -> bytes:
    """A table as JSON lines, with the escapes and the ten decimals that pandas writes."""
    text = io.BytesIO()
    table.to_json(text, orient="records", lines=True)
    return text.getvalue()
