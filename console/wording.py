"""The text forms of sizes, times, durations, scores and states, the same on all screens and in all commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import FailureClass, Outcome

if TYPE_CHECKING:
    from mlebench_console.competitions.medals import Thresholds
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.engine.needs.waits import QueuedRun, Wait
    from mlebench_console.engine.requests import LaunchSweep
    from mlebench_console.engine.scoreboard.model import Cell, Interim
    from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, NoEnd
    from mlebench_console.engine.sweeps.forecast import Forecast, JobsForecast
    from mlebench_console.environment.gateway.records import OpenCall
    from mlebench_console.state.records import Acknowledgement, Attempt, Run, Sweep

UNKNOWN = "-"

Number = Callable[[float], str]

OUTCOME_WORDS = {each: each.replace("_", " ") for each in Outcome} | {Outcome.INVALID: "invalid submission"}
OUTCOME_SHORT = OUTCOME_WORDS | {Outcome.INVALID: "invalid", Outcome.NO_SUBMISSION: "none"}
FAILURE_WORDS = {each: each.value for each in FailureClass} | {
    FailureClass.MEMORY: "out of memory",
    FailureClass.DISK: "too much on disk",
    FailureClass.BUDGET: "budget used up",
    FailureClass.CRASH: "agent crash",
    FailureClass.UNKNOWN: "unknown cause",
}
FAILURE_SHORT = {each: each.value for each in FailureClass} | {FailureClass.INFRASTRUCTURE: "infra"}
FAILURE_LETTERS = {each: each[0] for each in FailureClass} | {FailureClass.UNKNOWN: "?"}


def failure(run: Run) -> str:
    """Write the class of a failure and the suspected cause: `agent crash, suspected: the network failed`."""
    words = FAILURE_WORDS[run.failure_class or FailureClass.UNKNOWN]
    return f"{words}, suspected: {run.suspected.words}" if run.suspected else words


def grading_trouble(run: Run, now: float) -> str:
    """Write why grading of a run fails, since when, and when it is retried; empty if it does not fail."""
    if not run.grading_problem:
        return ""
    since = "" if run.grading_fails_since is None else f" since {clock(run.grading_fails_since)}"
    left = 0.0 if run.grading_retry_at is None else run.grading_retry_at - now
    again = f"again in {duration(left)}" if left > 0 else "again now"
    return f"grading fails{since}, {again}: {run.grading_problem}"


def acknowledged(one: Acknowledgement) -> str:
    """Write who acknowledged something, when and why: `acknowledged by op@host 02:10: 'driver reset, ticket 12'`."""
    what = "acknowledged" if one.until is None else f"snoozed until {clock(one.until)}"
    return f"{what} by {one.author} {clock(one.at)}: '{one.reason}'"


_FAR_SECONDS, _DAY = 20 * 3600.0, 86_400.0


def waits_short(wait: Wait, now: float) -> tuple[str, ...]:
    """Write why an attempt waits in a batch system and when it may start, in several forms, longest first."""
    if wait.until is None:
        return (wait.short,)
    when = f"~{_soon(wait.until, now)}"
    return f"{wait.short} {when}", when


def waits(wait: Wait, now: float) -> str:
    """Write in words why an attempt waits in a batch system, when it may start, and its priority."""
    parts = [wait.text]
    if wait.until is not None:
        is_far = wait.until - now >= _FAR_SECONDS
        parts.append(f"may start {'in ' if is_far else ''}~{_soon(wait.until, now)}")
    if wait.priority is not None:
        parts.append(f"priority {wait.priority:,}")
    return ", ".join(parts)


def _soon(moment: float, now: float) -> str:
    return clock(moment) if moment - now < _FAR_SECONDS else age(moment - now)


def placed(attempt: Attempt, wait: Wait | None, now: float) -> str:
    """Write where a batch system runs an attempt, or why it waits; empty for one on the engine's own host."""
    from mlebench_console.foundation.conditions import HERE

    if attempt.placement == HERE:
        return ""
    # The job comes first: its number is what Slurm's own commands ask for.
    where = (f"job {attempt.job} in " if attempt.job else "") + attempt.placement
    where += f" on {attempt.node}" if attempt.node else ""
    return where if wait is None else f"{where}: {waits(wait, now)}"


def how_it_ended(attempt: Attempt) -> str:
    """Write why an attempt ended, with its exit code or signal."""
    if attempt.exit_signal is not None:
        return f"{attempt.exit_reason or UNKNOWN}, signal {attempt.exit_signal}"
    if attempt.exit_code is not None:
        how = f"exit code {attempt.exit_code}"
        return how if attempt.exit_reason is EndReason.EXITED else f"{attempt.exit_reason or UNKNOWN}, {how}"
    return attempt.exit_reason or ""


def jobs_forecast(jobs: JobsForecast, now: float) -> list[str]:
    """Write a batch system's forecast of a launch: room, time limit, and the start of the first job."""
    others = f", {jobs.wait_here} wait here" if jobs.wait_here else ""
    room = f"room for {jobs.room} of {plural(jobs.most, 'job')}"
    lines = [f"{jobs.placement}: {room}, {jobs.submitted_now} would be submitted now{others}"]
    job = jobs.estimate
    if job is not None:
        where = f"partition {job.partition}" if job.partition else "its partition"
        allows = "any time" if job.limit_seconds is None else duration(job.limit_seconds)
        lines.append(f"a job takes at most {duration(job.job_seconds)}, {where} allows {allows}")
        if job.starts_at is None:
            lines.append(f"when it would start is not known: {job.message}")
        else:
            is_far = job.starts_at - now >= _FAR_SECONDS
            when = "now" if job.starts_at <= now else f"{'in ' if is_far else ''}~{_soon(job.starts_at, now)}"
            lines.append(f"the first would start {when} on {job.node}")
    return lines


def room_left(found: Forecast) -> str:
    """Write what a higher concurrency would change: `1 at once, but 56 fit: about 9d, or with 56 at once 5h00m`."""
    if not found.leaves_room:
        return ""
    how = "about" if found.measured else "at most"
    return (
        f"{found.at_once} at once, but {found.fit_at_once} fit: {how} {span(found.seconds)},"
        f" or with {found.fit_at_once} at once {span(found.seconds_if_full)}"
    )


def launch_cost(found: Forecast, launch: LaunchSweep) -> str:
    """Write what a launch may cost: its model calls, at most its budget, and its machines' hours."""
    parts = []
    each = launch.spec.conditions.models.budget.usd
    budgets = [launch.sweep_budget.usd, None if each is None else each * launch.run_count]
    known = [budget for budget in budgets if budget is not None]
    models = [] if found.model_usd is None else [f"about {found.model_usd:,.2f} USD by earlier runs"]
    models += [f"at most {min(known):,.2f} USD by its budget"] if known else []
    if models:
        parts.append(f"models {', '.join(models)}")
    if found.machine_cost is not None:
        how = "about" if found.measured else "at most"
        parts.append(f"machines {how} {found.machine_cost:,.2f} {found.currency}")
    unknown = "not known: no prices of machines in config.toml, and no model calls of earlier runs"
    return f"cost: {'; '.join(parts) or unknown}"


def calls_under_way(calls: Sequence[OpenCall], now: float) -> str:
    """Write the numbers of calls sent and waiting: `2 calls are under way, 1 waits since 12s`."""
    waiting = [call.at for call in calls if call.state == "waiting"]
    sent = len(calls) - len(waiting)
    parts = [f"{plural(sent, 'call')} {'is' if sent == 1 else 'are'} under way"] if sent else []
    if waiting:
        since = duration(max(0.0, now - min(waiting)))
        who = plural(len(waiting), "call")
        parts.append(f"{who} {'waits' if len(waiting) == 1 else 'wait'} to be sent, for {since}")
    return ", ".join(parts)


def clock(moment: float) -> str:
    """Write a moment as a local time of day, `14:05`."""
    return time.strftime("%H:%M", time.localtime(moment))


def clock_seconds(moment: float) -> str:
    """Write a moment as a local time of day with seconds."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def day(moment: float) -> str:
    """Write the local date of a moment, `2026-03-14`."""
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def date_and_time(moment: float | None) -> str:
    """Write a moment as a local date and time, to the minute."""
    return UNKNOWN if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def day_and_time(moment: float) -> str:
    """Write a moment of these months, to the minute: `03-16 14:05`."""
    return date_and_time(moment)[len("2026-") :]


def from_to(first: float, last: float, now: float, to: str) -> tuple[str, ...]:
    """Write the time or times of something that is over, longest first: `22:10–22:44`, or how long ago it was."""
    if now - last >= _DAY:
        return (f"{age(now - last)} ago",)
    begin, end = clock(first), clock(last)
    if begin == end and last - first < _DAY:
        return (end,)
    # A time of day alone would be mistaken for one of the last 24 hours.
    began = begin if now - first < _DAY else f"{age(now - first)} ago"
    return f"{began}{to}{end}", end


def elapsed(seconds: float) -> str:
    """Write a duration as hours and minutes, `09:14`."""
    minutes = max(0, int(seconds)) // 60
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def duration(seconds: float | None) -> str:
    """Write a duration in its two largest units, without the second where that is zero: `9s`, `3m05s`, `24h`, `3d01h`.

    Below a second it has a decimal: `0.4s`.
    """
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 1:
        return f"{seconds:.1f}s"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    large, small, names = (whole, 60, "ms") if whole < 3600 else (whole // 60, 60, "hm")
    if whole >= 48 * 3600:
        large, small, names = whole // 3600, 24, "dh"
    rest = f"{large % small:02d}{names[1]}" if large % small else ""
    return f"{large // small}{names[0]}{rest}"


def rank(percentile: float, *, short: bool = False) -> str:
    """Write the percentage of teams that a score beats."""
    of_whom = "teams" if short else "the teams on Kaggle"
    return f"{'beats' if short else 'better than'} {percentile:.1f} % of {of_whom}"


def span(seconds: float) -> str:
    """Write a duration to the minute, which need not be redrawn every second: `45s`, `12m`, `2h10m`, `3d`."""
    whole = max(0, int(seconds))
    return duration(whole if whole < 60 else whole // 60 * 60)


def age(seconds: float) -> str:
    """Write how long ago something was, in whole minutes, hours or days: `now`, `3m`, `2h`, `1d`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return "now"
    if whole < 3600:
        return f"{whole // 60}m"
    return f"{whole // 3600}h" if whole < 48 * 3600 else f"{whole // 86400}d"


def elapsed_within(seconds: float, limit_seconds: float) -> str:
    """Write a duration in the scale of its limit: hours and minutes, or below an hour also seconds."""
    return duration(max(0, int(seconds))) if is_short(limit_seconds) else elapsed(seconds)


def is_short(limit_seconds: float) -> bool:
    """Return whether times under a limit are shown in seconds."""
    return limit_seconds < 3600


def of_limit(seconds: float, limit_seconds: float) -> str:
    """Write how much of a limit has passed: `09:14/24h`."""
    return f"{elapsed_within(seconds, limit_seconds)}/{duration(limit_seconds)}"


def score_beside(value: float, thresholds: Thresholds | None, width: int = 7) -> str:
    """Write a score that reads like a cut-off only if it equals it: `<0.91449` is just below what 0.91449 earns."""
    text = score(value, width)
    cuts = (
        ()
        if thresholds is None
        else (thresholds.gold, thresholds.silver, thresholds.bronze, thresholds.median)
    )
    for cut in cuts:
        if value != cut and text == score(cut, width):
            return f"{'<' if value < cut else '>'}{text}"
    return text


def score(value: float | None, width: int = 7) -> str:
    """Write a score with as many digits as fit, at most five decimals."""
    if value is None:
        return UNKNOWN
    for decimals in range(5, -1, -1):
        text = f"{value:.{decimals}f}"
        if len(text) <= width:
            return text
    return f"{value:.{max(0, width - 6)}e}"


def outcome(value: Outcome | str | None) -> str:
    """Write an outcome or a live run's standing in words."""
    return UNKNOWN if value is None else OUTCOME_WORDS[Outcome(value)]


def standing_so_far(standing: Outcome | None) -> str:
    """Write what a live run would get now: `now silver`."""
    return f"now {OUTCOME_WORDS[standing]}" if standing else "nothing graded yet"


def size(count: float | None) -> str:
    """Write a number of bytes in the unit that suits them: `84 kB`, `1.9 GB`."""
    if count is None:
        return UNKNOWN
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit in ("B", "kB") or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def mean_and_error(cell: Cell | None, plus_minus: str) -> str:
    """Write a mean percentage with its standard error, `63.6 ±0.4 %`; with one seed, a note that there is none."""
    if cell is None:
        return UNKNOWN
    figures = f"{cell.figures(1, plus_minus)} %"
    return figures if cell.has_error else f"{figures} (1 seed: no {plus_minus})"


def medals(interim: Interim | None, cell: Cell | None, plus_minus: str) -> tuple[str, ...]:
    """Write the medal rate in several forms, longest first: the final figure, or its current bounds."""
    if interim is None:
        return (UNKNOWN,)
    if interim.is_final and cell is not None:
        figures = mean_and_error(cell, plus_minus)
        short = f"{cell.figures(1, plus_minus)} %"
        return f"any medal {figures}", f"any medal {short}", f"medal {short}", short
    short = f"{plural(interim.medals, 'medal')} of {interim.ended}" if interim.ended else "none ended"
    so_far, close = interim.so_far_in_words(), f"{interim.low:.0f} to {interim.high:.0f} %"
    bounds, seeds = interim.bounds_in_words(), plural(interim.seeds, "seed")
    seeds += f": no {plus_minus}" if interim.seeds == 1 else ""
    whole = "" if cell is None else f", complete seeds so far: {cell.figures(1, plus_minus)} %"
    lost = interim.ended - interim.counted
    without = f"{lost} without a result, " if lost else ""
    forms = (f"{without}{bounds}, {seeds}{whole}", f"{bounds}, {seeds}", bounds, close)
    return (*(f"{so_far}, {form}" for form in forms), f"{short}, {close}", short)


def medal_rate(interim: Interim | None, cell: Cell | None, plus_minus: str) -> str:
    """Write the final medal rate, or the medals so far and the rate's bounds, for a column that says what it is."""
    if interim is None:
        return UNKNOWN
    if interim.is_final and cell is not None:
        return mean_and_error(cell, plus_minus)
    ended = f"{interim.medals:,} of {interim.ended:,} ended" if interim.ended else interim.so_far_in_words()
    return f"{ended}, {interim.bounds_in_words()}"


# Why the end of a sweep is not known, by its code; empty where the state of sweep or engine stands beside it.
NO_END: dict[str, str] = {"over": "", "paused": "", "datasets": "waits for data", "engine": "", "unknown": ""}


def sweep_end(end: ExpectedEnd | NoEnd, now: float) -> str:
    """Write when a sweep ends: `ends ~14:05`; where that is not known, why, unless its state says so already."""
    return NO_END[end] if isinstance(end, str) else f"ends {expected(end, now)}"


def expected(time: ExpectedEnd, now: float) -> str:
    """Write an expected time: `~14:05`, or `by 03-16 14:05` for an upper bound."""
    # Nearly a day ahead the time alone would be read as now.
    moment = clock(time.at) if time.at - now < _FAR_SECONDS else day_and_time(time.at)
    return f"by {moment}" if time.at_most else f"~{moment}"


def better(thresholds: Thresholds) -> str:
    """Write which direction of a score is better."""
    return "lower is better" if thresholds.is_lower_better else "higher is better"


def waiting(queued: QueuedRun, engine: EngineStatus | None, now: float) -> str:
    """Write when a queued run may start, and why not yet: `starts ~05:14: 3 runs go first`."""
    reasons = queued.waits(engine)
    if not reasons:
        return "waits for the engine, which starts it in a moment"
    starts = queued.starts(engine)
    when = "waits" if starts is None else f"starts {expected(starts, now)}"
    return f"{when}: {', '.join(wait.text for wait in reasons)}"


def tags(subject: Run | Sweep) -> str:
    """Write the tags of a run or a sweep, `#gpu #night`; empty where there are none."""
    return " ".join(f"#{tag.name}" for tag in subject.tags)


def annotation(subject: Run | Sweep) -> str:
    """Write the tags and the note of a run or a sweep in one line; empty where there is neither."""
    return "  ".join(filter(None, (tags(subject), subject.note)))


def annotated_by(subject: Run | Sweep, now: float) -> str:
    """Write who added the last note or tag, and how long ago; empty if unknown."""
    marks = [(tag.at, tag.by) for tag in subject.tags]
    if subject.note and subject.noted_at is not None:
        marks.append((subject.noted_at, subject.noted_by))
    if not marks:
        return ""
    at, by = max(marks)
    ago = age(now - at)
    return f"by {by}, {ago}" + ("" if ago == "now" else " ago")
