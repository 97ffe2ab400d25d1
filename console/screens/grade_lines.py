"""A verdict on a graded file as lines."""

from __future__ import annotations

from competitions.model import Competition
from console.model import wording
from console.model.grading import Graded
from console.painting import Piece, Pieces, foreign
from console.screens.ruler import medal_role, ruler
from console.signs import Signs

_LABEL = 14
_OUTCOMES = {
    "no_file": "no file",
    "not_csv": "not a table that can be read",
    "rejected": "refused by the competition's rules",
    "grader_error": "the grader itself failed",
    "limits_exceeded": "grading took more than it may",
}


def about(competition: Competition, signs: Signs, width: int) -> Pieces:
    """Which metric decides, and which way is better."""
    text = f"{competition.metric.name}, {wording.better(competition.thresholds)} {signs.dot} {competition.complexity}"
    return _row("metric", ((foreign(text, width - _LABEL - 2).rstrip(), "dim"),))


def verdict(graded: Graded, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Whether the file is valid and why not, its score, and where that falls."""
    report, cuts = graded.report, graded.competition.thresholds
    took = f"{wording.size(graded.bytes)}, graded in {graded.seconds:.1f} s, edition {report.edition}"
    lines: list[Pieces] = [
        _row(
            "file",
            ((foreign(report.submission_path, max(20, width - 60)).rstrip(), "text"), (f"   {took}", "dim")),
        )
    ]
    if report.score is None:
        lines.append(
            _row("valid", (("no", "bad"), (f"   {_OUTCOMES.get(report.outcome, report.outcome)}", "dim")))
        )
        lines += [
            _row("why" if not place else "", ((foreign(text, width - _LABEL - 2).rstrip(), "warn"),))
            for place, text in enumerate(report.message.splitlines())
        ]
    else:
        earned = report.medal or ("above median" if report.above_median else "below median")
        role = medal_role(cuts, report.score)
        letter = {"gold": "G", "silver": "S", "bronze": "B"}.get(
            earned, signs.above_median if report.above_median else signs.below_median
        )
        lines.append(_row("valid", (("yes", "good"),)))
        lines.append(_row("score", ((f"{report.score:.5f}", "strong"), (f"     {letter}  {earned}", role))))
    lines.append(())
    lines += [((" ", "text"), *pieces) for pieces in ruler(cuts, report.score, width - 2, signs)]
    if report.defects:
        lines += [(), _row("known defects", ((f"of this competition in edition {report.edition}", "dim"),))]
        lines += [
            _row("", ((foreign(text, width - _LABEL - 2).rstrip(), "dim"),)) for text in report.defects[:4]
        ]
    return tuple(lines)


def _row(label: str, pieces: Pieces) -> Pieces:
    head: Piece = (f" {label:<{_LABEL}}", "dim")
    return (head, *pieces)
