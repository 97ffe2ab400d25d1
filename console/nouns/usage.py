"""What live runs use of their hosts, by their latest samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import Cell, Noun, NounField
from mlebench_console.console.roles import Drawing
from mlebench_console.engine.needs.waits import WaitKind, job_wait
from mlebench_console.foundation.usage import UsageSample
from mlebench_console.state.records import Attempt, Run


@dataclass(frozen=True)
class LiveRun:
    """A live run and the latest sample of its resource usage; None if there is none."""

    run: Run
    attempt: Attempt
    latest: UsageSample | None

    @property
    def has_begun(self) -> bool:
        """Whether it holds resources; a suspended job waits, too, but still holds its node's memory."""
        return self.run.started_at is not None or not self.attempt.waits_for


def cpus_text(percent: float) -> str:
    """Write a percentage of one processor as a number of processors."""
    return f"{percent / 100:.1f}"


def _time(row: LiveRun, drawing: Drawing) -> str:
    run, wait = row.run, job_wait(row.attempt)
    if wait is not None and wait.kind is WaitKind.JOB:
        # If its job had begun, the reason is the news: it is suspended.
        return wording.waits_short(wait, drawing.now)[-1] if run.started_at else "waits"
    return wording.span(drawing.now - run.started_at) if run.started_at else "starts"


def _used(
    name: str,
    width: int,
    of: Callable[[UsageSample], float | None],
    number: wording.Number,
    *,
    title: str | None = None,
    drop: int = 0,
) -> NounField[LiveRun]:
    """Return the field of a resource."""

    def cell(row: LiveRun, _drawing: Drawing) -> Cell:
        value = None if row.latest is None else of(row.latest)
        return wording.UNKNOWN if value is None else number(value)

    return NounField(name, cell, width, title=title, drop=drop, right=True, gap=1)


USAGE = Noun[LiveRun](
    "usage",
    key=lambda row: row.run.id,
    fields=(
        NounField("competition", lambda row, _: row.run.competition_id, 14, grows=48),
        NounField("seed", lambda row, _: str(row.run.seed), 4, right=True, gap=1, role="dim"),
        _used("cpus", 6, lambda sample: sample.cpu_percent, cpus_text, title="CPUs"),
        _used("memory", 9, lambda sample: sample.memory_bytes, wording.size),
        _used("disk", 9, lambda sample: sample.disk_bytes, wording.size),
        _used("gpu", 6, lambda sample: sample.gpu_percent, "{:.0f} %".format, title="GPU"),
        _used(
            "gpu_memory", 10, lambda sample: sample.gpu_memory_bytes, wording.size, title="GPU memory", drop=3
        ),
        _used("procs", 6, lambda sample: sample.processes, str, drop=4),
        NounField("time", _time, 6, grows=10, right=True, gap=1, role="dim"),
        NounField("where", lambda row, _: row.attempt.node, 8, grows=20, drop=2, role="dim"),
        NounField("sweep", lambda row, _: row.run.sweep_id, 20, drop=1, role="dim"),
    ),
)
