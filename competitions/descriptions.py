"""A competition's own description for one edition, plain or obfuscated; Kaggle's text is fetched by the engine.

A description.md may hold passages for one edition only, between marks that Markdown does not show:

    <!-- edition v1 -->
    The photographs are missing.
    <!-- edition corrected -->
    The photographs are in `images/`.
    <!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlebench_console.competitions.model import EDITIONS, Competition, Edition
from mlebench_console.foundation.problems import DataProblem

_MARK = re.compile(r"<!--\s*(?:edition\s+(?P<edition>\w+)|(?P<end>end))\s*-->\s*")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_ALWAYS_IDENTIFYING = ("Kaggle", "MLE-bench", "prize", "prizes")
_MONEY = re.compile(r"(?:\$\s?|USD\s)\d")


def has_description(competition: Competition) -> bool:
    """Return whether the competition has a description."""
    return competition.description_path.is_file()


def description(competition: Competition, edition: Edition) -> str:
    """Return the competition's description for an edition.

    Raises:
        DataProblem: the file is missing, or its marks of editions are wrong.
    """
    path = competition.description_path
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise DataProblem(f"{path} cannot be read", str(error)) from error
    try:
        return "".join(_lines_for(edition, text))
    except ValueError as error:
        raise DataProblem(f"{path} is not well formed", str(error)) from error


def _lines_for(edition: Edition, text: str) -> Iterator[str]:
    inside: str | None = None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        mark = _MARK.fullmatch(line)
        if mark is None:
            if inside in (None, edition):
                yield line
        elif mark["end"]:
            if inside is None:
                raise ValueError(f"line {number} ends a passage that was never opened")
            inside = None
        else:
            inside = mark["edition"]
            if inside not in EDITIONS:
                raise ValueError(
                    f"line {number} names an unknown edition {inside!r} (expected {' or '.join(EDITIONS)})"
                )
    if inside is not None:
        raise ValueError(f"the passage for edition {inside} is never closed")


def obfuscated_description(competition: Competition, edition: Edition) -> str:
    """Return the description without the words that identify the competition: no name, no host, no prize.

    Names of files and columns stay, because the data have them, and so does everything in code.

    Raises:
        DataProblem: there is no description, or it would still identify the competition.
    """
    title, _, body = description(competition, edition).partition("\n")
    if not title.startswith("# "):
        raise DataProblem(
            f"{competition.description_path} does not begin with a title", f"but with {title!r}"
        )
    for found, instead in competition.obfuscation.renamings.items():
        body = _outside_code(body, _phrase(found), instead)
    text = f"# A machine learning problem: {_kind(competition)}\n{body}"
    if left := identifying_words(competition, text):
        raise DataProblem(
            f"The obfuscated description of {competition.id} would still identify it",
            f"it contains {', '.join(map(repr, left))}",
            f"Rename them in {competition.facts_path}, section [obfuscation.renamings].",
        )
    return text


def addendum(competition: Competition, edition: Edition) -> str:
    """Return what is true of an edition's data, to be added to a description that was written for other data.

    It is obfuscated, so that it can accompany an obfuscated description too.

    Raises:
        DataProblem: as `obfuscated_description`.
    """
    body = obfuscated_description(competition, edition).partition("\n")[2]
    return (
        "# Addendum\n\nThe data were divided anew. What follows is how they are here, and how submissions are scored; "
        f"it holds wherever the description says otherwise.\n\n## Task\n{body}"
    )


def identifying_words(competition: Competition, text: str) -> tuple[str, ...]:
    """Return what in a text, code excepted, reveals the competition's name, its host or its prizes."""
    prose = _CODE.sub("`", text)
    parts = (part for part in re.split(r" - |: ", competition.name) if " " in part)
    names = dict.fromkeys(
        (competition.id, competition.name, *parts, *competition.obfuscation.hosts, *_ALWAYS_IDENTIFYING)
    )
    found = [name for name in names if _phrase(name).search(prose)]
    return (*found, *(match.group() for match in _MONEY.finditer(prose)))


def _phrase(words: str) -> re.Pattern[str]:
    """Match words as they occur in running text: broken over lines, with dashes or in other case."""
    pieces = (re.escape(piece) for piece in re.split(r"[\s_-]+", words))
    return re.compile(r"(?<!\w)" + r"[\s_-]+".join(pieces) + r"(?!\w)", re.IGNORECASE)


def _outside_code(text: str, pattern: re.Pattern[str], instead: str) -> str:
    prose_and_code = _CODE.split(text)  # code at the odd places
    prose_and_code[::2] = [pattern.sub(lambda _: instead, prose) for prose in prose_and_code[::2]]
    return "".join(prose_and_code)


def _kind(competition: Competition) -> str:
    return re.sub(r"\s*\(.*\)", "", competition.category).lower()
