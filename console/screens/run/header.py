"""The header of a run: its name, state and standing, why it failed or waits, and its notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.nouns.costs import short_cost
from mlebench_console.console.nouns.need import group_text
from mlebench_console.console.nouns.outcomes import outcome_role
from mlebench_console.console.nouns.run import RunRow, draw_run, state_role
from mlebench_console.console.nouns.submission import NO_REASON
from mlebench_console.console.pieces import bar, foreign, joined, spread_fitting, width_of
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, better_arrow
from mlebench_console.console.tui.widgets.blocks import Block, Layout, at_both_ends, in_one_line
from mlebench_console.console.views.run import RunFacts
from mlebench_console.engine.needs.causes import group_by_cause
from mlebench_console.engine.needs.waits import WaitKind, release_of_job
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import ENGINE, FailureClass, Outcome, RunState
from mlebench_console.state.records import Run

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus


# Narrower screens show short forms beside the score, and no bar of the run's time.
_WIDE = 110
# The least space between the run's name and its state.
_GAP = 3


def header(facts: RunFacts, engine: EngineStatus | None, drawing: Drawing) -> Iterator[Block]:
    """Yield the run's name, state and standing, why it failed or waits, and its notes."""
    run = facts.run
    yield partial(_name_and_state, facts)
    yield standing(facts)
    if run.failure_class is not None:
        yield _failure(facts, drawing)
    elif facts.queued is not None:
        role: Role = "warn" if any(wait.needs_person for wait in facts.queued.waits(engine)) else "text"
        yield ((f" {wording.waiting(facts.queued, engine, drawing.now)}", role),)
    elif facts.attempt is not None and (wait := facts.job_wait) is not None:
        role = "warn" if wait.needs_person else "text"
        yield ((f" {wording.placed(facts.attempt, wait, drawing.now)}", role),)
        if step := release_of_job(facts.attempt):
            yield ((f" next: {step}", "text"),)
    elif trouble := trouble_text(facts, drawing):
        yield ((f" {trouble}", "warn"),)
    yield from notes(run, drawing)


def _name_and_state(facts: RunFacts, drawing: Drawing) -> Iterable[Pieces]:
    """Return the run's name and place with its state at the end of the line, and a bar of its time if there is room."""
    run = facts.run
    states = [state_pieces(facts, drawing, with_bar=with_bar) for with_bar in (drawing.width >= _WIDE, False)]
    room = drawing.width - width_of(states[1]) - _GAP
    name = foreign(run.competition_id, max(12, min(60, room - 7))).rstrip()
    place: list[Pieces] = [((f" {name}", "strong"),), ((f"seed {run.seed}", "text"),)]
    if run.attempts:
        place.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        place.append(((f"re-rolled {run.rerolls}{drawing.signs.times}", "warn"),))
    place.append(((foreign(run.sweep_id, 30).rstrip(), "dim"),))
    return [spread_fitting([joined(place, separator(drawing), room)], states, drawing.width)]


def notes(run: Run, drawing: Drawing) -> Iterator[Block]:
    """Yield its tags and its note, with their author if there is room."""
    if run.tags or run.note:
        noted: Pieces = ((f" {drawing.signs.noted} ", "accent"), (wording.annotation(run), "text"))
        by: Pieces = ((f"   {wording.annotated_by(run, drawing.now)} ", "dim"),)
        yield at_both_ends([noted], [by, ()])


def separator(drawing: Drawing) -> Piece:
    """Return what stands between facts of one line."""
    return f" {drawing.signs.dot} ", "faint"


def state_pieces(facts: RunFacts, drawing: Drawing, *, with_bar: bool) -> Pieces:
    """Return its sign and state, how long it took, and in a wide terminal a bar of its time."""
    run, limit = facts.run, facts.sweep.conditions.time_limit_seconds
    row = RunRow(run, limit, facts.attempt)
    drawn = draw_run(row, drawing)
    word = wording.OUTCOME_WORDS[run.outcome] if run.outcome else run.state.value
    # Amber where Overview wants a live run looked at.
    role = drawn.role if run.is_live else state_role(run)
    sign = drawn.sign
    if run.state is RunState.FAILED:
        sign += wording.FAILURE_LETTERS[run.failure_class or FailureClass.UNKNOWN]
    elif (wait := facts.job_wait) is not None and wait.kind is WaitKind.JOB:
        word, role = "waits in Slurm", "warn" if wait.needs_person else "text"
    if run.started_at is None:
        return ((f"{sign} {word} ", role),)
    took = facts.took_seconds(drawing.now)
    pieces: list[Piece] = [(f"{sign} {word} ", role), (f"{wording.of_limit(took, limit)} ", "text")]
    if run.is_live and with_bar:
        full, empty = bar(took / limit, 20, drawing.signs)
        pieces += [(full, "running"), (empty, "faint"), (" ", "text")]
    return tuple(pieces)


def standing(facts: RunFacts) -> Layout:
    """Return what it would get, its score, and the cut-offs, as far as they fit."""
    return lambda drawing: [in_one_line(_standing(facts, drawing, is_wide=drawing.width >= _WIDE))]


def _standing(facts: RunFacts, drawing: Drawing, *, is_wide: bool) -> list[Pieces]:
    run = facts.run
    stands: list[Piece] = [(" ", "text")]
    if run.standing is None:
        stands.append(("nothing graded" if run.has_ended else "nothing graded yet", "dim"))
    elif run.outcome in REFUSED:
        stands.append(("no score", "dim"))  # the line above names the outcome
    else:
        stands += [
            ("now " if run.is_live else "", "dim"),
            (wording.OUTCOME_WORDS[run.standing], outcome_role(run.standing)),
        ]
    arrow = (
        f" {better_arrow(facts.competition.thresholds, drawing.signs)}"
        if facts.competition is not None
        else ""
    )
    if run.score is not None:
        stands += [(f" {wording.score(run.score, 9)}", "text"), (arrow, "dim")]
    groups: list[Pieces] = [tuple(stands)]
    if facts.percentile is not None:
        groups.append(((wording.rank(facts.percentile, short=not is_wide), "text"),))
    best = facts.best
    if best is not None and best.score != run.score:
        word = f" {wording.OUTCOME_WORDS[best.standing]}" if best.standing is not None else ""
        groups.append(
            (("best ", "dim"), (f"{wording.score(best.score, 9)}{word}", outcome_role(best.standing)))
        )
    if run.suspected and run.failure_class is None:
        groups.append(((f"suspected: {run.suspected.words}", "warn"),))
    if facts.attempt is not None and facts.attempt.isolated is False:
        groups.append((("not isolated", "warn"),))
    if run.is_live and facts.attempt is not None and facts.attempt.node:
        groups.append(((f"on {facts.attempt.node}", "dim"),))
    if facts.competition is not None:
        cuts = facts.competition.thresholds
        bronze, median = wording.score(cuts.bronze, 8), wording.score(cuts.median, 8)
        beside = arrow if run.score is None else ""
        groups.append(((f"bronze {bronze}, median {median}{beside}", "dim"),))
    if run.is_live and run.last_activity_at is not None:
        quiet = wording.age(drawing.now - run.last_activity_at)
        groups.append((("last change " + ("now" if quiet == "now" else f"{quiet} ago"), "dim"),))
    if facts.submissions:
        valid = sum(each.valid is True for each in facts.submissions)
        text = f"{valid} valid of {plural(len(facts.submissions), 'submission')}"
        groups.append(((text, "dim"),))
    if facts.spending.models:
        groups.append(((f"models {short_cost(facts.spending)}", "dim"),))
    return groups


def _failure(facts: RunFacts, drawing: Drawing) -> Pieces:
    run, attempt = facts.run, facts.attempt
    words = wording.failure(run)
    if facts.retry_at is not None:
        words += ", retried " + (
            "now" if facts.retry_at <= drawing.now else f"at {wording.clock(facts.retry_at)}"
        )
    by = (
        f" (classified by {attempt.classified_by})"
        if attempt and attempt.classified_by not in ("", ENGINE)
        else ""
    )
    said = run.failure_text
    if not said and attempt is not None:
        said = wording.how_it_ended(attempt)
    return ((f" {words}  ", "bad"), (f"{said}{by}", "text"))


def trouble_text(facts: RunFacts, drawing: Drawing) -> str:
    """Write why its submission was refused, or why a live run should be looked at; empty if there is no reason."""
    run = facts.run
    if run.outcome in REFUSED and facts.submissions:
        return facts.submissions[-1].message or NO_REASON
    limits = {facts.sweep.id: facts.sweep.conditions.time_limit_seconds}
    groups = group_by_cause([run], limits, {}, drawing.now) if run.is_live else ()
    return group_text(groups[0], drawing.now) if groups else ""


REFUSED = (Outcome.INVALID, Outcome.NO_SUBMISSION)
