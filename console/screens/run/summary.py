"""A run described in one column: beside a list of runs, and beside the panes of its own screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.logs.reader import last_lines
from mlebench_console.console.nouns.run import ATTEMPT, attempt_rows
from mlebench_console.console.pieces import foreign, foreign_lines, heading, joined
from mlebench_console.console.roles import Drawing, Piece, Pieces
from mlebench_console.console.screens.run.configuration import configuration_lines
from mlebench_console.console.screens.run.header import (
    MOST_WRAPPED,
    notes_lines,
    separator,
    standing_pieces,
    state_pieces,
    trouble_text,
)
from mlebench_console.console.screens.run.resources import measured
from mlebench_console.console.screens.run.submissions import (
    rows_of,
    score_chart,
    scores_of,
    submission_columns,
)
from mlebench_console.console.screens.run.timeline import wait_lines
from mlebench_console.console.tui.widgets.ruler import ruler
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.run import RunFacts, UsageCurves, read_usage

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus


# The lines of the log in the pane beside a list.
_LOG_LINES = 40
FEWEST_LOG_LINES = 5
_ATTEMPTS = 3
# The most rows of the chart of scores beside a log, and without one.
CHART_ROWS, ROWS_WITHOUT_LOG = 9, 14
_SUBMISSIONS = 6
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


def summary_lines(
    facts: RunFacts,
    files: RunFiles | None,
    engine: EngineStatus | None,
    width: int,
    height: int,
    drawing: Drawing,
) -> list[Pieces]:
    """Draw a run's pane beside a list: its name and state, and below them its parts as far as there is room."""
    run, dot = facts.run, separator(drawing)
    seed = f"  seed {run.seed}"
    name: Pieces = (
        (f" {foreign(run.competition_id, width - len(seed) - 1).rstrip()}", "strong"),
        (seed, "text"),
    )
    state: list[Pieces] = [((" ", "text"), *state_pieces(facts, drawing, with_bar=False))]
    if run.attempts > 1:
        state.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        state.append(((f"re-rolled {run.rerolls}{drawing.signs.times}", "warn"),))
    head = [name, joined(state, dot, width), standing_pieces(facts, width, drawing)]
    if run.failure_class is not None:
        head.append(((f" {wording.failure(run)}", "bad"),))
    head += notes_lines(facts.run, width, drawing)
    parts = summary_parts(facts, files, engine, width, height, drawing)
    if len(parts["submissions"]) > height - len(head) - len(parts["cause"]):
        # Half a curve says less than the log in its place, and a single attempt little beside the state above.
        parts["submissions"] = []
        parts["timeline"] = parts["timeline"] if len(facts.attempts) > 1 else []
    return [*head, *stacked(parts.values(), log_lines(files, width, drawing), height - len(head))]


def summary_parts(
    facts: RunFacts,
    files: RunFiles | None,
    engine: EngineStatus | None,
    width: int,
    height: int,
    drawing: Drawing,
    *,
    chart_rows: int = CHART_ROWS,
) -> dict[str, list[Pieces]]:
    """Draw the parts of a run that are shown beside a list or a pane, by the pane that shows more; empty ones too.

    The most urgent ones are first.
    """
    parts: dict[str, list[Pieces]] = {"cause": _cause(facts, engine, width, drawing)}
    rows = max(5, min(chart_rows, height // 4))
    curve = [line.pieces for line in score_chart(facts, width - 1, rows, drawing)]
    title = "score over time" if curve else "submissions"
    if facts.competition is not None and len(scores_of(facts)) == 1:
        drawn = ruler(facts.competition.thresholds, facts.run.score, width - 2, drawing.signs)
        curve = [((" ", "text"), *pieces) for pieces in drawn]
    newest = rows_of(facts)[: -_SUBMISSIONS - 1 : -1]
    if len(facts.submissions) > 1:
        columns = submission_columns("into number which sign standing score", facts, drawing)
        table = Table(columns, newest, width, drawing)
        curve += [table.heading().pieces, *(table.line(each).pieces for each in newest)]
    parts["submissions"] = [heading(title, width, drawing.signs), *curve] if curve else []
    parts["resources"] = []
    if files is not None and files.usage.latest is not None:
        titles = [kind.title(facts.run.is_live) for kind in measured(facts, files.usage)]
        parts["resources"] = [heading("resources", width, drawing.signs), *titles]
    parts["timeline"] = []
    if facts.attempts:
        made = attempt_rows(facts.run, facts.attempts)
        attempts = Table(ATTEMPT.fields, made, width, drawing)
        shown = [attempts.heading(), *map(attempts.line, made[: -_ATTEMPTS - 1 : -1])]
        parts["timeline"] = [heading("attempts", width, drawing.signs), *(line.pieces for line in shown)]
    return parts


def stacked(parts: Iterable[list[Pieces]], log: list[Pieces], height: int) -> list[Pieces]:
    """Put parts below one another; a log gets the rest of the height, and shows its last lines.

    If that is too high, parts are left out from the last one on, but for the first.
    """
    upper = [part for part in parts if part]
    fewest = min(len(log), 1 + FEWEST_LOG_LINES)
    while len(upper) > 1 and sum(map(len, upper)) + len(upper) + fewest > height:
        del upper[-1]
    lines = [line for part in upper for line in ((), *part)][1:]
    room = height - len(lines) - 1 - bool(lines)
    return [*lines, *[()] * bool(lines and log), *log[:1], *log[1:][-room:]] if room > 0 else lines


def first_lines(lines: Sequence[Pieces], most: int) -> list[Pieces]:
    """Return the first lines; where there are more, the last one says how many."""
    if len(lines) <= most:
        return list(lines)
    shown = max(0, most - 1)
    return [*lines[:shown], ((f"  {len(lines) - shown:,} more", "dim"),)][: max(0, most)]


def log_lines(files: RunFiles | None, width: int, drawing: Drawing) -> list[Pieces]:
    """Draw the last lines of the log below a heading; no lines for an empty log."""
    log = () if files is None else files.log
    lines: list[Pieces] = [((f" {foreign(text, width - 1).rstrip()}", "dim"),) for text in log]
    return [heading("log", width, drawing.signs), *lines] if lines else []


def _cause(facts: RunFacts, engine: EngineStatus | None, width: int, drawing: Drawing) -> list[Pieces]:
    """Write why a run failed, waits or can't be graded, with the evidence, cut to the pane's lines."""
    run = facts.run
    if facts.queued is not None:
        reasons = wait_lines(facts, engine, width, drawing)
        return [
            line.pieces
            for line in (*reasons, *configuration_lines(facts, None, width, drawing, doubts_first=False))
        ]
    if run.failure_class is not None:
        return failure_lines(facts, width) + evidence_lines(facts, width)
    found: list[Piece] = [(trouble_text(facts, drawing), "warn")]
    if run.is_live and facts.attempt is not None:
        wait = facts.job_wait
        is_held = wait is not None and wait.needs_person
        found.append((wording.placed(facts.attempt, wait, drawing.now), "warn" if is_held else "dim"))
    return [
        ((f" {part}", role),) for text, role in found for part in foreign_lines(text, width - 2, MOST_WRAPPED)
    ]


def failure_lines(facts: RunFacts, width: int) -> list[Pieces]:
    """Return the text of a failure, wrapped."""
    return [
        ((f" {part}", "text"),) for part in foreign_lines(facts.run.failure_text, width - 2, MOST_WRAPPED)
    ]


def evidence_lines(facts: RunFacts, width: int) -> list[Pieces]:
    """Quote the lines from which the cause of a failure was derived, but for those that equal it."""
    if facts.run.failure_class is None or facts.attempt is None:
        return []
    rows = facts.attempt.evidence.splitlines()[:_EVIDENCE_LINES]
    return [
        ((f" {foreign(row, width - 2).rstrip()}", "warn"),)
        for row in rows
        if row.strip() != facts.run.failure_text.strip()
    ]
