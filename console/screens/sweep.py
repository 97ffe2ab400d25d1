"""The sweep screen: the runs of one sweep by competition and seed, and actions on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.geometry import Size

from mlebench_console.console import wording
from mlebench_console.console.actions import run as run_actions
from mlebench_console.console.actions import sweep as sweep_actions
from mlebench_console.console.actions.action import applies
from mlebench_console.console.fields import Cell, Forms, NounField, Rest, RowFilter, text_of
from mlebench_console.console.lists import Marks, SortOrder
from mlebench_console.console.nouns.competition import percentile_of
from mlebench_console.console.nouns.costs import (
    SweepCosts,
    money,
    short_cost,
    tokens_in_words,
)
from mlebench_console.console.nouns.run import RUN, RunRow, draw_run, filter_words
from mlebench_console.console.pieces import (
    ColumnSpan,
    Line,
    bar,
    distinct_names,
    fit,
    joined,
    spread_fitting,
    width_of,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, better_arrow
from mlebench_console.console.screens.logs import RunLogsScreen
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import DetailedScreen, MarkedScreen
from mlebench_console.console.tui.screen import NOT_READ, Queries, Query
from mlebench_console.console.tui.session import SessionValues
from mlebench_console.console.tui.widgets.blocks import Block, Layout, at_both_ends, in_one_line, section
from mlebench_console.console.tui.widgets.inputs import LastWord
from mlebench_console.console.tui.widgets.line_list import TitleClicked
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.sweep import CompetitionRow, SplitGroup, SweepBoard, first_of, sweep_board
from mlebench_console.engine.model_costs import named
from mlebench_console.engine.needs.causes import CauseKind
from mlebench_console.engine.needs.needs import outage_text
from mlebench_console.engine.scoreboard.model import Interim
from mlebench_console.foundation.conditions import MOST_OF_BUDGET
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import FailureClass, RunState, SweepState
from mlebench_console.state.records import Run, Sweep

if TYPE_CHECKING:
    from textual.suggester import Suggester

    from mlebench_console.console.screens.run.summary import RunFiles
    from mlebench_console.console.views.run import RunFacts
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.state.database import Database


# Runs by the keys of their lines and their columns.
_Cells = dict[tuple[Hashable, int], RunRow]


class SweepScreen(DetailedScreen, MarkedScreen[int]):
    """A matrix (or a table) of runs with a cursor, marks and a filter; a pane shows the run under the cursor."""

    CONTEXTS = ("sweep", "list", "matrix")
    MODE = "sweep"
    FILTER_HINT = (
        "words, state:failed class:infra cause:nvml tag:night seed:2 split:low outcome:gold, ! negates"
    )

    def __init__(self) -> None:
        super().__init__()
        # The board as read from the state, and sorted as shown.
        self._read: SweepBoard | None = None
        self._board: SweepBoard | None = None
        self._as_table = False
        # Whether competitions are drawn in blocks beside one another; None: only if all fit that way alone.
        self._wants_dense: bool | None = None
        # The runs by the lines and columns of the cursor.
        self._cells: _Cells = {}
        self._is_dense = False
        self._cursor_wanted: int | None = None
        # The order of each view, by whether that is the table.
        self._orders = dict(_USUAL)
        # The pane's data: the run, the data of its files, and when they were read.
        self._facts: RunFacts | None = None
        self._files: RunFiles | None = None
        self._files_read_at = float("-inf")

    def filter_suggester(self) -> Suggester:
        """Complete the names of filters in config.toml, and the fields of a filter with their values."""
        return LastWord(
            lambda: (word for word, _about in filter_words(self.app.known_runs, self.app.settings.filters))
        )

    def queries(self) -> Queries:
        """Return the queries for the sweep's board and for the pane."""
        wanted = self.app.sweep_id
        config_file = self.app.places.config_file
        return {
            "board": (
                lambda database: sweep_board(database, wanted, config_file, self.app.now()),
                self._take,
            ),
            **super().queries(),
        }

    def toggled_on(self) -> Collection[str]:
        """Return the key of the table or of the dense view."""
        if self._as_table:
            return ("sweep.view",)
        return ("sweep.dense",) if self._is_dense else ()

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty if it would do nothing to the chosen runs."""
        return super().label_of(key) if self._can_do(key) else ""

    def _can_do(self, key: Key) -> bool:
        """Return whether a key applies to the marked runs, or to the one under the cursor."""
        can = {
            "sweep.relaunch": lambda: applies(run_actions.relaunch, self._chosen()),
            "sweep.stop": lambda: applies(run_actions.stop, self._chosen()),
            "sweep.classify": lambda: applies(run_actions.classify_question, self._chosen()),
            "sweep.logs": lambda: len(self._chosen()) > 1,
            "sweep.diff": lambda: len(self._compared()) == 2,
            "sweep.log": lambda: (row := self._row()) is not None and row.run.attempts > 0,
        }.get(key.id)
        return can is None or can()

    def session_values(self) -> SessionValues:
        """Return the filter, the order, matrix or table, and the run under the cursor."""
        row = self._row() if self.is_composed() else None
        return {
            **super().session_values(),
            **{_SAVED[view]: f"{'-' * order.reversed}{order.by}" for view, order in self._orders.items()},
            "view": "table" if self._as_table else "matrix",
            "dense": {None: "", True: "yes", False: "no"}[self._wants_dense],
            "run": str(row.run.id) if row is not None else "",
        }

    def restore(self, values: SessionValues) -> None:
        """Restore the filter, the order, the view and the cursor."""
        super().restore(values)
        for view, name in _SAVED.items():
            saved = values.get(name, "")
            if (by := saved.removeprefix("-")) in _ORDERS:
                self._orders[view] = SortOrder(by, saved.startswith("-"))
        self._as_table = values.get("view") == "table"
        self._wants_dense = {"yes": True, "no": False}.get(values.get("dense", ""))
        if self._cursor_wanted is None and values.get("run", "").isdecimal():
            self._cursor_wanted = int(values["run"])

    def show_sweep(self, sweep_id: str | None, run_id: int | None = None) -> None:
        """Show another sweep, the cursor on a run of it."""
        self._cursor_wanted = run_id
        if self._board is not None and sweep_id != self._board.sweep.id:
            self._read = self._board = None
        self.app.sweep_id = sweep_id
        if self.is_current:
            self.query_again()

    def tick_seconds(self) -> float:
        """Two seconds for sweeps with a short time limit."""
        return self.tick_seconds_within(
            self._board.sweep.conditions.time_limit_seconds if self._board else None
        )

    def redraw(self) -> None:
        """Draw the board for the current time."""
        board, shown = self._board, self.line_list
        if board is None:
            nothing = "there is no sweep yet: launch one with 'mlebench-console sweep launch'"
            self.header.show(((f" {nothing}", "dim"),))
            shown.show(())
            return
        self.header.show(*_header(board, self.app.engine, self.app.drawing), *self._filter_line(board))
        if self._as_table:
            found = self._shown()
            table = Table(
                _table_columns(board, is_narrow=shown.line_width < _TABLE_NARROW),
                found,
                self.app.drawing.within(shown.line_width),
                sorting=self._sorting,
                mark=lambda row: row.run.id in self.marks,
            )
            self._cells = {(row.run.id, 0): row for row in found}
            shown.show([table.line(row, key=RUN.key(row)) for row in found], heading=table.heading())
        else:
            if self._cursor_wanted is None:
                self._keep_cursor()
            shown.show(self._matrix(board))
            if self._is_dense and self._cursor_wanted is None:
                # The first line may be a heading beside another block's competition.
                self._cursor_wanted = next(iter(self.shown_keys()), None)
        self.place_detail()
        self._put_wanted_cursor()
        self._draw_about()
        self.draw_detail()

    @property
    def detail_from(self) -> int:
        """A greater width for the flat table, whose texts need more room."""
        return _TABLE_DETAIL_FROM if self._as_table else super().detail_from

    @property
    def list_width(self) -> int:
        """A greater width for the table, for causes, and for the dense view, where no name is cut in two blocks."""
        if self._as_table:
            return _TABLE_WIDTH
        return _DENSE_WIDTH if self._is_dense else super().list_width

    @property
    def rows_above_detail(self) -> int:
        """The lines of a matrix below which there is room for the run under the cursor."""
        lines = 0 if self._as_table else len(self.line_list.lines)
        return lines if self.rows_of_list - lines >= _LEAST_BELOW else 0

    def detail_key(self) -> int | None:
        """The number of the run under the cursor."""
        return self.cursor_key()

    def detail_query(self, key: int) -> Query:
        """Return the query for all data of a run."""
        from mlebench_console.console.views.run import run_facts

        def ask(database: Database) -> RunFacts:
            return run_facts(database, key, self.app.places.config_file, self.app.now())

        return ask, self._take_facts

    def detail(self, height: int) -> Iterable[Block]:
        """Return the state, cause of failure, score over time, resources and last lines of the run at the cursor."""
        from mlebench_console.console.screens.run.summary import summary

        facts = self._facts
        if facts is None or facts.run.id != self.detail_key():
            return ()
        # Without the name below the list: the cursor stands on it, and the line below has it.
        title = section("under the cursor") if self.is_detail_below else None
        return summary(facts, self._files, self.app.engine, height, self.app.drawing, title=title)

    def tick(self) -> None:
        """Redraw, and read the files of a live run in the pane again."""
        super().tick()
        if self.asks_for_detail and self._facts is not None and self._facts.run.is_live:
            self._read_files(self._facts)

    def chosen_runs(self) -> Sequence[Run]:
        """The marked runs, or the one under the cursor."""
        return self._chosen()

    def chosen_sweep(self) -> Sweep | None:
        """The sweep that is shown."""
        return self._board.sweep if self._board is not None else None

    def cursor_key(self) -> int | None:
        """The number of the run under the cursor."""
        row = self._row()
        return None if row is None else row.run.id

    def shown_keys(self) -> list[int]:
        """Return the numbers of the runs that pass the filter."""
        return [row.run.id for row in self._shown()]

    def keys_between(self, one: int, other: int) -> Iterable[int]:
        """Return the runs between two lines of the table, or in the rectangle between two cells of the matrix."""
        if self._as_table:
            return super().keys_between(one, other)
        shown = [row.run for row in self._shown()]
        competitions = list(dict.fromkeys(run.competition_id for run in shown))
        first, last = (run for run in shown if run.id in (one, other))
        rows = competitions[
            competitions.index(first.competition_id) : competitions.index(last.competition_id) + 1
        ]
        seeds = range(min(first.seed, last.seed), max(first.seed, last.seed) + 1)
        return [run.id for run in shown if run.competition_id in rows and run.seed in seeds]

    def on_title_clicked(self, message: TitleClicked) -> None:
        """Sort by the column whose title was clicked on; if it sorts already, reverse the order."""
        scrolled = self.line_list.scroll_y
        self._sort(self._sorting.chosen(message.by))
        # Keep the title under the mouse for a second click.
        self.line_list.scroll_to(y=scrolled, animate=False)

    def on_line_list_cursor_moved(self) -> None:
        """Describe the run under the cursor."""
        self._draw_about()

    def action_open(self) -> None:
        """Open the run under the cursor."""
        self._open("")

    def action_log(self) -> None:
        """Open the run's log."""
        self._open("log")

    def action_view(self) -> None:
        """Switch between matrix and table; the cursor stays on its run, or is on the first one as before."""
        before, shown = self.cursor_key(), self.shown_keys()
        self._as_table = not self._as_table
        self._arrange()
        # Who has not moved it wants to see what comes first.
        is_first = bool(shown) and before == shown[0]
        self._cursor_wanted = next(iter(self.shown_keys()), None) if is_first else before
        self.redraw()

    def action_dense(self) -> None:
        """Switch between the dense view, with all seeds as signs, and the matrix."""
        self._keep_cursor()
        self._as_table = False
        self._wants_dense = not self._is_dense
        self._arrange()
        self.redraw()

    def action_mark_row(self) -> None:
        """Mark all shown runs of the competition, or remove their marks."""
        current = self._row()
        if current is not None:
            name = current.run.competition_id
            self.mark(
                self.marks.all_toggled(row.run.id for row in self._shown() if row.run.competition_id == name)
            )

    def action_mark_failed(self) -> None:
        """Mark every shown run that failed."""
        failed = (row.run.id for row in self._shown() if row.run.state is RunState.FAILED)
        self.mark(self.marks.added(failed))

    def action_next_failed(self) -> None:
        """Put the cursor on the next run that failed, is idle, or is late."""
        if self._board is None:
            self.app.say(NOT_READ)
            return
        now, current = self.app.now(), self.cursor_key()
        found = [row.run.id for row in self._shown() if row.needs_somebody(now)]
        if not found:
            self.app.say("no run has failed here, and no live one needs you")
            return
        after = found.index(current) + 1 if current in found else 0
        self._cursor_wanted = found[after % len(found)]
        self._put_wanted_cursor()
        self._draw_about()
        self.draw_detail()

    def action_order(self) -> None:
        """Show the competitions and runs in the next order."""
        after = _ORDERS.index(self._sorting.by) + 1
        self._sort(SortOrder(_ORDERS[after % len(_ORDERS)]))

    def action_turn(self) -> None:
        """Reverse the order."""
        self._sort(self._sorting.reverse())

    def action_logs(self) -> None:
        """Show the logs of the marked runs together."""
        if not self.all_marks_hidden():
            self.app.push_screen(RunLogsScreen([run.id for run in self._chosen()]))

    def action_diff(self) -> None:
        """Compare code and configuration of the two marked runs, or of the marked one and the one under the cursor."""
        from mlebench_console.console.screens.code import (
            DiffScreen,  # imported here, since the first frame does not need it
        )
        from mlebench_console.console.views.code import Wanted

        compared = self._compared()
        if len(compared) != 2:
            self.app.say("mark two runs to compare them")
            return
        left, right = map(Wanted, compared)
        self.app.push_screen(DiffScreen(left, right))

    def action_timeline(self) -> None:
        """Show its attempts over time."""
        from mlebench_console.console.screens.timeline import TimelineScreen

        if self._board is not None:
            self.app.push_screen(TimelineScreen(self._board.sweep.id))

    def action_integrity(self) -> None:
        """Show the detectors' findings in its runs."""
        from mlebench_console.console.screens.integrity import IntegrityScreen

        if self._board is not None:
            numbers = [row.run.id for row in self._board.runs]
            self.app.push_screen(IntegrityScreen(self._board.sweep.name, numbers))

    def action_pause(self) -> None:
        """Pause or resume the sweep."""
        if self._board is not None:
            self.app.act(sweep_actions.pause_or_resume, self._board.sweep)

    def action_step(self, step: int) -> None:
        """Show the next or previous sweep."""
        if self._board is not None and len(self._board.all_sweeps) > 1:
            known = self._board.all_sweeps
            self.show_sweep(known[(known.index(self._board.sweep.id) + step) % len(known)])

    def _take(self, board: SweepBoard | None) -> None:
        self._read = board
        if board is not None:
            self.app.known_sweeps = board.all_sweeps
            self.app.known_runs = tuple(row.run for row in board.runs)
            self.app.sweep_id = board.sweep.id
            self.marks = self.marks.restricted_to(row.run.id for row in board.runs)
        self._arrange()

    def _take_facts(self, facts: RunFacts) -> None:
        """Store a run for the pane; its files are read if it is another run, or they were read some time ago."""
        before, self._facts = self._facts, facts
        other = before is None or before.log != facts.log
        if other:
            self._files = None
        if other or (before != facts and self.app.now() - self._files_read_at >= _FILES_EVERY_SECONDS):
            self._read_files(facts)

    def _read_files(self, facts: RunFacts) -> None:
        from mlebench_console.console.screens.run.summary import read_files

        def take(files: RunFiles) -> None:
            self._files = files
            self.draw_detail()

        self._files_read_at = self.app.now()
        self.in_background(partial(read_files, facts), take, latest="detail")

    def _arrange(self) -> None:
        read = self._read
        self._board = None if read is None else read.ordered(self._sorting, self.app.drawing)

    def _sort(self, sorting: SortOrder[str]) -> None:
        """Sort the board; the cursor stays on its run."""
        self._orders[self._as_table] = sorting
        self._keep_cursor()
        self._arrange()
        self.redraw()

    @property
    def _sorting(self) -> SortOrder[str]:
        """The order of the view that is shown; each view has its own."""
        return self._orders[self._as_table]

    @property
    def _filter(self) -> RowFilter[RunRow]:
        return RUN.filter(self.app.settings.filters.get(self.words, self.words))

    def _matrix(self, board: SweepBoard) -> list[Line]:
        """Return the competitions by split with their seeds side by side; only runs that pass the filter are drawn."""
        chosen, drawing = self._filter, self.app.drawing
        size = Size(self.line_list.line_width, self.rows_of_list)
        passing = {row.run.id for row in board.runs if chosen.accepts(row, drawing)}

        def has_shown(row: CompetitionRow) -> bool:
            return not chosen or any(each is not None and each.run.id in passing for each in row.runs)

        groups = [(group, list(filter(has_shown, group.rows))) for group in board.groups]
        groups = [(group, rows) for group, rows in groups if rows]
        shown = [row for _group, rows in groups for row in rows]
        # Including headings, totals, and lines between groups.
        fits = len(shown) + 3 * len(groups) - 1 <= size.height
        dense = _Dense(groups, board.sweep.spec.seeds, size, drawing)
        self._is_dense = dense.shows_all and not fits if self._wants_dense is None else self._wants_dense
        if self._is_dense:
            lines, self._cells = dense.lines(passing, self.marks)
            return lines
        self._cells = {
            (row.competition_id, place): each
            for row in shown
            for place, each in enumerate(row.runs)
            if each is not None and each.run.id in passing
        }
        columns = _matrix_columns(board, self._cells, self.marks, with_nodes=size.width >= _WITH_NODES)
        table = Table(columns, shown, drawing.within(size.width), sorting=self._sorting)
        lines = []
        for group, rows in groups:
            lines += [Line()] if lines else []
            lines.append(table.heading(group.split.upper()))
            lines += [table.line(row, key=row.competition_id) for row in rows]
            lines.append(table.line_of(_totals(group, drawing)))
        return lines

    def _filter_line(self, board: SweepBoard) -> Iterable[Block]:
        """Yield the line about filter, order and marks, unless all are at their defaults."""
        chosen = self._filter
        usual = _USUAL[self._as_table]
        if not chosen.text and not self.marks and self._sorting == usual:
            return
        pieces: list[Piece] = [(" ", "text")]
        if chosen.text:
            pieces += [("/ ", "accent"), (chosen.text, "text")]
            pieces += [(f"   {len(self._shown()):,} of {len(board.runs):,}   ", "dim")]
        if chosen.unknown:
            pieces.append((f"unknown: {', '.join(chosen.unknown)}   ", "warn"))
        if self._sorting != usual:
            words = RUN.order(self._sorting.by).words
            pieces.append((f"order: {words}{', reversed' if self._sorting.reversed else ''}", "dim"))
        yield at_both_ends([tuple(pieces)], [((f"{self.marked_text()} ", "accent"),) if self.marks else ()])

    def _draw_about(self) -> None:
        """Draw the line about the run under the cursor, with details that don't fit into a cell, and its keys."""
        row = self._row()
        drawing = self.app.drawing
        self.about.show(() if row is None else _dotted(_about(row, drawing), drawing))
        self.refresh_frame()

    def _keep_cursor(self) -> None:
        """Put the cursor on its run again after the run has moved."""
        self._cursor_wanted = self.cursor_key()

    def _put_wanted_cursor(self) -> None:
        wanted, self._cursor_wanted = self._cursor_wanted, None
        if wanted is None or wanted == self.cursor_key():
            return
        place = next((place for place, row in self._cells.items() if row.run.id == wanted), None)
        if place is not None:
            self.line_list.put_cursor(*place)

    def _row(self) -> RunRow | None:
        """Return the run under the cursor."""
        return self._cells.get((self.line_list.key, self.line_list.column))

    def _shown(self) -> list[RunRow]:
        """Return the runs that pass the filter, in the order shown."""
        board, chosen, drawing = self._board, self._filter, self.app.drawing
        if board is None:
            return []
        in_order: Iterable[RunRow | None] = (
            board.runs if self._as_table else (each for row in board.rows for each in row.runs)
        )
        return [row for row in in_order if row is not None and chosen.accepts(row, drawing)]

    def _chosen(self) -> list[Run]:
        keys = self.chosen_keys()
        known = self._board.runs if self._board is not None else ()
        return [row.run for row in known if row.run.id in keys]

    def _compared(self) -> list[int]:
        """The marked runs, and the one under the cursor besides a single one."""
        chosen, current = [run.id for run in self._chosen()], self.cursor_key()
        if current is None or len(chosen) != 1 or current in chosen:
            return chosen
        return [*chosen, current]

    def _open(self, pane: str) -> None:
        row = self._row()
        if row is not None:
            self.app.show_run(row.run.id, pane=pane or ("log" if row.run.attempts else "timeline"))


_TABLE_DETAIL_FROM, _TABLE_WIDTH, _TABLE_NARROW = 190, 150, 100
_DENSE_WIDTH = 138
# Fewer rows below the matrix stay empty: a name, a state, and hardly a line of a log would fit.
_LEAST_BELOW = 8
# The shortest interval between two reads of a run's files for the pane.
_FILES_EVERY_SECONDS = 10.0


# The orders that a key goes through; by whether it is the table the usual one of a view, and its name in the session.
_ORDERS = ("run", "competition", "state", "score", "idle")
_USUAL = {False: SortOrder("run"), True: SortOrder("state")}
_SAVED = {False: "order", True: "table_order"}

# In narrower lists the matrix would lose the cut-offs for the nodes of a batch system's runs.
_WITH_NODES = 125
# More than any line has: the widget cuts it.
_MANY = 100_000
# With more seeds each column is only as wide as needed.
_SEEDS_WITH_ROOM = 3
# What is wrong with live runs, in the words of their cells.
_NEEDING = {CauseKind.LATE: "no valid", CauseKind.IDLE: "idle", CauseKind.UNGRADABLE: "no grade"}
# Words for the counts of runs by state, in several forms, longest first.
_COUNT_WORDS = (
    (" running", " queued", " finished", " failed", " infrastructure", " stopped"),
    (" running", " queued", " done", " failed", " infra", " stopped"),
    ("", "", "", "", " infra", ""),
)


def _header(board: SweepBoard, engine: EngineStatus | None, drawing: Drawing) -> Iterable[Block]:
    """Yield the sweep's name and conditions, its progress and medals so far, its note, outages, and costs."""
    sweep, spec, signs = board.sweep, board.sweep.spec, drawing.signs
    name: list[Piece] = [(" ", "text"), (sweep.id, "strong")]
    if board.standing.counts.demo:
        name.append(("  demo data, not a result", "warn"))
    if sweep.state is not SweepState.ACTIVE:
        sign = signs.paused if sweep.state is SweepState.PAUSED else signs.stopped
        name.append((f"  {sign} {sweep.state}", "warn"))
    facts = (
        f"{len(spec.competitions)} {signs.times} {plural(spec.seeds, 'seed')}",
        f"limit {wording.duration(sweep.conditions.time_limit_seconds)}",
        f"edition {sweep.conditions.edition}",
        f"at most {sweep.concurrency} at once",
    )
    groups: list[Pieces] = [tuple(name), ((spec.agent_id, "text"),), *(((fact, "dim"),) for fact in facts)]
    lefts = [_dotted(groups[:most], drawing) for most in range(len(groups), 0, -1)]
    place, several = board.all_sweeps.index(sweep.id) + 1, len(board.all_sweeps) > 1
    yield at_both_ends(lefts, [((f"sweep {place} of {len(board.all_sweeps)} ", "dim"),) if several else ()])
    yield _progress(board, engine)
    if noted := wording.annotation(sweep):
        yield (f" {signs.noted} ", "accent"), (noted, "text")
    for outage in board.outages:
        yield ((f" {outage_text(outage)}", "warn"),)
    if board.costs is not None and (board.costs.spending.models or board.costs.budgets):
        yield in_one_line(_costs(board.costs, drawing))


def _dotted(groups: Iterable[Pieces], drawing: Drawing) -> Pieces:
    return joined(groups, (f" {drawing.signs.dot} ", "faint"), _MANY)


def _progress(board: SweepBoard, engine: EngineStatus | None) -> Layout:
    """Return the counts of runs, and the medals so far with the expected end.

    States are named in words as long as the medals are not in their last form, which lacks the bounds of their rate.
    """
    standing = board.standing

    def lines(drawing: Drawing) -> Iterable[Pieces]:
        earned = wording.medals(standing.interim, standing.any_medal, drawing.signs.plus_minus)
        ends = wording.sweep_end(standing.end(engine), drawing.now)
        tail: Pieces = ((f" {drawing.signs.dot} ", "faint"), (ends, "dim")) if ends else ()
        # The bounds are worth more than the expected end.
        rights: list[Pieces] = [
            ((text, "strong"), *when, (" ", "text"))
            for texts in (earned[:-1], earned[-1:])
            for when in (tail, ())
            for text in texts
        ]
        lefts = [_counts(board, words, drawing) for words in _COUNT_WORDS]
        shortest = width_of(rights[len(earned) - 2]) if len(earned) > 1 else drawing.width
        worded = [left for left in lefts[:-1] if width_of(left) + shortest < drawing.width]
        return [spread_fitting(worded or lefts, rights, drawing.width)]

    return lines


def _costs(costs: SweepCosts, drawing: Drawing) -> Iterable[Pieces]:
    """Yield the costs of its model calls, and how much of the tightest budget is used; the least important last."""
    spent, budget = costs.spending, costs.tightest
    yield (" models ", "dim"), (f"{short_cost(spent)} so far", "warn" if spent.cost is None else "text")
    if budget is not None and not budget.has_room:
        yield ((f"budget of its {budget.scope} used up", "bad"),)
    elif budget is not None:
        full, empty = bar(budget.share, 10, drawing.signs)
        role: Role = "warn" if budget.share >= MOST_OF_BUDGET else "running"
        yield ("budget ", "dim"), (full, role), (empty, "faint"), (f" {100 * budget.share:.0f} %", "text")
    if costs.price_problem:
        yield ((costs.price_problem, "warn"),)
    if spent.unpriced:
        yield ((f"no price of {named(spent.unpriced)}", "warn"),)
    if costs.projected is not None:
        yield ((f"about {money(costs.projected)} projected", "text"),)
    if costs.per_medal is not None:
        yield ((f"{money(costs.per_medal)} a medal", "text"),)
    if costs.basis:
        yield ((f"projection {costs.basis}", "text"),)
    yield ((plural(spent.calls, "call"), "dim"),)
    for text in tokens_in_words(spent):
        yield ((text, "dim"),)


def _counts(board: SweepBoard, words: tuple[str, ...], drawing: Drawing) -> Pieces:
    """Return the number of runs by state with signs; runs waiting in a batch system don't count as running.

    Live runs that a person should look at are counted too, by what is wrong with them.
    """
    running, queued, finished, failed, infrastructure, stopped = words
    counts, signs = board.standing.counts, drawing.signs
    needing = Counter(trouble[0] for row in board.live if (trouble := row.trouble(drawing.now)) is not None)
    waiting = sum(row.attempt is not None and row.attempt.is_in_queue for row in board.live)
    live = counts.live - waiting
    pieces: list[Piece] = [(f" {signs.running} {live}{running}", "running" if live else "dim")]
    if waiting:
        pieces.append((f" ({waiting} wait{' in Slurm' if running else ''})", "text"))
    if needing:
        wrong = ", ".join(f"{count} {_NEEDING[kind]}" for kind, count in sorted(needing.items()))
        pieces.append((f" ({wrong})", "warn"))
    pieces += [
        (f"   {signs.queued} {counts.queued}{queued}", "dim"),
        (f"   {signs.done} {counts.finished}{finished}", "good" if counts.finished else "dim"),
        (f"   {signs.failed} {counts.failed}{failed}", "bad" if counts.failed else "dim"),
    ]
    if counts.infrastructure:
        pieces.append((f" ({counts.infrastructure}{infrastructure})", "dim"))
    if counts.stopped:
        pieces.append((f"   {signs.stopped} {counts.stopped}{stopped}", "dim"))
    return (*pieces, (" ", "text"))


def _matrix_columns(
    board: SweepBoard, cells: _Cells, marks: Marks[int], *, with_nodes: bool
) -> list[NounField[CompetitionRow]]:
    """Return the columns of the matrix: competition, seeds with the runs of their cells, and results."""

    def seed(place: int) -> Callable[[CompetitionRow, Drawing], Cell]:
        def cell(row: CompetitionRow, drawing: Drawing) -> Cell:
            found = cells.get((row.competition_id, place))
            if found is None:
                return ""
            return _cell(found, drawing, marked=found.run.id in marks, with_nodes=with_nodes)

        return cell

    def chosen(place: int) -> Callable[[CompetitionRow], bool]:
        return lambda row: (row.competition_id, place) in cells

    # If there is room, words why a run should be looked at are whole, and a batch system's nodes are shown.
    grows = 12
    if board.sweep.spec.seeds <= _SEEDS_WITH_ROOM:
        grows = 24 if board.is_elsewhere and with_nodes else 21
    by = {name: first_of(RUN.order(name)) for name in _ORDERS}
    return [
        NounField(
            "competition",
            lambda row, _: ((row.competition_id, "dim" if row.data else "text"),),
            38,
            grows=56,
            order=by["competition"],
        ),
        *(
            # Room for a mark, a sign, hours and minutes or five decimals, and a standing in brackets.
            NounField(
                "state",
                seed(place),
                12,
                grows=grows,
                title=f" seed {place + 1}",
                gap=1,
                order=by["state"],
                chosen=chosen(place),
            )
            for place in range(max(1, board.sweep.spec.seeds))
        ),
        NounField("score", _medals, 6, title="medal", drop=1, right=True, gap=1, order=by["score"]),
        NounField("best", _best, 8, drop=2, right=True, gap=1),
        NounField("better", _better_end, 1, title="", drop=2, gap=1, role="dim"),
        NounField("bronze", _bronze, 10, drop=3, right=True, gap=1, role="dim"),
    ]


def _medals(row: CompetitionRow, _drawing: Drawing) -> Cell:
    won, finished = row.medals
    return ((f"{won}/{finished}" if finished else "", "text" if won else "dim"),)


def _best(row: CompetitionRow, _drawing: Drawing) -> Cell:
    return "" if row.best is None else wording.score_beside(row.best, row.cuts, 8)


def _better_end(row: CompetitionRow, drawing: Drawing) -> Cell:
    return "" if row.best is None or row.cuts is None else better_arrow(row.cuts, drawing.signs)


def _bronze(row: CompetitionRow, _drawing: Drawing) -> Cell:
    return wording.score(row.cuts.bronze if row.cuts else None, 9)


def _cell(row: RunRow, drawing: Drawing, *, marked: bool, with_nodes: bool) -> Forms:
    """Return a run's cell in the matrix; without room for both, it shows the standing rather than the time."""
    run, drawn = row.run, draw_run(row, drawing)
    noted = drawing.signs.noted if run.note or run.tags else " "
    mark: Piece = (drawing.signs.marked if marked else noted, "accent")
    texts = [text for text in (drawn.text, drawn.shorter) if text] or [""]
    if not drawn.standing:
        return Forms([(mark, (f"{drawn.sign} {text}", drawn.role)) for text in texts])
    standing: Piece = (drawn.standing, drawn.standing_role)
    forms: list[Pieces] = [(mark, (f"{drawn.sign} {text} ", drawn.role), standing) for text in texts]
    if row.attempt is not None and row.attempt.node and with_nodes:
        forms.insert(0, (*forms[0], (f" {row.attempt.node}", "dim")))
    if drawn.letter:
        # Why it should be looked at is worth more than the standing.
        forms.append((mark, (f"{drawn.sign} {texts[-1]}", drawn.role)))
    return Forms([*forms, (mark, (f"{drawn.sign} ", drawn.role), standing)])


# The width of a seed in the dense view: a mark, which is the gap too, the sign, and a letter after it.
_DENSE_SEED = 3
# The width from which names are readable, and the bounds of that which they get.
_DENSE_NAME, _DENSE_LONGEST_NAME, _DENSE_SHORTEST_NAME = 38, 56, 16
_DENSE_MARGIN = 2
# The lowest block: a heading, a competition, and the empty line before the next group.
_DENSE_LOWEST = 3

_Groups = Sequence[tuple[SplitGroup, Sequence[CompetitionRow]]]
# A line of a block: a competition, the heading of a group (of one that goes on: with True), or nothing.
_Entry = CompetitionRow | tuple[SplitGroup, bool] | None


class _Dense:
    """The dense view: competitions in the fewest blocks side by side, one line each, with seeds as signs.

    Attributes:
        shows_all: whether everything is visible at once with readable names.
    """

    def __init__(self, groups: _Groups, seeds: int, size: Size, drawing: Drawing) -> None:
        self._seeds = seeds
        self._drawing = drawing
        names = [row.competition_id for _group, rows in groups for row in rows]
        beside_name = _DENSE_MARGIN + 1 + seeds * _DENSE_SEED
        most = max(1, size.width // (beside_name + _DENSE_SHORTEST_NAME))
        needed = len(_blocks(groups, max(_DENSE_LOWEST, size.height)))
        lines = _DENSE_LOWEST
        while len(blocks := _blocks(groups, lines)) > min(most, max(1, needed)):
            lines += 1
        self._blocks = blocks
        longest = min(max(map(len, names), default=0), _DENSE_LONGEST_NAME)
        self._name_width = max(_DENSE_SHORTEST_NAME, min(longest, size.width // len(blocks) - beside_name))
        # Cut so that none reads like another.
        self._names = distinct_names(names, self._name_width, drawing.signs.ellipsis)
        self.shows_all = needed <= most and self._name_width >= min(longest, _DENSE_NAME)

    def lines(self, passing: Collection[int], marks: Marks[int]) -> tuple[list[Line], _Cells]:
        """Return the lines, and the runs by the lines' keys and columns."""
        runs: _Cells = {}
        lines: list[Line] = []
        for beside in zip_longest(*self._blocks):
            key = tuple(each.competition_id for each in beside if isinstance(each, CompetitionRow))
            pieces: list[Piece] = []
            cells: list[ColumnSpan] = []
            for each in beside:
                begin = width_of(pieces) + _DENSE_MARGIN
                pieces.append((" " * _DENSE_MARGIN, "text"))
                if not isinstance(each, CompetitionRow):
                    # Empty columns keep the indices, so that the cursor moves straight up and down.
                    cells += [ColumnSpan(begin, begin, selectable=False, name=begin)] * self._seeds
                    pieces += self._heading(each)
                    continue
                name = fit(self._names[each.competition_id], self._name_width)
                pieces.append((f"{name} ", "dim" if each.data else "text"))
                for row in each.runs:
                    at, is_shown = width_of(pieces), row is not None and row.run.id in passing
                    if row is not None and is_shown:
                        runs[key, len(cells)] = row
                        pieces += _dense_cell(row, self._drawing, marked=row.run.id in marks)
                    else:
                        pieces.append((" " * _DENSE_SEED, "text"))
                    cells.append(ColumnSpan(at, at + _DENSE_SEED, selectable=is_shown, name=begin))
            lines.append(Line(tuple(pieces), key or None, tuple(cells), selectable=bool(key)))
        return lines, runs

    def _heading(self, entry: tuple[SplitGroup, bool] | None) -> Pieces:
        """Return the heading of a group: split, results if there is room, and the numbers of the seeds."""
        if entry is None:
            return ((" " * (self._name_width + 1 + self._seeds * _DENSE_SEED), "text"),)
        group, goes_on = entry
        numbers = "".join(f" {seed + 1:<{_DENSE_SEED - 1}}" for seed in range(self._seeds))
        title = f"{group.split.upper()}  "
        room = self._name_width + 1 - len(title)
        forms = wording.medals(group.interim, group.any_medal, self._drawing.signs.plus_minus)[-2:]
        results = "continued" if goes_on else next((form for form in forms if len(form) < room), "")
        return (title, "strong"), (f"{results:<{room}}", "dim"), (numbers, "dim")


def _blocks(groups: _Groups, height: int) -> list[list[_Entry]]:
    """Divide groups into blocks of a height, each with a heading on top."""
    blocks: list[list[_Entry]] = [[]]
    for group, rows in groups:
        # A heading has at least one competition below it.
        if blocks[-1] and len(blocks[-1]) + _DENSE_LOWEST > height:
            blocks.append([])
        if blocks[-1]:
            blocks[-1].append(None)
        blocks[-1].append((group, False))
        for row in rows:
            if len(blocks[-1]) == height:
                blocks.append([(group, True)])
            blocks[-1].append(row)
    return blocks


def _dense_cell(row: RunRow, drawing: Drawing, *, marked: bool) -> Pieces:
    """Return a run's sign, and a letter: why it failed or should be looked at, else its standing, or a re-roll."""
    run, drawn, signs = row.run, draw_run(row, drawing), drawing.signs
    more: Piece = (signs.reroll if run.rerolls else " ", drawn.role)
    if drawn.letter:
        more = (drawn.letter, drawn.role)
    elif drawn.standing:
        more = (drawn.standing.strip("[]"), drawn.standing_role)
    elif run.state is RunState.FAILED:
        more = (wording.FAILURE_LETTERS[run.failure_class or FailureClass.UNKNOWN], drawn.role)
    mark: Piece = (signs.marked if marked else " ", "accent")
    return mark, (drawn.sign, drawn.role), more


def _totals(group: SplitGroup, drawing: Drawing) -> Sequence[Cell]:
    """Return the results of a split, one cell for each column of the matrix."""
    complete = sum(seed is not None and seed.is_final for seed in group.per_seed)
    label = f"any medal, {complete} of {len(group.per_seed)} seeds complete"
    shares: list[Cell] = [((f" {_share(seed)}", "dim"),) for seed in group.per_seed]
    told = wording.medals(group.interim, group.any_medal, drawing.signs.plus_minus)
    is_final = group.interim is not None and group.interim.is_final
    role: Role = "text" if is_final else "dim"
    medal, shorter = told[1 if is_final else 4], told[-1]
    return [
        ((label, "dim"),),
        *shares,
        Rest(((f" {medal}", role),), shorter=((f" {shorter}", role),)),
        "",
        "",
        "",
    ]


def _share(seed: Interim | None) -> str:
    """Write the share of a seed's runs with a medal; before all have a result, the number among the ended ones."""
    if seed is None or not seed.ended:
        return wording.UNKNOWN
    return f"{seed.low:.1f} %" if seed.is_final else f"{seed.medals} of {seed.ended}"


def _table_columns(board: SweepBoard, *, is_narrow: bool) -> tuple[NounField[RunRow], ...]:
    """Return the columns of the flat table."""
    names = [
        "run",
        "competition",
        "seed",
        "sign",
        "state",
        "score",
        "better",
        "took",
        "attempts",
        "idle",
        "why",
    ]
    # Where not all has room, why a run failed is worth more than its score and the end of a long name.
    left_out = {"score", "better", "took"} if is_narrow else set[str]()
    if not any(row.run.attempts > 1 for row in board.runs):
        left_out.add("attempts")
    if any(row.run.note or row.run.tags for row in board.runs):
        names.insert(names.index("why"), "notes")
    longest = max((len(row.competition_id) for row in board.rows), default=0)
    return RUN.columns(
        " ".join(name for name in names if name not in left_out),
        competition={"width": 28, "grows": 30} if is_narrow else {"width": min(longest, 38)},
        score={"gap": 2},
        why={"drop": 0 if is_narrow else 1},
    )


def _about(row: RunRow, drawing: Drawing) -> Iterator[Pieces]:
    """Yield what is known of a run in words, first why somebody should look at it."""
    run, now = row.run, drawing.now
    yield ((f" {run.competition_id} seed {run.seed}", "text"),)
    if noted := wording.annotation(run):
        yield ((f"{drawing.signs.noted} {noted}", "accent"),)
    took = row.took_seconds(now)
    if run.failure_class is not None and run.state is not RunState.QUEUED:
        after = "" if took is None else f" after {wording.elapsed_within(took, row.limit_seconds)}"
        yield ((run.failure_text, "text"),)
        yield (wording.failure(run), "bad"), (after, "dim")
        return
    role = draw_run(row, drawing).role
    word = "waiting" if row.wait else wording.OUTCOME_WORDS[run.outcome] if run.outcome else run.state.value
    of_limit = "" if took is None or not run.is_live else f" {wording.of_limit(took, row.limit_seconds)}"
    yield (word, role), (of_limit, "dim")
    (why,) = RUN.columns("why")
    if text := text_of(why.cell(row, drawing)):
        is_warning = run.state is RunState.QUEUED or row.trouble(now) is not None
        yield ((text, "warn" if is_warning else role),)
    if run.is_live:
        yield ((wording.standing_so_far(run.standing), "dim"),)
    if run.score is not None:
        arrow = f" {better_arrow(row.cuts, drawing.signs)}" if row.cuts else ""
        yield (f"score {wording.score_beside(run.score, row.cuts, 8)}", "text"), (arrow, "dim")
        if (beaten := percentile_of(run)) is not None:
            yield ((wording.rank(beaten, short=True), "text"),)
    if run.submissions:
        yield ((plural(run.submissions, "submission"), "dim"),)
    if run.is_live and run.last_activity_at is not None:
        quiet = wording.age(now - run.last_activity_at)
        yield ((f"last change {quiet}" + ("" if quiet == "now" else " ago"), "dim"),)
