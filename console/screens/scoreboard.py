"""The scoreboard screen: own and imported experiments among the published rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.fields import Cell, Forms, NounField
from mlebench_console.console.lists import SortOrder
from mlebench_console.console.nouns.scoreboard import (
    COSTS,
    SCOREBOARD_ROW,
    SPLIT_STANDING,
    costs_text,
    is_ours,
    limit_text,
    notes_of,
    row_name,
    seeds_text,
    split_standings,
)
from mlebench_console.console.nouns.trial import COMPETITION_TRIALS, CompetitionTrials
from mlebench_console.console.pieces import Line
from mlebench_console.console.roles import Drawing, Piece, Role
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import DetailedScreen
from mlebench_console.console.tui.screen import Queries, Query
from mlebench_console.console.tui.session import SessionValues
from mlebench_console.console.tui.widgets.blocks import Block, laid_out, listing, section, shortened, wrapped
from mlebench_console.console.tui.widgets.line_list import TitleClicked
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.scoreboard import (
    ADDITIONAL,
    Comparability,
    Scoreboard,
    Subject,
    comparability,
    comparability_texts,
    scoreboard,
    seeds_by_competition,
    subject_of,
)
from mlebench_console.engine.scoreboard.model import COLUMNS, Measure, Row
from mlebench_console.engine.scoreboard.published import published_rows
from mlebench_console.foundation.text import plural

if TYPE_CHECKING:
    from mlebench_console.state.database import Database

SORTS = ("name", "models", *COLUMNS, "hours", "date", "seeds")
_MOST_MARKED = 2
# The keys that act on an experiment whose runs are known.
_OF_OWN_ROWS = frozenset({"board.open", "board.export", "board.mark", "board.compare"})
# Below this width cells show the mean without its error.
_WIDE = 115
# Below this width the table has no column of models.
_WITH_MODELS = 92


class BoardScreen(DetailedScreen):
    """A sorted table of rows; a split that is only partly covered has no percentage, and one that runs has bounds.

    The pane shows details of the row under the cursor: measures by split, conditions, and seeds.
    """

    LIST_WIDTH = 145

    CONTEXTS = ("board", "list", "matrix")
    MODE = "board"

    def __init__(self) -> None:
        super().__init__()
        # The published rows are bundled, so they are shown even without a state.
        self._board = Scoreboard(published_rows())
        self._has_answer = self._was_read = self._begins_at_top = False
        self._sorting = SortOrder("all")
        self._marked: tuple[Subject, ...] = ()
        self._pad = False
        # The seeds of the pane's row by competition, with the row's subject.
        self._seeds: tuple[Subject, tuple[CompetitionTrials, ...]] | None = None

    def queries(self) -> Queries:
        """All rows."""
        ask = partial(scoreboard, config_file=self.app.places.config_file, pad_missing=self._pad)
        return {"rows": (ask, self._take), **super().queries()}

    def session_values(self) -> SessionValues:
        """The filter and the order."""
        turned = "yes" if self._sorting.reversed else ""
        return {**super().session_values(), "column": self._sorting.by, "turned": turned}

    def restore(self, values: SessionValues) -> None:
        """Restore the filter and the order."""
        super().restore(values)
        if values.get("column") in SORTS:
            self._sorting = SortOrder(values["column"], bool(values.get("turned")))
        self._was_read = "cursor" in values

    def redraw(self) -> None:
        """Draw the table; the first time only when own rows are known, unless that takes long."""
        if not self._has_answer and not self.is_ready:
            return
        titles, lines = table_lines(
            self._board.rows,
            self._sorting,
            self.app.drawing.within(self.line_list.line_width),
            words=self.words,
            marked=frozenset(self._marked),
        )
        self.line_list.show(lines, heading=titles)
        if self._begins_at_top:
            self._begins_at_top = False
            self.line_list.action_edge(-1)
        self._draw_header()
        self.draw_detail()

    def _draw_header(self) -> None:
        """Draw the summaries; in a narrow terminal with the models of the cursor's row, which have no column there."""
        above = (*self._summary(), *self._notices())
        gap: tuple[Block, ...] = ((),) if above else ()
        row = self._row() if self.size.width < _WITH_MODELS else None
        if row is not None:
            gap = (((" models ", "dim"), (row.llms or "not named", "text")),)
        self.header.show(*above, *gap)

    def detail_key(self) -> Hashable:
        """The row under the cursor."""
        return self.line_list.key

    def detail_query(self, key: tuple[Subject, str, str]) -> Query:
        """Return the query for the seeds of an experiment; published rows have none."""
        subject = key[0]

        def ask(database: Database) -> tuple[Subject, tuple[CompetitionTrials, ...]]:
            return subject, seeds_by_competition(database, subject) if subject.table in (
                "own",
                "imported",
            ) else ()

        return ask, self._take_seeds

    def detail(self, height: int) -> Iterable[Block]:
        """Return full names, measures by split, conditions, places, and the seeds of each competition."""
        row = self._row()
        if row is None:
            return ()
        known = self._seeds is not None and self._seeds[0] == subject_of(row)
        seeds = self._seeds[1] if known and self._seeds else None
        return [partial(_row_pane, row, self._board.rows, seeds, height)]

    def _take_seeds(self, answer: tuple[Subject, tuple[CompetitionTrials, ...]]) -> None:
        self._seeds = answer

    def on_line_list_cursor_moved(self) -> None:
        """Update the details, and the keys for another row."""
        super().on_line_list_cursor_moved()
        if self.can_draw and self.size.width < _WITH_MODELS:
            self._draw_header()
        self.refresh_frame()

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; of a published row there is nothing to open or to export."""
        row = self._row() if self.is_composed() else None
        is_ready = key.id == "board.compare" and len(self._marked) == _MOST_MARKED
        if key.id in _OF_OWN_ROWS and not is_ready and (row is None or not is_ours(row)):
            return ""
        return super().label_of(key)

    def on_title_clicked(self, message: TitleClicked) -> None:
        """Sort by the column whose title was clicked on; if it sorts already, reverse the order."""
        self._sort(self._sorting.chosen(message.by))

    def action_open(self) -> None:
        """Show the experiment of the row under the cursor, on the cursor's split."""
        from mlebench_console.console.screens.experiment import ExperimentScreen

        subject = self._with_runs()
        if subject is not None:
            column = self.line_list.column_by
            self.app.push_screen(ExperimentScreen(subject, column=column if column in COLUMNS else "all"))

    def action_sort(self) -> None:
        """Sort by the column under the cursor; if it sorts already, reverse the order."""
        column = self.line_list.column_by
        if column:
            self._sort(self._sorting.chosen(column))

    def action_turn(self) -> None:
        """Reverse the order."""
        self._sort(self._sorting.reverse())

    def action_pad(self) -> None:
        """Count lost and missing runs as no medal, or leave their seeds out."""
        self._pad = not self._pad
        self.query_again()

    def action_mark(self) -> None:
        """Mark the row, or remove its mark; a third mark replaces the oldest."""
        subject = self._with_runs()
        if subject is None:
            return
        if subject in self._marked:
            self._marked = tuple(each for each in self._marked if each != subject)
        else:
            self._marked = (*self._marked, subject)[-_MOST_MARKED:]
        self.redraw()

    def action_compare(self) -> None:
        """Compare the two marked rows, or the marked one with the one under the cursor."""
        from mlebench_console.console.screens.comparison import CompareScreen

        chosen = self._marked
        if len(chosen) < _MOST_MARKED:
            here = self._with_runs()
            if here is None:
                return
            chosen = tuple(dict.fromkeys((*chosen, here)))
        if len(chosen) < _MOST_MARKED:
            key = self.app.drawing.keys("board.mark")
            self.app.say(f"mark one experiment with {key}, then compare on another")
            return
        self.app.push_screen(CompareScreen(chosen[0], chosen[1]))

    def action_export(self) -> None:
        """Preview the export of the row."""
        from mlebench_console.console.screens.export import ExportScreen

        subject = self._with_runs()
        if subject is not None:
            self.app.push_screen(ExportScreen(subject, pad_missing=self._pad))

    def action_back(self) -> None:
        """Clear the marks; without marks, clear the filter."""
        if not self._marked:
            super().action_back()
            return
        self._marked = ()
        self.redraw()

    def _sort(self, sorting: SortOrder[str]) -> None:
        self._sorting = sorting
        self.redraw()

    def _notices(self) -> Iterator[Block]:
        yield from (((f" {text}", "bad"),) for text in self._board.problems)
        if self.words:
            yield (" / ", "accent"), (self.words, "text")
        if self._pad:
            yield ((" padded: lost and missing runs count as no medal", "warn"),)

    def _take(self, board: Scoreboard) -> None:
        self._board, self._has_answer = board, True
        if not self._was_read:
            # The cursor has stayed on a published row, but own rows at the top are more interesting.
            self._was_read = self._begins_at_top = True

    def _row(self) -> Row | None:
        key = self.line_list.key
        return next((row for row in self._board.rows if _key(row) == key), None)

    def _with_runs(self) -> Subject | None:
        row = self._row()
        if row is not None and not is_ours(row):
            self.app.say("of a published row only its numbers are known; import its reports to see more")
            return None
        return None if row is None else subject_of(row)

    def _summary(self) -> Iterator[Block]:
        """Yield a line for each own experiment: whether published rows compare, and its medals; demo data last."""
        rows = self._board.rows
        ours = sorted((row for row in rows if row.own is not None), key=lambda row: row.demo)
        yield partial(_summaries, ours[:_MOST_SUMMARIES], rows)
        more = len(ours) - _MOST_SUMMARIES
        if more > 0:
            yield ((f"  and {plural(more, 'more experiment')}, in the table below", "dim"),)


def _summaries(shown: Sequence[Row], rows: Sequence[Row], drawing: Drawing) -> Iterator[Block]:
    """Draw a line for each of these own experiments, and one with its costs."""

    def comparable(row: Row, _drawing: Drawing) -> Cell:
        found = comparability(row, rows)
        whole = "all" in found.places and not found.caution
        role: Role = "warn" if found.obstacle else "good" if whole else "text"
        return Forms([((text, role),) for text in comparability_texts(found)])

    columns = (
        NounField[Row]("name", lambda row, _: ((row.name, "strong"),), 16, grows=30),
        NounField[Row]("comparable", comparable, 24, grows=48),
        NounField[Row]("medals", _own_medals, 37, grows=100),
    )
    table = Table(columns, shown, drawing)
    for row in shown:
        yield table.line(row)
        if costs := costs_text(row.costs):
            yield ((f"    models: {costs}", "dim"),)


_PANE_MEASURES = (Measure.GOLD, Measure.ABOVE_MEDIAN, Measure.VALID)


def _row_pane(
    row: Row,
    rows: Sequence[Row],
    seeds: Sequence[CompetitionTrials] | None,
    height: int,
    drawing: Drawing,
) -> Iterable[Block]:
    """Draw everything about a row that does not fit into the table, and its seeds as far as there is room."""
    lines = laid_out(_about_row(row, rows, drawing, is_wide=drawing.width >= _PANE_WIDE), drawing)
    return [*lines, *_seeds(seeds, height - len(lines), drawing)] if seeds else lines


def _about_row(row: Row, rows: Sequence[Row], drawing: Drawing, *, is_wide: bool) -> Iterator[Block]:
    """Yield full names, conditions, measures by split, and places."""
    yield wrapped(row_name(row), "strong")
    yield wrapped(row.llms)
    if row.conflict:
        yield wrapped(f"does not make a row: {row.conflict}", "bad")
    if row.demo:
        yield wrapped("demo: synthetic data, not comparable", "warn")
    facts = {
        "agent": "" if row.agent == row.name else row.agent,
        "edition": row.edition,
        "limit": limit_text(row),
        "date": row.date,
        "seeds": seeds_text(row),
        "re-rolled": plural(row.rerolled, "run") if row.rerolled else "",
        **{title: text(row.costs) for title, text in COSTS.items()},
    }
    yield from (((f"  {name:<13} ", "dim"), (text, "text")) for name, text in facts.items() if text)
    covered = split_standings(row)
    measured = [each for each in _PANE_MEASURES if any(each in one.standing.measures for one in covered)]
    layout = {"width": 11, "gap": 2} if is_wide else {}
    columns = SPLIT_STANDING.columns(
        f"split covers medals {' '.join(measured)}", **dict.fromkeys(measured, layout)
    )
    yield ()
    yield section("results, %")
    yield listing(columns, covered)
    if is_ours(row):
        yield from _places(comparability(row, rows), drawing)
    for note in notes_of(row):
        yield wrapped(note, "dim")


def _places(found: Comparability, drawing: Drawing) -> Iterator[Block]:
    """Yield the places among the published rows with the rows above and below, or why there are none."""
    yield ()
    yield section("among published rows")
    if found.obstacle:
        yield ((f" {drawing.signs.failed} no: {found.obstacle}", "warn"),)
        return
    for column, place in found.places.items():
        yield (f" {column.capitalize():<8}", "dim"), (f"place {place.number} of {place.of}", "strong")
        for label, row in (("behind", place.ahead), ("ahead of", place.behind)):
            cell = None if row is None else row.columns[column].cell
            if row is not None and cell is not None:
                mean: Piece = (f" {cell.mean:5.1f}", "text")
                yield shortened(f"{row.name}, {row.llms}", before=((f"  {label:<9}", "dim"),), after=(mean,))


def _seeds(seeds: Sequence[CompetitionTrials], height: int, drawing: Drawing) -> Iterator[Block]:
    """Yield the competitions with the sign of each seed, those with missing seeds first, as far as they fit."""
    short = [one for one in seeds if one.is_short]
    ordered = [*short, *(one for one in seeds if not one.is_short)]
    room = max(1, height - 3)
    shown = ordered if len(seeds) <= room else ordered[: room - 1]
    signs = 2 * max(len(one.trials) + max(0, one.planned - len(one.trials)) for one in seeds)
    columns = COMPETITION_TRIALS.columns(
        "competition signs", competition={"width": 20, "title": ""}, signs={"width": signs}
    )
    yield ()
    yield section(
        "seeds by competition", f"{len(short)} with missing seeds" if short else "no seed is missing"
    )
    yield listing(columns, shown, titles=False)
    if len(shown) < len(seeds):
        yield ((f"  and {len(seeds) - len(shown)} more: {drawing.signs.enter} shows all", "dim"),)


# In narrower panes only the any-medal measure is shown with its error.
_PANE_WIDE = 60


def table_lines(
    rows: Sequence[Row],
    sorting: SortOrder[str],
    drawing: Drawing,
    *,
    words: str = "",
    marked: Set[Subject] = frozenset(),
) -> tuple[Line, list[Block]]:
    """Return the heading, the rows that match the filter, the additional table, and the footnotes."""
    chosen = SCOREBOARD_ROW.filter(words)
    found = [row for row in rows if chosen.accepts(row, drawing)]
    main = sorted_rows([row for row in found if row.table != "additional"], sorting)
    additional = sorted_rows([row for row in found if row.table == "additional"], sorting)
    footnotes = list(dict.fromkeys(note for row in found for note in notes_of(row)))
    table = Table(
        _columns(drawing.width >= _WIDE, footnotes),
        found,
        drawing,
        sorting=sorting,
        mark=lambda row: subject_of(row) in marked,
    )
    lines: list[Block] = [table.line(row, key=_key(row)) for row in main]
    if additional:
        lines += [(), section("additional table")]
        lines += [table.line(row, key=_key(row)) for row in additional]
    if not lines:
        lines.append((("  no row has these words", "dim"),))
    if footnotes or additional:
        lines.append(())
    for number, text in enumerate(footnotes, start=1):
        lines.append(((f"  [{number}] ", "accent"), (text, "dim")))
    if additional:
        lines.append(((f"  {ADDITIONAL}", "dim"),))
    return table.heading(), lines


def sorted_rows(rows: Sequence[Row], order: SortOrder[str]) -> list[Row]:
    """Return rows sorted; own rows without a value and demo rows come first, other rows without a value last."""
    if order.by not in COLUMNS:
        # Texts are sorted from A to Z, numbers and dates from the largest.
        descending = (order.by in ("name", "models")) is order.reversed
        return SCOREBOARD_ROW.ordered(rows, SortOrder(order.by, descending), Drawing(0.0))

    def place(row: Row) -> tuple[int, float]:
        cell = row.columns[order.by].cell
        if cell is None or row.demo:  # demo data are not ranked among results
            return (0 if is_ours(row) else 2), 0.0
        return 1, cell.mean if order.reversed else -cell.mean

    return sorted(rows, key=place)


def _columns(wide: bool, footnotes: Sequence[str]) -> list[NounField[Row]]:
    """Return the columns of the table, all of which but one the cursor can choose to sort by."""

    def name(row: Row, drawing: Drawing) -> Cell:
        """Return the name with the numbers of its footnotes, which stay if it is cut."""
        text = row_name(row)
        role: Role = "strong" if is_ours(row) else "text"
        numbers = ",".join(str(footnotes.index(note) + 1) for note in notes_of(row))
        if not numbers:
            return ((text, role),)
        ellipsis = drawing.signs.ellipsis
        shorter = (f"{text[:length]}{ellipsis}" for length in range(len(text) - 2, 4, -1))
        return Forms([((part, role), (f" [{numbers}]", "accent")) for part in (text, *shorter)])

    layout = {"width": 10, "gap": 2} if wide else {"width": 6, "gap": 1}
    names = f"name models {' '.join(COLUMNS)} covered hours date seeds"
    fields = SCOREBOARD_ROW.columns(names, name={"cell": name}, **dict.fromkeys(COLUMNS, layout))
    return [replace(field, chosen=field.order is not None) for field in fields]


def _key(row: Row) -> tuple[Subject, str, str]:
    """Return the key of a row; published agents have several rows."""
    return subject_of(row), row.llms, row.date


# At most this many experiments have a summary line above the table; the others are counted.
_MOST_SUMMARIES = 6


def _own_medals(row: Row, drawing: Drawing) -> Cell:
    if row.own is None:
        return ""
    # The figure is not that of the split beside it, so it always has its scope.
    ends = (f" on its own {plural(row.own.of, 'competition')}", f" on its own {row.own.of}")
    texts = wording.medals(row.own.interim, row.own.cell, drawing.signs.plus_minus)
    return Forms([((f"{text}{end}", "text"),) for text in texts for end in ends])
