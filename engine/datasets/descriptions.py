"""A competition's description as Kaggle shows it, for those who want the original text beside the data."""

from __future__ import annotations

from competitions.model import Competition
from engine.kaggle.client import Kaggle
from foundation.problems import DataProblem

# What an agent needs of the site; not the rules, prizes, timelines and winners.
_PAGES = ("overview", "abstract", "description", "evaluation", "data-description", "data description")


def kaggles_description(competition: Competition) -> str:
    """Read a competition's pages and put them together, in a fixed order.

    Raises:
        Problem: Kaggle refuses, can't be reached, or has no description.
    """
    with Kaggle() as kaggle:
        pages = {page.name.lower(): page for page in kaggle.pages(competition.id)}
    parts = [f"## {pages[name].name}\n\n{pages[name].text.strip()}\n" for name in _PAGES if name in pages]
    if not parts:
        raise DataProblem(
            f"{competition.id}: Kaggle shows no description",
            f"its pages are {', '.join(sorted(pages)) or 'none'}",
            "Leave out --descriptions.",
        )
    return f"# {competition.name}\n\n" + "\n".join(parts)
