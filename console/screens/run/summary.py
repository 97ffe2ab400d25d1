"""A run described in one column: beside a list of runs, and beside the panes of its own screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.logs.reader import last_lines
from mlebench_console.console.nouns.run import ATTEMPT, attempt_rows
from mlebench_console.console.pieces import Line
from mlebench_console.console.roles import Drawing, Pieces
from mlebench_console.console.screens.run.configuration import configuration_blocks
from mlebench_console.console.screens.run.header import notes, standing, state_pieces, trouble_text
from mlebench_console.console.screens.run.resources import measured
from mlebench_console.console.screens.run.submissions import (
    rows_of,
    score_chart,
    scores_of,
    submission_columns,
)
from mlebench_console.console.screens.run.timeline import waiting
from mlebench_console.console.tui.widgets.blocks import (
    Block,
    in_one_line,
    laid_out,
    listing,
    section,
    shortened,
    wrapped,
)
from mlebench_console.console.tui.widgets.ruler import margined_ruler
from mlebench_console.console.views.run import RunFacts, UsageCurves, read_usage

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus


# The lines of the log in the pane beside a list.
_LOG_LINES = 40
FEWEST_LOG_LINES = 5
_ATTEMPTS = 3
# The most rows of the chart of scores beside a log.
CHART_ROWS = 9
# What of the configuration the lines above say, or what would be broken where it can't be copied.
SAID_ABOVE = ("competition", "seed", "directory")
_MARGIN: Pieces = ((" ", "text"),)
_SUBMISSIONS = 6
# With less room than this a part is left out instead of being cut.
_FEWEST_OF_PART = 4
_EVIDENCE_LINES = 3


@dataclass(frozen=True)
class RunFiles:
    """The data of a run's files for the pane beside a list: the last lines of its log, and its resource usage."""

    log: tuple[str, ...]
    usage: UsageCurves


def read_files(facts: RunFacts) -> RunFiles:
    """Read the pane's data from the latest attempt's files; waits for the disk."""
    log = last_lines(facts.log, _LOG_LINES) if facts.log is not None else ()
    return RunFiles(log, read_usage(facts))


def summary(
    facts: RunFacts,
    files: RunFiles | None,
    engine: EngineStatus | None,
    height: int,
    drawing: Drawing,
    *,
    title: Block | None = None,
) -> Iterator[Block]:
    """Yield a run's pane beside a list: its name (or a title) and state, and its parts as far as there is room."""
    run = facts.run
    name = shortened(run.competition_id, "strong", before=_MARGIN, after=((f"  seed {run.seed}", "text"),))
    state: list[Pieces] = [state_pieces(facts, drawing, with_bar=False)]
    if run.attempts > 1:
        state.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        state.append(((f"re-rolled {run.rerolls}{drawing.signs.times}", "warn"),))
    head: list[Block] = [title or name, in_one_line(state, *_MARGIN), standing(facts)]
    if run.failure_class is not None:
        head.append(((f" {wording.failure(run)}", "bad"),))
    head += notes(facts.run, drawing)
    yield partial(_headed, facts, files, engine, head, height)


def _headed(
    facts: RunFacts,
    files: RunFiles | None,
    engine: EngineStatus | None,
    head: Sequence[Block],
    height: int,
    drawing: Drawing,
) -> Iterable[Block]:
    """Draw a head and the parts for which there is room below it."""
    lines = laid_out(head, drawing)
    parts = summary_parts(facts, files, engine, height, drawing)
    cause, submissions = (laid_out(parts[name], drawing) for name in ("cause", "submissions"))
    if len(submissions) > height - len(lines) - len(cause):
        # Half a curve says less than the log in its place, and a single attempt little beside the state above.
        parts["submissions"] = []
        parts["timeline"] = parts["timeline"] if len(facts.attempts) > 1 else []
    return [*lines, partial(stacked, [*parts.values()], log_end(files), height - len(lines))]


def summary_parts(
    facts: RunFacts,
    files: RunFiles | None,
    engine: EngineStatus | None,
    height: int,
    drawing: Drawing,
    *,
    chart_rows: int = CHART_ROWS,
) -> dict[str, list[Block]]:
    """Return the parts of a run that are shown beside a list or a pane, by the pane that shows more; empty ones too.

    The most urgent ones are first.
    """
    rows = max(5, min(chart_rows, height // 4))
    curve = list(score_chart(facts, rows, drawing))
    title = "score over time" if curve else "submissions"
    if facts.competition is not None and len(scores_of(facts)) == 1:
        curve = [margined_ruler(facts.competition.thresholds, facts.run.score)]
    if len(facts.submissions) > 1:
        columns = submission_columns("into number which sign standing score", facts, drawing)
        curve.append(listing(columns, rows_of(facts)[: -_SUBMISSIONS - 1 : -1]))
    titles = [] if files is None else measured(facts, files.usage)
    attempts = attempt_rows(facts.run, facts.attempts)[: -_ATTEMPTS - 1 : -1]
    return {
        "cause": list(_cause(facts, engine, drawing)),
        "submissions": [section(title), *curve] if curve else [],
        "resources": [section("resources"), *(kind.title(facts.run.is_live) for kind in titles)]
        if titles
        else [],
        "timeline": [section("attempts"), listing(ATTEMPT.fields, attempts)] if attempts else [],
    }


def stacked(
    parts: Iterable[Iterable[Block]], log: Iterable[Block], height: int, drawing: Drawing
) -> list[Line]:
    """Draw parts below one another, the last one for which there is room cut where it is too long.

    A log gets the rest of the height, at least some lines, and shows its last ones.
    """
    end = laid_out(log, drawing)
    lines: list[Line] = []
    for part in parts:
        drawn = laid_out(part, drawing)
        room = height - len(lines) - bool(lines) - min(len(end), 1 + FEWEST_LOG_LINES)
        if drawn and room >= min(len(drawn), _FEWEST_OF_PART):
            left_out = Line(((f"  {len(drawn) - room + 1:,} more", "dim"),))
            lines += [*[Line()] * bool(lines), *drawn[:room]]
            lines[-1:] = [left_out] if len(drawn) > room > _FEWEST_OF_PART else lines[-1:]
    room = height - len(lines) - 1 - bool(lines)
    return [*lines, *[Line()] * bool(lines and end), *end[:1], *end[1:][-room:]] if room > 0 else lines


def log_end(files: RunFiles | None) -> list[Block]:
    """Return the last lines of the log below a heading; nothing for an empty log."""
    log = () if files is None else files.log
    return [section("log"), *(((" ", "text"), (text, "dim")) for text in log)] if log else []


def _cause(facts: RunFacts, engine: EngineStatus | None, drawing: Drawing) -> Iterator[Block]:
    """Yield why a run failed, waits or can't be graded, with the evidence."""
    run = facts.run
    if facts.queued is not None:
        yield from waiting(facts, engine, drawing)
        yield from configuration_blocks(facts, None, drawing, doubts_first=False, without=SAID_ABOVE)
    elif run.failure_class is not None:
        yield wrapped(run.failure_text)
        yield from evidence(facts)
    else:
        yield wrapped(trouble_text(facts, drawing), "warn")
        if run.is_live and facts.attempt is not None:
            wait = facts.job_wait
            is_held = wait is not None and wait.needs_person
            placed = wording.placed(facts.attempt, wait, drawing.now)
            yield wrapped(placed, "warn" if is_held else "dim")


def evidence(facts: RunFacts) -> list[Block]:
    """Quote the lines from which the cause of a failure was derived, but for those that equal it."""
    if facts.run.failure_class is None or facts.attempt is None:
        return []
    rows = facts.attempt.evidence.splitlines()[:_EVIDENCE_LINES]
    return [((f" {row}", "warn"),) for row in rows if row.strip() != facts.run.failure_text.strip()]
