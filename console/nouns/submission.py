"""Submissions of a run: snapshots of what its agent handed in, with their grades."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from mlebench_console.competitions.model import Competition
from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Noun, NounField, Rest
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.roles import Drawing, Pieces
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.records import Attempt, Run, Submission

# Room for five decimals of nearly every score.
_SCORE_WIDTH = 10
_REFUSED = (Outcome.INVALID, Outcome.NO_SUBMISSION)
NO_REASON = "the reason was not kept"


@dataclass(frozen=True)
class SubmissionRow:
    """One submission among those of its run.

    Attributes:
        attempt: the number of its attempt.
        is_best: whether it has the best score of its attempt, the earliest of several.
        is_newest: whether it is the last one of a run that may hand in more.
    """

    submission: Submission
    attempt: int
    is_best: bool = False
    is_newest: bool = False

    @property
    def refusal(self) -> str:
        """Why it was refused or has no score; empty for one that has."""
        one = self.submission
        if one.standing not in _REFUSED and one.score is not None:
            return ""
        return one.message or (NO_REASON if one.standing in _REFUSED else "")


def best_of(handed_in: Iterable[Submission], facts: Competition | None) -> Submission | None:
    """Return the submission with the best score, the earliest of several; None if none has a score."""
    scored = [one for one in handed_in if one.score is not None and one.valid]
    if facts is None or not scored:
        return None
    sign = 1 if facts.thresholds.is_lower_better else -1
    return min(scored, key=lambda one: (sign * (one.score or 0.0), one.sequence))


def submission_rows(
    run: Run, attempts: Sequence[Attempt], handed_in: Sequence[Submission], competition: Competition | None
) -> list[SubmissionRow]:
    """Join the submissions of a run, oldest first, with their attempts."""
    rows = []
    for attempt in attempts:
        made = [one for one in handed_in if one.attempt_id == attempt.id]
        best = best_of(made, competition)
        live = run.is_live and attempt is attempts[-1]
        rows += [
            SubmissionRow(one, attempt.number, one == best, is_newest=live and one is made[-1])
            for one in made
        ]
    return rows


def _which(row: SubmissionRow, _drawing: Drawing) -> str:
    words = ["best"] if row.is_best else []
    if row.submission.final:
        words.append("final")
    elif row.is_newest:
        words.append("now")
    return " ".join(words)


def _sign(row: SubmissionRow, drawing: Drawing) -> Pieces:
    standing = row.submission.standing
    return () if standing is None else ((outcome_sign(standing, drawing.signs), outcome_role(standing)),)


def _standing(row: SubmissionRow, _drawing: Drawing) -> Cell:
    """Return what it would get; of a refused one the reason stands beside it, in place of figures."""
    standing = row.submission.standing
    words = "being graded" if standing is None else wording.OUTCOME_SHORT[standing]
    own: Pieces = ((words, outcome_role(standing)),)
    return Rest(own, (("  ", "text"), (row.refusal, "warn"))) if row.refusal else own


def _score(row: SubmissionRow, _drawing: Drawing) -> str:
    return "" if row.submission.score is None else wording.score(row.submission.score, _SCORE_WIDTH)


SUBMISSION = Noun[SubmissionRow](
    "submission",
    key=lambda row: row.submission.id,
    document=lambda row, _now: asdict(row.submission),
    fields=(
        NounField("attempt", lambda row, _: str(row.attempt), 7, right=True),
        NounField("number", lambda row, _: str(row.submission.sequence), 4, right=True, role="dim", drop=2),
        NounField("which", _which, 10, gap=1, role="accent"),
        NounField("taken", lambda row, _: wording.date_and_time(row.submission.taken_at), 16, role="dim"),
        NounField(
            "into",
            lambda row, _: wording.elapsed(row.submission.elapsed_seconds),
            8,
            title="into run",
            role="dim",
        ),
        NounField(
            "size", lambda row, _: wording.size(row.submission.bytes), 9, right=True, role="dim", drop=1
        ),
        NounField("sign", _sign, 1, title=""),
        NounField("standing", _standing, 12, gap=1, wraps=4),
        NounField("score", _score, _SCORE_WIDTH, right=True, gap=1),
        NounField("message", lambda row, _: row.submission.message or "", 16, grows=REST, role="warn"),
    ),
)
