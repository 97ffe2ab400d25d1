"""Runs: one competition with one seed of a sweep, its state, why somebody should look at it, and its attempts.

`draw_run` is a run's cell in a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlebench_console.competitions.medals import Thresholds
from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField, Order
from mlebench_console.console.nouns.competition import split_of, thresholds
from mlebench_console.console.nouns.need import IDLE_LETTER, LATE_LETTER, UNGRADABLE_LETTER, group_text
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs, better_arrow
from mlebench_console.engine.needs.causes import (
    IDLE_SECONDS,
    CauseKind,
    cause_now,
    group_by_cause,
    idle_since,
    recorded_cause,
)
from mlebench_console.engine.needs.waits import Wait, job_wait
from mlebench_console.foundation.conditions import HERE
from mlebench_console.state.lifecycle import MEDALS, FailureClass, Outcome, RunState
from mlebench_console.state.records import Attempt, Run

_SCORE_WIDTH = 8
_SOON_SECONDS = 6 * 3600.0
# Kinds of causes by urgency, as Overview lists them.
_URGENCY = {kind: place for place, kind in enumerate(CauseKind)}
_MEDALS_FIRST = {
    outcome: place
    for place, outcome in enumerate(
        (Outcome.GOLD, Outcome.SILVER, Outcome.BRONZE, Outcome.ABOVE_MEDIAN, Outcome.BELOW_MEDIAN)
    )
}


@dataclass(frozen=True)
class RunRow:
    """A run with what is needed to show it.

    Attributes:
        limit_seconds: the time limit of its sweep.
        attempt: its latest attempt, if a batch system may have that; None otherwise.
        cuts: the cut-offs of its competition; None if unknown.
        data: why it can't start for want of its dataset; None if it can.
    """

    run: Run
    limit_seconds: float
    attempt: Attempt | None = None
    cuts: Thresholds | None = None
    data: Wait | None = None

    @property
    def split(self) -> str:
        """The split of its competition."""
        return split_of(self.run.competition_id)

    @property
    def wait(self) -> Wait | None:
        """Why a batch system does not run it yet; None for all others."""
        return None if self.attempt is None or not self.run.is_live else job_wait(self.attempt)

    def trouble(self, now: float) -> tuple[CauseKind, str, float] | None:
        """Return the kind, cause and beginning of what is wrong with it; None if nothing is."""
        return cause_now(self.run, self.limit_seconds, now)

    def trouble_text(self, now: float) -> str:
        """Write what is wrong with it; empty if nothing is."""
        groups = group_by_cause([self.run], {self.run.sweep_id: self.limit_seconds}, {}, now)
        return group_text(groups[0], now) if groups else ""

    def needs_somebody(self, now: float) -> bool:
        """Return whether it has failed, is late or idle, can't be graded, or waits in a queue for a person."""
        wait = self.wait
        return (wait is not None and wait.needs_person) or self.trouble(now) is not None

    def took_seconds(self, now: float) -> float | None:
        """Return how long it has run; None before its start."""
        return None if self.run.started_at is None else (self.run.ended_at or now) - self.run.started_at

    def time_up(self, now: float) -> float:
        """Return when its time limit ends it, if it started no later than now."""
        return (now if self.run.started_at is None else self.run.started_at) + self.limit_seconds

    def where(self, now: float) -> str:
        """Write where a batch system runs it, or why it waits; empty for a run on the engine's own host."""
        if (wait := self.wait) is not None:
            return wording.waits(wait, now)
        node = self.attempt.node if self.attempt is not None and self.run.is_live else ""
        return f"on {node}" if node else ""


def run_rows(
    found: Iterable[Run], limits: Mapping[str, float], elsewhere: Mapping[int, Attempt] | None = None
) -> list[RunRow]:
    """Join runs with the time limits of their sweeps, and with the attempts that a batch system may have."""
    known = elsewhere or {}
    return [
        RunRow(run, limits[run.sweep_id], known.get(run.id), thresholds(run.competition_id)) for run in found
    ]


@dataclass(frozen=True)
class DrawnRun:
    """A run's sign and short text; the standing is in brackets where it is not final.

    Attributes:
        shorter: a shorter text for narrow cells.
        letter: of a live run, why it should be looked at.
    """

    sign: str
    text: str
    standing: str
    role: Role
    standing_role: Role = "dim"
    shorter: str = ""
    letter: str = ""


def draw_kind(kind: Outcome | RunState, signs: Signs) -> Piece:
    """Return the sign and role of an outcome, or of the state of runs without one."""
    if isinstance(kind, Outcome):
        return outcome_sign(kind, signs), outcome_role(kind)
    if kind is RunState.FAILED:
        return signs.failed, "bad"
    if kind in (RunState.QUEUED, RunState.STOPPED):
        return signs.queued if kind is RunState.QUEUED else signs.stopped, "dim"
    return signs.running, "running"


def state_role(run: Run) -> Role:
    """Return the role of a run by its state and outcome."""
    if run.state is RunState.FINISHED:
        return outcome_role(run.outcome)
    if run.state is RunState.FAILED:
        return "bad"
    return "running" if run.is_live else "dim"


def draw_run(row: RunRow, drawing: Drawing) -> DrawnRun:
    """Return the cell of a run in a matrix."""
    run, signs, now = row.run, drawing.signs, drawing.now
    if (wait := row.wait) is not None:
        text, *others = wording.waits_short(wait, now)
        role: Role = "warn" if wait.needs_person else "dim"
        return DrawnRun(signs.queued, text, "", role, shorter=others[0] if others else "")
    reroll = signs.reroll if run.rerolls else ""
    if run.state is RunState.FINISHED and run.outcome is not None:
        text = wording.OUTCOME_SHORT[run.outcome]
        if run.score is not None:
            text = wording.score_beside(run.score, row.cuts)
        return DrawnRun(outcome_sign(run.outcome, signs), text + reroll, "", outcome_role(run.outcome))
    if run.state is RunState.FAILED:
        kind = run.failure_class or FailureClass.UNKNOWN
        text = f"{wording.FAILURE_LETTERS[kind]} {wording.FAILURE_SHORT[kind]}"
        return DrawnRun(signs.failed, text + reroll, "", "bad")
    if run.state is RunState.STOPPED:
        return DrawnRun(signs.stopped, "stopped" + reroll, "", "dim")
    if run.state is RunState.QUEUED:
        return DrawnRun(signs.queued, f"queued{reroll}" if run.attempts else reroll, "", "dim")
    standing = f"[{outcome_sign(run.standing, signs) if run.standing else signs.dot}]"
    if run.state is RunState.STARTING and run.standing is None:
        standing = ""
    if run.state is RunState.RUNNING and run.started_at is not None:
        text = wording.elapsed_within(now - run.started_at, row.limit_seconds)
    else:
        text = run.state.value
    live: Role = "running"
    shorter = letter = ""
    if (trouble := row.trouble(now)) is not None:
        why, _text, since = trouble
        live = "warn"
        if why is CauseKind.IDLE:
            shorter, letter = "idle", IDLE_LETTER
            text = f"idle {wording.age(now - since + IDLE_SECONDS)}"
        elif why is CauseKind.LATE and run.started_at is not None:
            shorter, letter = "no valid", LATE_LETTER
            text = f"no valid, {wording.age(max(60.0, run.started_at + row.limit_seconds - now))} left"
            # Without a valid submission there is usually nothing to show, and the words need the room.
            standing = standing if run.standing else ""
        else:
            text, shorter, letter = "no grade", "no grade", UNGRADABLE_LETTER
    return DrawnRun(signs.running, text + reroll, standing, live, outcome_role(run.standing), shorter, letter)


def _sign(row: RunRow, drawing: Drawing) -> Pieces:
    drawn = draw_run(row, drawing)
    return ((drawn.sign, drawn.role),)


def _state(row: RunRow, drawing: Drawing) -> Cell:
    """Return what a finished run earned; of others the state, the class of a failure, and the standing so far."""
    run, drawn = row.run, draw_run(row, drawing)
    if run.failure_class is not None and run.state is not RunState.QUEUED:
        suspected = f", suspected: {run.suspected.words}" if run.suspected else ""
        words = f"{run.state} ({run.failure_class}{suspected})"
        return Forms((((words, "bad"),), ((wording.FAILURE_SHORT[run.failure_class], "bad"),)))
    if run.outcome is not None:
        forms = (wording.OUTCOME_WORDS[run.outcome], wording.OUTCOME_SHORT[run.outcome])
        return Forms([((form, drawn.role),) for form in forms])
    word = "waits" if row.wait is not None else run.state.value
    earned = "" if run.standing is None else f", {wording.outcome(run.standing)}"
    trouble = f" ({drawn.shorter})" if drawn.letter else ""
    whole: Pieces = ((word + trouble, drawn.role), (earned, drawn.standing_role))
    standing = f" {drawn.standing}" if drawn.standing else ""
    short: Pieces = ((drawn.shorter if drawn.letter else word, drawn.role), (standing, drawn.standing_role))
    return Forms((whole, short))


def _score(row: RunRow, _drawing: Drawing) -> str:
    return "" if row.run.score is None else wording.score_beside(row.run.score, row.cuts, _SCORE_WIDTH)


def _better(row: RunRow, drawing: Drawing) -> str:
    return "" if row.cuts is None or row.run.score is None else better_arrow(row.cuts, drawing.signs)


def _took(row: RunRow, drawing: Drawing) -> str:
    seconds = row.took_seconds(drawing.now)
    return "" if seconds is None else wording.elapsed_within(seconds, row.limit_seconds)


def _idle(row: RunRow, drawing: Drawing) -> Cell:
    run = row.run
    if not run.is_live or run.last_activity_at is None:
        return ""
    role: Role = "dim" if idle_since(run, drawing.now) is None else "warn"
    return ((wording.age(drawing.now - run.last_activity_at), role),)


def _why(row: RunRow, drawing: Drawing) -> Cell:
    """Return why a run failed, can't be graded, should be looked at, or waits, and where a batch system runs it."""
    run, now = row.run, drawing.now
    if run.state is RunState.FAILED:
        return ((row.trouble_text(now) or run.failure_text, "text"),)
    if trouble := row.trouble_text(now):
        return ((trouble, "warn"),)
    if (wait := row.wait) is not None:
        when = wording.waits_short(wait, now)[:1] if wait.until is not None else ()
        role: Role = "warn" if wait.needs_person else "dim"
        return Forms([((form, role),) for form in (wording.waits(wait, now), *when)])
    if run.state is RunState.QUEUED:
        # Why an earlier attempt failed is not why this one waits.
        return (("" if row.data is None else row.data.text, "dim"),)
    return ((run.failure_text or row.where(now), "dim"),)


def _until(row: RunRow, drawing: Drawing) -> str:
    """Return when its time is up, which changes less often than the time left."""
    at = row.time_up(drawing.now)
    is_soon = at - drawing.now < _SOON_SECONDS or wording.day(at) == wording.day(drawing.now)
    # The time alone of a limit of tomorrow could be read as one that is over.
    return wording.clock(at) if is_soon else wording.day_and_time(at)


def _stands(row: RunRow, drawing: Drawing) -> Pieces:
    """Return what is wrong with a live run, else what it would get now and its score."""
    run = row.run
    if (trouble := row.trouble(drawing.now)) is not None:
        return ((trouble[1], "warn"),)
    score = "" if run.standing is None or run.score is None else f" {wording.score(run.score, 9)}"
    return ((wording.standing_so_far(run.standing), outcome_role(run.standing)), (score, "text"))


def _ended(row: RunRow, drawing: Drawing) -> Cell:
    """Return when it ended, or was last active."""
    at = row.run.ended_at if row.run.ended_at is not None else row.run.last_activity_at
    return "" if at is None else Forms(wording.from_to(at, at, drawing.now, drawing.signs.to))


def _notes(row: RunRow, _drawing: Drawing) -> str:
    return wording.annotation(row.run)


def _by_need(row: RunRow, drawing: Drawing) -> tuple[float, ...]:
    """Rank what needs a person first, by urgency as Overview does, then live runs, queued ones, ended ones."""
    run, now = row.run, drawing.now
    if (trouble := row.trouble(now)) is not None:
        kind, _text, since = trouble
        return 0, _URGENCY[kind], -since, run.id
    if row.needs_somebody(now):
        return 0, _URGENCY[CauseKind.IDLE], 0.0, run.id
    if run.is_live:
        return 1, run.valid is True, 0.0, run.id
    return (2 if run.state is RunState.QUEUED else 3), 0, -(run.ended_at or 0.0), run.id


def _by_medals(row: RunRow, _drawing: Drawing) -> tuple[float, ...]:
    standing = row.run.standing
    return (len(_MEDALS_FIRST) if standing is None else _MEDALS_FIRST.get(standing, 5)), row.run.id


def _by_idle(row: RunRow, _drawing: Drawing) -> tuple[float, ...]:
    run = row.run
    return (0 if run.is_live else 1), run.last_activity_at or run.started_at or float("inf"), run.id


def _has_cause(row: RunRow, value: str) -> bool:
    key, cause = recorded_cause(row.run)
    return bool(key) and (key.startswith(value) or value in cause.lower())


def _earned(outcome: Callable[[Run], Outcome | None]) -> Callable[[RunRow, str], bool]:
    """Return whether a run has an outcome that begins with a value, or any medal for `medal`."""

    def matches(row: RunRow, value: str) -> bool:
        found = outcome(row.run)
        if not value or found is None:
            return False
        return found.startswith(value.replace(" ", "_")) or (value == "medal" and found in MEDALS)

    return matches


def _in_state(row: RunRow, value: str) -> bool:
    return row.run.state.startswith(value) or (value == "live" and row.run.is_live)


def _has_tag(row: RunRow, value: str) -> bool:
    return any(value in ("", tag.name) for tag in row.run.tags)


def _is_noted(row: RunRow, value: str) -> bool:
    return bool(row.run.note) and value in row.run.note.lower()


def run_document(row: RunRow, now: float) -> dict[str, Any]:
    """Return a run's record, for how long nothing has happened in it, and what a batch system says of its job."""
    run, attempt, job = row.run, row.attempt, None
    if attempt is not None and attempt.placement != HERE and run.is_live:
        job = {
            "placement": attempt.placement,
            "number": attempt.job,
            "node": attempt.node,
            "waits_for": attempt.waits_for,
            "starts_at": attempt.starts_at,
            "priority": attempt.job_priority,
            "staged_bytes": attempt.staged_bytes,
            "to_stage_bytes": attempt.to_stage_bytes,
        }
    is_idle = run.state is RunState.RUNNING and run.last_activity_at is not None
    idle = max(0.0, now - (run.last_activity_at or now)) if is_idle else None
    return asdict(run) | {"idle_seconds": idle, "job": job}


# The order in which a sweep has its runs.
BENCHMARK = Order[RunRow]("the benchmark's order", lambda row, _: (row.run.id,))
RUN = Noun[RunRow](
    "run",
    key=lambda row: row.run.id,
    document=run_document,
    fields=(
        NounField("run", lambda row, _: str(row.run.id), 5, right=True, role="dim", order=BENCHMARK),
        NounField("sweep", lambda row, _: row.run.sweep_id, 12, grows=40, role="dim"),
        NounField(
            "competition",
            lambda row, _: row.run.competition_id,
            24,
            grows=56,
            words=True,
            order=Order("by name", lambda row, _: (row.run.competition_id.lower(), row.run.seed)),
        ),
        NounField("seed", lambda row, _: str(row.run.seed), 4, right=True, gap=1, matches="whole"),
        NounField("split", lambda row, _: row.split, 6, matches="beginning"),
        NounField("sign", _sign, 1, title=""),
        NounField(
            "state", _state, 12, gap=1, order=Order("what needs you first", _by_need), matches=_in_state
        ),
        NounField("class", lambda row, _: row.run.failure_class or "", 14, matches="beginning"),
        NounField(
            "outcome",
            lambda row, _: row.run.outcome or "",
            14,
            words=True,
            matches=_earned(lambda run: run.outcome),
        ),
        NounField(
            "standing", lambda row, _: row.run.standing or "", 14, matches=_earned(lambda run: run.standing)
        ),
        NounField("score", _score, _SCORE_WIDTH, right=True, order=Order("most medals first", _by_medals)),
        NounField("better", _better, 1, title="", gap=1, role="dim"),
        # Below a heading that names none of its columns.
        NounField("which", lambda row, _: f"s{row.run.seed}", 4),
        NounField("until", _until, 5, grows=11, role="dim"),
        NounField("stands", _stands, 28, grows=60, gap=1),
        NounField("ended", _ended, 7, right=True, role="dim"),
        NounField("took", _took, 6, drop=2, right=True, role="dim"),
        NounField(
            "attempts", lambda row, _: str(row.run.attempts), 8, drop=4, right=True, role="dim", usual="1"
        ),
        NounField("idle", _idle, 6, drop=3, right=True, gap=1, order=Order("longest idle first", _by_idle)),
        NounField("cause", lambda row, _: recorded_cause(row.run)[1], 24, matches=_has_cause),
        NounField("why", _why, 24, grows=REST, drop=1),
        NounField("failure", lambda row, _: row.run.failure_text, 24, words=True),
        NounField("tag", lambda row, _: wording.tags(row.run), 8, words=True, matches=_has_tag),
        NounField("note", lambda row, _: row.run.note, 16, words=True, matches=_is_noted),
        NounField("notes", _notes, 6, grows=32, drop=3, role="accent"),
    ),
)


def filter_words(known: Iterable[Run], named: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the words that a filter of these runs may have, named filters first, each with what it lets through."""
    yield from named.items()
    values: dict[str, Iterable[str]] = {
        "state": (*RunState, "live"),
        "class": FailureClass,
        "outcome": (*(outcome.replace("_", " ").split()[0] for outcome in Outcome), "medal"),
        "tag": (tag.name for run in known for tag in run.tags),
        "split": ("low", "medium", "high"),
    }
    causes = dict(map(recorded_cause, known))
    for name in RUN.filtered_by:
        if name == "cause":
            yield from ((f"cause:{key}", text) for key, text in causes.items() if key)
            continue
        for value in dict.fromkeys(values.get(name, ())):
            yield f"{name}:{value}", f"runs whose {name} is {value}"
        if name not in values:
            yield f"{name}:", f"runs by their {name}"


@dataclass(frozen=True)
class AttemptRow:
    """One attempt of a run; the latest one may be live, or wait for a node."""

    attempt: Attempt
    run: Run
    is_live: bool


def attempt_rows(run: Run, attempts: Sequence[Attempt]) -> list[AttemptRow]:
    """Join the attempts of a run with it, the oldest first."""
    return [
        AttemptRow(each, run, run.is_live and each.ended_at is None and each is attempts[-1])
        for each in attempts
    ]


def _attempt_took(row: AttemptRow, drawing: Drawing) -> str:
    ended, started = drawing.now if row.is_live else row.attempt.ended_at, row.attempt.started_at
    return "" if ended is None or started is None else wording.span(ended - started)


def _came_of_it(row: AttemptRow, drawing: Drawing) -> Cell:
    """Return what came of it: the outcome, the text of a failure or else its class, or how a live one stands."""
    attempt = row.attempt
    if row.is_live:
        wait = job_wait(attempt)
        if wait is None:
            return ((row.run.state.value, state_role(row.run)),)
        role: Role = "warn" if wait.needs_person else "text"
        return Forms([((form, role),) for form in (wording.waits(wait, drawing.now), "waits")])
    reroll = " (re-roll)" if attempt.reroll else ""
    if attempt.outcome:
        return ((wording.OUTCOME_WORDS[attempt.outcome] + reroll, outcome_role(attempt.outcome)),)
    kind = "" if attempt.failure_class is None else wording.FAILURE_WORDS[attempt.failure_class]
    forms = dict.fromkeys((attempt.failure_text or kind, kind or attempt.failure_text))
    return Forms([((form + reroll, "bad"),) for form in forms])


ATTEMPT = Noun[AttemptRow](
    "attempt",
    key=lambda row: row.attempt.number,
    document=lambda row, _now: asdict(row.attempt),
    fields=(
        NounField("attempt", lambda row, _: str(row.attempt.number), 7),
        NounField("began", lambda row, _: wording.day_and_time(row.attempt.created_at), 11, role="dim"),
        NounField("took", _attempt_took, 6, role="dim"),
        NounField("ended", lambda row, _: wording.how_it_ended(row.attempt), 8, grows=22, drop=1, role="dim"),
        NounField("what", _came_of_it, 10, grows=REST),
    ),
)
