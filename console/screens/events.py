"""The events screen: all events, newest first, with a filter; Enter opens the subject of an event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from mlebench_console.console import wording
from mlebench_console.console.fields import Columns, Forms, RowFilter
from mlebench_console.console.nouns.event import (
    EVENT,
    EventRow,
    ListedEvent,
    accepted,
    common_words,
    event_key,
    event_role,
    event_subject,
    event_sweeps,
    folded,
    joined_steps,
    listed_events,
)
from mlebench_console.console.pieces import told_apart
from mlebench_console.console.roles import Drawing, Pieces
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.list_screen import DescribedScreen
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.blocks import Block, in_one_line, section
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.foundation.text import plural
from mlebench_console.state.event_records import EventSeverity

# The number of newest events that are filtered and drawn; more would delay keys.
MOST_EVENTS = 5000
MOST_LINES = 1000
# The least width of sweep names.
_SHORTEST_SWEEP = 12
# From this width on a usual cause is not cut.
_ROOMY, _CAUSE = 110, 56
# The screens opened for events without a run, sweep or dataset, by the first part of their kind.
_PLACES = {"engine": "host", "samples": "host", "experiment": "board"}


class EventsScreen(DescribedScreen):
    """A list with a heading for each day, and below it the full text of the event under the cursor."""

    CONTEXTS = ("events", "list")
    MODE = "events"
    FILTER_HINT = "words, sweep:aide kind:failed sev:error comp:leaf seed:2 run:17, ! negates"

    def __init__(self) -> None:
        super().__init__()
        self._events: tuple[ListedEvent, ...] | None = None
        # Those that pass the filter, with one for all steps of a beginning or an end, and equal ones together.
        self._shown: list[EventRow] = []
        # The keys of equal events that are listed below their line.
        self._opened: frozenset[int] = frozenset()
        self._drawn: tuple[object, ...] = ()

    def queries(self) -> Queries:
        """The newest events."""
        return {
            "events": (
                lambda database: listed_events(database, EVENT.filter(""), limit=MOST_EVENTS),
                self._take,
            )
        }

    def redraw(self) -> None:
        """Draw the events that pass the filter."""
        if self.app.condition.health is StateHealth.ABSENT:
            self._events = ()
        if self._events is None:
            return
        shown, signs, chosen = self.line_list, self.app.signs, EVENT.filter(self.words)
        drawn = (self._events, self.words, shown.line_width, signs, self._opened)
        if drawn == self._drawn:
            return  # the change of the state was not an event
        self._drawn = drawn
        passing = accepted(chosen, self._events)
        self._shown = found = folded(joined_steps(passing))
        self.header.show(self._header(chosen, passing, len(self._events)))
        if not found:
            back = self.app.drawing.keys("events.back")
            text = f"no event matches this filter: {back} clears it" if chosen else "nothing has happened yet"
            shown.show([((f"  {text}", "dim"),)])
            self._draw_about()
            return
        newest: list[EventRow] = []
        for equal in found[:MOST_LINES]:
            newest.append(equal)
            if event_key(equal) in self._opened:
                newest += [(one,) for one in equal]
        columns = _columns(newest, is_roomy=shown.line_width >= _ROOMY)
        table = Table(columns, newest, self.app.drawing.within(shown.line_width))
        lines: list[Block] = []
        for day, of_day in groupby(newest, key=_day):
            lines.append(section(day))
            lines += [table.line(equal, key=event_key(equal)) for equal in of_day]
        if len(found) > MOST_LINES:
            older = (
                f"{sum(map(len, found[MOST_LINES:])):,} older: filter them, or see 'mlebench-console events'"
            )
            lines.append(((f"  {older}", "dim"),))
        shown.show(lines, heading=table.heading())
        self._draw_about()

    def filter_by(self, words: str) -> None:
        """Filter, and put the cursor on the newest match."""
        super().filter_by(words)
        self.line_list.action_edge(-1)

    def on_line_list_cursor_moved(self) -> None:
        """Write out the event under the cursor."""
        self._draw_about()
        self.refresh_frame()

    def label_of(self, key: Key) -> str:
        """Name what Enter does on equal events."""
        equal = self._chosen()
        if key.id == "events.open" and equal is not None and len(equal) > 1:
            return "hide them" if event_key(equal) in self._opened else f"list {len(equal):,}"
        return super().label_of(key)

    def action_open(self) -> None:
        """Open the subject of the event; equal events are listed below their line, or hidden again."""
        equal = self._chosen()
        if equal is None:
            return
        if len(equal) > 1:
            self._opened ^= {event_key(equal)}
            self.redraw()
            self.refresh_frame()
            return
        event = equal[0].event
        if event.run_id is not None:
            self.app.show_run(event.run_id, pane="timeline")
        elif event.sweep_id is not None:
            self.app.show_sweep(event.sweep_id)
        elif event.competition_id is not None or event.subject == "kaggle":
            self.app.show("data")
        else:
            self.app.show(_PLACES.get(event.subject, "overview"))

    def _header(self, chosen: RowFilter[EventRow], left: Sequence[ListedEvent], known: int) -> Block:
        newest = "newest " if known == MOST_EVENTS else ""
        count = f"{len(left):,} of {known:,}" if chosen else f"{known:,}"
        parts: list[Pieces] = [((f" {count} {newest}events", "text"),)]
        severities = Counter(one.event.severity for one in left)
        if errors := severities[EventSeverity.ERROR]:
            parts.append(((plural(errors, "error"), "bad"),))
        if warnings := severities[EventSeverity.WARNING]:
            # Outcomes among them have colours of their own.
            parts.append(((plural(warnings, "warning"), "text"),))
        if chosen.text:
            parts.append(((f"/ {chosen.text}", "accent"),))
        if chosen.unknown:
            parts.append(((f"unknown: {', '.join(chosen.unknown)}", "warn"),))
        if len(self._shown) < len(left):
            parts.append((("the steps of a start or an end are one line, and so are equal events", "dim"),))
        return in_one_line(parts)

    def _take(self, found: tuple[ListedEvent, ...]) -> None:
        self._events = found

    def _chosen(self) -> EventRow | None:
        """Return the event under the cursor, or equal ones."""
        key = self.line_list.key
        every = (each for equal in self._shown for each in (equal, *((one,) for one in equal)))
        return next((equal for equal in every if event_key(equal) == key), None)

    def _draw_about(self) -> None:
        """Draw the event under the cursor in full, in two lines: columns may be cut or left out."""
        equal, dot = self._chosen(), f" {self.app.signs.dot} "
        if equal is None:
            self.about.show()
            return
        one = equal[0]
        subject = event_subject(equal)
        if len(equal) == 1 and one.seed is not None:
            subject += f" seed {one.seed}"
        known = [each for each in (subject, event_sweeps(equal), one.event.kind) if each]
        ended = f"{dot}{one.ended}" if one.ended and len(equal) == 1 else ""
        self.about.show(
            ((f" {dot.join(known)}", "dim"),),
            ((f" {common_words(equal)}", event_role(one)), (ended, "dim")),
        )


def _day(row: EventRow) -> str:
    return wording.day(row[0].event.at)


def _columns(found: Sequence[EventRow], *, is_roomy: bool) -> Columns[EventRow]:
    sweeps = sorted({event_sweeps(row) for row in found} - {""})

    def sweep(row: EventRow, drawing: Drawing) -> Forms:
        return Forms(told_apart(event_sweeps(row), sweeps, _SHORTEST_SWEEP, drawing.signs.ellipsis))

    # The beginning of a long name says enough, that of a result or a cause does not.
    brief = {"width": _CAUSE} if is_roomy else {}
    return EVENT.columns("time sign sweep competition seed kind brief", sweep={"cell": sweep}, brief=brief)
