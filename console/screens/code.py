"""Screens of agents' code: the files at a submission, and the differences between two versions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from rich.cells import cell_len
from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Columns, NounField
from mlebench_console.console.nouns.outcomes import outcome_role
from mlebench_console.console.pieces import (
    Line,
    beside,
    cells_of,
    cut,
    fit,
    fitting,
    foreign,
    heading,
    spread,
    width_of,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain
from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import NOT_READ, Queries
from mlebench_console.console.tui.widgets.log_view import code_pieces, lexer_for
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.table import Table
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
        shown, found = self.line_list, self._found
        code = CodeLines(shown.line_width, self.app.drawing)
        if isinstance(found, Problem):
            self.header.show(*(code.named(self._version, "") if self._version else ()))
            after = self.app.drawing.keys("code.after")
            hint = f"{after} goes to the submissions after it, and then to the code as it is now"
            can = self._version is not None and self._version.neighbour(1) is not None
            shown.show(list(code.problem(found, hint if can else found.next_step)))
        elif found is not None:
            self.header.show(*code.named(found.version, found.note))
            lines = code.files(found)
            shown.show(lines)
            if any(line.key == self._path for line in lines if line.selectable):
                shown.put_cursor(self._path)
                self._path = None
            shown.styles.height = min(len(lines), self.size.height * 9 // 20)
        elif self._version is not None:
            self.header.show(*code.named(self._version, ""))
            shown.show([Line((("  reading the code", "dim"),))])
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

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty if it would do nothing."""
        return super().label_of(key) if self._can_do(key) else ""

    def _can_do(self, key: Key) -> bool:
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
        kept, preview, width = self._chosen(), self.query_one("#preview", Painted), self.size.width
        if kept is None:
            preview.show()
            return
        title = heading(foreign(kept.path, max(10, width - 12)).rstrip(), width, self.app.signs)
        lines = self._lines[: self.size.height]
        preview.show(title, *(cut(line, width - 1, self.app.signs.ellipsis) for line in lines))

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

    def _take(self, found: Sequence[Version] | Problem) -> None:
        if isinstance(found, Problem):
            self._found = found
        elif self._version is None or not self._version.is_as(found[0]):
            self._version = found[0]
            self.in_background(partial(_read, found[0]), self._take_code, latest="code")

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
        self._found: VersionDifference | Problem | None = None
        # Whether to draw the versions side by side; None: if there is room.
        self._beside: bool | None = None
        self._wrap = False
        self._drawn: tuple[object, list[Line]] = (None, [])

    def queries(self) -> Queries:
        """Return the query for the two versions."""
        return {"versions": (partial(find_versions, wanted=self._pair), self._take)}

    def redraw(self) -> None:
        """Draw the comparison; it is made once and not updated."""
        shown, found = self.line_list, self._found
        width, signs = shown.line_width, self.app.signs
        lines = CodeLines(width, self.app.drawing, wraps=self._wrap)
        if isinstance(found, Problem):
            self.header.show()
            shown.show(list(lines.problem(found, found.next_step)))
        elif found is None:
            self.header.show(*lines.pair(self._versions) if self._versions else ())
            shown.show([Line((("  comparing", "dim"),))])
        else:
            self.header.show(*lines.pair((found.left, found.right)), *lines.cautions(found))
            beside = self._is_beside()
            about = (id(found), width, beside, self._wrap, signs)
            if self._drawn[0] != about:
                self._drawn = (
                    about,
                    list(lines.differences(found, is_beside=beside)),
                )
            shown.show(self._drawn[1])

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty if it would do nothing."""
        return super().label_of(key) if self._can_do(key) else ""

    def _can_do(self, key: Key) -> bool:
        """Return whether files differ, for the keys that go to their lines."""
        found = self._found
        if key.id in ("diff.open", "diff.next", "diff.beside", "diff.wrap"):
            return isinstance(found, VersionDifference) and bool(found.files)
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

    def _take(self, found: Sequence[Version] | Problem) -> None:
        if isinstance(found, Problem):
            self._found = found
        elif not self._versions or not all(map(Version.is_as, self._versions, found)):
            self._versions = tuple(found)
            self.in_background(partial(compare, *found), self._take_difference, latest="diff")

    def _is_beside(self) -> bool:
        return self.size.width >= _SIDE_BY_SIDE if self._beside is None else self._beside

    def _take_difference(self, found: VersionDifference) -> None:
        self._found = found
        self.draw()
        self.refresh_frame()


def _read(version: Version) -> VersionCode | Problem:
    try:
        return code_of(version)
    except Problem as problem:
        return problem


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


@dataclass(frozen=True)
class CodeLines:
    """The code of versions and its differences as lines, drawn for a width.

    Attributes:
        wraps: whether long lines are wrapped instead of cut.
    """

    width: int
    drawing: Drawing
    wraps: bool = False

    def problem(self, problem: Problem, hint: str) -> Iterator[Line]:
        """Return why there is no code, and what to do."""
        what = problem.cause
        parts: tuple[Piece, ...] = ((what, "warn"), (hint, "dim"))
        for text, role in parts:
            yield from (
                Line(((f"  {part}", role),)) for part in cells_of(plain(text), max(20, self.width - 4))
            )

    def named(self, version: Version, note: str) -> tuple[Pieces, ...]:
        """Return the name of a version, with its score."""
        width = self.width
        handed_in = version.submission
        right: list[Piece] = []
        if handed_in is not None and handed_in.score is not None:
            right.append((f"{wording.score(handed_in.score, 9)} ", "text"))
        if handed_in is not None and handed_in.standing is not None:
            right.append((f"{wording.OUTCOME_WORDS[handed_in.standing]} ", outcome_role(handed_in.standing)))
        attempt = (
            f", attempt {version.attempt.number}" if version.attempt.number != version.run.attempts else ""
        )
        what = f"submission {handed_in.sequence}, " if handed_in is not None else ""
        where = f"  {foreign(version.run.competition_id, 60).rstrip()} s{version.run.seed}"
        when = f", {wording.elapsed(handed_in.elapsed_seconds)} into the run" if handed_in is not None else ""
        title: Pieces = (
            (f" {what}run {version.run.id}{attempt}", "strong"),
            (f" ({version.words})" if version.words else "", "accent"),
        )
        room = max(20, width - width_of((*title, *right)) - 1)
        forms: list[Pieces] = [
            (
                (
                    f"{where}, {foreign(version.run.sweep_id, 60).rstrip()}{when}, in commands {version.name}",
                    "dim",
                ),
            ),
            ((f"{where}, {foreign(version.run.sweep_id, 60).rstrip()}, in commands {version.name}", "dim"),),
            ((f"{where}, {foreign(version.run.sweep_id, 60).rstrip()}", "dim"),),
            ((fit(where, min(room, cell_len(where)), ellipsis=self.drawing.signs.ellipsis), "dim"),),
        ]
        lines: list[Pieces] = [spread((*title, *fitting(forms, room)), tuple(right), width)]
        if note:
            lines.append(((f" {foreign(note, width - 2).rstrip()}", "warn"),))
        return tuple(lines)

    def pair(self, versions: Sequence[Version]) -> tuple[Pieces, ...]:
        """Name the two, one below the other, each with its sign."""
        lines: list[Pieces] = []
        for sign, role, version in zip("-+", ("bad", "good"), versions, strict=True):
            (named, *_) = replace(self, width=self.width - 2).named(version, "")
            drawn: Role = "bad" if role == "bad" else "good"
            lines.append(((f" {sign}", drawn), *named))
        return tuple(lines)

    def cautions(self, found: VersionDifference) -> tuple[Pieces, ...]:
        """Name the two, one below the other, each with its sign."""
        room = max(20, self.width - 2)
        return tuple(
            ((f" {part}", "warn"),)
            for text in (*found.problems, *found.notes)
            for part in cells_of(foreign(text, _MOST_LINES * room).rstrip(), room)
        )

    def files(self, code: VersionCode) -> list[Line]:
        """Return the problems and notes of a comparison."""
        width, drawing = self.width, self.drawing
        table = Table(_FILES, code.files, width, drawing)
        lines = [table.heading(), *(table.line(each, key=each.path) for each in code.files)]
        if not code.files:
            lines.append(Line((("  there is no code", "dim"),)))
        if code.left_out:
            more = f"{len(code.left_out) + code.more_left_out:,}"
            lines += [Line(), Line(heading("not kept", width, drawing.signs, note=more))]
            missing = Table(_LEFT_OUT, code.left_out, width, drawing)
            lines += [missing.line(each) for each in code.left_out]
        return lines

    def differences(self, found: VersionDifference, *, is_beside: bool) -> Iterator[Line]:
        """Draw configuration, then files, then their lines."""
        width, drawing = self.width, self.drawing
        count = _differing(len(found.settings)) if found.settings else "the same"
        yield Line(heading("configuration", width, drawing.signs, note=count))
        settings = Table(_settings(found), found.settings, width, drawing)
        if found.settings:
            yield settings.heading()
        for each in found.settings:
            yield settings.line(each, key=("setting", each.name))
        if found.problems:
            return
        yield Line()
        same = f"{_differing(len(found.files))}, {found.same_files:,} the same"
        yield Line(heading("files", width, drawing.signs, note=same))
        changes = by_importance(found.files)
        table = Table(_CHANGES, changes, width, drawing)
        for change in changes:
            yield table.line(change, key=("file", change.path))
        shown = 0
        for change in changes:
            yield Line()
            yield self._head(change)
            if change.note:
                yield Line(((f"  {foreign(change.note, width - 3).rstrip()}", "warn"),))
            for number, hunk in enumerate(change.hunks):
                if shown > _MOST_ROWS:
                    yield Line((("  more lines differ: 'runs diff' shows all of them", "dim"),))
                    return
                yield Line(
                    ((f"  {hunk.heading}", "dim"),), key=("hunk", change.path, number), selectable=True
                )
                drawn = self._beside(hunk.rows) if is_beside else self.below(hunk.rows)
                for place, pieces in enumerate(drawn):
                    shown += 1
                    yield Line(pieces, key=("row", change.path, number, place), selectable=True)

    def _head(self, change: FileChange) -> Line:
        """Return the files of a version, and those that were not kept."""
        width = self.width
        counted = (
            f"+{change.added:,} -{change.removed:,}" if change.added or change.removed else change.status
        )
        name = foreign(change.path, max(10, width - len(counted) - 12)).rstrip()
        return Line(
            heading(name, width, self.drawing.signs, note=counted),
            key=("lines", change.path),
            selectable=True,
        )

    def below(self, rows: Sequence[DiffLine]) -> Iterator[Pieces]:
        """Draw the lines one below the other."""
        width, wraps = self.width, self.wraps
        starts = _starts(rows, max(10, width - 15)) if not wraps else {}
        for row in rows:
            left, right = (f"{number or '':>5}" for number in (row.left, row.right))
            for place, part in enumerate(
                self._parts(row.text, max(10, width - 15), start=starts.get(id(row), 0))
            ):
                numbers = f"{left}{right}" if not place else " " * 10
                yield ((f"{numbers} ", "dim"), (f"{row.sign} {part}", _ROLES[row.sign]))

    def _beside(self, rows: Sequence[DiffLine]) -> Iterator[Pieces]:
        """Draw the lines side by side; replaced lines are beside their replacements."""
        half = (self.width - 2) // 2
        widths = (half, self.width - 2 - half)
        starts = _starts(rows, max(10, half - 8)) if not self.wraps else {}
        for left, right in _paired(rows):
            numbers = (left.left if left else None, right.right if right else None)
            sides = zip((left, right), numbers, widths, strict=True)
            yield from beside(
                [self._half(row, number, room, starts.get(id(row), 0)) for row, number, room in sides], widths
            )

    def _half(self, row: DiffLine | None, number: int | None, room: int, start: int) -> list[Pieces]:
        """Draw a line of one side, from a character on."""
        parts = [] if row is None else self._parts(row.text, max(10, room - 8), start=start)
        return [
            (
                (f"{number or '':>5} " if not place else " " * 6, "dim"),
                (f"{row.sign} {part}", _ROLES[row.sign]),
            )
            for place, part in enumerate(parts)
            if row is not None
        ]

    def _parts(self, text: str, room: int, *, start: int = 0) -> list[str]:
        """Sanitise a line of code from a character on; cut it to a width, or wraps it into several parts."""
        drawing, wraps = self.drawing, self.wraps
        before = drawing.signs.ellipsis if start else ""
        shown = text.expandtabs(_TAB)[start:]
        harmless = before + plain(shown, limit=_LONGEST if wraps else 4 * room)
        return cells_of(harmless, room) if wraps else [fit(harmless, room, ellipsis=drawing.signs.ellipsis)]


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
