"""What a composed sweep comes to, as lines: its sum, what is there and what is missing, and when runs start."""

from __future__ import annotations

from console import wording
from console.tui.keys import KeyTable, shown
from console.tui.painting import (
    Pieces,
    fit,
    fitting,
    foreign,
    heading,
)
from console.tui.theme import Signs
from console.views.composing import Composed
from engine.sweeps.checks import Check, Mend

_KEYS = {
    Mend.PREPARE: "launch.prepare",
    Mend.ENGINE: "launch.engine",
    Mend.BUILD: "launch.build",
}
_SEED_WIDTH = 9
_TIME_WIDTH = 14


def summary(
    composed: Composed | None, width: int, room: int, signs: Signs, keys: KeyTable, *, building: str
) -> list[Pieces]:
    """What it comes to, and everything that was looked at, what is missing first, as much as fits."""
    lines: list[Pieces] = [(), heading("what it comes to", width, signs)]
    if composed is None:
        return lines
    lines += what(composed, width)
    if building:
        lines.append((("  building ", "accent"), (foreign(building, width - 12), "dim")))
    mends = {key.id: shown(key.keys[0]) for key in keys.of("launch")}
    for check in sorted(composed.checks, key=lambda check: check.good):
        lines += _check(check, mends, width, signs)
    return lines[: max(1, room)]


def left(width: int, keys: KeyTable, *, can_launch: bool) -> Pieces:
    """What to do about a form that was left before it was launched."""
    launch = shown(keys.named("launch.launch").keys[0])
    state = (
        f"not launched yet: {launch} launches it" if can_launch else "not launched: something is missing yet"
    )
    return fitting(
        [
            ((f"  {state}, tab goes back to the fields, digits switch screens", "accent"),),
            ((f"  {state}, tab goes back to the fields", "accent"),),
        ],
        width,
    )


def what(composed: Composed, width: int) -> list[Pieces]:
    """How many runs of what, how many at once, and how long."""
    launch, forecast = composed.launch, composed.forecast
    if launch is None or forecast is None:
        return []
    spec = launch.spec
    on = f" on {wording.plural(len(spec.competitions), 'competition')} x {spec.seeds} seeds"
    lines: list[Pieces] = [(("  " + spec.agent_id, "strong"), (on, "text"))]
    runs = wording.plural(launch.run_count, "run")
    if not forecast.planned:
        return [*lines, ((f"  {runs}, none of which ever starts: too few {forecast.bound_by}", "warn"),)]
    at_most = f"at most {wording.span(forecast.seconds_at_most)}"
    at_once = f"{forecast.at_once} at once"
    about = f"about {wording.span(forecast.seconds)} by earlier ones, " if forecast.measured else ""
    told: Pieces = ((f"  {runs}, {about}{at_most} in all", "text"),)
    bound = f", {at_once}, bound by {forecast.bound_by}"
    return [*lines, fitting([(*told, (bound, "dim")), (*told, (f", {at_once}", "dim")), told], width)]


def order(composed: Composed | None, width: int, room: int, signs: Signs) -> list[Pieces]:
    """In which order and when runs would start, as many as there is room for."""
    if composed is None or composed.forecast is None:
        return []
    lines: list[Pieces] = [(), heading("dry run: in this order", width, signs)]
    planned = composed.forecast.planned
    if not planned:
        return [*lines, (("  nothing would start", "warn"),)]
    most = max(1, room - len(lines) - 1)
    name = min(50, width - _SEED_WIDTH - 2 * _TIME_WIDTH - 4)
    for run in planned[:most]:
        takes = f"{'about' if run.measured else 'at most'} {wording.span(run.seconds)}"
        starts = "now" if not run.starts_after else f"after {wording.span(run.starts_after)}"
        lines.append(
            (
                ("  " + fit(starts, _TIME_WIDTH), "dim"),
                (foreign(run.competition_id, name, ellipsis=signs.ellipsis), "text"),
                (fit(f"  seed {run.seed}", _SEED_WIDTH), "dim"),
                (fit(takes, _TIME_WIDTH, right=True), "dim"),
            )
        )
    more = len(planned) - most
    return [*lines, ((f"  and {more} more", "dim"),)] if more > 0 else lines


def _check(check: Check, mends: dict[str, str], width: int, signs: Signs) -> list[Pieces]:
    good = check.good
    sign: Pieces = ((f"  {signs.done if good else signs.failed} ", "good" if good else "warn"),)
    key = mends.get(_KEYS[check.mend]) if check.mend is not None else None
    mend = f"   {key} mends it" if key is not None and not good else ""
    text = foreign(check.text, width - 5 - len(mend), ellipsis=signs.ellipsis).rstrip()
    line: Pieces = (*sign, (text, "text" if good else "warn"), (mend, "accent"))
    if good or mend or not check.next_step:
        return [line]
    return [line, ((f"    {foreign(check.next_step, width - 5, ellipsis=signs.ellipsis).rstrip()}", "dim"),)]
