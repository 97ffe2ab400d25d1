"""The events screen: all events, newest first, with a filter; Enter opens the subject of an event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from console import wording
from console.sanitize import plain
from console.tui.keys import key_names
from console.tui.list_screen import DescribedScreen
from console.tui.painting import Line, Piece, Pieces, cut, foreign, heading, joined, told_apart
from console.tui.reader import StateHealth
from console.tui.screen import Queries
from console.tui.theme import Signs
from console.tui.widgets.event_cell import event_sign, event_words
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.table import REST, Column, Forms, Table
from console.views.events import (
    EventFilter,
    ListedEvent,
    Severity,
    joined_steps,
    listed_events,
    parse_event_filter,
)

# The number of newest events that are filtered and drawn; more would delay keys.
MOST_EVENTS = 5000
MOST_LINES = 1000
# The least width of sweep names.
_SHORTEST_SWEEP = 12
# From this width on no name of a competition is cut.
_ROOMY = 110
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
        # Those that pass the filter, with one for all steps of a beginning or an end.
        self._shown: list[ListedEvent] = []
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
        accepted = [one for one in self._events if chosen.accepts(one)]
        self._shown = found = joined_steps(accepted)
        self.header.show(self._header(chosen, accepted, len(self._events)))
        if not found:
            back = key_names(self.app.settings.keys, ascii_only=self.app.settings.ascii_only)("events.back")
            text = f"no event matches this filter: {back} clears it" if chosen else "nothing has happened yet"
            shown.show([Line(((f"  {text}", "dim"),))])
            self._draw_about()
            return
        newest = found[:MOST_LINES]
        table = Table(_columns(newest, shown.line_width, signs), newest, shown.line_width, signs)
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

    def _header(self, chosen: EventFilter, left: Sequence[ListedEvent], known: int) -> Pieces:
        newest = "newest " if known == MOST_EVENTS else ""
        count = f"{len(left):,} of {known:,}" if chosen else f"{known:,}"
        parts: list[Pieces] = [((f" {count} {newest}events", "text"),)]
        severities = Counter(one.severity for one in left)
        if bad := severities[Severity.BAD]:
            parts.append(((f"{bad:,} bad", "bad"),))
        if warnings := severities[Severity.WARNING]:
            parts.append(((wording.plural(warnings, "warning"), "warn"),))
        if chosen.text:
            parts.append(((f"/ {foreign(chosen.text, 60).rstrip()}", "accent"),))
        if chosen.unknown:
            parts.append(((f"unknown: {foreign(', '.join(chosen.unknown), 30).rstrip()}", "warn"),))
        if len(self._shown) < len(left):
            parts.append((("each start and each end of a run is one line", "dim"),))
        signs = self.app.signs
        return joined(parts, (f" {signs.dot} ", "faint"), self.line_list.line_width)

    def _take(self, found: tuple[ListedEvent, ...]) -> None:
        self._events = found

    def _chosen(self) -> ListedEvent | None:
        key = self.line_list.key
        return next((one for one in self._shown if one.event.id == key), None)

    def _draw_about(self) -> None:
        """Draw the event under the cursor in full, in two lines: columns may be cut or left out."""
        one, signs = self._chosen(), self.app.signs
        lines: list[list[Piece]] = [[], []]
        if one is not None:
            seed = "" if one.seed is None else f"seed {one.seed}"
            subject = " ".join(each for each in (one.event.competition_id, seed) if each)
            known = [each for each in (subject, one.event.sweep_id, one.event.kind) if each]
            lines[0] = [(f" {f' {signs.dot} '.join(known)}", "dim")]
            lines[1] = [(" ", "text"), *event_words(one)]
            lines[1] += [(f" {signs.dot} {one.ended}", "dim")] if one.ended else []
        for pieces in lines:
            pieces[:] = [(plain(text.replace("\n", " ")), role) for text, role in pieces]
        self.about.show(*(cut(tuple(pieces), self.line_list.line_width, signs.ellipsis) for pieces in lines))


def _day(one: ListedEvent) -> str:
    return wording.day(one.event.at)


def _in_list(one: ListedEvent, signs: Signs) -> Forms:
    """Return what happened, and where there is room how; the class of a failure is in its sign."""
    ((text, role),) = event_words(one)
    if one.failure is not None:
        text = text.partition(": ")[2] or text
    ended = f" {signs.dot} {one.ended}" if one.ended else ""
    return Forms([((text, role), (ended, "dim")), ((text, role),)])


def _columns(found: Sequence[ListedEvent], width: int, signs: Signs) -> list[Column[ListedEvent]]:
    sweeps = sorted({one.event.sweep_id for one in found if one.event.sweep_id})

    def competition(one: ListedEvent) -> Pieces:
        return ((one.event.competition_id or "", "dim" if one.is_routine else "text"),)

    def sweep(one: ListedEvent) -> Forms:
        forms = told_apart(one.event.sweep_id or "", sweeps, _SHORTEST_SWEEP, signs.ellipsis)
        return Forms([((text, "dim"),) for text in forms])

    return [
        Column("time", lambda one: wording.clock_seconds(one.event.at), 8, role="dim"),
        Column("", lambda one: event_sign(one, signs), 3, gap=1),
        Column("sweep", sweep, _SHORTEST_SWEEP, grows=40, gap=1),
        Column("competition", competition, 19, grows=56, gap=1),
        Column(
            "seed", lambda one: "" if one.seed is None else str(one.seed), 4, right=True, gap=1, role="dim"
        ),
        Column("kind", lambda one: one.event.kind, 17, drop=1, role="dim"),
        # In a narrow terminal the beginning of a long name says enough, that of a result does not.
        Column("what happened", lambda one: _in_list(one, signs), 24, grows=REST if width >= _ROOMY else 110),
    ]
