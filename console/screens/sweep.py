"""The sweep screen: competitions and seeds of one sweep, which of them need something, and doing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.widget import Widget

from console.actions import runs, sweeps
from console.screens import sweep_lines, sweep_matrix, sweep_table
from console.screens.classify import open_classify
from console.screens.merged import MergedScreen
from console.screens.sweep_lines import View
from console.tui.keys import bindings
from console.tui.list_screen import MarkedScreen
from console.tui.session import Remembered
from console.tui.widgets.heading import Heading
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.line_list import LineList, TitleClicked
from console.tui.widgets.painted import Painted
from console.views import filters
from console.views.marks import Marks
from console.views.ordering import BENCHMARK, Order, in_order
from console.views.sorting import Sorting
from console.views.sweep import (
    BoardRow,
    SweepBoard,
    rows_of,
    runs_between_in_matrix,
    runs_between_in_table,
    runs_in_matrix,
    runs_of_row,
    sweep_board,
)
from state.database import Database
from state.lifecycle import RunState
from state.records import Run


class SweepScreen(MarkedScreen[int]):
    """A matrix (or a table) of runs with a cursor, marks and a filter."""

    CONTEXTS = ("sweep", "list", "matrix")
    MODE = "sweep"
    REMEMBERED_AS = "sweep"
    BINDINGS = bindings("sweep")

    def __init__(self) -> None:
        super().__init__()
        self._read: SweepBoard | None = None
        self._board: SweepBoard | None = None
        self._asked_for: str | None = None
        self._as_table = False
        self._cursor_wanted: int | None = None
        self._sorting = BENCHMARK

    def body(self) -> Iterable[Widget]:
        """Header, filter, the names of the table's columns, the runs, and a line on the one under the cursor."""
        yield Painted(id="header")
        yield Painted(id="filter-line")
        yield Heading(id="columns")
        yield LineList(id="runs")
        yield Painted(id="about")
        yield Prompt(
            "/", "words, state:failed class:infra split:low seed:2 outcome:gold, ! negates", id="filter"
        )

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """The board of the sweep that is shown."""
        wanted = self.app.sweep_id
        return {"board": (lambda database: sweep_board(database, wanted), self._take)}

    def remembered(self) -> Remembered:
        """How the board is looked at, and at which run."""
        run = self._run() if self.is_whole() else None
        return {
            **super().remembered(),
            "order": self._sorting.by.name,
            "turned": "yes" if self._sorting.turned else "",
            "view": "table" if self._as_table else "matrix",
            "run": str(run.id) if run is not None else "",
        }

    def recall(self, values: Remembered) -> None:
        """Look at the board as the last time."""
        super().recall(values)
        order = Order.__members__.get(values.get("order", ""), Order.BENCHMARK)
        self._sorting = Sorting(order, bool(values.get("turned")))
        self._as_table = values.get("view") == "table"
        if self._cursor_wanted is None and values.get("run", "").isdigit():
            self._cursor_wanted = int(values["run"])

    def show_sweep(self, sweep_id: str | None, run_id: int | None = None) -> None:
        """Show another sweep, the cursor on a run of it."""
        self._cursor_wanted = run_id
        if sweep_id != self._asked_for:
            self._read, self._board, self.marks = None, None, Marks()
        self.app.sweep_id = self._asked_for = sweep_id
        if self.is_current:
            self.ask_again()

    def redraw_every(self) -> float:
        """Runs of minutes are watched by the second."""
        return self.seconds_between(self._board.sweep.spec.time_limit_seconds if self._board else None)

    def redraw(self) -> None:
        """Draw the board as it is and is looked at now."""
        board, runs = self._board, self.query_one("#runs", LineList)
        if board is None:
            nothing = "there is no sweep yet: launch one with 'mlebench-console sweep launch'"
            self.query_one("#header", Painted).show(((f" {nothing}", "dim"),))
            runs.show(())
            return
        view = self._view()
        self.query_one("#header", Painted).show(*sweep_lines.header(board, view))
        self.query_one("#filter-line", Painted).show(*sweep_lines.filter_line(board, view))
        titles = self.query_one("#columns", Heading)
        self.set_class(self._as_table, "-table")
        if self._as_table:
            titles.show_line(sweep_table.titles(view))
            runs.show(sweep_table.lines(board, view))
        else:
            titles.show()
            runs.show(sweep_matrix.lines(board, view))
        self._follow_wish(runs)
        self._draw_about()

    def on_title_clicked(self, message: TitleClicked) -> None:
        """Sort by the column whose name was clicked on; by it already: turn the order round."""
        runs = self.query_one(LineList)
        seen_from = runs.scroll_y
        self._sort(self._sorting.chosen(Order(message.by)))
        # The name stays under the mouse, for the second click.
        runs.scroll_to(y=seen_from, animate=False)

    def on_line_list_moved(self) -> None:
        """Tell about the run under the cursor."""
        self._draw_about()

    def on_line_list_opened(self) -> None:
        """Open the run under the cursor."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run under the cursor."""
        self._open("")

    def action_log(self) -> None:
        """Open the run's log."""
        self._open("log")

    def action_view(self) -> None:
        """Change between matrix and table, the cursor staying with its run."""
        run = self._run()
        self._as_table = not self._as_table
        self._cursor_wanted = run.id if run else None
        self.redraw()

    def action_mark(self) -> None:
        """Mark the run under the cursor, or take the mark away."""
        run = self._run()
        if run is not None:
            self.mark(self.marks.turned(run.id))

    def action_mark_range(self) -> None:
        """Mark everything between the run that was marked last and the one under the cursor."""
        run = self._run()
        anchor = next((each for each in self._shown() if each.id == self.marks.anchor), None)
        if run is None or anchor is None or self._board is None:
            self.mark_more(None)
            return
        between = runs_between_in_table if self._as_table else runs_between_in_matrix
        found = between(self._board, filters.parse(self.words), anchor, run)
        self.mark_more(each.id for each in found)

    def action_mark_row(self) -> None:
        """Mark all shown runs of the competition, or take the marks away."""
        row = self._row()
        if row is not None:
            found = runs_of_row(row, filters.parse(self.words))
            self.mark(self.marks.all_turned(run.id for run in found))

    def action_mark_failed(self) -> None:
        """Mark every shown run that failed."""
        failed = (run.id for run in self._shown() if run.state is RunState.FAILED)
        self.mark(self.marks.adding(failed))

    def action_next_failed(self) -> None:
        """Put the cursor on the next failed run."""
        failed = [run for run in self._shown() if run.state is RunState.FAILED]
        current = self._run()
        if not failed:
            self.app.say("no run has failed here")
            return
        ids = [run.id for run in failed]
        after = ids.index(current.id) + 1 if current is not None and current.id in ids else 0
        self._cursor_wanted = ids[after % len(ids)]
        self._follow_wish(self.query_one(LineList))
        self._draw_about()

    def action_relaunch(self) -> None:
        """Relaunch the marked runs, or the one under the cursor."""
        self.app.act(runs.relaunch, self._chosen())

    def action_stop(self) -> None:
        """Stop the marked runs, or the one under the cursor."""
        self.app.act(runs.stop, self._chosen())

    def action_classify(self) -> None:
        """Correct the class of the marked failures, or of the one under the cursor."""
        open_classify(self.app, self._chosen())

    def action_order(self) -> None:
        """Show the competitions and runs in the next order."""
        self._sort(Sorting(self._sorting.by.next()))

    def action_turn(self) -> None:
        """Turn the order round."""
        self._sort(self._sorting.round())

    def action_merged_log(self) -> None:
        """Read the logs of the marked runs as one."""
        self.app.push_screen(MergedScreen([run.id for run in self._chosen()]))

    def action_pause(self) -> None:
        """Let no new runs start, or go on."""
        if self._board is not None:
            self.app.act(sweeps.pause_or_resume, self._board.sweep)

    def action_step(self, step: int) -> None:
        """Show the next sweep, or the one before."""
        if self._board is not None and len(self._board.all_sweeps) > 1:
            known = self._board.all_sweeps
            self.show_sweep(known[(known.index(self._board.sweep.id) + step) % len(known)])

    def _take(self, board: SweepBoard | None) -> None:
        if board is not None and self._board is not None and board.sweep.id != self._board.sweep.id:
            self.marks = Marks()
        self._read = board
        if board is not None:
            self.app.known_sweeps = board.all_sweeps
            self.app.sweep_id = self._asked_for = board.sweep.id
            self.marks = self.marks.among(run.id for run in board.runs)
        self._arrange()

    def _arrange(self) -> None:
        self._board = None if self._read is None else in_order(self._read, self._sorting)
        self.redraw()

    def _sort(self, sorting: Sorting[Order]) -> None:
        """Show everything in an order, the cursor staying with its run."""
        run = self._run()
        self._sorting = sorting
        self._cursor_wanted = run.id if run else None
        self._arrange()

    def _view(self) -> View:
        width = self.query_one(LineList).scrollable_content_region.width or self.size.width
        limit = self._board.sweep.spec.time_limit_seconds if self._board is not None else 0.0
        return View(
            width,
            self.app.now(),
            limit,
            self.app.signs,
            filters.parse(self.words),
            self.marks.keys,
            self._sorting,
        )

    def _draw_about(self) -> None:
        if self._board is not None:
            line = sweep_lines.cursor_line(self._run(), self._row(), self._view())
            self.query_one("#about", Painted).show(line)

    def _follow_wish(self, runs: LineList) -> None:
        wish, self._cursor_wanted = self._cursor_wanted, None
        for run in self._board.runs if self._board is not None else ():
            if run.id == wish:
                runs.put_cursor(run.id if self._as_table else run.competition_id, run.seed - 1)

    def _row(self) -> BoardRow | None:
        key = self.query_one(LineList).key
        for row in rows_of(self._board) if self._board is not None else ():
            if row.competition_id == key or any(run is not None and run.id == key for run in row.runs):
                return row
        return None

    def _run(self) -> Run | None:
        runs, row = self.query_one(LineList), self._row()
        if row is None:
            return None
        if self._as_table:
            return next((run for run in row.runs if run is not None and run.id == runs.key), None)
        return row.runs[runs.column] if runs.column < len(row.runs) else None

    def _shown(self) -> list[Run]:
        return runs_in_matrix(self._board, filters.parse(self.words)) if self._board else []

    def _chosen(self) -> list[Run]:
        if self.marks and self._board is not None:
            return [run for run in self._board.runs if run.id in self.marks]
        run = self._run()
        return [run] if run is not None else []

    def _open(self, pane: str) -> None:
        run = self._run()
        if run is not None:
            self.app.show_run(run.id, pane=pane or ("log" if run.attempts else "timeline"))
