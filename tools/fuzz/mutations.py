"""Damage to submissions, of kinds that agents' files really have and of kinds that only an attacker would think of."""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Table = list[list[str]]
Mutate = Callable[[random.Random, Table], Table | None]
Encode = Callable[[random.Random, bytes], bytes]

_MISSING = ("", " ", "NaN", "nan", "NA", "N/A", "null", "None", "none", "-nan", "#N/A", "<NA>")
_INFINITE = ("inf", "-inf", "Infinity", "1e999", "-1e999", "INF")
_HUGE = ("1e300", "-1e300", "1e-320", str(2**63), str(2**64), str(-(2**63) - 1), "9" * 40, "1e18")
_TEXTS = ("true", "False", "abc", "é", "日本", "=1+1", "a,b", 'a"b', "a\nb", "'", "0x10", "x" * 5000)
_DIGITS = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_WIDE_DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Damaged:
    """A damaged submission.

    Attributes:
        kind: of damage, as competition.toml names it: `cells: missing`.
        suffix: of its file's name.
    """

    kind: str
    content: bytes
    suffix: str = ".csv"


def damaged(source: bytes, rng: random.Random) -> Damaged:
    """Return a submission with one kind of damage, or with two."""
    table = list(csv.reader(io.StringIO(source.decode("utf-8", "surrogateescape"), newline="")))
    kinds: list[str] = []
    for kind in rng.sample(sorted(_TABLE), 2 if rng.random() < 0.1 else 1):
        changed = _TABLE[kind](rng, [list(row) for row in table])
        if changed is not None:
            table, kinds = changed, [*kinds, kind]
    content = _csv(table)
    if not kinds or rng.random() < 0.1:
        kind = rng.choice(sorted(_BYTES))
        content, kinds = _BYTES[kind](rng, content), [*kinds, kind]
    packed = kinds[-1:] == ["bytes: compressed"]
    return Damaged(" + ".join(kinds), content, rng.choice((".csv.gz", ".csv")) if packed else ".csv")


def _csv(table: Table) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(table)
    return out.getvalue().encode("utf-8", "surrogateescape")


# rows


def _rows(change: Callable[[random.Random, Table], Table]) -> Mutate:
    def mutate(rng: random.Random, table: Table) -> Table | None:
        return [table[0], *change(rng, table[1:])] if len(table) > 1 else None

    return mutate


def _dropped(rng: random.Random, rows: Table) -> Table:
    gone = set(rng.sample(range(len(rows)), rng.choice((1, max(1, len(rows) // 3), len(rows)))))
    return [row for number, row in enumerate(rows) if number not in gone]


def _repeated(rng: random.Random, rows: Table) -> Table:
    place = rng.randrange(len(rows))
    again = [list(rows[place])]
    if rng.random() < 0.5:
        again[0][-1] = rng.choice(rows)[-1]
    kept = [row for row in rows if row is not rows[-1]] if rng.random() < 0.5 else rows
    return [*kept[:place], *again, *kept[place:]]


def _shuffled(rng: random.Random, rows: Table) -> Table:
    return rng.sample(rows, len(rows))


def _one_more(rng: random.Random, rows: Table) -> Table:
    more = list(rng.choice(rows))
    more[0] = rng.choice(("unknown", "0", "", f"{more[0]}x", "99999999"))
    return [*rows, more]


def _ragged(rng: random.Random, rows: Table) -> Table:
    row = rng.choice(rows)
    if rng.random() < 0.5 and len(row) > 1:
        row.pop()
    else:
        row.append(rng.choice(("", "1", "x")))
    return rows


# cells


def _cells(change: Callable[[random.Random, str], str]) -> Mutate:
    """Change one cell, some, or a column, mostly of what is predicted."""

    def mutate(rng: random.Random, table: Table) -> Table | None:
        if len(table) < 2 or not table[0]:
            return None
        width = len(table[0])
        column = rng.randrange(width) if rng.random() < 0.3 or width == 1 else rng.randrange(1, width)
        rows = range(1, len(table))
        chosen = rng.sample(rows, rng.choice((1, 1, min(3, len(rows)), len(rows))))
        for number in chosen:
            if column < len(table[number]):
                table[number][column] = change(rng, table[number][column])
        return table

    return mutate


def _one_of(values: Sequence[str]) -> Callable[[random.Random, str], str]:
    return lambda rng, _cell: rng.choice(values)


def _spaces(rng: random.Random, cell: str) -> str:
    space = rng.choice((" ", "  ", "\t", "\u00a0", "\u2003"))
    return rng.choice((space + cell, cell + space, space + cell + space))


def _numbers(rng: random.Random, cell: str) -> str:
    """Another number: of another size, sign or type."""
    try:
        value = float(cell)
    except ValueError:
        return rng.choice(("0", "1", "0.5", "-1"))
    if not math.isfinite(value):
        return "0"
    choices = [
        f"{-value:g}",
        f"{value + 1:g}",
        f"{value * 1000:g}",
        f"{value:.6e}",
        f"+{cell}",
        f"{value / 3:.17g}",
    ]
    if value.is_integer() and abs(value) < 1e15:
        choices += [f"{int(value)}.0", f"{int(value)}", f"0{int(value)}", f"{int(value)}.5"]
    return rng.choice(choices)


def _digits(rng: random.Random, cell: str) -> str:
    """The digits of other scripts, and underscores between digits."""
    spelt = cell.translate(rng.choice((_DIGITS, _WIDE_DIGITS)))
    return rng.choice((spelt, re.sub(r"(\d)(\d)", r"\1_\2", cell, count=1), f"1_{cell}"))


def _within(rng: random.Random, cell: str) -> str:
    """A list, mask or set of boxes within a cell with another, missing or repeated part."""
    parts = cell.split(" ")
    place = rng.randrange(len(parts))
    what = rng.randrange(5)
    if what == 0:
        parts.pop(place)
    elif what == 1:
        parts.insert(place, parts[place])
    elif what == 2:
        rng.shuffle(parts)
    else:
        found = _NUMBER.fullmatch(parts[place])
        other = f"-{parts[place]}" if found else "x"
        parts[place] = rng.choice((other, "0", "1e9", "0.5", "nan", "inf", ""))
    return rng.choice((" ", " ", " ", "  ", ",")).join(parts)


def _ties(_rng: random.Random, table: Table) -> Table | None:
    """Predictions of few and coarse values, so that ties are broken and rounding has ties."""
    for row in table[1:]:
        for place, cell in enumerate(row[1:], 1):
            try:
                row[place] = f"{round(float(cell), 1):g}"
            except (ValueError, OverflowError):
                continue
    return table


# columns


def _columns(change: Callable[[random.Random, Table], Table]) -> Mutate:
    def mutate(rng: random.Random, table: Table) -> Table | None:
        return change(rng, table) if table and table[0] and len({len(row) for row in table}) == 1 else None

    return mutate


def _renamed(rng: random.Random, table: Table) -> Table:
    place = rng.randrange(len(table[0]))
    name = table[0][place]
    other = rng.choice((name.upper(), f" {name}", f"{name} ", "other", "", rng.choice(table[0]), "0"))
    table[0][place] = other
    return table


def _swapped(rng: random.Random, table: Table) -> Table:
    order = rng.sample(range(len(table[0])), len(table[0]))
    with_header = rng.random() < 0.7
    return [
        [row[place] for place in order] if number or with_header else row for number, row in enumerate(table)
    ]


def _extra(rng: random.Random, table: Table) -> Table:
    name = rng.choice(("extra", "Unnamed: 0", rng.choice(table[0])))
    place = rng.randrange(len(table[0]) + 1)
    return [
        [*row[:place], name if number == 0 else rng.choice(("1", "x", "")), *row[place:]]
        for number, row in enumerate(table)
    ]


def _index(rng: random.Random, table: Table) -> Table:
    first = rng.choice(("", "index"))
    return [[first if number == 0 else str(number - 1), *row] for number, row in enumerate(table)]


def _without(rng: random.Random, table: Table) -> Table:
    place = rng.randrange(len(table[0]))
    return [[*row[:place], *row[place + 1 :]] for row in table]


def _no_header(_rng: random.Random, table: Table) -> Table:
    return table[1:] or table


# bytes


def _encoded(rng: random.Random, content: bytes) -> bytes:
    name = rng.choice(("utf-8-sig", "utf-16", "latin-1"))
    return content.decode("utf-8", "replace").encode(name, "replace")


def _line_ends(rng: random.Random, content: bytes) -> bytes:
    end = rng.choice((b"\r\n", b"\r", b"\n\n", b"\n\r"))
    return content.replace(b"\n", end)


def _quotes(rng: random.Random, content: bytes) -> bytes:
    if rng.random() < 0.5:
        lines = content.split(b"\n")
        return b"\n".join(b",".join(b'"%s"' % cell for cell in line.split(b",")) for line in lines if line)
    place = rng.randrange(len(content) + 1)
    return content[:place] + b'"' + content[place:]


def _separators(rng: random.Random, content: bytes) -> bytes:
    return content.replace(b",", rng.choice((b";", b"\t", b", ", b" ")))


def _cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _nul(rng: random.Random, content: bytes) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + b"\0" + content[place:]


def _blank_lines(rng: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice((b"", b",", b" ", b"# a comment")))
    return b"\n".join(lines)


_TABLE: dict[str, Mutate] = {
    "rows: dropped": _rows(_dropped),
    "rows: repeated": _rows(_repeated),
    "rows: shuffled": _rows(_shuffled),
    "rows: one more": _rows(_one_more),
    "rows: ragged": _rows(_ragged),
    "cells: missing": _cells(_one_of(_MISSING)),
    "cells: infinite": _cells(_one_of(_INFINITE)),
    "cells: huge": _cells(_one_of(_HUGE)),
    "cells: texts": _cells(_one_of(_TEXTS)),
    "cells: spaces": _cells(_spaces),
    "cells: numbers": _cells(_numbers),
    "cells: digits": _cells(_digits),
    "cells: parts": _cells(_within),
    "cells: ties": _ties,
    "columns: renamed": _columns(_renamed),
    "columns: swapped": _columns(_swapped),
    "columns: extra": _columns(_extra),
    "columns: index": _columns(_index),
    "columns: without one": _columns(_without),
    "columns: no header": _columns(_no_header),
}
_BYTES: dict[str, Encode] = {
    "bytes: encoding": _encoded,
    "bytes: line ends": _line_ends,
    "bytes: quotes": _quotes,
    "bytes: separators": _separators,
    "bytes: cut": _cut,
    "bytes: nul": _nul,
    "bytes: blank lines": _blank_lines,
    "bytes: compressed": lambda _rng, content: gzip.compress(content, mtime=0),
}
KINDS = frozenset({*_TABLE, *_BYTES})
