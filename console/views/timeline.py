"""The timeline of sweeps for screens and commands: reading it, its visible window, and moving through it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlebench_console.console.views.sweep import listed_sweeps
from mlebench_console.engine.needs.causes import cause_now
from mlebench_console.engine.scoreboard.timeline import Bar, Lane, Timeline, read_timeline
from mlebench_console.state import runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, RunState

# The shortest window, in seconds.
_SHORTEST = 60.0
# The future has this share of what has passed, so that the past has the room; an end within the second share is shown.
_AHEAD, _NEAR_END = 0.12, 0.25
# As if at least this much had passed.
_LEAST_PASSED = 60.0


@dataclass(frozen=True)
class TimeSpan:
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

    def zoomed(self, factor: float, around: float, whole: TimeSpan) -> TimeSpan:
        """Return the window scaled by a factor around a fixed time, within `whole`."""
        seconds = min(max(_SHORTEST, self.seconds * factor), whole.seconds)
        place = min(1.0, max(0.0, self.share(around)))
        return TimeSpan(around - place * seconds, around + (1 - place) * seconds).within(whole)

    def shifted(self, share: float, whole: TimeSpan) -> TimeSpan:
        """Return the window moved by a share of its length, within `whole`."""
        step = share * self.seconds
        return TimeSpan(self.begin + step, self.end + step).within(whole)

    def within(self, whole: TimeSpan) -> TimeSpan:
        """Return the window moved into `whole`; or `whole` if the window is longer."""
        if self.seconds >= whole.seconds:
            return whole
        step = max(0.0, whole.begin - self.begin) - max(0.0, self.end - whole.end)
        return TimeSpan(self.begin + step, self.end + step)

    def with_bar(self, bar: Bar, now: float, whole: TimeSpan) -> TimeSpan:
        """Return the window moved as little as needed to show an attempt's begin and, if it fits, its end."""
        begin, end = bar.begin, min(bar.until(now), bar.begin + self.seconds)
        step = max(0.0, end - self.end)
        step += min(0.0, begin - (self.begin + step))
        return TimeSpan(self.begin + step, self.end + step).within(whole)


def timeline(database: Database, sweep_id: str | None, now: float) -> Timeline | None:
    """Read the timeline of one sweep, or without an id of all sweeps; None if there are none."""
    chosen = [sweeps.get(database, sweep_id)] if sweep_id else listed_sweeps(database)
    if not chosen:
        return None
    found = read_timeline(database, chosen, now)
    limits = {sweep.id: sweep.conditions.time_limit_seconds for sweep in chosen}
    stuck = {
        run.id: trouble[1]
        for run in runs.live(database)
        if run.sweep_id in limits and (trouble := cause_now(run, limits[run.sweep_id], now)) is not None
    }
    lanes = (
        replace(lane, bars=tuple(_with_trouble(bar, stuck) for bar in lane.bars)) for lane in found.lanes
    )
    return replace(found, lanes=tuple(sorted(lanes, key=_urgency)))


def _with_trouble(bar: Bar, stuck: Mapping[int, str]) -> Bar:
    """Return a live attempt with the reason why it should be looked at, others as they are."""
    return replace(bar, cause=stuck[bar.run_id]) if bar.is_live and bar.run_id in stuck else bar


def _urgency(lane: Lane) -> tuple[int, float, int]:
    """Order lanes by their last attempts: what needs a person, live ones from the oldest on, the last that ended."""
    last = lane.bars[-1]
    if last.is_live:
        return (0 if last.cause else 2), last.begin, lane.number
    ended = -(last.end or 0.0)
    # A failure that was launched again needs nobody.
    if last.failure is FailureClass.INFRASTRUCTURE and last.attempt == last.of:
        return 1, ended, lane.number
    return (3 if last.state is RunState.FAILED else 4), ended, lane.number


def whole_window(found: Timeline, now: float) -> TimeSpan:
    """Return the window from the begin to a little after now, or to the expected end if that is near."""
    if not any(bar.is_live for bar in found.bars) and not found.queued:
        last = max((bar.until(now) for bar in found.bars), default=now)
        return TimeSpan(found.begin, max(last, found.begin + _SHORTEST))
    passed = max(_LEAST_PASSED, now - found.begin)
    ahead = _AHEAD * passed
    if found.ends is not None and found.ends.at - now <= _NEAR_END * passed:
        # Slightly longer, so that the end itself is visible.
        ahead = max(ahead, 1.02 * (found.ends.at - now))
    return TimeSpan(found.begin, max(now, found.begin) + ahead)


def first_choice(found: Timeline) -> Bar | None:
    """Return the attempt to select first: the last one of the most urgent lane."""
    return found.lanes[0].bars[-1] if found.lanes else None


def lane_of(found: Timeline, chosen: Bar) -> int:
    """Return the index of an attempt's lane."""
    return next(place for place, lane in enumerate(found.lanes) if chosen in lane.bars)


def same_bar(found: Timeline, chosen: Bar | None) -> Bar | None:
    """Return the same attempt from a newer timeline; None if it is gone."""
    if chosen is None:
        return None
    key = (chosen.run_id, chosen.attempt)
    return next((bar for bar in found.bars if (bar.run_id, bar.attempt) == key), None)


def beside(found: Timeline, chosen: Bar, step: int) -> Bar:
    """Return the attempt before or after another one on its lane; the same one at the ends."""
    bars = found.lanes[lane_of(found, chosen)].bars
    return bars[min(max(bars.index(chosen) + step, 0), len(bars) - 1)]


def across(found: Timeline, chosen: Bar, step: int, around: float) -> Bar:
    """Return the attempt some lanes above or below another one that began last before a time."""
    place = min(max(lane_of(found, chosen) + step, 0), len(found.lanes) - 1)
    bars = found.lanes[place].bars
    return bars[max(0, bisect_right([bar.begin for bar in bars], around) - 1)]


def nearest(lane: Lane, at: float, now: float) -> Bar:
    """Return the attempt of a lane at a time, else the nearest one."""
    return min(lane.bars, key=lambda bar: max(bar.begin - at, at - bar.until(now), 0.0))


def next_failed(found: Timeline, chosen: Bar | None) -> Bar | None:
    """Return the latest failed attempt, or the one before if it is chosen, and so on; None if none failed."""
    failed = sorted(
        (bar for bar in found.bars if bar.state is RunState.FAILED),
        key=lambda bar: (-(bar.end or 0.0), bar.run_id, bar.attempt),
    )
    if not failed:
        return None
    after = failed.index(chosen) + 1 if chosen in failed else 0
    return failed[after % len(failed)]
