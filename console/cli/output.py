"""What commands print: sanitised text, tables, JSON, logs, and the clipboard."""

from __future__ import annotations

import base64
import json
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from mlebench_console.console.fields import Cell, Columns, Forms, NounField, Row
    from mlebench_console.console.logs.reader import LogFile, LogLine
    from mlebench_console.console.roles import Drawing
    from mlebench_console.engine.checks import Check

# Terminals ignore a longer clipboard sequence without a word.
_LONGEST_CLIPBOARD = 74_994
_TERMINAL = Path("/dev/tty")
_FOLLOW_SECONDS = 0.25
# How far what has no room beside a row is moved to the right below it.
_BELOW = 4
# Names that a narrow terminal cuts, and how much of them it leaves.
_LEAST_NAMES = {"competition": 24, "category": 14, "metric": 20}
_WIDEST_NAME = 80
# Sentences, which go below their rows first; without one the last column does.
_TEXTS = frozenset({"what was found", "what", "problem"})
# Two spaces or more separate columns, for programs that read them.
_GAP = 2
# Beside a row with less room than this no text begins: it goes below.
_LEAST_TEXT = 16


def say(text: str = "") -> None:
    """Write text to standard output, sanitised line by line."""
    from mlebench_console.console.sanitize import plain_lines

    sys.stdout.write("\n".join(plain_lines(text)) + "\n")


def say_wrapped(text: str, *, indent: str = "", more: int = _BELOW) -> None:
    """Write one line of text; in a terminal it is wrapped, with further lines indented by `more` cells more."""
    from mlebench_console.console.sanitize import plain

    line = indent + plain(text)
    if sys.stdout.isatty():
        width = max(40, shutil.get_terminal_size().columns)
        after = indent + " " * more
        line = "\n".join(textwrap.wrap(line, width, subsequent_indent=after, break_on_hyphens=False))
    sys.stdout.write(f"{line}\n")


def say_on_stderr(text: str) -> None:
    """Write text to standard error, sanitised line by line."""
    from mlebench_console.console.sanitize import plain_lines

    sys.stderr.write("\n".join(plain_lines(text)) + "\n")


def show_count(doing: str, written: Callable[[int], str] = str) -> Callable[[int, int], None]:
    """Return a function that shows progress: on one line of a terminal, otherwise with a line for each tenth."""
    told = -1

    def show(done: int, total: int) -> None:
        nonlocal told
        text = f"{doing}: {written(done)} of {written(total)}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{text}\x1b[K" if done < total else "\r\x1b[K")
        elif done * 10 // max(total, 1) > told:
            told = done * 10 // max(total, 1)
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    return show


def say_json(document: Any) -> None:
    """Write one JSON document; it is pure ASCII, so that nothing in it can reach a terminal as control."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def drawing() -> Drawing:
    """Return what the cells of a command's table depend on: the time, and the signs that the output can take."""
    from mlebench_console.console.roles import ASCII, UNICODE, Drawing

    takes_unicode = "utf" in (sys.stdout.encoding or "").lower()
    return Drawing(time.time(), UNICODE if takes_unicode else ASCII)


def say_rows(columns: Columns[Row], rows: Sequence[Row]) -> None:
    """Write rows as columns of harmless text.

    A terminal has no column that says nothing of any row, and what has no room there goes below its row, each cell
    behind its title if there are several. Anything but a terminal has one line for each row with all columns: programs
    that read the columns find the same ones every time.
    """
    from rich.cells import cell_len

    from mlebench_console.console.fields import text_of
    from mlebench_console.console.fitting import fitted_to_terminal
    from mlebench_console.console.pieces import fit

    how, room = drawing(), sys.maxsize
    made = [
        (replace(column, gap=_GAP), [_harmless(column.cell(row, how)) for row in rows]) for column in columns
    ]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
        made = [
            (column, cells)
            for column, cells in made
            if not rows or any(not column.says_nothing(text_of(cell)) for cell in cells)
        ]
    columns, cells = [column for column, _cells in made], [cells for _column, cells in made]
    titles = [column.heading for column in columns]
    widths = fitted_to_terminal(columns, cells, room)
    shown = [place for place, width in enumerate(widths) if width]
    below = [place for place, width in enumerate(widths) if not width]
    # The first text that has no room in all rows stands beside those in which it has.
    left = room - sum(widths[place] + _GAP for place in shown)
    has_tail = bool(below) and left >= max(_LEAST_TEXT, cell_len(titles[below[0]]))
    tail = below[0] if has_tail and not columns[below[0]].right else None

    def line(texts: Sequence[str], beside: int | None) -> str:
        """Return a row, and beside it the text of the column `beside`."""
        parts = [
            fit(texts[place], widths[place], right=columns[place].right, ellipsis=how.signs.ellipsis)
            for place in shown
        ]
        return (" " * _GAP).join([*parts, *([] if beside is None else [texts[beside]])]).rstrip() + "\n"

    sys.stdout.write(line(titles, tail))
    if len(below) == 1 and tail is None:
        sys.stdout.write(f"{' ' * _BELOW}{titles[below[0]]}\n")
    for row in zip(*cells, strict=True):
        texts = [text_of(cell, width or room) for cell, width in zip(row, widths, strict=True)]
        beside = tail if tail is not None and cell_len(texts[tail]) <= left else None
        sys.stdout.write(line(texts, beside))
        more = [
            texts[place] if len(below) == 1 else f"{titles[place]} {texts[place]}".lstrip()
            for place in below
            if place != beside and not columns[place].says_nothing(texts[place])
        ]
        for part in _in_lines(more, room - _BELOW) if more else ():
            sys.stdout.write(f"{' ' * _BELOW}{part}\n")


def say_texts(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()) -> None:
    """Write rows of texts, for a table that only one command has; names that people type may be cut on a terminal."""
    from mlebench_console.console.fields import REST, NounField

    texts = _TEXTS.intersection(titles) or {titles[-1]}

    def column(place: int, title: str) -> NounField[Sequence[str]]:
        grows = _WIDEST_NAME if title in _LEAST_NAMES else REST if title in texts else 0
        return NounField(
            title,
            lambda row, _drawing: row[place],
            _LEAST_NAMES.get(title, 1),
            grows=0 if title in right else grows,
            right=title in right,
        )

    say_rows([column(place, title) for place, title in enumerate(titles)], list(rows))


def _harmless(cell: Cell) -> Forms:
    """Return a cell as one of harmless text, in all of its forms."""
    from mlebench_console.console.fields import Forms, text_of
    from mlebench_console.console.sanitize import plain

    forms = cell.forms if isinstance(cell, Forms) else (cell,)
    return Forms([plain(text_of(form).replace("\n", " ")) for form in forms])


def _in_lines(texts: Sequence[str], width: int) -> list[str]:
    """Put sanitised texts on lines of this width, several on a line if they fit; longer ones are wrapped."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + 2 + len(text) <= width:
            lines[-1] += f"  {text}"
        else:
            lines += textwrap.wrap(text, max(20, width))
    return lines


# By whether a check lets something pass, and whether it warns.
_CHECKED = {"ok": "ok", "warn": "WARNING", "fail": "MISSING"}


def say_checks(checks: Sequence[Check]) -> None:
    """Write checks, one line each, with the next steps of those that are not good."""
    for check in checks:
        say(f"{_CHECKED[check.health]:<7}  {check.text}")
        if check.next_step and check.health != "ok":
            say(f"         {check.next_step}")


def say_logs(
    logs: Mapping[str, LogFile],
    lines: int,
    *,
    json: bool,
    following: bool = False,
    renewed: Callable[[], Mapping[str, LogFile]] = dict,
) -> None:
    """Write the last lines of logs as harmless text and, where they are followed, whole lines as they are added.

    Args:
        logs: by the names that their lines stand behind, which may be empty for a single one; they get closed.
        lines: how many of the last lines of each.
        json: write them as one JSON document.
        following: go on as they grow.
        renewed: asked before each look while they are followed, returns those that go on in another file.

    Raises:
        UsageProblem: they are to be followed, and to be one JSON document.
    """
    from mlebench_console.console.logs.following import FollowedLog

    if json and following:
        raise UsageProblem(
            "a log that is followed has no end", "--json prints one document", "Leave one out."
        )
    followed = {name: FollowedLog(file) for name, file in logs.items()}
    width = max(map(len, followed))

    def say_lines(name: str, found: Iterable[LogLine]) -> None:
        for line in found:
            say(f"{name:<{width}} | {line.text}" if name else line.text)
        sys.stdout.flush()

    try:
        ends = {name: log.last_lines(lines, only_whole=following) for name, log in followed.items()}
        if json:
            say_json([{"run": name or None, "text": line.text} for name in ends for line in ends[name]])
            return
        for name, found in ends.items():
            say_lines(name, found)
        while following:
            time.sleep(_FOLLOW_SECONDS)
            others = renewed()
            for name, log in followed.items():
                say_lines(name, log.new_lines(has_ended=name in others))
            for name, file in others.items():
                followed[name].close()
                followed[name] = FollowedLog(file)
    finally:
        for log in followed.values():
            log.close()


def copy_to_clipboard(text: str) -> None:
    """Copy text to the clipboard of the terminal, over SSH too, by its escape sequence (OSC 52); it never answers.

    Raises:
        UsageProblem: it is too long.
        EnvironmentProblem: there is no terminal.
    """
    content = base64.b64encode(text.encode())
    if len(content) > _LONGEST_CLIPBOARD:
        raise UsageProblem("the text is too long for the clipboard", "", "Write it to a file with --output.")
    try:
        with _TERMINAL.open("wb") as terminal:
            terminal.write(b"\x1b]52;c;" + content + b"\x07")
    except OSError as error:
        raise EnvironmentProblem(
            "there is no terminal with a clipboard", error.strerror or "", "Use --output FILE."
        ) from error
