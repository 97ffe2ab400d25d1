"""Which text an agent finds beside the data: ours, ours obfuscated, Kaggle's own, or one from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from competitions import descriptions
from competitions.model import Competition, Edition
from engine.layout import ADDENDUM, DESCRIPTION
from foundation.problems import DataProblem, UsageProblem

OURS = "ours"
OBFUSCATED = "obfuscated"
KAGGLE = "kaggle"

_SEE_ADDENDUM = f"""## These data

The data here were divided anew. Which files there are, how a submission is scored and what it has to look like is
told in `{Path(ADDENDUM).name}`, which holds wherever it differs from this text.
"""

# What an agent needs of the site; not the rules, prizes, timelines and winners.
_PAGES = ("overview", "abstract", "description", "evaluation", "data-description", "data description")


def check_choice(choice: str) -> str:
    """Take a choice of description for what it is: one of the names, or a folder, whose path is made absolute.

    Raises:
        UsageProblem: it is neither.
    """
    if choice in (OURS, OBFUSCATED, KAGGLE):
        return choice
    folder = Path(choice).expanduser().absolute()
    if not folder.is_dir():
        raise UsageProblem(
            f"Descriptions {choice!r} are not known",
            "there is no such folder",
            f"Use {OURS}, {OBFUSCATED}, {KAGGLE}, or name a folder that holds <competition id>/description.md.",
        )
    return str(folder)


def chosen_texts(
    competition: Competition, edition: Edition, choice: str, *, patience: float = 0
) -> Mapping[str, str]:
    """The texts that an agent finds beside the data, by their places below `prepared`; none where ours is not written.

    Kaggle's own text comes with an addendum, since the data were divided anew and are scored in a way of their own.

    Raises:
        Problem: they cannot be had.
    """
    choice = check_choice(choice)
    if choice == KAGGLE:
        kaggles = kaggles_description(competition, patience=patience)
        return {
            DESCRIPTION: f"{kaggles}\n{_SEE_ADDENDUM}",
            ADDENDUM: descriptions.addendum(competition, edition),
        }
    if choice == OBFUSCATED:
        return {DESCRIPTION: descriptions.obfuscated_description(competition, edition)}
    if choice == OURS:
        written = descriptions.has_description(competition)
        return {DESCRIPTION: descriptions.description(competition, edition)} if written else {}
    return {DESCRIPTION: _from_folder(competition, Path(choice))}


def kaggles_description(competition: Competition, *, patience: float) -> str:
    """Read a competition's pages and put them together, in a fixed order.

    Raises:
        Problem: Kaggle refuses, can't be reached, or has no description.
    """
    # Kaggle's client is slow to import and only needed when this is asked for.
    from engine.kaggle.client import Kaggle

    with Kaggle(patience=patience) as kaggle:
        pages = kaggle.pages(competition.id)
    found = {name.lower(): f"## {name}\n\n{text.strip()}\n" for name, text in pages.items()}
    parts = [found[name] for name in _PAGES if name in found]
    if not parts:
        raise DataProblem(
            f"{competition.id}: Kaggle shows no description",
            f"its pages are {', '.join(sorted(found)) or 'none'}",
            f"Use --descriptions {OURS}.",
        )
    return f"# {competition.name}\n\n" + "\n".join(parts)


def _from_folder(competition: Competition, folder: Path) -> str:
    places = (folder / competition.id / "description.md", folder / f"{competition.id}.md")
    for path in places:
        if path.is_file():
            try:
                return path.read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                raise DataProblem(f"{path} is not UTF-8 text", str(error)) from error
    raise DataProblem(
        f"{competition.id} has no description in {folder}",
        f"neither {places[0].relative_to(folder)} nor {places[1].name} is there",
        f"Put it there, or use --descriptions {OURS}.",
    )
