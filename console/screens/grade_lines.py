"""A verdict on a graded file as lines."""

from __future__ import annotations

from collections.abc import Sequence

from competitions.model import Competition, Edition
from console import wording
from console.screens.ruler import medal_role, ruler
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    fitting,
    foreign,
    heading,
    width_of,
)
from console.tui.theme import Role, Signs
from console.views.graded import Past
from console.views.grading import Graded
from console.views.offending import Row

_LABEL = 14
_LETTERS: dict[str, tuple[str, Role]] = {
    "gold": ("G", "gold"),
    "silver": ("S", "silver"),
    "bronze": ("B", "bronze"),
    "above median": ("^", "good"),
    "below median": ("v", "dim"),
}
_OUTCOMES = {
    "no_file": "no file",
    "not_csv": "not a table that can be read",
    "rejected": "refused by the competition's rules",
    "grader_error": "the grader itself failed",
    "limits_exceeded": "grading took more than it may",
}


def about(competition: Competition, edition: Edition, signs: Signs, width: int) -> Pieces:
    """Which metric decides, which way is better, and by which edition is graded."""
    parts = (
        f"{competition.metric.name}, {wording.better(competition.thresholds)}",
        competition.complexity,
        f"edition {edition}",
    )
    text = f" {signs.dot} ".join(parts)
    return _row("metric", ((foreign(text, width - _LABEL - 2).rstrip(), "dim"),))


def left(missing: str, key: str, width: int) -> Pieces:
    """What to do about a form that was left half filled."""
    return fitting(
        [
            ((f" {missing}: {key} goes back to the fields, digits switch screens", "accent"),),
            ((f" {missing}: {key} goes back", "accent"),),
        ],
        width,
    )


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
        lines += _offending(graded.rows, width)
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


def _offending(rows: Sequence[Row], width: int) -> list[Pieces]:
    """The rows that a refusal is about, as they stand in the file."""
    lines = []
    for place, row in enumerate(rows):
        number = "heading" if not row.number else f"{row.number:,}"
        text = foreign(row.text, max(10, width - _LABEL - 14)).rstrip()
        lines.append(
            _row(
                "rows" if not place else "",
                ((f"{number:>9}  ", "dim"), (text, "warn" if row.is_wrong else "dim")),
            )
        )
    return lines


def history(past: Sequence[Past], width: int, signs: Signs) -> list[Line]:
    """What was graded before, newest first."""
    if not past:
        return []
    made = [Line(heading("graded before", width, signs, note=str(len(past))))]
    wide = width >= 110
    for each in past:
        letter, role = _LETTERS.get(each.medal, (signs.invalid, "warn"))
        worth = each.outcome.replace("_", " ") if each.score is None else wording.score(each.score, 9)
        pieces: Pieces = (
            (f"  {wording.day_and_clock(each.at)}  " if wide else f"  {wording.clock(each.at)}  ", "dim"),
            (foreign(each.competition_id, 40 if wide else 24, ellipsis=signs.ellipsis) + "  ", "text"),
            (foreign(f"{letter} {worth}", 16), role),
            (f"{each.edition:<10} " if wide else "", "dim"),
        )
        room = width - width_of(pieces) - 1
        # Of a path, the end tells more than the beginning.
        path = each.path if len(each.path) <= room else signs.ellipsis + each.path[-(room - 1) :]
        made.append(Line((*pieces, (foreign(path, max(4, room)), "dim")), key=each, selectable=True))
    return made


def _row(label: str, pieces: Pieces) -> Pieces:
    head: Piece = (f" {label:<{_LABEL}}", "dim")
    return (head, *pieces)
