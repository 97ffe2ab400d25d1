"""GPUs of the engine's host: how busy they are, their memory, and the runs that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.pieces import bar
from mlebench_console.console.roles import Drawing, Pieces
from mlebench_console.engine.control import GpuUse
from mlebench_console.state.records import Run

# The lengths of bars, for wide columns, usual ones and narrow ones.
BARS = (20, 10, 6)
# A GPU whose memory is used by more than this share may soon have too little for its run.
_FULL = 0.95


@dataclass(frozen=True)
class GpuRow:
    """A GPU with its place in the driver's list and the live runs that hold it."""

    place: int
    use: GpuUse
    held: tuple[Run, ...]


def gpu_rows(uses: Sequence[GpuUse], live: Mapping[int, Run]) -> list[GpuRow]:
    """Join GPUs with the live runs of their attempts, lost ones first; those lost and held by none are left out."""
    rows = [
        GpuRow(place, use, tuple(live[attempt] for attempt in use.attempts if attempt in live))
        for place, use in enumerate(uses)
    ]
    return sorted(
        (row for row in rows if row.held or not row.use.is_lost), key=lambda row: not row.use.is_lost
    )


def _gauge(share: float, texts: Sequence[str], drawing: Drawing, *, high: bool) -> Cell:
    """Return a bar in all of its lengths, each with its text."""
    forms: list[Pieces] = []
    for cells, text in zip(BARS, texts, strict=True):
        full, empty = bar(share, cells, drawing.signs)
        forms.append(((full, "warn" if high else "running"), (empty, "faint"), (f" {text}", "text")))
    return Forms(forms)


def _busy(row: GpuRow, drawing: Drawing) -> Cell:
    percent = row.use.busy_percent
    if row.use.is_lost:
        return (("lost", "bad"),)
    return "" if percent is None else _gauge(percent / 100, [f"{percent:>3} %"] * 3, drawing, high=False)


def _memory(row: GpuRow, drawing: Drawing) -> Cell:
    use = row.use
    if use.memory_used is None or not use.memory_total:
        return ""
    share, text = use.memory_used / use.memory_total, f"{wording.size(use.memory_used):>7}"
    whole = f"{text} of {wording.size(use.memory_total)}"
    return _gauge(share, (whole, whole, text), drawing, high=share > _FULL)


def _run(row: GpuRow, _drawing: Drawing) -> Cell:
    text = ", ".join(f"{run.competition_id} seed {run.seed}" for run in row.held)
    if row.use.is_lost:
        return Forms([((text, "text"), (", not listed by the driver any more", "bad")), ((text, "text"),)])
    idle: Pieces = (("idle: ", "warn"),) if row.use.busy_percent == 0 and row.held else ()
    return (*idle, (text or "no run", "text" if row.held else "dim"))


def _number(row: GpuRow, _drawing: Drawing) -> str:
    return str(row.place if row.use.number is None else row.use.number)


GPU = Noun[GpuRow](
    "GPU",
    key=lambda row: row.place,
    fields=(
        NounField("GPU", _number, 3, right=True),
        NounField("busy", _busy, 12),
        NounField("memory", _memory, 14, gap=1),
        NounField("run", _run, 16, grows=REST),
    ),
)
