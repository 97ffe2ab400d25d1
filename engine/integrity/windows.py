"""Windows: an agent's logs and code as pieces that a model can read, with the lines that matter found by rules.

What an agent wrote is hostile. What is shown of it holds no control, invisible or direction-changing character, no
token of a chat's form, and a number of ours before each line, so that no line can be taken for one of ours.
"""

from __future__ import annotations

import heapq
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from engine.integrity.texts import Kind, TextFile
from foundation.problems import UsageProblem

MARKED = "marked"  # a line that matters by what else is known
HIDDEN = "hidden"  # a line with suspicious characters that nobody sees

WINDOW_CHARACTERS = 48_000
OVERLAP_CHARACTERS = 1_500
_LONGEST_LINE = 1_600
_HEAD, _TAIL, _AROUND, _MOST_AROUND = 900, 200, 120, 8
_MOST_OVERWRITTEN = 8  # states of a line of progress
_BATCH_LINES = 512
_FEW_LINES = 16
_SHORT = 160  # too short to be cut
_NUMBER_CHARACTERS = 9  # before each line
_FOLD = 4  # lines of one form that stand for all of them from here on

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,4096}\x1b\\|[ -/]*[0-~])"
)
# Printable by their category, and yet nothing is seen: variation selectors, joiners and fillers.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Innocent text has no such run of them: they carry what only a model reads, or turn what a person reads.
_HIDDEN_TEXT = re.compile(
    "[\U000e0020-\U000e007e]{8,}|[\U000e0100-\U000e01ef\ufe00-\ufe0f]{8,}|[\u200b-\u200d\u2060-\u2064\ufeff]{12,}"
    "|[\u202d\u202e\u2066-\u2068]"
)
_TAG = re.compile("[\U000e0020-\U000e007e]")
# Tokens by which models' own chat forms part speakers; a local server reads them wherever they stand.
_CHAT_TOKEN = re.compile(
    r"<(?=[|｜])|(?<=[|｜])>"
    r"|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn|im_start|im_end|system|user|assistant|human)>)"
    r"|\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\])|<(?=/?<SYS>>)",
    re.IGNORECASE,
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{160,}={0,2}")
_PROGRESS = re.compile(r"[\d\s.,:#=>?|/%\u2580-\u259f\u2800-\u28ff-]+")
_DIGITS = re.compile(r"\d+")


class Rules:
    """Patterns by the names of what they look for, in the syntax of RE2: linear in hostile text, whatever they are."""

    def __init__(self, patterns: Mapping[str, Sequence[str]]) -> None:
        """Compile them.

        Raises:
            UsageProblem: one is not a regular expression.
        """
        self._rules = {
            name: _compiled("|".join(f"(?:{one})" for one in some)) for name, some in patterns.items() if some
        }
        every = [one for some in patterns.values() for one in some]
        self._any = _compiled("|".join(f"(?:{one})" for one in every)) if every else None

    def found(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return for each line the names of those that find something in it."""
        if self._any is None or not self._any.search("\n".join(texts)):
            return [()] * len(texts)
        if len(texts) > _FEW_LINES:
            half = len(texts) // 2
            return self.found(texts[:half]) + self.found(texts[half:])
        return [tuple(name for name, rule in self._rules.items() if rule.search(text)) for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where in a line something is found."""
        return [] if self._any is None else [found.span() for found in self._any.finditer(text)]


def _compiled(expression: str) -> Any:
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise UsageProblem(f"'{expression}' is not a regular expression", text) from error


@dataclass(frozen=True)
class Line:
    """A line as it is shown.

    Attributes:
        number: in its file, counted from 1.
        text: without what is not shown.
        hidden: what of it could not be seen but be read by a model, where that is suspicious.
    """

    number: int
    text: str
    hidden: str = ""


@dataclass(frozen=True)
class Passage:
    """Lines of one file that follow one another."""

    path: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Window:
    """What a model reads at once.

    Attributes:
        hits: the names of the rules that found something here, each with the number of lines.
    """

    kind: Kind
    passages: tuple[Passage, ...]
    hits: Mapping[str, int]

    @cached_property
    def lines(self) -> tuple[tuple[str, Line], ...]:
        """All lines with their files, in the order in which the text numbers them from 1."""
        return tuple((passage.path, line) for passage in self.passages for line in passage.lines)

    @cached_property
    def text(self) -> str:
        """What is shown: each line with a number of its own, files parted by lines without one."""
        written, number = [], 0
        for passage in self.passages:
            written.append(f"=== {shown(passage.path)}, from line {passage.lines[0].number}")
            for line in passage.lines:
                number += 1
                written.append(f"{number:>6}| {line.text}")
        return "\n".join(written)


def shown(text: str) -> str:
    """Return one line of hostile text as a model may be shown it."""
    if not (text.isascii() and text.isprintable()):
        text = _ANSI.sub("", text).replace("\t", "    ")
        # Format, private, unassigned and control characters are not printable, and nor are unusual spaces.
        text = "".join(one if one.isprintable() else " " if one.isspace() else "" for one in text)
        text = _BLANK.sub("", text)
    if "<" not in text and "[" not in text and "|" not in text and "｜" not in text:
        return text
    return _CHAT_TOKEN.sub(lambda found: f"{found[0]} " if found[0] in "<[" else f" {found[0]}", text)


def hidden_text(text: str) -> str:
    """Return what invisible characters of a line say or do, in words; empty where there is nothing suspicious."""
    if text.isascii() or not _HIDDEN_TEXT.search(text):
        return ""
    said = "".join(chr(ord(one) - 0xE0000) for one in _TAG.findall(text)[:200])
    if said:
        return f"invisible text: {said}"
    names = {unicodedata.name(one, "unnamed") for one in text if not one.isprintable() or _BLANK.match(one)}
    return f"invisible characters: {', '.join(sorted(names)[:3]).lower()}"


def lines_of(raw_lines: Iterable[bytes], rules: Rules) -> Iterator[tuple[Line, tuple[str, ...]]]:
    """Yield the lines of a file as they are shown, each with the names of the rules that found something in it.

    Of progress that was written over and over the last state stays, of many lines of one form the first and the last;
    what is long or encoded is cut, but for what rules find in it.
    """
    form, held, alike = "", None, 0
    for line, found in _numbered(raw_lines, rules):
        this_form = _DIGITS.sub("0", line.text)
        if this_form == form and not line.hidden:
            alike += 1
            if alike >= _FOLD:
                held = line, found
                continue
        else:
            yield from _last_of(held, alike)
            form, held, alike = this_form, None, 1
        yield line, found
    yield from _last_of(held, alike)


def _numbered(raw_lines: Iterable[bytes], rules: Rules) -> Iterator[tuple[Line, tuple[str, ...]]]:
    lines, number = iter(raw_lines), 0
    while batch := [_decoded(raw) for raw in islice(lines, _BATCH_LINES)]:
        texts = [shown(text) for text in batch]
        # One search for many lines: in most of them nothing is found.
        hits = rules.found(texts)
        for raw_text, text, found in zip(batch, texts, hits, strict=True):
            number += 1
            yield Line(number, _cut(text, rules, has_hits=bool(found)), hidden_text(raw_text)), found


def _decoded(raw: bytes) -> str:
    """Return a line's text; of what was written over, the last of each form, so that nothing can be hidden so."""
    text = raw.rstrip(b"\r").decode("utf-8", "replace")
    if "\r" not in text:
        return text
    states = {_PROGRESS.sub("", state): state for state in text.split("\r") if state.strip()}
    last = list(states.values())
    more = len(last) - _MOST_OVERWRITTEN
    return " / ".join([*([f"[{more:,} more states]"] if more > 0 else []), *last[-_MOST_OVERWRITTEN:]])


def _last_of(held: tuple[Line, tuple[str, ...]] | None, alike: int) -> Iterator[tuple[Line, tuple[str, ...]]]:
    if held is None:
        return
    line, found = held
    left_out = alike - _FOLD
    if left_out:
        yield Line(line.number - left_out, f"[{left_out:,} more lines of this form]"), ()
    yield line, found


def _cut(text: str, rules: Rules, *, has_hits: bool) -> str:
    """Shorten what is encoded or long; what rules find in it stays."""
    if len(text) < _SHORT:
        return text
    text = _BASE64.sub(
        lambda found: f"{found[0][:48]}[... {len(found[0]) - 48:,} more of such characters]", text
    )
    if len(text) <= _LONGEST_LINE:
        return text
    searched = text[_HEAD:]
    spans = rules.spans(searched)[:_MOST_AROUND] if has_hits else []
    around = " [...] ".join(searched[max(0, start - _AROUND) : end + _AROUND] for start, end in spans)
    left_out = len(text) - _HEAD - _TAIL
    return (
        f"{text[:_HEAD]} [... {left_out:,} characters] {around}{' [...] ' if around else ''}{text[-_TAIL:]}"
    )


def windows_of(
    files: Iterable[TextFile],
    rules: Rules,
    marked: Mapping[str, AbstractSet[int]] | None = None,
    *,
    characters: int = WINDOW_CHARACTERS,
) -> Iterator[Window]:
    """Cut files into windows at the ends of lines; a large file's overlap, small files stand together.

    Args:
        files: what is cut; logs and code never stand in one window.
        rules: find the lines that matter, by name.
        marked: lines that matter by what else is known, by file.
        characters: how large a window is.
    """
    builders: dict[Kind, _Builder] = {}
    for file in files:
        builder = builders.setdefault(file.kind, _Builder(file.kind, characters))
        numbers = (marked or {}).get(file.path, frozenset())
        for line, hits in lines_of(file.lines, rules):
            yield from builder.add(file.path, line, (*hits, MARKED) if line.number in numbers else hits)
        builder.end_file()
    for builder in builders.values():
        yield from builder.rest()


class _Builder:
    """Makes the windows of one kind of text."""

    def __init__(self, kind: Kind, characters: int) -> None:
        self._kind: Kind = kind
        self._most = characters
        self._passages: list[Passage] = []
        self._path = ""
        self._lines: list[tuple[Line, tuple[str, ...]]] = []
        self._hits: dict[str, int] = {}
        self._size = 0

    def add(self, path: str, line: Line, hits: tuple[str, ...]) -> Iterator[Window]:
        if self._size + _size(line) > self._most and self._size:
            overlap = self._overlap() if path == self._path else []
            yield from self.rest()
            for one, its_hits in overlap:
                self._take(one, its_hits)
        self._path = path
        self._take(line, hits)

    def end_file(self) -> None:
        if any(line.text.strip() for line, _ in self._lines):
            self._passages.append(Passage(self._path, tuple(line for line, _ in self._lines)))
        self._lines = []

    def rest(self) -> Iterator[Window]:
        self.end_file()
        if self._passages:
            yield Window(self._kind, tuple(self._passages), dict(self._hits))
        self._passages, self._hits, self._size = [], {}, 0

    def _take(self, line: Line, hits: tuple[str, ...]) -> None:
        self._lines.append((line, hits))
        self._size += _size(line)
        for name in (*hits, *([HIDDEN] if line.hidden else [])):
            self._hits[name] = self._hits.get(name, 0) + 1

    def _overlap(self) -> list[tuple[Line, tuple[str, ...]]]:
        kept, size = 0, 0
        for line, _ in reversed(self._lines):
            size += _size(line)
            if size > min(OVERLAP_CHARACTERS, self._most // 4):
                break
            kept += 1
        return self._lines[len(self._lines) - kept :]


def _size(line: Line) -> int:
    return len(line.text) + _NUMBER_CHARACTERS


def most_telling(windows: Iterable[Window], most: int, seed: str = "") -> tuple[list[Window], int]:
    """Choose the windows that are read: by what rules found in them, then the first and the last, then in order.

    A quarter is drawn by lot, so that lines that are made to be found can't keep the others from being read.

    Args:
        windows: all of them; no more than are chosen are ever in memory.
        most: how many to choose at most.
        seed: what decides by lot, the same for the same.

    Returns:
        The chosen ones, in order, and how many there are.
    """
    draw = random.Random(seed)  # noqa: S311 - the same each time, so that answers are found again
    telling: list[tuple[tuple[int, int, bool, int], Window]] = []
    drawn: list[tuple[int, Window]] = []
    total, last = 0, None
    for number, window in enumerate(windows):
        total, last = number + 1, window
        place = len(window.hits), sum(window.hits.values()), number == 0, -number
        if len(telling) < most:
            heapq.heappush(telling, (place, window))
        elif place > telling[0][0]:
            heapq.heapreplace(telling, (place, window))
        if len(drawn) < most // 4:
            drawn.append((number, window))
        elif (spot := draw.randrange(total)) < len(drawn):
            drawn[spot] = number, window
    is_there = any(window is last for _, window in telling)
    if last is not None and total > most > 1 and not telling[0][0][0] and not is_there:
        heapq.heapreplace(telling, ((0, 0, True, 1 - total), last))
    by_place = [
        (-place[3], window) for place, window in sorted(telling, key=lambda one: one[0], reverse=True)
    ]
    chosen = dict(by_place[: most - len(drawn)]) | dict(drawn)
    for number, window in by_place:
        if len(chosen) < most:
            chosen.setdefault(number, window)
    return [chosen[number] for number in sorted(chosen)], total
