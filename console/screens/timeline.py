"""The timeline screen: the attempts of a sweep, or of all sweeps, as bars over time, with their outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from textual import events
from textual.widget import Widget

from mlebench_console.console.tui.screen import NOT_READ, ConsoleScreen, Queries
from mlebench_console.console.tui.widgets.blocks import Block, longest
from mlebench_console.console.tui.widgets.gantt import Gantt, bar_facts, legend, summary
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.views import timeline as view
from mlebench_console.console.views.timeline import TimeSpan
from mlebench_console.engine.scoreboard.timeline import Bar, Timeline

# How far a key scrolls, as a share of the visible window.
_SCROLL = 0.5
_ZOOM = 0.5
# A younger timeline's minute is too wide a step: its first medals would be later than its end.
_YOUNG = 600.0


class TimelineScreen(ConsoleScreen):
    """A Gantt chart; the last lines describe the chosen attempt."""

    CONTEXTS = ("timeline",)
    MODE = "sweep"
    AUTO_FOCUS = ""

    def __init__(self, sweep_id: str | None) -> None:
        super().__init__()
        self._sweep_id = sweep_id
        self._read: Timeline | None = None
        self._chosen: Bar | None = None
        # None: the whole time, which grows.
        self._window: TimeSpan | None = None
        self._top = 0

    def body(self) -> Iterable[Widget]:
        """Return the header, the chart, and the description of the chosen attempt."""
        yield Painted(id="header")
        yield Painted(id="chart")
        yield Painted(id="chosen")

    def queries(self) -> Queries:
        """Return the timeline of the sweep, or of all."""
        wanted = self._sweep_id
        return {"timeline": (lambda database: view.timeline(database, wanted, self.app.now()), self._take)}

    def redraw(self) -> None:
        """Draw it as it is at this moment."""
        found, chart = self._found, self.query_one("#chart", Painted)
        if found is None or not found.lanes:
            nothing = "nothing has been launched yet" if found is not None else "there is no sweep yet"
            self.query_one("#header", Painted).show(((f" {nothing}", "dim"),))
            chart.show()
            self.query_one("#chosen", Painted).show((), ())
            return
        chart.show(*self._gantt(found).lines())
        self.query_one("#header", Painted).show(*self._header(found))
        facts = bar_facts(self._chosen, self._now, self.app.signs) if self._chosen is not None else ((), ())
        self.query_one("#chosen", Painted).show(*facts)

    def on_click(self, event: events.Click) -> None:
        """Choose the attempt that was clicked on; a second click there opens its run."""
        found, region = self._found, self.query_one("#chart", Painted).region
        if found is None or not region.contains_point(event.screen_offset):
            return
        bar = self._gantt(found).pointed_at(event.screen_offset - region.offset)
        if bar is not None and bar == self._chosen:
            self.action_open()
        elif bar is not None:
            self._choose(bar)

    def action_open(self) -> None:
        """Open the run of the chosen attempt."""
        self._open("timeline")

    def action_log(self) -> None:
        """Open the log of the chosen attempt's run."""
        self._open("log")

    def action_beside(self, step: int) -> None:
        """Choose the previous or next attempt on the lane."""
        if self._found is not None and self._chosen is not None:
            self._choose(view.beside(self._found, self._chosen, step))

    def action_across(self, step: int) -> None:
        """Choose an attempt of the same time on another lane."""
        if self._found is not None and self._chosen is not None:
            self._choose(view.across(self._found, self._chosen, step, self._chosen.begin))

    def action_edge(self, end: int) -> None:
        """Choose the attempt that began first, or last."""
        bars = self._found.bars if self._found is not None else []
        if bars:
            self._choose((min if end < 0 else max)(bars, key=lambda bar: bar.begin))

    def action_next_failed(self) -> None:
        """Choose the attempt that failed last, then the ones before."""
        failed = None if self._found is None else view.next_failed(self._found, self._chosen)
        if failed is None:
            self.app.say("no attempt has failed here" if self._found is not None else NOT_READ)
        else:
            self._choose(failed)

    def action_zoom(self, step: int) -> None:
        """Zoom in or out around the chosen attempt."""
        found = self._found
        if found is not None and self._chosen is not None:
            whole = view.whole_window(found, self._now)
            around = min(self._chosen.until(self._now), max(self._chosen.begin, self._seen(found).begin))
            window = self._seen(found).zoomed(_ZOOM if step > 0 else 1 / _ZOOM, around, whole)
            self._window = None if window == whole else window
            self.redraw()

    def action_scroll(self, step: int) -> None:
        """Scroll to earlier or later times."""
        if self._found is not None and self._window is not None:
            whole = view.whole_window(self._found, self._now)
            self._window = self._window.shifted(step * _SCROLL, whole)
            self.redraw()

    def action_whole(self) -> None:
        """Show the whole time again."""
        self._window = None
        self.redraw()

    def action_step(self, step: int) -> None:
        """Show the next or previous sweep; after the last one, all sweeps together."""
        known = [*self.app.known_sweeps, None]
        if self._sweep_id in known and len(known) > 1:
            self._sweep_id = known[(known.index(self._sweep_id) + step) % len(known)]
            self._read = self._chosen = self._window = None
            self.query_again()

    @property
    def _now(self) -> float:
        """Return the time, rounded so that the chart is not redrawn more often: to the minute after some minutes."""
        now, bars = self.app.now(), self._found.bars if self._found is not None else []
        is_young = now - min((bar.begin for bar in bars), default=0.0) < _YOUNG
        step = 10 if is_young else 60
        return now // step * step

    @property
    def _found(self) -> Timeline | None:
        """The timeline as it was read; without an expected end while the engine is down and starts nothing."""
        is_down = self.app.engine is not None and not self.app.engine.running
        return replace(self._read, ends=None) if self._read is not None and is_down else self._read

    def _take(self, found: Timeline | None) -> None:
        self._read = found
        if found is not None:
            # It may have been named by its beginning.
            self._sweep_id = found.sweep_ids[0] if self._sweep_id else None
            chosen = view.same_bar(found, self._chosen)
            self._chosen = chosen if chosen is not None else view.first_choice(found)

    def _seen(self, found: Timeline) -> TimeSpan:
        return self._window if self._window is not None else view.whole_window(found, self._now)

    def _choose(self, bar: Bar) -> None:
        self._chosen = bar
        if self._found is not None and self._window is not None:
            whole = view.whole_window(self._found, self._now)
            self._window = self._window.with_bar(bar, self._now, whole)
        self.redraw()

    def _gantt(self, found: Timeline) -> Gantt:
        """Return the chart, scrolled so that the lane of the chosen attempt is visible."""
        size, drawing = self.query_one("#chart", Painted).size, replace(self.app.drawing, now=self._now)
        width = self.size.width - 1
        gantt = Gantt(found, self._seen(found), width, size.height, drawing, self._top, self._chosen)
        if self._chosen is not None:
            place = view.lane_of(found, self._chosen)
            self._top = min(self._top, place, max(0, len(found.lanes) - gantt.lanes))
            self._top = max(self._top, place - gantt.lanes + 1)
        return replace(gantt, top=self._top)

    def _open(self, pane: str) -> None:
        if self._chosen is not None:
            self.app.show_run(self._chosen.run_id, pane=pane)

    def _header(self, found: Timeline) -> Iterable[Block]:
        """Yield the sweep's summary and expected end, and the legend of its marks."""
        name = "all sweeps" if self._sweep_id is None else self._sweep_id
        forms = summary(found, name, self._now, self.app.signs)
        yield longest(*(((" ", "text"), *form) for form in forms))
        if meaning := legend(found, self.app.signs):
            yield (" ", "text"), *meaning
