"""The events screen: everything that happened, newest first, filterable; Enter leads to what it is about."""

from __future__ import annotations

from console import wording
from console.tui.list_screen import FilteredScreen
from console.tui.painting import Line, Pieces, foreign
from console.tui.screen import Queries
from console.tui.widgets.table import REST, Column, Table
from console.views.lists import words_accept
from state import events
from state.records import Event

MOST_EVENTS = 5000


class EventsScreen(FilteredScreen):
    """One list."""

    CONTEXTS = ("events", "list")
    MODE = "events"

    def __init__(self) -> None:
        super().__init__()
        self._events: tuple[Event, ...] | None = None

    def queries(self) -> Queries:
        """The newest events."""
        return {"events": (lambda database: tuple(events.newest(database, limit=MOST_EVENTS)), self._take)}

    def redraw(self) -> None:
        """Draw those that the filter lets through."""
        if self._events is None:
            return
        shown = self.line_list
        found = [event for event in self._events if words_accept(self.words, *_texts(event))]
        count = f"{len(found):,} of {len(self._events):,}" if self.words else f"{len(found):,}"
        newest = "newest " if len(self._events) == MOST_EVENTS else ""
        note = f"   / {foreign(self.words, 40).rstrip()}" if self.words else ""
        self.header.show(((f" {count} {newest}events", "dim"), (note, "accent")))
        table = Table(_COLUMNS, found, shown.line_width, self.app.signs)
        lines = [table.line(event, key=event.id) for event in found]
        if lines:
            shown.show(lines, heading=table.heading())
        else:
            shown.show([Line((("  nothing has happened yet", "dim"),))])

    def action_open(self) -> None:
        """Go to what the event is about."""
        key = self.line_list.key
        event = next((event for event in self._events or () if event.id == key), None)
        if event is None:
            return
        if event.run_id is not None:
            self.app.show_run(event.run_id, pane="timeline")
        elif event.sweep_id is not None:
            self.app.show_sweep(event.sweep_id)
        elif event.competition_id is not None:
            self.app.show("data")

    def _take(self, found: tuple[Event, ...]) -> None:
        self._events = found


def _texts(event: Event) -> tuple[str, ...]:
    return event.kind, event.text, event.sweep_id or "", event.competition_id or "", f"run:{event.run_id}"


def _text(event: Event) -> Pieces:
    return ((event.text, "bad" if event.kind.endswith("failed") else "text"),)


_COLUMNS = (
    Column[Event]("when", lambda event: wording.date_and_time(event.at), 16, role="dim"),
    Column[Event]("kind", lambda event: event.kind, 20, role="dim"),
    Column[Event]("sweep", lambda event: event.sweep_id or "", 12, grows=20, role="dim"),
    Column[Event]("competition", lambda event: event.competition_id or "", 20, grows=56, drop=1),
    Column[Event]("what happened", _text, 40, grows=REST),
)
