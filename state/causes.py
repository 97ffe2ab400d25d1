"""Causes of failures: by what failures are grouped, which is a problem's code or a normalised text.

Seventeen runs that each lost a GPU at another time have one cause. The current groups are in
`engine.needs.causes`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state.lifecycle import FailureClass

LONGEST_CAUSE = 160
_MOST_COMPARED = 50
UNGRADABLE = "ungradable"
# Only the beginning of longer texts counts, as agents may print texts of any length.
_MOST_CHARACTERS = 2000
_LONGEST_LINE = 400
_KEY_DIGITS = 10
# Failures whose text says only that the agent's own program has failed; its last output says more.
_OF_THE_PROGRAM = frozenset({FailureClass.CRASH, FailureClass.UNKNOWN})
_EXCEPTION = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration)\b(?::.*|\s*$)")

# Problems that have one cause for all runs that they end at a time; of others the texts tell causes apart.
_ONE_CAUSE = frozenset(
    {
        *(ProblemCode.GPU_LOST, ProblemCode.GPU_FAILED, ProblemCode.GPU_NOT_GIVEN),
        *(ProblemCode.DISK_FULL, ProblemCode.DISK_FAILED, ProblemCode.NETWORK_FAILED),
        *(ProblemCode.HOST_RESTARTED, ProblemCode.SANDBOX_LOST),
        *(ProblemCode.PREEMPTED, ProblemCode.NODE_FAILED),
        *(ProblemCode.PROVIDER_AWAY, ProblemCode.PROVIDER_QUOTA, ProblemCode.PROVIDER_REFUSED),
    }
)
# The placeholder for all omitted parts.
_LEFT_OUT = "#"
_OMITTED = re.compile(rf" \([^(){_LEFT_OUT}]*{_LEFT_OUT}[^()]*\)")
# Numbers that tell causes apart are kept: exit codes, statuses, signals.
_TELLING = re.compile(
    r"\b(codes?|status|errno|error|answer(?:s|ed)?|signal|HTTP)([ :=]{1,2})(\d{1,3})\b", re.I
)
_SHIELD = str.maketrans("0123456789", "".join(chr(0xE000 + place) for place in range(10)))
_UNSHIELD = {0xE000 + place: str(place) for place in range(10)}
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_REPLACED = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # The host of an address is kept, unless it is a number itself.
        (r"\b[a-z][a-z0-9+.-]{1,9}://(?:[^\s/@]*@)?([A-Za-z][A-Za-z0-9.-]*)(?::\d+)?[^\s'\")\]>,;]*", r"\1"),
        (r"\b[a-z][a-z0-9+.-]{1,9}://[^\s'\")\]>,;]+", _LEFT_OUT),
        # A quoted name that looks like an id and not like a word.
        (r"(?<![\w])(['\"`])(?=[^'\"`\s]*[\d_/.:@-])[^'\"`\s]{1,200}\1(?!\w)", _LEFT_OUT),
        (r"(?<![\w/.~-])(?:~|\.{1,2})?/[^\s'\":;,()\[\]<>]+", _LEFT_OUT),
        (r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b", _LEFT_OUT),
        (r"\b0x[0-9A-Fa-f]+\b", _LEFT_OUT),
        (r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{1,4}(?![\w:])", _LEFT_OUT),
        # Ids of letters and digits, as of containers, jobs and temporary files.
        (r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{4,}\b", _LEFT_OUT),
        (r"\b(?=\w*\d[A-Za-z_]+\d)\w{8,}\b", _LEFT_OUT),
        (rf"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:{_MONTHS})[a-z]* \d+", _LEFT_OUT),
        (r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?", _LEFT_OUT),
        (rf"{_LEFT_OUT} ?(?:[kMGT]i?B|bytes|B|ms|[smhd]|sec(?:ond)?s?|min(?:ute)?s?|hours?|days?|%)(?!\w)", _LEFT_OUT),
        (rf"{_LEFT_OUT}(?:[T Z:.,/x+-]{{0,2}}{_LEFT_OUT})+Z?", _LEFT_OUT),
        (rf"{_LEFT_OUT}(?:\.{{2,}}|…)", _LEFT_OUT),
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def normalised(text: str, names: tuple[str, ...] = ()) -> str:
    """Return a text of bounded length without numbers, ids, paths, addresses, times and the given names.

    Omitted parts are replaced by `#`; exit codes and statuses are kept. The same text always gives the same result.
    """
    found = "".join(letter if letter.isprintable() else " " for letter in text[:_MOST_CHARACTERS])
    for name in sorted(filter(None, names), key=len, reverse=True):
        found = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _LEFT_OUT, found)
    found = _TELLING.sub(lambda match: match[1] + match[2] + match[3].translate(_SHIELD), found)
    for pattern, replacement in _REPLACED:
        found = pattern.sub(replacement, found)
    found = " ".join(found.translate(_UNSHIELD).split())
    return found[:LONGEST_CAUSE].rstrip()


def in_common(failures: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """Return the text of several failures if it is the same, else without the parts that differ; empty if all differs.

    Each text comes with the names to leave out of it. A single text is taken as the first of several; of very many some
    are compared.
    """
    if len(failures) > 1 and len({text for text, _names in failures}) == 1:
        return failures[0][0]
    # Brackets around nothing but omitted parts only say that something differs.
    found = {_OMITTED.sub("", normalised(text, names)) for text, names in failures[:_MOST_COMPARED]}
    return found.pop() if len(found) == 1 else ""


def code_of(problem: ProblemCode | None, suspected: ProblemCode | None) -> ProblemCode | None:
    """Return the code by which a failure is grouped; None where its text tells its cause."""
    return suspected or (problem if problem in _ONE_CAUSE else None)


def cause_of(
    kind: FailureClass,
    text: str,
    *,
    problem: ProblemCode | None = None,
    suspected: ProblemCode | None = None,
    provider: str = "",
    evidence: str = "",
    names: Iterable[str] = (),
) -> str:
    """Return by what a failure is grouped with others of its class: its code, or else its normalised text.

    So all runs that have lost a GPU in one outage have one cause. A failed program is grouped by the exception that it
    printed last, if any.

    Args:
        kind: its class.
        text: why it failed.
        problem: what ended it that is not the agent's doing.
        suspected: such a problem that is only suspected.
        provider: the provider of models that the problem is about.
        evidence: the lines that show the failure.
        names: the names to leave out, such as those of its sweep and competition.
    """
    code = code_of(problem, suspected)
    if code is not None:
        return f"{code} {provider}".rstrip()
    message = text
    if kind in _OF_THE_PROGRAM:
        lines = (
            match[0]
            for line in reversed(evidence.splitlines())
            if (match := _EXCEPTION.search(line[-_LONGEST_LINE:]))
        )
        message = next(lines, text)
    return normalised(message, tuple(names))


def group_of(kind: FailureClass, suspected: ProblemCode | None) -> str:
    """Return the group of a failure's cause: its class, or `suspected` where the infrastructure is suspected."""
    is_open = suspected is not None and kind is not FailureClass.INFRASTRUCTURE
    return "suspected" if is_open else kind.value


def ungradable_key(problem: str, names: Iterable[str]) -> str:
    """Return the key of the group of runs that can't be graded because of one problem."""
    return cause_key(UNGRADABLE, normalised(problem, tuple(names)))


def cause_key(group: str, cause: str) -> str:
    """Return the key of a group of runs, such as `infrastructure-0a1b2c3d4e`; unique among all kinds of groups."""
    return f"{group}-{hashlib.sha256(cause.encode('utf-8', 'replace')).hexdigest()[:_KEY_DIGITS]}"
