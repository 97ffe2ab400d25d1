"""What commands print: harmless text, tables, JSON, logs that are followed, and the clipboard."""

from __future__ import annotations

import base64
import json
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.tables import Row, TextColumn
from foundation.problems import EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from console.logs.reader import LogFile, LogLine
    from engine.checks import Check
    from engine.control import Answer

# Terminals ignore a longer clipboard sequence without a word.
_LONGEST_CLIPBOARD = 74_994
_TERMINAL = Path("/dev/tty")
_FOLLOW_SECONDS = 0.25
_LINES_AT_ONCE = 100
# How far what has no room beside a row is moved to the right below it.
_BELOW = 4


def say(text: str = "") -> None:
    """Write text to standard output, each line made harmless."""
    from console.sanitize import plain_lines

    sys.stdout.write("\n".join(plain_lines(text)) + "\n")


def complain(text: str) -> None:
    """Write text to standard error, likewise."""
    from console.sanitize import plain_lines

    sys.stderr.write("\n".join(plain_lines(text)) + "\n")


def show_count(doing: str, written: Callable[[int], str] = str) -> Callable[[int, int], None]:
    """Return what shows how much is done: on one line of a terminal, or else with a line for each tenth."""
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


def say_table(
    rows: Sequence[Row],
    columns: Mapping[str, Callable[[Row], str]],
    *,
    right: Collection[str] = (),
    limits: Mapping[str, int] | None = None,
) -> None:
    """Write rows as columns of harmless text, those named in `right` flush right, none wider than its limit.

    On a terminal that is too narrow for all of them, each row goes on below itself with what the last columns say, each
    behind its heading; anything but a terminal has one line for each row.
    """
    from rich.cells import cell_len

    from console.sanitize import plain

    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    lines, used = [""] * (len(rows) + 1), 0
    below: list[list[str]] = [[] for _row in rows]
    for heading, text in columns.items():
        limit = (limits or {}).get(heading)
        cells = [heading, *(plain(text(row), limit=limit) for row in rows)]
        width = max(map(cell_len, cells))
        if used and used + width > room:
            room = 0  # those that follow are not drawn before it
            for one, cell in zip(below, cells[1:], strict=True):
                one += [f"{heading} {cell}"] if cell else []
            continue
        used += width + 2
        for number, cell in enumerate(cells):
            space = " " * (width - cell_len(cell))
            lines[number] += (space + cell if heading in right else cell + space) + "  "
    sys.stdout.write(f"{lines[0].rstrip()}\n")
    for line, more in zip(lines[1:], below, strict=True):
        sys.stdout.write(f"{line.rstrip()}\n")
        for part in _in_lines(more, shutil.get_terminal_size().columns - _BELOW) if more else ():
            sys.stdout.write(f"{' ' * _BELOW}{part}\n")


def _in_lines(texts: Sequence[str], width: int) -> list[str]:
    """Put harmless texts beside each other on lines of so many cells; one that is longer goes on in the next line."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + 2 + len(text) <= width:
            lines[-1] += f"  {text}"
        else:
            lines += textwrap.wrap(text, max(20, width))
    return lines


# By whether a check lets something pass, and whether it warns.
_CHECKED = {(True, False): "ok", (True, True): "WARNING", (False, False): "MISSING"}


def say_checks(checks: Sequence[Check]) -> None:
    """Write what was looked at, one line each, with what to do about it."""
    for check in checks:
        say(f"{_CHECKED[check.good, check.warns]:<7}  {check.text}")
        if check.next_step and (check.warns or not check.good):
            say(f"         {check.next_step}")


def say_log(
    file: LogFile,
    lines: int,
    *,
    json: bool,
    following: bool = False,
    renewed: Callable[[], LogFile | None] | None = None,
) -> None:
    """Write a log's last lines as harmless text and, where it is followed, whole lines as they are added; close it.

    Args:
        file: the log.
        lines: how many of the last lines.
        json: write them as one JSON document.
        following: go on as it grows.
        renewed: asked before each look while it is followed, returns the log to go on with where there is a new one.

    Raises:
        UsageProblem: it is to be followed, and to be one JSON document.
    """
    if json and following:
        raise UsageProblem(
            "a log that is followed has no end", "--json prints one document", "Leave one out."
        )
    try:
        file.refresh()
        shown = file.backward(file.end, lines)
        if json:
            say_json([{"run": _run_of(file, line), "text": line.text} for line in shown])
            return
        position = file.end
        if following and shown and not shown[-1].is_whole:
            position = shown.pop().start
        _say_lines(file, shown)
        while following:
            time.sleep(_FOLLOW_SECONDS)
            other, restarts = None if renewed is None else renewed(), file.restarts
            if file.refresh() or other is not None:
                if file.restarts > restarts:
                    position = file.restarted_at
                position = _say_whole_lines(file, max(position, file.begin))
            if other is not None:
                _say_lines(file, file.forward(position, _LINES_AT_ONCE))  # nothing completes its last line
                file.close()
                file, position = other, 0
    finally:
        file.close()


def _say_whole_lines(file: LogFile, position: int) -> int:
    """Write the whole lines from a position on, and return where the last one ends.

    What is so long that it is cut counts as whole as soon as something follows.
    """
    while True:
        lines = file.forward(position, _LINES_AT_ONCE)
        whole = [line for line in lines if line.is_whole or line.end < file.end]
        if not whole:
            return position
        _say_lines(file, whole)
        position = whole[-1].end


def _run_of(file: LogFile, line: LogLine) -> str | None:
    """The run that a line is from; None where the log is not merged from several."""
    label = file.label_of(line.start)
    return None if label is None else label.text


def _say_lines(file: LogFile, lines: Sequence[LogLine]) -> None:
    for line in lines:
        run = _run_of(file, line)
        say(line.text if run is None else f"{run}  {line.text}")
    sys.stdout.flush()


def say_columns(
    columns: Sequence[TextColumn[Row]], rows: Sequence[Row], *, limits: Mapping[str, int] | None = None
) -> None:
    """Write a table of rows; columns in which no row has anything are left out."""
    shown = [column for column in columns if any(column.text(row) for row in rows)]
    right = [column.title for column in shown if column.right]
    say_table(rows, {column.title: column.text for column in shown}, right=right, limits=limits)


def say_answer(answer: Answer, *, json: bool, **more: Any) -> None:
    """Write the engine's answer; `more` is added to its JSON."""
    if json:
        say_json(asdict(answer) | more)
    else:
        say(answer.text)


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
