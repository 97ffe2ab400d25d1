"""The datasets screens: the list of all datasets with actions on them, and one dataset in full."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from textual.widget import Widget

from mlebench_console.competitions.model import edition_named
from mlebench_console.console import wording
from mlebench_console.console.actions import dataset as dataset_actions
from mlebench_console.console.actions.action import Action, applies
from mlebench_console.console.nouns.competition import competition
from mlebench_console.console.nouns.dataset import (
    ACCESS_ROLES,
    DATASET,
    DatasetRow,
    amount_words,
    draw_state,
    pace_words,
    size_text,
    states,
)
from mlebench_console.console.nouns.event import event_text
from mlebench_console.console.pieces import Line, bar, fit, width_of
from mlebench_console.console.rates import Rates
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs, better_arrow
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import DetailedScreen, ListScreen, MarkedScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.blocks import (
    Block,
    flowing,
    in_one_line,
    laid_out,
    longest,
    section,
    shortened,
    wrapped,
)
from mlebench_console.console.tui.widgets.inputs import FilePaths, Prompt
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.datasets import (
    DatasetBoard,
    DatasetDetail,
    PreparationNeeds,
    Totals,
    board_of_disk,
    dataset_board,
    dataset_detail,
    needs,
    totals,
)
from mlebench_console.engine.datasets.prepared.verification import TableSum
from mlebench_console.engine.datasets.sources.access import AccessState
from mlebench_console.engine.datasets.steps import DOWNLOAD
from mlebench_console.engine.needs.needs import kaggle_text
from mlebench_console.foundation.problems import Problem
from mlebench_console.state import database as state_database
from mlebench_console.state.records import DatasetState, DatasetStep, StepState

_DETAIL_HEIGHT = 28
# The lines of the details below the list besides the steps: problem, checksums, files, log.
_DETAIL_LINES = 13
# The most lines for the problem of raw data.
_PROBLEM_LINES = 3

RowKey = tuple[str, str]

_PLANS: dict[str, Callable[[Sequence[DatasetRow]], Action]] = {
    "prepare": dataset_actions.prepare,
    "retry": dataset_actions.retry,
    "check": dataset_actions.check,
    "stop": dataset_actions.stop,
    "verify": dataset_actions.verify,
    "verify_deep": dataset_actions.verify_deep,
}


class _DatasetsScreen(ListScreen):
    """The common base of the list and of one dataset's screen: rates, details of one dataset, and actions."""

    def __init__(self) -> None:
        super().__init__()
        self.board = DatasetBoard()
        self.found: DatasetDetail | None = None
        self.rates = Rates()

    def queries(self) -> Queries:
        """Return the queries for all datasets, and for the details of one."""
        data_dir, key = self.app.places.data_dir, self.asked_key()
        asked: Queries = {"datasets": (partial(dataset_board, data_dir=data_dir), self.take)}
        if key is not None:
            competition_id, edition = key
            ask = partial(
                dataset_detail,
                data_dir=data_dir,
                competition_id=competition_id,
                edition=edition_named(edition),
            )
            asked["detail"] = (ask, self.take_detail)
        return asked

    def cursor_key(self) -> RowKey | None:
        """Return the key of the dataset that is shown in detail."""
        raise NotImplementedError

    def asked_key(self) -> RowKey | None:
        """Return the key of the dataset whose details are queried."""
        return self.cursor_key()

    def tick_seconds(self) -> float:
        """Return a short interval: rates and remaining times change without changes of the state."""
        return 1.0

    def row(self) -> DatasetRow | None:
        """The dataset that is shown in detail."""
        key = self.cursor_key()
        return next((row for row in self.board.rows if row.key == key), None)

    def chosen(self) -> list[DatasetRow]:
        """Return the datasets that actions apply to."""
        row = self.row()
        return [] if row is None else [row]

    def can_do(self, key: Key) -> bool:
        """Return whether a key applies to any of the chosen datasets; for each state one of those that prepare them."""
        chosen, what = self.chosen(), key.id.partition(".")[2]
        if what == "prune":
            return any(row.state is not DatasetState.REFUSED for row in chosen)
        if what == "copy_url":
            return any(row.access is AccessState.RULES for row in chosen)
        if what in ("prepare", "retry"):
            # What Kaggle refuses is checked again.
            states = {row.state for row in chosen if not applies(dataset_actions.check, [row])}
            return (DatasetState.ABSENT if what == "prepare" else DatasetState.FAILED) in states
        return what not in _PLANS or applies(_PLANS[what], chosen)

    def take(self, board: DatasetBoard) -> None:
        """Store the datasets, and measure the pace of running steps."""
        self.rates.keep_only({(*row.key, row.going.name) for row in board.rows if row.going is not None})
        self.board = replace(board, rows=tuple(map(self._measured, board.rows)))

    def _measured(self, row: DatasetRow) -> DatasetRow:
        """Return a dataset with the pace of its running step."""
        step = row.going
        if step is None:
            return row
        pace = self.rates.measure((*row.key, step.name), step.done, step.total, self.app.now())
        return replace(row, pace=pace)

    def take_detail(self, detail: DatasetDetail | None) -> None:
        """Store the details of one dataset."""
        self.found = detail

    def action_act(self, what: str) -> None:
        """Do something with the chosen datasets."""
        chosen = self.chosen()
        if what in _PLANS:
            self.app.act(_PLANS[what], chosen)
        elif what == "first":
            self.app.act(dataset_actions.first, chosen, self.board.rows)
        elif what == "copy_urls":
            urls = dataset_actions.rules_urls(chosen)
            if urls:
                self.app.copy_to_clipboard("\n".join(urls))
                several = f"copied {len(urls)} addresses, one per line"
                self.app.say(f"copied {urls[0]}" if len(urls) == 1 else several)
        else:
            everything = what == "prune_all"
            plan = partial(dataset_actions.prune, chosen, self.app.places.data_dir, everything=everything)
            self.app.in_background(plan, self.app.carry_out)

    def action_copy_folder(self) -> None:
        """Copy the path of the dataset's folder."""
        if self.found is not None:
            self.app.copy_path(self.found.folder)


class DataScreen(_DatasetsScreen, DetailedScreen, MarkedScreen[RowKey]):
    """The list of all datasets with marks, and the details of one beside it, below it or instead of it."""

    CONTEXTS = ("data", "list")
    MODE = "data"
    FILTER_HINT = "words, state:failed split:low edition:v1 access:rules, ! negates"

    def __init__(self) -> None:
        super().__init__()
        # The lines above the prompt for raw data: the question, or the problem of the typed path.
        self._raw_asked: Sequence[Block] = ()

    def body(self) -> Iterable[Widget]:
        """Return the list, the lines around it, and the prompt for raw data."""
        yield from super().body()
        yield Prompt(
            "from",
            "path of the raw data",
            self._find_raw,
            id="raw",
            done="prepare",
            left=lambda _typed: self._close_raw(),
            suggester=FilePaths(),
        )

    def _find_raw(self, typed: str) -> None:
        """Look for the chosen datasets in the typed path of raw data, and prepare them."""
        typed = typed.strip()
        if typed:
            found = partial(_prepared_raw, self.chosen(), Path(typed))
            self.in_background(found, self._prepare_raw, failed=partial(self._refuse_raw, typed))
        else:
            self._close_raw()

    def action_ask(self, what: str) -> None:
        """Type the path of raw data for the chosen datasets."""
        chosen = self.chosen()
        if chosen and not self.app.refuses():
            self._raw_asked = [self._raw_question(chosen)]
            self.query_one(f"#{what}", Prompt).open("")
            self.draw_detail()

    def _refuse_raw(self, typed: str, problem: Problem) -> None:
        """Show why raw data can't be used, and reopen the prompt with the typed path."""
        self._raw_asked = [wrapped(problem.in_one_line(), "bad", most=_PROBLEM_LINES)]
        self.query_one("#raw", Prompt).open(typed)
        self.draw_detail()

    def _prepare_raw(self, found: Sequence[Action]) -> None:
        """Prepare from raw data."""
        self._close_raw()
        for action in found:
            self.app.carry_out(action)

    def _close_raw(self) -> None:
        self._raw_asked = ()
        self.draw_detail()

    def on_mount(self) -> None:
        """Show the datasets found on the disk until there is a state."""
        if not state_database.exists(self.app.places.state_dir):
            self.in_background(partial(board_of_disk, self.app.places.data_dir), self._take_first)

    def _take_first(self, board: DatasetBoard) -> None:
        if not self.board.rows:
            self.take(board)
            self.draw()

    def cursor_key(self) -> RowKey | None:
        """The competition and edition under the cursor."""
        key = self.line_list.key if self.is_composed() else None
        return key if isinstance(key, tuple) else None

    def shown_keys(self) -> list[RowKey]:
        """The competitions and editions that the filter lets through."""
        return [row.key for row in self._shown()]

    def on_line_list_cursor_moved(self) -> None:
        """Update the details, and the keys for another dataset."""
        super().on_line_list_cursor_moved()
        self.refresh_frame()

    def redraw(self) -> None:
        """Draw the list."""
        board, shown, free = self.board, self._shown(), self._free()
        downloading = sum(
            row.pace.rate or 0 for row in board.rows if row.going is not None and row.going.name == DOWNLOAD
        )
        found = totals(board, free=free, download_rate=downloading or None)
        self.header.show(*self._header(found), *self._filter_line(len(shown), free))
        width = self.line_list.line_width
        columns = _WIDE if width >= _WITH_BARS else _NARROW
        table = Table(
            columns, shown, self.app.drawing.within(width - 1), mark=lambda row: row.key in self.marks
        )
        nothing = Line((("  no dataset has these words: Esc clears the filter", "dim"),))
        self.line_list.show(list(_by_split(table, shown)) or [nothing])
        self.place_detail()
        self.draw_detail()

    def action_open(self) -> None:
        """Show everything of the dataset under the cursor."""
        row = self.row()
        if row is not None:
            self.app.push_screen(DatasetScreen(row.key, self.board))

    def action_act(self, what: str) -> None:
        """Do something with the chosen datasets, unless the filter hides them all."""
        if not self.all_marks_hidden():
            super().action_act(what)

    def action_mark_all(self) -> None:
        """Mark everything that is shown, or remove those marks."""
        self.mark(self.marks.all_toggled(self.shown_keys()))

    def _header(self, found: Totals) -> Iterator[Block]:
        """Yield datasets by state; sizes to download, on disk and free; and why Kaggle is unreachable."""
        counts: list[Pieces] = []
        short: list[Pieces] = []
        for state, (sign, role) in states(self.app.signs).items():
            count = sum(row.state is state for row in self.board.rows)
            if count:
                counts.append(((f"{sign} {count} {state}", role), ("   ", "text")))
                # States that need no person are shown by their sign alone where there is no room for all words.
                is_calm = state in (DatasetState.WAITING, DatasetState.PREPARED, DatasetState.ABSENT)
                short.append(
                    ((f"{sign} {count}" if is_calm else f"{sign} {count} {state}", role), ("   ", "text"))
                )
        yield longest(*(((" ", "text"), *chain(*groups)) for groups in (counts, short)))
        amounts: list[Pieces] = []
        if found.to_download:
            rate = f" at {wording.size(found.download_rate)}/s" if found.download_rate else ""
            whole = f" of {wording.size(found.downloaded + found.to_download)}" if found.downloaded else ""
            amounts.append(((f"{wording.size(found.to_download)}{whole} to download{rate}", "running"),))
        if found.eta is not None:
            least = "at least " if found.of_unknown_size else ""
            amounts.append(((f"{least}{wording.span(found.eta)} left", "running"),))
        amounts.append(((f"{wording.size(found.on_disk)} on disk", "dim"),))
        if found.free is not None:
            amounts.append(((f"{wording.size(found.free)} free", "dim"),))
        if found.fitting is not None and found.missing:
            amounts.append(((_room_text(found), "dim"),))
        yield in_one_line(amounts, (" ", "text"), between="   ")
        if waiting := kaggle_text(self.board.kaggle):
            yield ((f" {waiting}", "warn"),)

    def _about(self) -> Sequence[Block]:
        """Return one line about the row under the cursor: what a person has to do, or its problem."""
        row, keys = self.row(), self.app.drawing.keys
        if row is None:
            return ()
        copy, check = keys("data.copy_url"), keys("data.check")
        if row.access is AccessState.RULES:
            url = next(iter(dataset_actions.rules_urls([row])), "")
            where = f" accept the rules at {url}" if url else " accept the rules in a browser"
            long = f"{where}: {copy} copies it, then {check} checks again"
            short = f" accept the rules: {copy} copies the URL, {check} checks again"
            return (longest(*(((text, "warn"),) for text in (long, where, short))),)
        if row.access is AccessState.GONE:
            text = "no longer on Kaggle; it counts in every denominator"
            return (((f" {text}   {check} checks again", "warn"),),)
        return (((f" {row.problem}", "dim"),),) if row.problem else ()

    def _raw_question(self, chosen: Sequence[DatasetRow]) -> Block:
        """Return the line above the prompt for raw data: what to type, for which datasets."""
        if len(chosen) > 1:
            what = f" prepare {len(chosen)} datasets from raw data on this disk"
            how = "a folder with a folder or zip for each, named by its id"
        else:
            what = f" prepare {chosen[0].competition_id} from raw data on this disk"
            how = "an extracted Kaggle folder or its zip"
        return longest(((f"{what}: ", "accent"), (how, "dim")), ((what, "accent"),))

    def _free(self) -> int | None:
        """Return the free space of the data's disk, as measured by a running engine, else by the query."""
        engine = self.app.engine
        return engine.data_disk_free if engine is not None and engine.running else self.board.free

    def _shown(self) -> list[DatasetRow]:
        """Return the rows that pass the filter."""
        chosen, drawing = DATASET.filter(self.words), self.app.drawing
        return [row for row in self.board.rows if chosen.accepts(row, drawing)]

    def chosen(self) -> list[DatasetRow]:
        """The marked datasets, or the one under the cursor."""
        keys = self.chosen_keys()
        return [row for row in self.board.rows if row.key in keys]

    def _filter_line(self, shown: int, free: int | None) -> Iterator[Block]:
        """Yield the line about the filter, the marks and what preparing the marked ones needs; none without both."""
        pieces: list[Piece] = []
        if self.words:
            pieces += [
                (" / ", "accent"),
                (self.words, "text"),
                (f"   {shown} of {len(self.board.rows)}", "dim"),
            ]
        if self.marks:
            needed = _needs_text(needs(self.chosen(), free))
            pieces += [(f" {self.marked_text()}", "accent"), (f"  {needed}", "dim")]
        if pieces:
            yield tuple(pieces)

    @property
    def asks_for_detail(self) -> bool:
        """True: details are shown beside or below the list, and a key copies the folder."""
        return True

    def asked_key(self) -> RowKey | None:
        """Return the dataset on which the cursor has rested."""
        return self._asked_of if isinstance(self._asked_of, tuple) else None

    def detail_key(self) -> Hashable:
        """The dataset under the cursor."""
        return self.cursor_key()

    def detail(self, height: int) -> Iterable[Block]:
        """Return what a person has to do, steps, log, checksums, files and folder of the dataset under the cursor."""
        row = self.row()
        if row is None:
            return ()
        beside = not self.is_detail_below
        # Checksums, files and events share the remaining lines.
        most = max(3, (height - 10) // 4) if beside else 3
        pane = DatasetPane(row, self.found, self.app.drawing, most=most, text_lines=6 if beside else 2)
        return (section(row.competition_id), partial(pane.lines, height - 1 if beside else 0))

    @property
    def rows_above_detail(self) -> int:
        """The height of the list above the longest details, so that it keeps its height while the cursor moves."""
        if self.size.height < _DETAIL_HEIGHT:
            return 0
        steps = max((len(row.steps) for row in self.board.rows), default=0)
        return self.rows_of_list - min(_DETAIL_LINES + steps, self.rows_of_list * 9 // 20)

    def draw_detail(self) -> None:
        """Draw the details, or one line about the dataset where there is no room for them."""
        if self.detail_key() != self._detail_of:
            self.found = None
        super().draw_detail()
        line = () if self.has_detail else self._about()
        self.about.display = bool(self._raw_asked or line)
        self.about.show(*(self._raw_asked or line))

    def take_detail(self, detail: DatasetDetail | None) -> None:
        """Store the details, unless the cursor has moved on."""
        if self.is_settled:
            super().take_detail(detail)

    def take(self, board: DatasetBoard) -> None:
        """Store the datasets, and drop the marks of those that are gone."""
        self.marks = self.marks.restricted_to(row.key for row in board.rows)
        super().take(board)


class DatasetScreen(_DatasetsScreen):
    """One dataset in full: every step, checksum and file, its sizes, and its log."""

    CONTEXTS = ("dataset", "list")
    MODE = "data"

    def __init__(self, key: RowKey, board: DatasetBoard) -> None:
        super().__init__()
        self._key = key
        self.board = board

    def cursor_key(self) -> RowKey:
        """This one."""
        return self._key

    def redraw(self) -> None:
        """Draw all details."""
        row, drawing = self.row(), self.app.drawing
        if row is None:
            return
        title: tuple[Pieces, ...] = (
            ((f" {row.competition_id}", "strong"),),
            (draw_state(row, drawing),),
            ((f"edition {row.edition}", "dim"),),
            ((size_text(row), "dim"),),
            (("Kaggle: ", "dim"), (row.access.value, ACCESS_ROLES[row.access])),
        )
        self.header.show(in_one_line(title, between="   "))
        lines = self.line_list
        pane = DatasetPane(row, self.found, drawing, most=1000, text_lines=10)
        shown = laid_out([partial(pane.lines, lines.size.height)], drawing.within(lines.line_width))
        lines.show(replace(line, key=place, selectable=bool(line.pieces)) for place, line in enumerate(shown))


def _steps(signs: Signs) -> dict[StepState, Piece]:
    """The sign and the role of every state of a step."""
    return {
        StepState.WAITING: (signs.queued, "dim"),
        StepState.WORKING: (signs.running, "running"),
        StepState.DONE: (signs.done, "good"),
        StepState.SKIPPED: (signs.dot, "faint"),
        StepState.FAILED: (signs.failed, "bad"),
    }


def _room_text(found: Totals) -> str:
    """Return how many missing datasets would fit on the disk, as far as their sizes are known."""
    known = found.missing - found.missing_of_unknown_size
    if not known:
        return f"{found.missing} missing, of unknown size"
    of = f"{known} missing" if known == found.missing else f"{known} missing of known size"
    return f"room for all {of}" if found.fitting == known else f"room for {found.fitting} of {of}"


def _prepared_raw(chosen: Sequence[DatasetRow], raw: Path) -> list[Action]:
    """Return actions that prepare datasets from raw data, one for each edition.

    Raises:
        Problem: the data can't be used.
    """
    ids: dict[str, list[str]] = {}
    for row in chosen:
        ids.setdefault(row.edition, []).append(row.competition_id)
    return [dataset_actions.prepare_raw(each, raw, edition) for edition, each in ids.items()]


def _needs_text(needed: PreparationNeeds) -> str:
    """Write what preparing needs."""
    if not needed.count:
        return "all prepared"
    fits = {True: ": fits", False: ": does not fit", None: ""}[needed.fits]
    unknown = f", {needed.unknown} of unknown size" if needed.unknown else ""
    return f"~{wording.size(needed.to_download)} of zips, ~{wording.size(needed.peak)} on disk{fits}{unknown}"


def _by_split(table: Table[DatasetRow], rows: Iterable[DatasetRow]) -> Iterator[Line]:
    split = ""
    for row in rows:
        if row.split != split:
            if split:
                yield Line()
            split = row.split
            yield table.heading(split.upper())
        yield table.line(row, key=row.key)


_WIDE = DATASET.columns("competition drawn size access step count done rate left note")
# In narrow lists names have the room of the steps, which most rows lack; the line below has the cursor's problem.
_NARROW = DATASET.columns("competition doing size left", left={"drop": 1})
_WITH_BARS = 90
_LABEL = 9
_BAR = 14
_STEP_NAME = 14
_SUM_NAME = 32
_FILE_NAME = 46


@dataclass(frozen=True)
class DatasetPane:
    """One dataset: what a person has to do, steps, log, checksums, files, folder.

    Attributes:
        most: the most checksums, files and events shown; the others are counted.
        text_lines: the most lines of a text.
    """

    row: DatasetRow
    found: DatasetDetail | None
    drawing: Drawing
    most: int
    text_lines: int

    def lines(self, height: int, drawing: Drawing) -> Iterable[Block]:
        """Everything, the most urgent first; with a height also the competition, and empty lines if they fit."""
        parts = [self._problem(), map(self._step, self.row.steps)]
        if self.found is not None:
            parts += [self._log(self.found), self._sums(self.found), self._files(self.found)]
        if height:
            parts.append(self._competition())
        drawn = [part for each in parts if (part := laid_out(each, drawing))]
        if sum(map(len, drawn)) + len(drawn) <= height:
            return [line for part in drawn for line in (Line(), *part)][1:]
        return chain(*drawn)

    def _competition(self) -> Iterator[Block]:
        """Yield what is fixed about the competition: its task, metric, cut-offs and known defects."""
        found = competition(self.row.competition_id)
        if found is None:
            return
        cuts = found.thresholds
        arrow = better_arrow(cuts, self.drawing.signs)
        yield self._text("title", found.name)
        yield self._text("task", f"{found.category.lower()}, {found.complexity} split")
        yield self._text("metric", f"{found.metric.name}, {wording.better(cuts)} {arrow}")
        medals: tuple[tuple[str, float, Role], ...] = (
            ("gold", cuts.gold, "gold"),
            ("silver", cuts.silver, "silver"),
            ("bronze", cuts.bronze, "bronze"),
            ("median", cuts.median, "dim"),
        )
        cut_offs: list[Pieces] = [
            ((f"{name} {wording.score(value, 9)}  ", role),) for name, value, role in medals
        ]
        if cuts.num_teams:
            cut_offs.append(((f"of {cuts.num_teams:,} teams", "dim"),))
        yield flowing(cut_offs, _label("cut-offs"))
        for place, text in enumerate(found.defects_in(edition_named(self.row.edition))):
            yield self._text("" if place else "defects", text, "warn")

    def _problem(self) -> Iterator[Block]:
        if self.found is not None and self.found.rules_url and self.row.access is AccessState.RULES:
            keys = self.drawing.keys
            yield _label("accept at"), (self.found.rules_url, "accent")
            yield _label(""), (f"{keys('data.copy_url')} copies it, {keys('data.check')} checks again", "dim")
        else:  # the log has Kaggle's words
            yield self._text("problem", self.row.problem, "bad")

    def _step(self, step: DatasetStep) -> Pieces:
        sign, role = _steps(self.drawing.signs)[step.state]
        pieces: list[Piece] = [("  ", "text"), (f"{sign} {fit(step.name, _STEP_NAME)} ", role)]
        is_going = step.state is StepState.WORKING
        if is_going and step.total:
            full, empty = bar(min(1.0, step.done / step.total), _BAR, self.drawing.signs)
            pieces += [(full, "running"), (empty, "faint"), (f" {step.done / step.total:4.0%}  ", "text")]
        if amount := amount_words(step):
            pieces.append((f"{amount}  ", "text"))
        if is_going:
            rate, eta = pace_words(step, self.row.pace)
            pieces.append((f"{rate}{f', {eta} left' if eta else ''}  " if rate else "", "dim"))
        elif step.state is StepState.DONE and step.started_at is not None and step.ended_at is not None:
            pieces.append((f"took {wording.duration(step.ended_at - step.started_at)}  ", "dim"))
        if step.state is not StepState.FAILED:  # the problem stands above in full
            pieces.append((step.note, "dim"))
        return tuple(pieces)

    def _log(self, found: DatasetDetail) -> Iterator[Block]:
        for number, event in enumerate(reversed(found.log[: self.most])):  # the newest last, as in every log
            moment = f"{_label('' if number else 'log')[0]}{wording.date_and_time(event.at)}  "
            yield wrapped(event_text(event), "text", (moment, "dim"), most=self.text_lines)

    def _sums(self, found: DatasetDetail) -> Iterator[Block]:
        if self.row.is_demo:
            yield _label("MD5"), ("not compared: this data is made up, Kaggle's is known", "dim")
            return
        # What differs is what somebody looks for.
        ordered = sorted(found.sums, key=lambda one: not _differs(one))
        for number, one in enumerate(ordered[: self.most]):
            yield partial(_sum, one, _label("" if number else "MD5"))
        yield from self._and_more(found.sums)

    def _files(self, found: DatasetDetail) -> Iterator[Block]:
        for number, one in enumerate(found.files[: self.most]):
            size = "" if one.bytes is None else wording.size(one.bytes)
            yield shortened(
                f"{one.name:<{_FILE_NAME}}",
                before=(_label("" if number else "files"),),
                after=((f" {size:>8}", "dim"),),
            )
        yield from self._and_more(found.files)
        # The last two parts say which folder it is; the whole path, which may be longer than a line, is copied by key.
        place: Pieces = (_label("folder"), (f"{found.folder.parent.name}/{found.folder.name}", "text"))
        yield longest((*place, (f"   {self.drawing.keys('data.copy_folder')} copies its path", "dim")), place)

    def _and_more(self, found: Sequence[object]) -> Iterator[Block]:
        if len(found) > self.most:
            yield _label(""), (f"and {len(found) - self.most} more", "dim")

    def _text(self, label: str, text: str, role: Role = "text") -> Block:
        """Return a text behind a label, cut to the allowed lines."""
        return wrapped(text, role, _label(label), most=self.text_lines)


def _label(text: str) -> Piece:
    return (f"  {text:<{_LABEL}} ", "dim")


def _sum(one: TableSum, label: Piece, drawing: Drawing) -> Iterable[Block]:
    """Draw a checksum beside the name of its file; where that has no room, a whole sum below the name."""
    role, texts = _compared(one)
    name: Piece = (fit(plain(one.name), _SUM_NAME), "text")
    line: Pieces = (label, name, (f" {', '.join(texts)}", role))
    if width_of(line) <= drawing.width:
        return [line]
    indent = " " * (width_of([label]) + 2)
    if len(indent) + max(map(len, texts)) > drawing.width:
        indent = "    "
    return [(label, (one.name, "text")), *(((f"{indent}{text}", role),) for text in texts)]


def _differs(one: TableSum) -> bool:
    return one.known is not None and one.sealed not in (None, one.known)


def _compared(one: TableSum) -> tuple[Role, list[str]]:
    """Return the checksum of a preparation beside the known one."""
    if one.sealed is None:
        return "dim", [f"expected {one.known}"]
    if one.known is None:
        return "dim", [f"{one.sealed}, none known"]
    if _differs(one):
        return "bad", [f"found {one.sealed}", f"expected {one.known}"]
    return "good", [f"{one.sealed}, as known"]
