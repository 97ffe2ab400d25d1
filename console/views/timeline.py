"""The timeline of sweeps as screens and commands show it: reading it, the part of time that is seen, moving in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from console.views.sweep import listed_sweeps
from engine.scoreboard.timeline import Bar, Lane, Timeline, read_timeline
from state import sweeps
from state.database import Database
from state.lifecycle import RunState

# No window is shorter than this.
_SHORTEST = 60.0
# Of the time to come at least so much is seen, and at most as much as has passed.
_AHEAD = 3600.0


@dataclass(frozen=True)
class Window:
    """The part of time that is seen."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.begin

    def share(self, at: float) -> float:
        """Where a moment lies: 0 at its begin, 1 at its end."""
        return (at - self.begin) / self.seconds

    def zoomed(self, factor: float, around: float, whole: Window) -> Window:
        """The window so many times as long, with a moment where it was, and within the whole."""
        seconds = min(max(_SHORTEST, self.seconds * factor), whole.seconds)
        place = min(1.0, max(0.0, self.share(around)))
        return Window(around - place * seconds, around + (1 - place) * seconds).within(whole)

    def shifted(self, share: float, whole: Window) -> Window:
        """The window moved by a share of its length."""
        step = share * self.seconds
        return Window(self.begin + step, self.end + step).within(whole)

    def within(self, whole: Window) -> Window:
        """The window moved into the whole; it is the whole if it is longer."""
        if self.seconds >= whole.seconds:
            return whole
        step = max(0.0, whole.begin - self.begin) - max(0.0, self.end - whole.end)
        return Window(self.begin + step, self.end + step)

    def with_bar(self, bar: Bar, now: float, whole: Window) -> Window:
        """The window moved as little as it takes to see an attempt's begin, and its end where it is not longer."""
        begin, end = bar.begin, min(bar.until(now), bar.begin + self.seconds)
        step = max(0.0, end - self.end)
        step += min(0.0, begin - (self.begin + step))
        return Window(self.begin + step, self.end + step).within(whole)


def timeline(database: Database, sweep_id: str | None, now: float) -> Timeline | None:
    """Read the timeline of one sweep, or without an id of all sweeps; None where there is none."""
    chosen = [sweeps.get(database, sweep_id)] if sweep_id else listed_sweeps(database)
    return read_timeline(database, chosen, now) if chosen else None


def whole_window(found: Timeline, now: float) -> Window:
    """All that has happened, and what is to come until the expected end, unless that is longer than what has passed."""
    if not any(bar.is_live for bar in found.bars) and not found.queued:
        last = max((bar.until(now) for bar in found.bars), default=now)
        return Window(found.begin, max(last, found.begin + _SHORTEST))
    passed = max(0.0, now - found.begin)
    ahead = _AHEAD if found.ends is None else max(_AHEAD / 4, found.ends.at - now)
    seconds = passed + min(ahead, max(passed, _AHEAD))
    # So that the end itself is seen.
    return Window(found.begin, found.begin + 1.02 * seconds)


def first_choice(found: Timeline) -> Bar | None:
    """The attempt to begin with: the live one that began last, or else the last one that failed, or else the last."""
    for wanted in (
        [bar for bar in found.bars if bar.is_live],
        [bar for bar in found.bars if bar.state is RunState.FAILED],
        found.bars,
    ):
        if wanted:
            return max(wanted, key=lambda bar: bar.begin)
    return None


def lane_of(found: Timeline, chosen: Bar) -> int:
    """The place of the lane that an attempt is on."""
    return next(place for place, lane in enumerate(found.lanes) if _place(lane, chosen) is not None)


def same_bar(found: Timeline, chosen: Bar | None) -> Bar | None:
    """The attempt again as it is now; None where it is gone."""
    if chosen is None:
        return None
    key = (chosen.run_id, chosen.attempt)
    return next((bar for bar in found.bars if (bar.run_id, bar.attempt) == key), None)


def beside(found: Timeline, chosen: Bar, step: int) -> Bar:
    """The attempt before or behind another one on its lane; itself where there is none."""
    lane = found.lanes[lane_of(found, chosen)]
    place = (_place(lane, chosen) or 0) + step
    return lane.bars[min(max(place, 0), len(lane.bars) - 1)]


def across(found: Timeline, chosen: Bar, step: int, around: float) -> Bar:
    """The attempt some lanes above or below another one that was there at a moment, or began last before it."""
    place = min(max(lane_of(found, chosen) + step, 0), len(found.lanes) - 1)
    bars = found.lanes[place].bars
    return bars[max(0, bisect_right([bar.begin for bar in bars], around) - 1)]


def nearest(lane: Lane, at: float, now: float) -> Bar:
    """The attempt of a lane that was there at a moment, or else the one that is least far from it."""
    return min(lane.bars, key=lambda bar: max(bar.begin - at, at - bar.until(now), 0.0))


def next_failed(found: Timeline, chosen: Bar | None) -> Bar | None:
    """The failed attempt that ended next after another one, from the first again behind the last; None without any."""
    failed = sorted(
        (bar for bar in found.bars if bar.state is RunState.FAILED),
        key=lambda bar: (bar.end or 0.0, bar.run_id, bar.attempt),
    )
    if not failed:
        return None
    after = failed.index(chosen) + 1 if chosen in failed else 0
    return failed[after % len(failed)]


def _place(lane: Lane, chosen: Bar) -> int | None:
    key = (chosen.run_id, chosen.attempt)
    return next((at for at, bar in enumerate(lane.bars) if (bar.run_id, bar.attempt) == key), None)
