"""Windows: pieces of an agent's logs and code for a model to read, with rules that find the lines that matter.

The text is hostile. Shown lines contain no control, invisible or direction-changing characters and no tokens of chat
templates, and each begins with our line number, so that none can be taken for ours.
"""

from __future__ import annotations

import heapq
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from mlebench_console.engine.integrity.texts import Kind, TextFile
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state.integrity import Excerpt

MARKED = "marked"  # a line with a finding of another detector
HIDDEN = "hidden"  # a line with suspicious invisible characters

WINDOW_CHARACTERS = 48_000
OVERLAP_CHARACTERS = 1_500
_LONGEST_LINE = 1_600
_HEAD, _TAIL, _AROUND, _MOST_AROUND = 900, 200, 120, 8
_MOST_OVERWRITTEN = 8  # states of an overwritten progress line
_BATCH_LINES = 512
_FEW_LINES = 16
_SHORT = 160  # too short to be cut
_NUMBER_CHARACTERS = 9  # before each line
_FOLD = 4  # further lines that differ only in digits are folded

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,4096}\x1b\\|[ -/]*[0-~])"
)
# Invisible although their category is printable: variation selectors, joiners and fillers.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Runs of these don't occur in innocent text: they carry text that only a model reads, or reverse the visible text.
_HIDDEN_TEXT = re.compile(
    "[\U000e0020-\U000e007e]{8,}|[\U000e0100-\U000e01ef\ufe00-\ufe0f]{8,}|[\u200b-\u200d\u2060-\u2064\ufeff]{12,}"
    "|[\u202d\u202e\u2066-\u2068]"
)
_TAG = re.compile("[\U000e0020-\U000e007e]")
# Tokens that separate speakers in chat templates; a local server interprets them anywhere in a prompt.
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
    """Named patterns in RE2 syntax, whose run time is linear in hostile text."""

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
        """Return for each line the names of the patterns that match it."""
        if self._any is None or not self._any.search("\n".join(texts)):
            return [()] * len(texts)
        if len(texts) > _FEW_LINES:
            half = len(texts) // 2
            return self.found(texts[:half]) + self.found(texts[half:])
        return [tuple(name for name, rule in self._rules.items() if rule.search(text)) for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the positions of all matches in a line."""
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
class NumberedLine:
    """A line as it is shown.

    Attributes:
        number: in its file, counted from 1.
        text: the shown text.
        hidden: a description of suspicious invisible characters that a model could read; empty without any.
        hits: the names of the rules that match it.
    """

    number: int
    text: str
    hidden: str = ""
    hits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Window:
    """The text that a model reads in one call.

    Attributes:
        lines: with their files, in the order in which the text numbers them from 1.
        hits: the number of matching lines by rule.
    """

    kind: Kind
    lines: tuple[tuple[str, NumberedLine], ...]
    hits: Mapping[str, int]

    def excerpt(self, number: int) -> Excerpt:
        """Return a line by its number in the text."""
        path, line = self.lines[number - 1]
        return Excerpt(path, line.number, line.number, line.text)

    @cached_property
    def text(self) -> str:
        """The shown text: numbered lines, with an unnumbered heading for each file."""
        written, last = [], ""
        for number, (path, line) in enumerate(self.lines, start=1):
            if path != last:
                written.append(f"=== {safe_text(path)}, from line {line.number}")
                last = path
            written.append(f"{number:>6}| {line.text}")
        return "\n".join(written)


def safe_text(text: str) -> str:
    """Return one line of hostile text in a form that is safe to show to a model."""
    if not (text.isascii() and text.isprintable()):
        text = _ANSI.sub("", text).replace("\t", "    ")
        # Format, private, unassigned and control characters are not printable, and nor are unusual spaces.
        text = "".join(one if one.isprintable() else " " if one.isspace() else "" for one in text)
        text = _BLANK.sub("", text)
    if "<" not in text and "[" not in text and "|" not in text and "｜" not in text:
        return text
    return _CHAT_TOKEN.sub(lambda found: f"{found[0]} " if found[0] in "<[" else f" {found[0]}", text)


def hidden_text(text: str) -> str:
    """Describe the suspicious invisible characters of a line; empty where there are none."""
    if text.isascii() or not _HIDDEN_TEXT.search(text):
        return ""
    message = "".join(chr(ord(one) - 0xE0000) for one in _TAG.findall(text)[:200])
    if message:
        return f"invisible text: {message}"
    names = {unicodedata.name(one, "unnamed") for one in text if not one.isprintable() or _BLANK.match(one)}
    return f"invisible characters: {', '.join(sorted(names)[:3]).lower()}"


def lines_of(raw_lines: Iterable[bytes], rules: Rules) -> Iterator[NumberedLine]:
    """Yield the shown lines of a file.

    An overwritten progress line is reduced to its last state, many lines that differ only in digits to the first and
    the last ones; long or encoded parts are cut out, except around matches of rules.
    """
    form, last, alike = "", None, 0
    for line in _numbered(raw_lines, rules):
        this_form = _DIGITS.sub("0", line.text)
        if this_form == form and not line.hidden:
            alike += 1
            if alike >= _FOLD:
                last = line
                continue
        else:
            yield from _last_of(last, alike)
            form, last, alike = this_form, None, 1
        yield line
    yield from _last_of(last, alike)


def _numbered(raw_lines: Iterable[bytes], rules: Rules) -> Iterator[NumberedLine]:
    lines, number = iter(raw_lines), 0
    while batch := [_decoded(raw) for raw in islice(lines, _BATCH_LINES)]:
        texts = [safe_text(text) for text in batch]
        # One search for many lines, because most of them have no match.
        for raw_text, text, hits in zip(batch, texts, rules.found(texts), strict=True):
            number += 1
            yield NumberedLine(number, _cut(text, rules, has_hits=bool(hits)), hidden_text(raw_text), hits)


def _decoded(raw: bytes) -> str:
    """Return a line's text; of overwritten states, the last of each form, so that overwriting can't hide anything."""
    text = raw.rstrip(b"\r").decode("utf-8", "replace")
    if "\r" not in text:
        return text
    states = {_PROGRESS.sub("", state): state for state in text.split("\r") if state.strip()}
    last = list(states.values())
    more = len(last) - _MOST_OVERWRITTEN
    return " / ".join([*([f"[{more:,} more states]"] if more > 0 else []), *last[-_MOST_OVERWRITTEN:]])


def _last_of(last: NumberedLine | None, alike: int) -> Iterator[NumberedLine]:
    if last is None:
        return
    left_out = alike - _FOLD
    if left_out:
        yield NumberedLine(last.number - left_out, f"[{left_out:,} more lines of this form]")
    yield last


def _cut(text: str, rules: Rules, *, has_hits: bool) -> str:
    """Shorten encoded or long text, keeping the matches of rules."""
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
    """Cut files into windows at line ends; windows of a large file overlap, small files share a window.

    Args:
        files: the files to cut; logs and code never share a window.
        rules: find the lines that matter, by name.
        marked: the numbers of lines with findings of other detectors, by file.
        characters: the size of a window.
    """
    builders: dict[Kind, _Builder] = {}
    for file in files:
        builder = builders.setdefault(file.kind, _Builder(file.kind, characters))
        numbers = (marked or {}).get(file.path, frozenset())
        for line in lines_of(file.lines, rules):
            is_marked = line.number in numbers
            yield from builder.add(file.path, replace(line, hits=(*line.hits, MARKED)) if is_marked else line)
        builder.end_file()
    for builder in builders.values():
        yield from builder.rest()


class _Builder:
    """Builds the windows of one kind of text."""

    def __init__(self, kind: Kind, characters: int) -> None:
        self._kind: Kind = kind
        self._most = characters
        self._lines: list[tuple[str, NumberedLine]] = []
        self._begin = 0  # of the last file, among the lines
        self._hits: dict[str, int] = {}
        self._size = 0

    def add(self, path: str, line: NumberedLine) -> Iterator[Window]:
        if self._size + _size(line) > self._most and self._size:
            overlap = self._overlap()
            yield from self.rest()
            for one in overlap:
                self._take(path, one)
        self._take(path, line)

    def end_file(self) -> None:
        if not any(line.text.strip() for _, line in self._lines[self._begin :]):
            del self._lines[self._begin :]
        self._begin = len(self._lines)

    def rest(self) -> Iterator[Window]:
        self.end_file()
        if self._lines:
            yield Window(self._kind, tuple(self._lines), dict(self._hits))
        self._lines, self._begin, self._hits, self._size = [], 0, {}, 0

    def _take(self, path: str, line: NumberedLine) -> None:
        self._lines.append((path, line))
        self._size += _size(line)
        for name in (*line.hits, *([HIDDEN] if line.hidden else [])):
            self._hits[name] = self._hits.get(name, 0) + 1

    def _overlap(self) -> list[NumberedLine]:
        """Return the last lines of the file that goes on."""
        kept: list[NumberedLine] = []
        size = 0
        for _, line in reversed(self._lines[self._begin :]):
            size += _size(line)
            if size > min(OVERLAP_CHARACTERS, self._most // 4):
                break
            kept.insert(0, line)
        return kept


def _size(line: NumberedLine) -> int:
    return len(line.text) + _NUMBER_CHARACTERS


def most_telling(windows: Iterable[Window], most: int, seed: str = "") -> tuple[list[Window], int]:
    """Choose the windows to read: those with matches of rules, then the first and the last, then in order.

    A quarter is drawn at random, so that planted matches can't keep all other windows from being read.

    Args:
        windows: all of them; only chosen ones are kept in memory.
        most: how many to choose at most.
        seed: of the random choice.

    Returns:
        The chosen windows, in order, and the total number of windows.
    """
    draw = random.Random(seed)  # noqa: S311 - reproducible, so that cached answers can be used
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
    has_last = any(window is last for _, window in telling)
    if last is not None and total > most > 1 and not telling[0][0][0] and not has_last:
        heapq.heapreplace(telling, ((0, 0, True, 1 - total), last))
    by_place = [
        (-place[3], window) for place, window in sorted(telling, key=lambda one: one[0], reverse=True)
    ]
    chosen = dict(by_place[: most - len(drawn)]) | dict(drawn)
    for number, window in by_place:
        if len(chosen) < most:
            chosen.setdefault(number, window)
    return [chosen[number] for number in sorted(chosen)], total
