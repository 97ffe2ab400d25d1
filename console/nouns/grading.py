"""Gradings of files that the operator chose: what each was worth, as their history lists them."""

from __future__ import annotations

from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import foreign_path
from mlebench_console.console.roles import Drawing
from mlebench_console.state.lifecycle import Outcome

EARNED = {words: outcome for outcome, words in wording.OUTCOME_WORDS.items()}
# Outcomes of files without a score in few words, where those of their codes are too long.
_SHORT = {"limits_exceeded": "over limits", "grader_error": "grader failed"}
# Paths are cut to these widths, so that files of the same name are told apart by what stands before it.
_MIDDLE_PATH, _SHORTEST_PATH = 48, 24
_LONGEST_PATH = 400


@dataclass(frozen=True)
class PastGrading:
    """One grading in the history."""

    competition_id: str
    path: str
    at: float
    edition: str
    outcome: str
    score: float | None
    medal: str
    message: str


def _result(row: PastGrading, drawing: Drawing) -> Cell:
    earned = EARNED.get(row.medal, Outcome.INVALID)
    code = _SHORT.get(row.outcome, row.outcome.replace("_", " "))
    text = code if row.score is None else wording.score(row.score, 9)
    return ((f"{outcome_sign(earned, drawing.signs)} {text}", outcome_role(earned)),)


def _file(row: PastGrading, drawing: Drawing) -> Cell:
    widths = (_LONGEST_PATH, _MIDDLE_PATH, _SHORTEST_PATH)
    return Forms([foreign_path(row.path, width, ellipsis=drawing.signs.ellipsis) for width in widths])


GRADING = Noun[PastGrading](
    "grading",
    key=lambda row: row,
    fields=(
        NounField("age", lambda row, drawing: wording.age(drawing.now - row.at), 4, right=True, role="dim"),
        NounField("graded", lambda row, _: wording.date_and_time(row.at), 16, drop=1, role="dim"),
        NounField("competition", lambda row, _: row.competition_id, 22, grows=56),
        NounField("result", _result, 15),
        NounField(
            "edition", lambda row, _: "" if row.edition == "v1" else row.edition, 9, drop=2, role="dim"
        ),
        NounField("file", _file, _SHORTEST_PATH, grows=_LONGEST_PATH),
        NounField("why", lambda row, _: row.message.partition("\n")[0], 16, grows=REST, drop=3, role="warn"),
    ),
)
