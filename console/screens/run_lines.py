"""A run's facts as lines: its header, timeline, submissions, files and configuration."""

from __future__ import annotations

from collections.abc import Sequence

from console import wording
from console.screens.ruler import ruler
from console.screens.run_cell import draw_run, outcome_role, outcome_sign, state_role
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    bar,
    cut,
    fit,
    foreign,
    joined,
    spread_fitting,
    width_of,
)
from console.tui.theme import Signs
from console.views.run import FileEntry, RunFacts
from state.lifecycle import Outcome
from state.records import Attempt, Submission

PANES = ("log", "timeline", "submissions", "resources", "files", "config")


def header(facts: RunFacts, width: int, now: float, signs: Signs) -> tuple[Pieces, ...]:
    """Which run this is, how it is, and what it would get."""
    run, dot = facts.run, _dot(signs)
    state = [_state(facts, now, signs, with_bar=width >= 100), _state(facts, now, signs, with_bar=False)]
    name = foreign(run.competition_id, max(12, min(60, width - 10 - width_of(state[1])))).rstrip()
    place: list[Pieces] = [((f" {name}", "strong"),), ((f"seed {run.seed}", "text"),)]
    if run.attempts:
        place.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        place.append(((f"re-rolled {run.rerolls}{signs.times}", "warn"),))
    place.append(((foreign(run.sweep_id, 30).rstrip(), "dim"),))
    room = width - width_of(state[1]) - 1
    lines = [spread_fitting([joined(place, dot, room)], state, width), _standing(facts, now, signs, width)]
    if run.failure_class is not None:
        lines.append(_failure(facts, width))
    return tuple(lines)


def _dot(signs: Signs) -> Piece:
    return f" {signs.dot} ", "faint"


def panes(current: str, width: int, signs: Signs) -> Pieces:
    """The names of the panes, the current one standing out."""
    pieces: list[Piece] = [(" ", "text")]
    for name in PANES:
        pieces += [(name.capitalize(), "accent" if name == current else "dim"), ("   ", "text")]
    rule = signs.rule * max(0, width - sum(len(text) for text, _ in pieces) - 1)
    return (*pieces, (rule, "faint"))


def _state(facts: RunFacts, now: float, signs: Signs, *, with_bar: bool) -> Pieces:
    run, limit = facts.run, facts.sweep.spec.time_limit_seconds
    drawn = draw_run(run, signs, now, limit)
    word = wording.OUTCOME_WORDS[run.outcome] if run.outcome else run.state.value
    if run.started_at is None:
        return ((f"{drawn.sign} {word} ", state_role(run)),)
    took = (run.ended_at or now) - run.started_at
    told = f"{wording.duration(took)} of {wording.limit(limit)}" if run.ended_at else ""
    pieces: list[Piece] = [
        (f"{drawn.sign} {word} ", state_role(run)),
        (told or wording.of_limit(took, limit), "text"),
        (" ", "text"),
    ]
    if run.is_live and with_bar:
        full, empty = bar(took / limit, 20, signs)
        pieces += [(full, "running"), (empty, "faint"), (" ", "text")]
    return tuple(pieces)


def _standing(facts: RunFacts, now: float, signs: Signs, width: int) -> Pieces:
    run = facts.run
    stands: list[Piece] = [(" ", "text")]
    if run.standing is None:
        stands.append(("nothing graded yet", "dim"))
    else:
        stands += [
            ("now " if run.is_live else "", "dim"),
            (wording.OUTCOME_WORDS[run.standing], outcome_role(run.standing)),
        ]
    if run.score is not None:
        stands.append((f" {wording.score(run.score, 9)}", "text"))
    groups: list[Pieces] = [tuple(stands)]
    if facts.attempt is not None and facts.attempt.isolated is False:
        groups.append((("not isolated", "warn"),))
    if facts.competition is not None:
        cuts = facts.competition.thresholds
        bronze, median = wording.score(cuts.bronze, 8), wording.score(cuts.median, 8)
        groups.append(((f"bronze {bronze}, median {median}", "dim"),))
    if run.is_live and run.last_activity_at is not None:
        quiet = wording.age(now - run.last_activity_at)
        groups.append((("last change " + ("now" if quiet == "now" else f"{quiet} ago"), "dim"),))
    if facts.submissions:
        valid = sum(each.valid is True for each in facts.submissions)
        told = f"{valid} valid of {wording.plural(len(facts.submissions), 'submission')}"
        groups.append(((told, "dim"),))
    return joined(groups, _dot(signs), width)


def _failure(facts: RunFacts, width: int) -> Pieces:
    run, attempt = facts.run, facts.attempt
    assert run.failure_class is not None  # asked only for failed runs
    words = wording.FAILURE_WORDS[run.failure_class]
    by = (
        f" (classified by {attempt.classified_by})"
        if attempt and attempt.classified_by not in ("", "engine")
        else ""
    )
    text = foreign(f"{run.failure_text}{by}", width - len(words) - 5).rstrip()
    return ((f" {words}", "bad"), ("  ", "text"), (text, "text"))


def timeline(facts: RunFacts, width: int) -> list[Line]:
    """Attempts, then events, newest first."""
    lines = [Line(((f"  {'attempt':<9}{'began':<18}{'took':<8}{'ended':<24}what", "dim"),))]
    for attempt in reversed(facts.attempts):
        lines += _attempt(attempt, width)
    if not facts.attempts:
        waits = _waiting(facts)
        lines.append(Line(((f"  never launched yet{waits}", "dim"),)))
    lines += [Line(), Line((("  events", "dim"),))]
    for event in facts.events:
        text = foreign(event.text, max(10, width - 44))
        kind = foreign(event.kind, 20)
        pieces: Pieces = (
            (f"  {wording.day_and_clock(event.at)}  ", "dim"),
            (kind + " ", "dim"),
            (text, "text"),
        )
        lines.append(Line(pieces, key=("event", event.id), selectable=True))
    return lines


def _waiting(facts: RunFacts) -> str:
    dataset = facts.dataset
    if dataset is None or dataset.state == "prepared":
        return ""
    problem = f": {foreign(dataset.problem, 80).rstrip()}" if dataset.problem else ""
    return f"; its data are {dataset.state}{problem}"


def _attempt(attempt: Attempt, width: int) -> list[Line]:
    began = wording.day_and_clock(attempt.created_at)
    took = (
        wording.span(attempt.ended_at - attempt.started_at) if attempt.ended_at and attempt.started_at else ""
    )
    how = attempt.exit_reason
    if attempt.exit_signal is not None:
        how += f", signal {attempt.exit_signal}"
    elif attempt.exit_code is not None:
        how += f", exit code {attempt.exit_code}"
    what = wording.OUTCOME_WORDS[attempt.outcome] if attempt.outcome else attempt.failure_text
    mark = " (re-roll)" if attempt.reroll else ""
    pieces: Pieces = (
        (f"  {attempt.number:<9}", "text"),
        (f"{began:<18}{took:<8}", "dim"),
        (foreign(how, 23) + " ", "dim"),
        (
            foreign(what + mark, max(10, width - 62)),
            outcome_role(attempt.outcome) if attempt.outcome else "bad",
        ),
    )
    lines = [Line(cut(pieces, width), key=("attempt", attempt.number), selectable=True)]
    for row in attempt.evidence.splitlines()[:6]:
        lines.append(Line(((" " * 11, "text"), (foreign(row, width - 13), "warn"))))
    return lines


def submissions(facts: RunFacts, width: int, signs: Signs) -> list[Line]:
    """The ruler, then every snapshot, newest first."""
    lines: list[Line] = []
    if facts.competition is not None:
        drawn = ruler(facts.competition.thresholds, facts.run.score, width - 4, signs)
        lines += [Line(), *(Line((("  ", "text"), *pieces)) for pieces in drawn), Line()]
    if not facts.submissions:
        return [*lines, Line((("  no submission yet", "dim"),))]
    lines.append(
        Line(((f"  {'at':<8}{'#':>4}  {'standing':<20}{'score':>11}  {'size':>9}  message", "dim"),))
    )
    lines += [_snapshot(each, width, signs) for each in reversed(facts.submissions)]
    return lines


def _snapshot(each: Submission, width: int, signs: Signs) -> Line:
    standing = "being graded"
    if each.standing is not None:
        standing = f"{outcome_sign(each.standing, signs)} {wording.OUTCOME_WORDS[each.standing]}"
    invalid = each.standing in (Outcome.INVALID, Outcome.NO_SUBMISSION)
    message = each.message or "" if invalid or each.score is None else ""
    final = "final  " if each.final else ""
    pieces: Pieces = (
        (f"  {wording.elapsed(each.elapsed_seconds):<8}", "dim"),
        (f"{each.sequence:>4}  ", "dim"),
        (fit(standing, 20), outcome_role(each.standing)),
        (f"{wording.score(each.score, 10) if each.score is not None else '':>11}", "text"),
        (f"  {wording.size(each.bytes):>9}  ", "dim"),
        (final, "accent"),
        (foreign(message, max(0, width - 62)), "warn"),
    )
    return Line(cut(pieces, width), key=each.id, selectable=True)


def files(entries: Sequence[FileEntry], note: str, width: int) -> list[Line]:
    """What lies in the attempt's directory; names are the agent's."""
    lines = [Line(((f"  {'size':>9}  name", "dim"),))]
    for entry in entries:
        size = wording.size(entry.bytes) if entry.kind == "file" else entry.kind
        depth = "  " * entry.depth
        pieces: Pieces = (
            (f"  {size:>9}  ", "dim"),
            (f"{depth}{foreign(entry.name, max(10, width - 16 - len(depth))).rstrip()}", "text"),
        )
        lines.append(Line(cut(pieces, width), key=entry.path, selectable=True))
    return [*lines, Line(((f"  {note}", "dim"),))] if note else lines
