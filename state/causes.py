"""What failures have in common: a failure's text without what differs from run to run, and the key of its group.

Seventeen runs that lost a GPU each at its own moment have one cause. Which groups there are at the moment is
`engine.runs.causes`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

from state.lifecycle import FailureClass

LONGEST_CAUSE = 160
UNGRADABLE = "ungradable"
# Of a longer text the beginning decides; what agents print may be of any length.
_MOST_CHARACTERS = 2000
_LONGEST_LINE = 400
_KEY_DIGITS = 10
# Failures whose text says only that the agent's own program has failed: what it printed last says more.
_OF_THE_PROGRAM = frozenset({FailureClass.CRASH, FailureClass.UNKNOWN})
_EXCEPTION = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration)\b(?::.*|\s*$)")

# What stands for all that is left out.
_LEFT_OUT = "#"
# A number that says what happened, not to whom: an exit code, a status, a signal. It is kept.
_TELLING = re.compile(
    r"\b(codes?|status|errno|error|answer(?:s|ed)?|signal|HTTP)([ :=]{1,2})(\d{1,3})\b", re.I
)
_SHIELD = str.maketrans("0123456789", "".join(chr(0xE000 + place) for place in range(10)))
_UNSHIELD = {0xE000 + place: str(place) for place in range(10)}
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_REPLACED = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Which host an address names is kept, unless it is a number itself.
        (r"\b[a-z][a-z0-9+.-]{1,9}://(?:[^\s/@]*@)?([A-Za-z][A-Za-z0-9.-]*)(?::\d+)?[^\s'\")\]>,;]*", r"\1"),
        (r"\b[a-z][a-z0-9+.-]{1,9}://[^\s'\")\]>,;]+", _LEFT_OUT),
        # A name in quotes that looks like an id, and not like a word.
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

    What is left out is marked by a `#`; exit codes and statuses are kept. The same text gives the same result for ever.
    """
    found = "".join(letter if letter.isprintable() else " " for letter in text[:_MOST_CHARACTERS])
    for name in sorted(filter(None, names), key=len, reverse=True):
        found = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _LEFT_OUT, found)
    found = _TELLING.sub(lambda match: match[1] + match[2] + match[3].translate(_SHIELD), found)
    for pattern, replacement in _REPLACED:
        found = pattern.sub(replacement, found)
    found = " ".join(found.translate(_UNSHIELD).split())
    return found[:LONGEST_CAUSE].rstrip()


def cause_of(
    kind: FailureClass, text: str, *, suspected: str = "", evidence: str = "", names: Iterable[str] = ()
) -> str:
    """Return the normalised text by which a failure is grouped with others of its class.

    A failure for which the infrastructure is suspected is grouped by what is suspected. Of a program that has failed
    the exception that it printed last counts, if it printed one.

    Args:
        kind: its class.
        text: why it failed.
        suspected: what of the infrastructure may have caused it.
        evidence: the lines that show it.
        names: of what it happened to, such as its sweep and competition.
    """
    told = suspected or text
    if not suspected and kind in _OF_THE_PROGRAM:
        lines = (
            match[0]
            for line in reversed(evidence.splitlines())
            if (match := _EXCEPTION.search(line[-_LONGEST_LINE:]))
        )
        told = next(lines, text)
    return normalised(told, tuple(names))


def group_of(kind: FailureClass, suspected: str) -> str:
    """Return in which group of causes a failure belongs: its class, or `suspected` where the infrastructure is."""
    is_open = suspected and kind is not FailureClass.INFRASTRUCTURE
    return "suspected" if is_open else kind.value


def ungradable_key(problem: str, names: Iterable[str]) -> str:
    """Return the key of the group of runs that can't be graded for one problem."""
    return cause_key(UNGRADABLE, normalised(problem, tuple(names)))


def cause_key(group: str, cause: str) -> str:
    """Return the key of a group of runs, such as `infrastructure-0a1b2c3d4e`; groups of two kinds never share one."""
    return f"{group}-{hashlib.sha256(cause.encode('utf-8', 'replace')).hexdigest()[:_KEY_DIGITS]}"
