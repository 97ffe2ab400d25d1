"""An agent's code at a submission, and the differences in code and configuration between two versions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath

from rapidfuzz.distance import LCSseq

from mlebench_console.competitions.model import Competition
from mlebench_console.console import wording
from mlebench_console.console.nouns.competition import competition
from mlebench_console.console.nouns.submission import best_of
from mlebench_console.console.views.run import DEVICES, configuration
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.code_snapshots import (
    OBJECTS,
    CodeSnapshot,
    KeptFile,
    LeftOut,
    read_kept,
    read_now,
    read_snapshot,
)
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.problems import DataProblem, Problem, UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import runs, submissions, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Attempt, Run, Submission, Sweep

BEST, FINAL, NOW = "best", "final", "now"
_NAME = re.compile(
    rf"(?P<run>\d+|.*/\d+)(?:\.(?P<attempt>[1-9]\d*))?(?:@(?P<submission>[1-9]\d*|{BEST}|{FINAL}|{NOW}))?"
)
# Limits of one comparison, so that no code of an agent can make it take minutes or gigabytes; a step compares a line
# with a line, a billion of them take half a second and 130 MB.
_MOST_STEPS = 1_000_000_000
_MOST_LINES = 100_000
_CONTEXT = 3
_LATE_SECONDS = 60.0
# The names of the scripts that agents start with, the most telling first; and what else is code rather than data.
_ENTRIES = (
    "main",
    "run",
    "solution",
    "best_solution",
    "submission",
    "train",
    "pipeline",
    "predict",
    "inference",
)
_CODE = frozenset(
    {".py", ".ipynb", ".sh", ".r", ".jl", ".cpp", ".cu", ".c", ".rs", ".go", ".java", ".js", ".ts"}
)


@dataclass(frozen=True)
class Wanted:
    """A reference to a version; by default the latest attempt and its best submission.

    Attributes:
        submission: its number, `best`, `final` or `now`.
    """

    run_id: int
    attempt: int | None = None
    submission: str = ""


@dataclass(frozen=True)
class Version:
    """The code of an attempt at one submission, or its current code where `submission` is None.

    Attributes:
        handed_in: the numbers of all submissions of the attempt.
        best: whether no other submission of the attempt has a better score.
    """

    state_dir: Path
    run: Run
    sweep: Sweep
    attempt: Attempt
    competition: Competition | None
    submission: Submission | None
    handed_in: tuple[int, ...] = ()
    best: bool = False

    @property
    def wanted(self) -> Wanted:
        """A reference by which it can be found again."""
        which = NOW if self.submission is None else str(self.submission.sequence)
        return Wanted(self.run.id, self.attempt.number, which)

    def neighbour(self, step: int) -> Wanted | None:
        """Return the next or previous submission; after the last one comes the current code. None at the ends."""
        order = [*map(str, self.handed_in), NOW]
        place = order.index(self.wanted.submission) + step
        return replace(self.wanted, submission=order[place]) if 0 <= place < len(order) else None

    def is_as(self, other: Version) -> bool:
        """Return whether another object is the same version with the same grade."""
        return self.wanted == other.wanted and self.submission == other.submission

    @property
    def folder(self) -> Path:
        """The attempt's directory."""
        return self.state_dir / self.attempt.directory

    @property
    def name(self) -> str:
        """Its name on the command line: `17@3`, `17.1@3` for an attempt before the latest, `17@now`."""
        attempt = "" if self.attempt.number == self.run.attempts else f".{self.attempt.number}"
        return f"{self.run.id}{attempt}@{NOW if self.submission is None else self.submission.sequence}"

    @property
    def words(self) -> str:
        """A description: `best`, `final`, or that it is the current code, or what an ended run has left."""
        if self.submission is None:
            return "as it was left" if self.run.has_ended else "as it is now"
        signs = ((BEST, self.best), (FINAL, self.submission.final))
        return ", ".join(word for word, true in signs if true)

    @property
    def title(self) -> str:
        """Its name, description, competition, seed and sweep, the most important first."""
        words = f" ({self.words})" if self.words else ""
        return f"{self.name}{words}  {self.run.competition_id} s{self.run.seed}, {self.run.sweep_id}"


@dataclass(frozen=True)
class VersionCode:
    """The code of a version: its files, the files left out, and a note.

    Attributes:
        read: returns the content of a file.
        place: returns the path of a file on the disk; None where the content is only in memory.
        note: what a reader should know, such as that the snapshot was taken late.
    """

    version: Version
    files: tuple[KeptFile, ...]
    left_out: tuple[LeftOut, ...]
    more_left_out: int
    read: Callable[[KeptFile], bytes]
    place: Callable[[KeptFile], Path | None]
    note: str = ""

    def file(self, path: str) -> KeptFile:
        """Find a file by its path.

        Raises:
            UsageProblem: there is none.
        """
        for each in self.files:
            if each.path == path:
                return each
        why = next((each.why for each in self.left_out if each.path == path), "")
        known = ", ".join(each.path for each in self.files[:5]) or "none"
        raise UsageProblem(f"{self.version.name} has no file '{path}'", why, f"Its files: {known}")


@dataclass(frozen=True)
class DiffLine:
    """A line of a comparison: in both versions (` `), only in the left (`-`), or only in the right one (`+`)."""

    sign: str
    left: int | None
    right: int | None
    text: str


@dataclass(frozen=True)
class Hunk:
    """Consecutive lines that differ, with some lines of context."""

    rows: tuple[DiffLine, ...]

    @property
    def heading(self) -> str:
        """Its position in the form of unified diffs."""
        return f"@@ -{_range([row.left for row in self.rows])} +{_range([row.right for row in self.rows])} @@"


@dataclass(frozen=True)
class FileChange:
    """A file that differs.

    Attributes:
        status: `added`, `removed`, `changed`, or `unknown` if one side was not kept.
        note: why its lines are compared only roughly or not at all.
    """

    path: str
    status: str
    added: int = 0
    removed: int = 0
    hunks: tuple[Hunk, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class SettingChange:
    """An option of the configuration that differs."""

    name: str
    left: str
    right: str


@dataclass(frozen=True)
class VersionDifference:
    """The differences between two versions.

    Attributes:
        problems: why the code of a side is missing; then no files are compared.
        same_files: the number of files that are the same on both sides.
    """

    left: Version
    right: Version
    settings: tuple[SettingChange, ...] = ()
    files: tuple[FileChange, ...] = ()
    same_files: int = 0
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether everything is known to be the same."""
        return not (self.settings or self.files or self.problems)


def split_name(text: str) -> tuple[str, int | None, str]:
    """Split the name of a version into run, attempt and submission: `17`, `17.1`, `17@3`, `sweep/competition/2@best`.

    Raises:
        UsageProblem: it is not the name of a version.
    """
    found = _NAME.fullmatch(text)
    if found is None:
        raise UsageProblem(
            f"'{text}' is not a run, attempt or submission",
            "expected RUN, RUN.ATTEMPT, RUN@SUBMISSION or RUN@best, @final, @now",
            "'mlebench-console runs show RUN' lists a run's attempts and submissions.",
        )
    return found["run"], int(found["attempt"]) if found["attempt"] else None, found["submission"] or ""


def find_versions(database: Database, wanted: Sequence[Wanted]) -> list[Version]:
    """Find several versions.

    Raises:
        UsageProblem: there is no such run, attempt or submission.
    """
    return [version_of(database, each) for each in wanted]


def version_of(database: Database, wanted: Wanted) -> Version:
    """Find a version; by default the best submission, else the final one, the newest, or the current code.

    Raises:
        UsageProblem: there is no such run, attempt or submission.
    """
    run_id, attempt, submission = wanted.run_id, wanted.attempt, wanted.submission
    run = runs.get(database, run_id)
    made = {each.number: each for each in runs.attempts(database, run_id)}
    number = attempt or max(made, default=0)
    if number not in made:
        known = f"it has {plural(len(made), 'attempt')}" if made else "it was never launched"
        raise UsageProblem(f"run {run_id} has no attempt {attempt or 1}", known)
    handed_in = submissions.of_attempt(database, made[number].id)
    facts = competition(run.competition_id)
    best = best_of(handed_in, facts)
    final = next((one for one in handed_in if one.final), None)
    chosen: Submission | None = None
    if submission.isdecimal():
        chosen = next((one for one in handed_in if one.sequence == int(submission)), None)
    elif submission == FINAL:
        chosen = final
    elif submission == BEST:
        chosen = best
    elif not submission:
        chosen = best or final or (handed_in[-1] if handed_in else None)
    if chosen is None and submission not in ("", NOW):
        what = f"submission {submission}" if submission.isdecimal() else f"{submission} submission"
        raise UsageProblem(
            f"run {run_id} has no {what}",
            f"its attempt {number} has {plural(len(handed_in), 'submission')}",
        )
    return Version(
        state_dir=database.path.parent,
        run=run,
        sweep=sweeps.get(database, run.sweep_id),
        attempt=made[number],
        competition=facts,
        submission=chosen,
        handed_in=tuple(one.sequence for one in handed_in),
        best=chosen is not None and chosen == best,
    )


def code_of(version: Version) -> VersionCode:
    """Read the code of a version; waits for the disk.

    Raises:
        DataProblem: it was not kept, or has been removed.
    """
    folder = version.folder
    if version.submission is None:
        return _code_now(version)
    sequence = version.submission.sequence
    found = read_snapshot(folder, sequence)
    if found is None and version.submission.final and version.run.has_ended:
        # Imported runs, and runs of older versions, have no snapshots.
        left = _code_now(version)
        what = "none was kept at this submission: this is what the run has left"
        return replace(left, note="; ".join(filter(None, (what, left.note))))
    if found is None:
        raise DataProblem(
            f"the code at submission {sequence} of run {version.run.id} is not there",
            "never kept, or removed for room",
            f"'{version.run.id}@{NOW}' is the code as it is now.",
        )
    late = found.at - version.submission.taken_at
    notes = [f"kept {wording.duration(late)} after the submission"] if late > _LATE_SECONDS else []
    return VersionCode(
        version,
        found.files,
        found.left_out,
        found.more_left_out,
        partial(read_kept, folder),
        lambda kept: folder / protocol.CODE_SNAPSHOTS / OBJECTS / kept.sha256,
        "; ".join([*notes, *_bounds_met(found)]),
    )


def _code_now(version: Version) -> VersionCode:
    folder = version.folder
    order = protocol.read_if_there(folder / protocol.ORDER, Order)
    hidden: tuple[str, ...] = ()
    if order is not None and order.secret and not (folder / protocol.EXIT).exists():
        hidden = secrets.read_hidden(folder)
    found, contents = read_now(folder, hidden, time.time())

    def read(kept: KeptFile) -> bytes:
        return contents[kept.sha256]

    note = "; ".join(_bounds_met(found))
    return VersionCode(
        version, found.files, found.left_out, found.more_left_out, read, lambda _kept: None, note
    )


def _bounds_met(found: CodeSnapshot) -> list[str]:
    return [found.cut] if found.cut else []


def is_code(path: str) -> bool:
    """Return whether a file is code, by its name."""
    return PurePosixPath(path).suffix.lower() in _CODE


def entry_of(files: Sequence[KeptFile]) -> KeptFile | None:
    """Return the file with which to begin reading: by its name the script that runs first, else the largest code."""

    def rank(kept: KeptFile) -> tuple[bool, int, int, int]:
        path = PurePosixPath(kept.path)
        name = path.stem.lower()
        place = _ENTRIES.index(name) if name in _ENTRIES else len(_ENTRIES)
        return not is_code(kept.path), place, len(path.parts), -kept.bytes

    return min(files, key=rank, default=None)


def by_importance(changes: Sequence[FileChange]) -> list[FileChange]:
    """Order the files that differ: code before data, the most changed first."""
    return sorted(changes, key=lambda each: (not is_code(each.path), -each.added - each.removed, each.path))


def compare(left: Version, right: Version) -> VersionDifference:
    """Compare configuration and code of two versions; waits for the disk."""
    problems: list[str] = []
    codes: list[VersionCode] = []
    for version in (left, right):
        try:
            codes.append(code_of(version))
        except Problem as problem:
            problems.append(problem.in_one_line())
    settings = tuple(_settings(left, right))
    if len(codes) < 2:
        return VersionDifference(left, right, settings, problems=tuple(problems))
    one, other = codes
    changes, same = _changes(one, other)
    notes = tuple(f"{code.version.name}: {code.note}" for code in codes if code.note)
    return VersionDifference(left, right, settings, tuple(changes), same, notes)


def unified(difference: VersionDifference) -> Iterator[str]:
    """Yield a difference as text: the configuration as comments, then unified diffs of the files."""
    for each in difference.settings:
        yield f"# {each.name}: {each.left or 'none'} -> {each.right or 'none'}"
    for note in (*difference.notes, *difference.problems):
        yield f"# {note}"
    for change in difference.files:
        yield f"--- {_side(difference.left, change, 'added')}"
        yield f"+++ {_side(difference.right, change, 'removed')}"
        if change.note:
            yield f"# {change.note}"
        for hunk in change.hunks:
            yield hunk.heading
            yield from (f"{row.sign}{row.text}" for row in hunk.rows)


def _side(version: Version, change: FileChange, missing: str) -> str:
    return "/dev/null" if change.status == missing else f"{version.name}/{change.path}"


def _settings(left: Version, right: Version) -> Iterator[SettingChange]:
    before, after = _configuration(left), _configuration(right)
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name, ""), after.get(name, "")
        if one != other:
            yield SettingChange(name, one, other)


def _configuration(version: Version) -> dict[str, str]:
    """Return the whole configuration of a version, by name; waits for the disk."""
    order, problem = None, ""
    try:
        order = protocol.read_if_there(version.folder / protocol.ORDER, Order)
    except DataProblem as found:
        problem = found.in_one_line()
    several: dict[str, list[str]] = {"order": [problem]}
    for each in configuration(version.run, version.sweep, version.attempt, order):
        if each.name != DEVICES:  # the machine's facts include the model
            several.setdefault(each.name, []).append(each.text)
    return {name: "  ".join(values) for name, values in several.items()}


def _changes(one: VersionCode, other: VersionCode) -> tuple[list[FileChange], int]:
    """Return the files that differ, ordered by path, and the number of files that are the same."""
    before = {each.path: each for each in one.files}
    after = {each.path: each for each in other.files}
    missing_before = {each.path: each for each in one.left_out}
    missing_after = {each.path: each for each in other.left_out}
    found: list[FileChange] = []
    same, budget = 0, _Budget()
    for path in sorted({*before, *after, *missing_before, *missing_after}):
        left, right = before.get(path), after.get(path)
        if left is not None and right is not None and left.sha256 == right.sha256:
            same += 1
        elif path in missing_before or path in missing_after:
            unknown = _unknown(path, missing_before.get(path), missing_after.get(path), left, right)
            found += [unknown] if unknown is not None else []
        else:
            found.append(_change(path, one, other, left, right, budget))
    return found, same


def _unknown(
    path: str, before: LeftOut | None, after: LeftOut | None, left: KeptFile | None, right: KeptFile | None
) -> FileChange | None:
    """Return the change of a file that was not kept on a side; None if it may be the same."""
    if before is not None and after is not None:
        if before.bytes == after.bytes:
            return None
        sizes = f"{_size(before.bytes)} and {_size(after.bytes)}"
        return FileChange(path, "changed", note=f"not compared, {sizes}: {after.why}")
    side = before or after
    assert side is not None
    there = left or right
    if there is None:
        status = "added" if before is None else "removed"
        return FileChange(path, status, note=f"not kept, {_size(side.bytes)}: {side.why}")
    which = "left" if before is not None else "right"
    return FileChange(path, "unknown", note=f"not kept on the {which}, {_size(side.bytes)}: {side.why}")


def _size(count: int) -> str:
    return "no file" if count < 0 else wording.size(count)


@dataclass
class _Budget:
    """The remaining steps and lines that one comparison may use."""

    steps: int = _MOST_STEPS
    lines: int = _MOST_LINES


def _change(
    path: str,
    one: VersionCode,
    other: VersionCode,
    left: KeptFile | None,
    right: KeptFile | None,
    budget: _Budget,
) -> FileChange:
    status = "added" if left is None else "removed" if right is None else "changed"
    try:
        before, after = (
            [] if kept is None else _lines(code.read(kept)) for code, kept in ((one, left), (other, right))
        )
    except DataProblem as problem:
        return FileChange(path, "unknown", note=problem.in_one_line())
    rows, note = _rows(before, after, budget)
    added, removed = (sum(row.sign == sign for row in rows) for sign in "+-")
    if not rows:  # too long to be compared by lines
        same = sum(_same_at_ends(before, after))
        added, removed = len(after) - same, len(before) - same
    return FileChange(path, status, added, removed, tuple(_hunks(rows)), note)


def _lines(content: bytes) -> list[str]:
    lines = content.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        del lines[-1]
    else:
        lines[-1] += "  (no line feed at the end)"
    return lines


def _same_at_ends(before: list[str], after: list[str]) -> tuple[int, int]:
    """Count the lines that two files have in common at their beginning, and at their end."""
    begin, most = 0, min(len(before), len(after))
    while begin < most and before[begin] == after[begin]:
        begin += 1
    end = 0
    while end < most - begin and before[-1 - end] == after[-1 - end]:
        end += 1
    return begin, end


def _rows(before: list[str], after: list[str], budget: _Budget) -> tuple[list[DiffLine], str]:
    """Compare two files by lines; return the rows, and a note if they are compared only roughly or not at all."""
    begin, end = _same_at_ends(before, after)
    middle, others = before[begin : len(before) - end], after[begin : len(after) - end]
    if len(middle) + len(others) > budget.lines:
        return [], "too long to be shown: 'runs code' writes both versions into folders"
    budget.lines -= len(middle) + len(others)
    budget.steps -= len(middle) * len(others)
    is_compared = budget.steps >= 0
    # The places on both sides from which on so many lines are the same: a longest common subsequence and its context.
    around = max(0, begin - _CONTEXT)
    same = [(around, around, begin - around)]
    if is_compared:
        same += [
            (begin + each.src_start, begin + each.dest_start, each.src_end - each.src_start)
            for each in LCSseq.opcodes(middle, others)
            if each.tag == "equal"
        ]
    same.append((len(before) - end, len(after) - end, min(end, _CONTEXT)))
    rows: list[DiffLine] = []
    left = right = around
    for one, other, count in same:
        rows += [DiffLine("-", place + 1, None, before[place]) for place in range(left, one)]
        rows += [DiffLine("+", None, place + 1, after[place]) for place in range(right, other)]
        rows += [DiffLine(" ", one + each + 1, other + each + 1, before[one + each]) for each in range(count)]
        left, right = one + count, other + count
    return rows, "" if is_compared else "the two are too different to be put line beside line"


def _hunks(rows: list[DiffLine]) -> Iterator[Hunk]:
    """Yield groups of lines that differ, with context; groups that touch are merged."""
    near: set[int] = set()
    for place, row in enumerate(rows):
        if row.sign != " ":
            near.update(range(max(0, place - _CONTEXT), min(len(rows), place + _CONTEXT + 1)))
    ordered = enumerate(sorted(near))
    for _gap, places in groupby(ordered, key=lambda pair: pair[1] - pair[0]):
        yield Hunk(tuple(rows[place] for _number, place in places))


def _range(numbers: Sequence[int | None]) -> str:
    known = [number for number in numbers if number is not None]
    return f"{known[0]},{len(known)}" if known else "0,0"
