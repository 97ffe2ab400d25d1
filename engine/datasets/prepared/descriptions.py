"""The description beside the data: ours, ours obfuscated, Kaggle's own, or one from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlebench_console.competitions import descriptions
from mlebench_console.competitions.model import Competition, Edition
from mlebench_console.engine.layout import ADDENDUM, DESCRIPTION
from mlebench_console.foundation.problems import DataProblem, UsageProblem

OURS = "ours"
OBFUSCATED = "obfuscated"
KAGGLE = "kaggle"

_SEE_ADDENDUM = f"""## These data

The data here were divided anew. Which files there are, how a submission is scored and what it has to look like is
told in `{Path(ADDENDUM).name}`, which holds wherever it differs from this text.
"""

# The pages of Kaggle's site that an agent needs, without rules, prizes, timelines and winners.
_PAGES = ("overview", "abstract", "description", "evaluation", "data-description", "data description")


def check_choice(choice: str) -> str:
    """Return a valid choice of description: one of the names, or the absolute path of a folder.

    Raises:
        UsageProblem: it is neither.
    """
    if choice in (OURS, OBFUSCATED, KAGGLE):
        return choice
    folder = Path(choice).expanduser().absolute()
    if not folder.is_dir():
        raise UsageProblem(
            f"there are no descriptions {choice!r}",
            "it is neither a known name nor a folder",
            f"Use {OURS}, {OBFUSCATED}, {KAGGLE}, or a folder with <competition id>/description.md.",
        )
    return str(folder)


def chosen_texts(
    competition: Competition, edition: Edition, choice: str, *, patience: float = 0
) -> Mapping[str, str]:
    """Return the description files by their paths in `prepared`; none if ours is not written.

    Kaggle's own text gets an addendum, because the data are split again and scored differently.

    Raises:
        Problem: they are not available.
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
    """Read a competition's pages from Kaggle and join them in a fixed order.

    Raises:
        Problem: Kaggle refuses, can't be reached, or has no description.
    """
    # Imported here, because Kaggle's client is slow to import.
    from mlebench_console.engine.kaggle.client import Kaggle

    with Kaggle(patience=patience) as kaggle:
        pages = kaggle.pages(competition.id)
    found = {name.lower(): f"## {name}\n\n{text.strip()}\n" for name, text in pages.items()}
    parts = [found[name] for name in _PAGES if name in found]
    if not parts:
        raise DataProblem(
            "Kaggle shows no description",
            f"its pages are {', '.join(sorted(found)) or 'none'}",
            f"Use --descriptions {OURS}.",
            subject=competition.id,
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
        f"there is no description in {folder}",
        f"there is neither {places[0].relative_to(folder)} nor {places[1].name}",
        f"Put it there, or use --descriptions {OURS}.",
        subject=competition.id,
    )
