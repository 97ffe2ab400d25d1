"""Screens of agents' code: the files at a submission, and the differences between two versions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Columns, NounField
from mlebench_console.console.nouns.outcomes import outcome_role
from mlebench_console.console.pieces import Line, beside, cells_of, fit
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain
from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import NOT_READ, Queries
from mlebench_console.console.tui.widgets.blocks import (
    Block,
    at_both_ends,
    laid_out,
    listing,
    section,
    wrapped,
)
from mlebench_console.console.tui.widgets.log_view import code_pieces, lexer_for
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.views.code import (
    DiffLine,
    FileChange,
    SettingChange,
    Version,
    VersionCode,
    VersionDifference,
    Wanted,
    by_importance,
    code_of,
    compare,
    entry_of,
    find_versions,
)
from mlebench_console.environment.runner.code_snapshots import KeptFile, LeftOut
from mlebench_console.foundation.problems import Problem

# From this width on there is room for two columns of code with line numbers.
_SIDE_BY_SIDE = 120
_TAB = 4
_INDENT: Piece = ("  ", "text")
# The most lines for the problems of a comparison.
_MOST_LINES = 3
# The number of bytes read for the preview of a file below the list.
_PREVIEWED = 1 << 15
_PREVIEWED_LINES = 200
_LONGEST = 4000
# The most rows shown for all files together; the command line shows more.
_MOST_ROWS = 5000


class CodeScreen(ListScreen):
    """The files of an agent at one submission; keys go to the previous and the next submission."""

    CONTEXTS = ("code", "list")
    MODE = "sweep"

    def __init__(self, wanted: Wanted) -> None:
        super().__init__()
        self._wanted = wanted
        self._version: Version | None = None
        self._found: VersionCode | Problem | None = None
        # The previewed file, its code, and its first lines.
        self._preview: tuple[KeptFile, VersionCode] | None = None
        self._lines: tuple[Pieces, ...] = ()
        # The file on which the cursor is put: the entry script, and at another submission the file it was on.
        self._path: Hashable = None

    def body(self) -> Iterable[Widget]:
        """Return the list, and below it the preview of the file under the cursor."""
        yield from super().body()
        yield Painted(id="preview")

    def queries(self) -> Queries:
        """Return the query for the version."""
        return {"versions": (partial(find_versions, wanted=[self._wanted]), self._take)}

    def redraw(self) -> None:
        """Draw the files."""
        shown, found, version = self.line_list, self._found, self._version
        if version is None:
            return
        self.header.show(*_named(version, found.note if isinstance(found, VersionCode) else ""))
        if isinstance(found, Problem):
            after = self.app.drawing.keys("code.after")
            hint = f"{after} goes to the submissions after it, and then to the code as it is now"
            can = version.neighbour(1) is not None
            shown.show(
                [
                    wrapped(found.cause, "warn", _INDENT),
                    wrapped(hint if can else found.next_step, "dim", _INDENT),
                ]
            )
        elif found is not None:
            shown.show(_files(found))
            if self._path is not None and shown.put_cursor(self._path):
                self._path = None
            shown.styles.height = min(len(shown.lines), self.size.height * 9 // 20)
        else:
            shown.show([(("  reading the code", "dim"),)])
        self._read_preview()
        self._draw_preview()

    def on_line_list_cursor_moved(self) -> None:
        """Preview another file."""
        self._read_preview()

    def _chosen(self) -> KeptFile | None:
        """The file under the cursor."""
        found, key = self._found, self.line_list.key
        return (
            next((each for each in found.files if each.path == key), None)
            if isinstance(found, VersionCode)
            else None
        )

    def _read_preview(self) -> None:
        found, kept = self._found, self._chosen()
        if kept is None or not isinstance(found, VersionCode):
            return
        if self._preview is None or self._preview[0] != kept or self._preview[1] is not found:
            self._preview, self._lines = (kept, found), ()
            self.in_background(partial(_first_lines, found, kept), self._take_preview, latest="preview")

    def can_do(self, key: Key) -> bool:
        """Return whether there is a file to open, or another submission."""
        version = self._version
        if key.id in ("code.before", "code.diff"):
            return version is not None and version.neighbour(-1) is not None
        if key.id == "code.after":
            return version is not None and version.neighbour(1) is not None
        return key.id != "code.open" or isinstance(self._found, VersionCode)

    def _take_preview(self, lines: tuple[Pieces, ...]) -> None:
        self._lines = lines
        self._draw_preview()

    def _draw_preview(self) -> None:
        kept = self._chosen()
        shown: list[Block] = [] if kept is None else [section(kept.path), *self._lines[: self.size.height]]
        self.query_one("#preview", Painted).show(*shown)

    def action_open(self) -> None:
        """Open the file under the cursor."""
        found, kept = self._found, self._chosen()
        if not isinstance(found, VersionCode) or kept is None:
            return
        place = found.place(kept)
        if place is None:
            self.app.say("the pane Files of the run opens what is there now")
        else:
            handed_in = found.version.submission
            about = f"run {found.version.run.id}"
            about += f", submission {handed_in.sequence}" if handed_in is not None else ""
            self.app.push_screen(FileScreen(place, name=kept.path, about=about))

    def action_step(self, step: int) -> None:
        """Show the code at the next submission, or the one before."""
        other = None if self._version is None else self._version.neighbour(step)
        if other is not None:
            self._show(other)
        elif self._version is None and self._found is None:
            self.app.say(NOT_READ)
        else:
            self.app.say("there is no later submission" if step > 0 else "there is no earlier submission")

    def action_diff(self) -> None:
        """Compare with the submission before."""
        version = self._version
        before = None if version is None else version.neighbour(-1)
        if version is None and self._found is None:
            self.app.say(NOT_READ)
        elif version is None or before is None:
            self.app.say("there is no earlier submission to compare with")
        else:
            self.app.push_screen(DiffScreen(before, version.wanted))

    def _show(self, wanted: Wanted) -> None:
        self._path = self.line_list.key or self._path
        self._wanted, self._found, self._version = wanted, None, None
        self.query_again()

    def _take(self, found: Sequence[Version]) -> None:
        if self._version is None or not self._version.is_as(found[0]):
            self._version = found[0]
            read = partial(code_of, found[0])
            self.in_background(read, self._take_code, failed=self._take_code, latest="code")

    def _take_code(self, found: VersionCode | Problem) -> None:
        self._found = found
        if isinstance(found, VersionCode) and self._path is None:
            entry = entry_of(found.files)
            self._path = None if entry is None else entry.path
        self.draw()
        self.refresh_frame()


class DiffScreen(ListScreen):
    """The differences between two submissions, attempts or runs: configuration, files, and their lines."""

    CONTEXTS = ("diff", "list")
    MODE = "sweep"

    def __init__(self, left: Wanted, right: Wanted) -> None:
        super().__init__()
        self._pair = (left, right)
        self._versions: tuple[Version, ...] = ()
        self._found: VersionDifference | None = None
        # Whether to draw the versions side by side; None: if there is room.
        self._beside: bool | None = None
        self._wrap = False
        # The lines of the comparison, which are many, with what they were laid out for.
        self._drawn: tuple[object, list[Line]] = (None, [])

    def queries(self) -> Queries:
        """Return the query for the two versions."""
        return {"versions": (partial(find_versions, wanted=self._pair), self._take)}

    def redraw(self) -> None:
        """Draw the comparison; it is made once and not updated."""
        shown, found = self.line_list, self._found
        if found is None:
            self.header.show(*_pair(self._versions))
            shown.show([(("  comparing", "dim"),)])
            return
        cautions = (*found.problems, *found.notes)
        self.header.show(
            *_pair((found.left, found.right)),
            *(wrapped(text, "warn", most=_MOST_LINES) for text in cautions),
        )
        width, drawing = shown.line_width, self.app.drawing
        about = (id(found), width, self._is_beside(), self._wrap, drawing.signs)
        if self._drawn[0] != about:
            lines = CodeLines(wraps=self._wrap, is_beside=self._is_beside())
            self._drawn = (about, laid_out(lines.differences(found), drawing.within(width)))
        shown.show(self._drawn[1])

    def can_do(self, key: Key) -> bool:
        """Return whether files differ, for the keys that go to their lines."""
        found = self._found
        if key.id in ("diff.open", "diff.next", "diff.beside", "diff.wrap"):
            return found is not None and bool(found.files)
        return True

    def toggled_on(self) -> Collection[str]:
        """Return the key of the versions side by side."""
        return ("diff.beside",) if self._is_beside() else ()

    def action_open(self) -> None:
        """Go from the file under the cursor to its changed lines."""
        key = self.line_list.key
        if isinstance(key, tuple) and key[0] == "file":
            self._go_to(("lines", key[1]))

    def action_file(self, step: int) -> None:
        """Go to the next file's lines, or to those of the one before."""
        heads = [line.key for line in self.line_list.lines if _is_of(line.key, "lines")]
        if not heads:
            self.app.say("no file differs" if self._found is not None else NOT_READ)
            return
        places = {line.key: place for place, line in enumerate(self.line_list.lines) if line.key is not None}
        here = places.get(self.line_list.key, 0)
        others = [key for key in heads if (places[key] - here) * step > 0]
        if others:
            self._go_to(others[0] if step > 0 else others[-1])
        else:
            self.app.say("there is no later file" if step > 0 else "there is no earlier file")

    def _go_to(self, key: Hashable) -> None:
        """Put the cursor on a line and scroll it to the top."""
        shown = self.line_list
        shown.put_cursor(key)
        place = next(place for place, line in enumerate(shown.lines) if line.key == key)
        shown.scroll_to(y=place, animate=False)

    def action_beside(self) -> None:
        """Show the two side by side, or one below the other."""
        self._beside = not self._is_beside()
        self.redraw()
        self.refresh_frame()

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self._wrap = not self._wrap
        self.redraw()

    def action_swap(self) -> None:
        """Swap the two."""
        self._pair = self._pair[::-1]
        self._versions, self._found = (), None
        self.query_again()

    def _take(self, found: Sequence[Version]) -> None:
        if not self._versions or not all(map(Version.is_as, self._versions, found)):
            self._versions = tuple(found)
            self.in_background(partial(compare, *found), self._take_difference, latest="diff")

    def _is_beside(self) -> bool:
        return self.size.width >= _SIDE_BY_SIDE if self._beside is None else self._beside

    def _take_difference(self, found: VersionDifference) -> None:
        self._found = found
        self.draw()
        self.refresh_frame()


def _is_of(key: object, kind: str) -> bool:
    return isinstance(key, tuple) and bool(key) and key[0] == kind


def _first_lines(code: VersionCode, kept: KeptFile) -> tuple[Pieces, ...]:
    """Return the first lines of a file with their numbers, highlighted, or why they can't be read."""
    try:
        content = code.read(kept)
    except Problem as problem:
        return tuple(((f"  {text}", "warn"),) for text in str(problem).splitlines())
    lexer = lexer_for(kept.path)
    lines = content[:_PREVIEWED].decode("utf-8", "replace").removesuffix("\n").split("\n")
    found: list[Pieces] = []
    for number, text in enumerate(lines[:_PREVIEWED_LINES], start=1):
        harmless = plain(text.expandtabs(_TAB), limit=_LONGEST)
        pieces: list[Piece] = [(harmless, "text")] if lexer is None else code_pieces(harmless, lexer)
        found.append(((f"{number:>5}  ", "dim"), *((part.rstrip("\n"), role) for part, role in pieces)))
    return tuple(found)


def _named(version: Version, note: str, sign: Pieces = ()) -> Iterator[Block]:
    """Yield the name of a version behind a sign, with its score, and a note."""
    handed_in = version.submission
    right: list[Piece] = []
    if handed_in is not None and handed_in.score is not None:
        right.append((f"{wording.score(handed_in.score, 9)} ", "text"))
    if handed_in is not None and handed_in.standing is not None:
        right.append((f"{wording.OUTCOME_WORDS[handed_in.standing]} ", outcome_role(handed_in.standing)))
    is_latest = version.attempt.number == version.run.attempts
    attempt = "" if is_latest else f", attempt {version.attempt.number}"
    what = f"submission {handed_in.sequence}, " if handed_in is not None else ""
    title: Pieces = (
        *sign,
        (f" {what}run {version.run.id}{attempt}", "strong"),
        (f" ({version.words})" if version.words else "", "accent"),
    )
    where = f"  {version.run.competition_id} s{version.run.seed}"
    when = f", {wording.elapsed(handed_in.elapsed_seconds)} into the run" if handed_in is not None else ""
    sweep, command = f", {version.run.sweep_id}", f", in commands {version.name}"
    forms = (f"{where}{sweep}{when}{command}", f"{where}{sweep}{command}", f"{where}{sweep}", where)
    yield at_both_ends([(*title, (form, "dim")) for form in forms], [tuple(right)])
    if note:
        yield ((f" {note}", "warn"),)


def _pair(versions: Sequence[Version]) -> Iterator[Block]:
    """Yield the names of two versions, one below the other, each with its sign."""
    signs: tuple[Piece, ...] = ((" -", "bad"), (" +", "good"))
    for sign, version in zip(signs, versions, strict=False):
        yield from _named(version, "", (sign,))


def _files(code: VersionCode) -> Iterator[Block]:
    """Yield the files of a version, and those that were not kept."""
    yield listing(_FILES, code.files, key=lambda each: each.path)
    if not code.files:
        yield (("  there is no code", "dim"),)
    if code.left_out:
        yield ()
        yield section("not kept", f"{len(code.left_out) + code.more_left_out:,}")
        yield listing(_LEFT_OUT, code.left_out, titles=False)


@dataclass(frozen=True)
class CodeLines:
    """The differences of two versions as lines.

    Attributes:
        wraps: whether long lines are wrapped instead of cut.
        is_beside: whether both versions are side by side.
    """

    wraps: bool = False
    is_beside: bool = False

    def differences(self, found: VersionDifference) -> Iterator[Block]:
        """Yield configuration, then files, then their lines."""
        yield section("configuration", _differing(len(found.settings)) if found.settings else "the same")
        if found.settings:
            yield listing(_settings(found), found.settings, key=lambda each: ("setting", each.name))
        if found.problems:
            return
        yield ()
        yield section("files", f"{_differing(len(found.files))}, {found.same_files:,} the same")
        changes = by_importance(found.files)
        yield listing(_CHANGES, changes, key=lambda each: ("file", each.path), titles=False)
        yield partial(self._lines_of, changes)

    def _lines_of(self, changes: Iterable[FileChange], drawing: Drawing) -> Iterator[Block]:
        """Draw the lines of the files that differ."""
        shown = 0
        for change in changes:
            yield Line()
            counted = (
                f"+{change.added:,} -{change.removed:,}" if change.added or change.removed else change.status
            )
            head = laid_out([section(change.path, counted)], drawing)
            yield from (replace(line, key=("lines", change.path), selectable=True) for line in head)
            if change.note:
                yield ((f"  {change.note}", "warn"),)
            for number, hunk in enumerate(change.hunks):
                if shown > _MOST_ROWS:
                    yield (("  more lines differ: 'runs diff' shows all of them", "dim"),)
                    return
                key = ("hunk", change.path, number)
                yield Line(((f"  {hunk.heading}", "dim"),), key=key, selectable=True)
                draw = self.beside if self.is_beside else self.below
                for place, pieces in enumerate(draw(hunk.rows, drawing)):
                    shown += 1
                    yield Line(pieces, key=("row", change.path, number, place), selectable=True)

    def below(self, rows: Sequence[DiffLine], drawing: Drawing) -> Iterator[Pieces]:
        """Draw the lines one below the other."""
        room = max(10, drawing.width - 15)
        starts = _starts(rows, room) if not self.wraps else {}
        for row in rows:
            numbers = "".join(f"{number or '':>5}" for number in (row.left, row.right))
            for part in self._parts(row.text, room, starts.get(id(row), 0), drawing):
                yield ((f"{numbers:>10} ", "dim"), (f"{row.sign} {part}", _ROLES[row.sign]))
                numbers = ""

    def beside(self, rows: Sequence[DiffLine], drawing: Drawing) -> Iterator[Pieces]:
        """Draw the lines side by side; replaced lines are beside their replacements."""
        half = (drawing.width - 2) // 2
        widths = (half, drawing.width - 2 - half)
        starts = _starts(rows, max(10, half - 8)) if not self.wraps else {}
        for left, right in _paired(rows):
            sides: list[list[Pieces]] = []
            for row, number, room in zip(
                (left, right), (left and left.left, right and right.right), widths, strict=True
            ):
                start = starts.get(id(row), 0)
                parts = [] if row is None else self._parts(row.text, max(10, room - 8), start, drawing)
                sign = " " if row is None else row.sign
                sides.append(
                    [
                        ((f"{'' if place else number or '':>5} ", "dim"), (f"{sign} {part}", _ROLES[sign]))
                        for place, part in enumerate(parts)
                    ]
                )
            yield from beside(sides, widths)

    def _parts(self, text: str, room: int, start: int, drawing: Drawing) -> list[str]:
        """Sanitise a line of code from a character on; cut it to a width, or wrap it into several parts."""
        ellipsis = drawing.signs.ellipsis
        shown = text.expandtabs(_TAB)[start:]
        harmless = (ellipsis if start else "") + plain(shown, limit=_LONGEST if self.wraps else 4 * room)
        return cells_of(harmless, room) if self.wraps else [fit(harmless, room, ellipsis=ellipsis)]


def _column_title(version: Version, other: Version) -> str:
    """Return what distinguishes a version from the other one, in few words."""
    if version.run.id != other.run.id:
        return f"run {version.run.id}"
    if version.attempt.id != other.attempt.id:
        return f"attempt {version.attempt.number}"
    return version.words if version.submission is None else f"submission {version.submission.sequence}"


_FILES = (
    NounField[KeptFile]("size", lambda each, _: wording.size(each.bytes), 9, right=True, role="dim"),
    NounField[KeptFile]("file", lambda each, _: each.path, 10, grows=REST),
)
_LEFT_OUT = (
    NounField[LeftOut](
        "size", lambda each, _: "" if each.bytes < 0 else wording.size(each.bytes), 9, right=True, role="dim"
    ),
    NounField[LeftOut]("file", lambda each, _: each.path, 16, grows=60, role="dim"),
    NounField[LeftOut]("why", lambda each, _: each.why, 16, grows=REST, role="dim"),
)


def _differing(count: int) -> str:
    return f"{count:,} {'differs' if count == 1 else 'differ'}"


def _settings(found: VersionDifference) -> Columns[SettingChange]:
    left, right = _column_title(found.left, found.right), _column_title(found.right, found.left)
    return (
        NounField("name", lambda each, _: each.name, 18, title="", role="dim"),
        NounField("left", lambda each, _: each.left or "none", 14, grows=60, title=left),
        NounField("right", lambda each, _: each.right or "none", 14, grows=REST, title=right),
    )


_STATUS: dict[str, Pieces] = {
    "added": (("+", "good"),),
    "removed": (("-", "bad"),),
    "changed": (("~", "accent"),),
    "unknown": (("?", "warn"),),
}
_CHANGES = (
    NounField[FileChange]("status", lambda each, _: _STATUS[each.status], 1),
    NounField[FileChange](
        "added", lambda each, _: f"+{each.added:,}" if each.added else "", 7, right=True, gap=1, role="good"
    ),
    NounField[FileChange](
        "removed",
        lambda each, _: f"-{each.removed:,}" if each.removed else "",
        7,
        right=True,
        gap=1,
        role="bad",
    ),
    NounField[FileChange]("file", lambda each, _: each.path, 20, grows=80),
    NounField[FileChange]("note", lambda each, _: each.note, 10, grows=REST, role="dim", drop=1),
)
_ROLES: dict[str, Role] = {"-": "bad", "+": "good", " ": "text"}


def _starts(rows: Sequence[DiffLine], room: int) -> dict[int, int]:
    """Return how many characters to leave out of replaced lines whose first difference would be cut, by their ids."""
    found: dict[int, int] = {}
    for left, right in _paired(rows):
        if left is None or right is None or left is right:
            continue
        texts = [side.text.expandtabs(_TAB) for side in (left, right)]
        pairs = zip(*texts, strict=False)
        same = next((place for place, (one, other) in enumerate(pairs) if one != other), min(map(len, texts)))
        if max(map(len, texts)) > room and same > room * 3 // 4:
            found |= dict.fromkeys((id(left), id(right)), same - room // 4)
    return found


def _paired(rows: Sequence[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for row in rows:
        if row.sign == "-":
            removed.append(row)
        elif row.sign == "+":
            added.append(row)
        else:
            yield from zip_longest(removed, added)
            removed, added = [], []
            yield row, row
    yield from zip_longest(removed, added)
