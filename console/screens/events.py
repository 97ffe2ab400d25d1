"""The events screen: all events, newest first, with a filter; Enter opens the subject of an event."""

from __future__ import annotations

from itertools import groupby

from console import wording
from console.sanitize import plain
from console.tui.keys import key_names
from console.tui.list_screen import DescribedScreen
from console.tui.painting import Line, Piece, Pieces, cut, foreign, heading
from console.tui.reader import StateHealth
from console.tui.screen import Queries
from console.tui.theme import Role, Signs
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.run_cell import outcome_role
from console.tui.widgets.table import Column, Table
from console.views.events import EventFilter, ListedEvent, Severity, listed_events, parse_event_filter

# The number of newest events that are filtered and drawn; more would delay keys.
MOST_EVENTS = 5000
MOST_LINES = 1000
_ROLES: dict[Severity, Role] = {
    Severity.BAD: "bad",
    Severity.WARNING: "warn",
    Severity.GOOD: "good",
    Severity.NOTE: "dim",
}
# The screens opened for events without a run, sweep or dataset, by the first part of their kind.
_PLACES = {"engine": "host", "samples": "host", "experiment": "board"}


class EventsScreen(DescribedScreen):
    """A list with a heading for each day, and below it the full text of the event under the cursor."""

    CONTEXTS = ("events", "list")
    MODE = "events"
    FILTER_HINT = "words, sweep:aide kind:failed sev:bad comp:leaf seed:2 run:17, ! negates"

    def __init__(self) -> None:
        super().__init__()
        self._events: tuple[ListedEvent, ...] | None = None
        self._drawn: tuple[object, ...] = ()

    def queries(self) -> Queries:
        """The newest events."""
        return {
            "events": (lambda database: listed_events(database, EventFilter(), limit=MOST_EVENTS), self._take)
        }

    def redraw(self) -> None:
        """Draw the events that pass the filter."""
        if self.app.condition.health is StateHealth.ABSENT:
            self._events = ()
        if self._events is None:
            return
        shown, signs, chosen = self.line_list, self.app.signs, parse_event_filter(self.words)
        drawn = (self._events, self.words, shown.line_width, signs)
        if drawn == self._drawn:
            return  # the change of the state was not an event
        self._drawn = drawn
        found = [one for one in self._events if chosen.accepts(one)]
        self.header.show(self._header(chosen, len(found), len(self._events)))
        if not found:
            back = key_names(self.app.settings.keys, ascii_only=self.app.settings.ascii_only)("events.back")
            text = f"no event matches this filter: {back} clears it" if chosen else "nothing has happened yet"
            shown.show([Line(((f"  {text}", "dim"),))])
            self._draw_about()
            return
        newest = found[:MOST_LINES]
        table = Table(_columns(signs), newest, shown.line_width, signs)
        lines: list[Line] = []
        for day, of_day in groupby(newest, key=_day):
            lines.append(Line(heading(day, shown.line_width, signs)))
            lines += [table.line(one, key=one.event.id) for one in of_day]
        if len(found) > len(newest):
            older = f"{len(found) - len(newest):,} older: filter them, or see 'mlebench-console events'"
            lines.append(Line(((f"  {older}", "dim"),)))
        shown.show(lines, heading=table.heading())
        self._draw_about()

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Filter while typing, and put the cursor on the newest match."""
        super().on_prompt_changed(message)
        self.line_list.action_edge(-1)

    def on_line_list_cursor_moved(self) -> None:
        """Write out the event under the cursor."""
        self._draw_about()

    def action_open(self) -> None:
        """Open the subject of the event."""
        one = self._chosen()
        if one is None:
            return
        event = one.event
        if event.run_id is not None:
            self.app.show_run(event.run_id, pane="timeline")
        elif event.sweep_id is not None:
            self.app.show_sweep(event.sweep_id)
        elif event.competition_id is not None or event.kind.startswith("kaggle."):
            self.app.show("data")
        else:
            self.app.show(_PLACES.get(event.kind.partition(".")[0], "overview"))

    def _header(self, chosen: EventFilter, left: int, known: int) -> Pieces:
        newest = "newest " if known == MOST_EVENTS else ""
        count = f"{left:,} of {known:,}" if chosen else f"{known:,}"
        pieces: list[Piece] = [(f" {count} {newest}events", "dim")]
        if chosen.text:
            pieces.append((f"   / {foreign(chosen.text, 60).rstrip()}", "accent"))
        if chosen.unknown:
            pieces.append((f"   unknown: {foreign(', '.join(chosen.unknown), 30).rstrip()}", "warn"))
        return tuple(pieces)

    def _take(self, found: tuple[ListedEvent, ...]) -> None:
        self._events = found

    def _chosen(self) -> ListedEvent | None:
        key = self.line_list.key
        return next((one for one in self._events or () if one.event.id == key), None)

    def _draw_about(self) -> None:
        """Draw the event under the cursor in full: columns may be cut or left out."""
        one, signs = self._chosen(), self.app.signs
        pieces: list[Piece] = []
        if one is not None:
            pieces = [(" ", "text"), *_what(one)]
            for known in (one.event.sweep_id, one.event.kind):
                pieces += [(f" {signs.dot} ", "faint"), (known, "dim")] if known else []
        harmless: Pieces = tuple((plain(text.replace("\n", " ")), role) for text, role in pieces)
        self.about.show(cut(harmless, self.line_list.line_width, signs.ellipsis))


def _day(one: ListedEvent) -> str:
    return wording.day(one.event.at)


def _what(one: ListedEvent) -> Pieces:
    if one.outcome is not None:
        return ((one.event.text, outcome_role(one.outcome)),)
    role = _ROLES[one.severity]
    return ((one.event.text, "text" if role == "dim" else role),)


def _columns(signs: Signs) -> list[Column[ListedEvent]]:
    drawn = {
        Severity.BAD: signs.failed,
        Severity.WARNING: "?",
        Severity.GOOD: signs.done,
        Severity.NOTE: signs.dot,
    }

    def sign(one: ListedEvent) -> Pieces:
        return ((drawn[one.severity], _ROLES[one.severity]),)

    return [
        Column("time", lambda one: wording.clock_seconds(one.event.at), 8, role="dim"),
        Column("", sign, 1, gap=1),
        Column("competition", lambda one: one.event.competition_id or "", 22, grows=56),
        Column("seed", lambda one: "" if one.seed is None else f"s{one.seed}", 4, gap=1),
        Column("what happened", _what, 30, grows=90),
        Column("sweep", lambda one: one.event.sweep_id or "", 14, grows=22, drop=1, role="dim"),
        Column("kind", lambda one: one.event.kind, 17, drop=2, role="dim"),
    ]
