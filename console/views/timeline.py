"""The timeline of sweeps for screens and commands: reading it, its visible window, and moving through it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from console.views.sweep import listed_sweeps
from engine.scoreboard.timeline import Bar, Lane, Timeline, read_timeline
from state import sweeps
from state.database import Database
from state.lifecycle import RunState

# The shortest window, in seconds.
_SHORTEST = 60.0
# At least this much of the future is shown, and at most as much as has passed.
_AHEAD = 3600.0


@dataclass(frozen=True)
class Window:
    """The visible interval of time."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.begin

    def share(self, at: float) -> float:
        """Return the relative position of a time: 0 at the begin, 1 at the end."""
        return (at - self.begin) / self.seconds

    def zoomed(self, factor: float, around: float, whole: Window) -> Window:
        """Return the window scaled by a factor around a fixed time, within `whole`."""
        seconds = min(max(_SHORTEST, self.seconds * factor), whole.seconds)
        place = min(1.0, max(0.0, self.share(around)))
        return Window(around - place * seconds, around + (1 - place) * seconds).within(whole)

    def shifted(self, share: float, whole: Window) -> Window:
        """Return the window moved by a share of its length, within `whole`."""
        step = share * self.seconds
        return Window(self.begin + step, self.end + step).within(whole)

    def within(self, whole: Window) -> Window:
        """Return the window moved into `whole`; or `whole` if the window is longer."""
        if self.seconds >= whole.seconds:
            return whole
        step = max(0.0, whole.begin - self.begin) - max(0.0, self.end - whole.end)
        return Window(self.begin + step, self.end + step)

    def with_bar(self, bar: Bar, now: float, whole: Window) -> Window:
        """Return the window moved as little as needed to show an attempt's begin and, if it fits, its end."""
        begin, end = bar.begin, min(bar.until(now), bar.begin + self.seconds)
        step = max(0.0, end - self.end)
        step += min(0.0, begin - (self.begin + step))
        return Window(self.begin + step, self.end + step).within(whole)


def timeline(database: Database, sweep_id: str | None, now: float) -> Timeline | None:
    """Read the timeline of one sweep, or without an id of all sweeps; None if there are none."""
    chosen = [sweeps.get(database, sweep_id)] if sweep_id else listed_sweeps(database)
    return read_timeline(database, chosen, now) if chosen else None


def whole_window(found: Timeline, now: float) -> Window:
    """Return the window from the begin to the expected end, with at most as much future as past."""
    if not any(bar.is_live for bar in found.bars) and not found.queued:
        last = max((bar.until(now) for bar in found.bars), default=now)
        return Window(found.begin, max(last, found.begin + _SHORTEST))
    passed = max(0.0, now - found.begin)
    ahead = _AHEAD if found.ends is None else max(_AHEAD / 4, found.ends.at - now)
    seconds = passed + min(ahead, max(passed, _AHEAD))
    # Slightly longer, so that the end itself is visible.
    return Window(found.begin, found.begin + 1.02 * seconds)


def first_choice(found: Timeline) -> Bar | None:
    """Return the attempt to select first: the last live one, else the last failed one, else the last."""
    for wanted in (
        [bar for bar in found.bars if bar.is_live],
        [bar for bar in found.bars if bar.state is RunState.FAILED],
        found.bars,
    ):
        if wanted:
            return max(wanted, key=lambda bar: bar.begin)
    return None


def lane_of(found: Timeline, chosen: Bar) -> int:
    """Return the index of an attempt's lane."""
    return next(place for place, lane in enumerate(found.lanes) if _place(lane, chosen) is not None)


def same_bar(found: Timeline, chosen: Bar | None) -> Bar | None:
    """Return the same attempt from a newer timeline; None if it is gone."""
    if chosen is None:
        return None
    key = (chosen.run_id, chosen.attempt)
    return next((bar for bar in found.bars if (bar.run_id, bar.attempt) == key), None)


def beside(found: Timeline, chosen: Bar, step: int) -> Bar:
    """Return the attempt before or after another one on its lane; the same one at the ends."""
    lane = found.lanes[lane_of(found, chosen)]
    place = (_place(lane, chosen) or 0) + step
    return lane.bars[min(max(place, 0), len(lane.bars) - 1)]


def across(found: Timeline, chosen: Bar, step: int, around: float) -> Bar:
    """Return the attempt some lanes above or below another one that began last before a time."""
    place = min(max(lane_of(found, chosen) + step, 0), len(found.lanes) - 1)
    bars = found.lanes[place].bars
    return bars[max(0, bisect_right([bar.begin for bar in bars], around) - 1)]


def nearest(lane: Lane, at: float, now: float) -> Bar:
    """Return the attempt of a lane at a time, else the nearest one."""
    return min(lane.bars, key=lambda bar: max(bar.begin - at, at - bar.until(now), 0.0))


def next_failed(found: Timeline, chosen: Bar | None) -> Bar | None:
    """Return the failed attempt that ended next after another one, wrapping around; None if none failed."""
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
