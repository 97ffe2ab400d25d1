"""Malformed submissions for testing graders: a valid one with one thing changed, as agents might write it."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Rows = Sequence[Sequence[str]]

_BOM = b"\xef\xbb\xbf"
_NEW_ID = "nobody"

_VALUES = {
    "empty": "",
    "blank": " ",
    "nan": "nan",
    "NA": "NA",
    "None": "None",
    "inf": "inf",
    "minus-inf": "-inf",
    "too-large-a-number": "1e999",
    "next-to-nothing": "1e-320",
    "negative": "-1",
    "above-one": "1.0000001",
    "thirty-digits": "9" * 30,
    "a-word": "high",
    "decimal-comma": "0,5",
    "percent": "50%",
    "underscore": "1_000",
    "hexadecimal": "0x10",
    "complex-number": "1+2j",
    "yes": "yes",
    "True": "True",
    "a-date": "2020-01-01",
    "a-list": "[1, 2]",
    "numbers-in-a-row": "1 2 3 4",
    "boxes": "0 0 0 0 0 0",
    "run-lengths-backwards": "9 1 1 1",
    "a-thousand-numbers": "1 " * 1000,
    "a-long-word": "x" * 5000,
    "line-end": "1\n2",
    "quote": '"',
    "formula": "=1+1",
    "markup": "[bold]<script>",
    "bidi": "\u202e1",
    "escape": "\x1b[2J",
    "not-ascii": "é😀",
}


def hostile_forms(right: bytes, rng: random.Random) -> Mapping[str, bytes]:
    """Return malformed submissions made from a valid one, by the name of the fault; `rng` chooses the rows.

    The first column is assumed to hold the ids. Valid submissions in another row order are among them.
    """
    csv.field_size_limit(1 << 30)
    table = list(csv.reader(io.StringIO(right.decode("utf-8-sig", "replace"), newline="")))
    forms = _Forms(table[0], [row for row in table[1:] if row], rng)
    return {
        **_files(forms, right),
        **_headers(forms),
        **_row_sets(forms),
        **_ids(forms),
        **_cells(forms),
    }


@dataclass(frozen=True)
class _Forms:
    """A valid table, and methods that write it with one thing changed."""

    head: Sequence[str]
    body: Rows
    rng: random.Random

    def half(self) -> list[bool]:
        """Choose a random half of the rows and return for each row whether it is in it."""
        count = len(self.body)
        chosen = set(self.rng.sample(range(count), (count + 1) // 2))
        return [place in chosen for place in range(count)]

    def headed(self, head: Sequence[str]) -> bytes:
        """Write the table with another header."""
        return _csv([head, *self.body])

    def rows(self, body: Rows) -> bytes:
        """Write the table with other rows."""
        return _csv([self.head, *body])

    def each_id(self, change: Callable[[str], str], where: Sequence[bool] | None = None) -> bytes:
        """Write the table with changed ids, in all rows or in some."""
        where = where or [True] * len(self.body)
        return self.rows(
            [
                [change(row[0]), *row[1:]] if changed else row
                for row, changed in zip(self.body, where, strict=True)
            ]
        )

    def values(self, value: str, where: Sequence[bool], column: int | None = None) -> bytes:
        """Write the table with `value` in some rows, in one column or in all but the first."""
        return self.rows(
            [
                [
                    value if changed and place and column in (None, place - len(row)) else cell
                    for place, cell in enumerate(row)
                ]
                for row, changed in zip(self.body, where, strict=True)
            ]
        )


def _files(forms: _Forms, right: bytes) -> dict[str, bytes]:
    text = forms.rows(forms.body).decode("utf-8", "surrogatepass")
    lines = text.splitlines(keepends=True)
    return {
        "no-bytes": b"",
        "a-line-end": b"\n",
        "a-comma": b",",
        "commas": b"," * 3000,
        "a-quote": b'"',
        "nul-bytes": right.replace(b"\n", b"\0\n", 1),
        "utf-16": text.encode("utf-16", "replace"),
        "latin-1": right + b"\xe9\n",
        "gzip": b"\x1f\x8b\x08\x00" + right[:100],
        "zip": b"PK\x03\x04" + right[:100],
        "json": b'[{"id": 1, "value": 2}]\n',
        "html": b"<!DOCTYPE html>\n<html><body>429 Too Many Requests</body></html>\n",
        "traceback": b'Traceback (most recent call last):\n  File "run.py", line 1, in <module>\nKeyError: 1\n',
        "byte-order-mark": _BOM + right,
        "blank-line-first": b"\n" + right,
        "blank-lines-between": text.replace("\n", "\n\n").encode("utf-8", "surrogatepass"),
        "carriage-returns": _csv([forms.head, *forms.body], line_end="\r"),
        "semicolons": _csv([forms.head, *forms.body], separator=";"),
        "tabs": _csv([forms.head, *forms.body], separator="\t"),
        "bars": _csv([forms.head, *forms.body], separator="|"),
        "all-quoted": _csv([forms.head, *forms.body], quoting=csv.QUOTE_ALL),
        "cut-off-in-a-row": right[: len(right) * 2 // 3],
        "a-quote-left-open": "".join([*lines[:1], '"', *lines[1:]]).encode("utf-8", "surrogatepass"),
        "a-comment-first": b"# made by an agent\n" + right,
        "no-header": _csv(forms.body),
        "header-twice": _csv([forms.head, forms.head, *forms.body]),
        "header-between": _csv([forms.head, *forms.body[:1], forms.head, *forms.body[1:]]),
    }


def _headers(forms: _Forms) -> dict[str, bytes]:
    head, body = list(forms.head), forms.body
    return {
        "no-rows": forms.rows([]),
        "upper-case-header": forms.headed([name.swapcase() for name in head]),
        "blank-before-names": forms.headed([f" {name}" for name in head]),
        "blank-after-names": forms.headed([f"{name} " for name in head]),
        "another-name-of-ids": forms.headed(["identifier", *head[1:]]),
        "another-name-of-values": forms.headed([*head[:-1], "prediction"]),
        "no-names": forms.headed([""] * len(head)),
        "same-names": forms.headed([head[0]] * len(head)),
        "no-ids": _csv([head[1:], *(row[1:] for row in body)]),
        "no-values": _csv([head[:-1], *(row[:-1] for row in body)]),
        "a-column-more": _csv([[*head, "note"], *([*row, "x"] for row in body)]),
        "index-column": _csv([["", *head], *([str(at), *row] for at, row in enumerate(body))]),
        "last-column-twice": _csv([[*head, head[-1]], *([*row, row[-1]] for row in body)]),
        "columns-backwards": _csv([head[::-1], *(row[::-1] for row in body)]),
        "a-comma-after-each-row": _csv([head, *([*row, ""] for row in body)]),
        "a-cell-more-in-one-row": forms.rows([*body[:-1], [*body[-1], "1"]] if body else []),
        "a-cell-less-in-one-row": forms.rows([*body[:-1], body[-1][:-1]] if body else []),
    }


def _row_sets(forms: _Forms) -> dict[str, bytes]:
    body, rng = list(forms.body), forms.rng
    if not body:
        return {}
    half = forms.half()
    return {
        "every-row-twice": forms.rows([*body, *body]),
        "a-row-twice": forms.rows([*body, rng.choice(body)]),
        "a-row-instead-of-another": forms.rows([*body[:-1], rng.choice(body)]),
        "a-row-less": forms.rows(rng.sample(body, len(body) - 1)),
        "half-of-the-rows": forms.rows([row for row, kept in zip(body, half, strict=True) if kept]),
        "one-row": forms.rows([rng.choice(body)]),
        "backwards": forms.rows(body[::-1]),
        "shuffled": forms.rows(rng.sample(body, len(body))),
    }


def _ids(forms: _Forms) -> dict[str, bytes]:
    body, rng = list(forms.body), forms.rng
    if not body:
        return {}
    first = [place == 0 for place in range(len(body))]
    return {
        "a-foreign-id": forms.rows([*body, [_NEW_ID, *body[0][1:]]]),
        "a-foreign-id-instead": forms.each_id(lambda _: _NEW_ID, first),
        "foreign-ids": forms.each_id(lambda name: f"{name}9"),
        "no-id-in-a-row": forms.each_id(lambda _: "", first),
        "no-id-in-half": forms.each_id(lambda _: "", forms.half()),
        "ids-with-blanks": forms.each_id(lambda name: f" {name} "),
        "ids-in-other-case": forms.each_id(str.swapcase),
        "ids-as-fractions": forms.each_id(lambda name: f"{name}.0"),
        "ids-with-zeros": forms.each_id(lambda name: f"00{name}"),
        "ids-with-suffix": forms.each_id(lambda name: f"{name}.png"),
        "one-id-everywhere": forms.each_id(lambda _: body[0][0]),
        "numbered-ids": forms.rows([[str(place), *row[1:]] for place, row in enumerate(body)]),
        "mixed-ids": forms.rows(
            [[other[0], *row[1:]] for row, other in zip(body, rng.sample(body, len(body)), strict=True)]
        ),
    }


def _cells(forms: _Forms) -> dict[str, bytes]:
    count = len(forms.body)
    if not count:
        return {}
    found = {}
    for name, value in _VALUES.items():
        one = [False] * count
        one[forms.rng.randrange(count)] = True
        found[f"{name}-in-a-cell"] = forms.values(value, one, column=-1)
    for name in ("empty", "inf", "negative", "a-word", "True"):
        found[f"{name}-in-half-of-the-rows"] = forms.values(_VALUES[name], forms.half())
    everywhere = [True] * count
    for name in ("empty", "inf", "negative", "a-word", "next-to-nothing"):
        found[f"{name}-everywhere"] = forms.values(_VALUES[name], everywhere)
    return found


def _csv(
    rows: Rows, separator: str = ",", line_end: str = "\n", quoting: Literal[0, 1] = csv.QUOTE_MINIMAL
) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=line_end, quoting=quoting).writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")
