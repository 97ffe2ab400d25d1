"""Slurm's commands as a table of jobs in memory, with a latency and a scale that no real one here has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlebench_console.engine.placements.commands import (
    Job,
    NoAccounting,
    Node,
    SlurmAway,
    SlurmCommands,
    SlurmFull,
    SlurmRefuses,
)
from mlebench_console.state.records import Attempt
from tests.clocks import HandClock


class FakeSlurm(SlurmCommands):
    """Keeps what was asked of it; a test moves its jobs, takes it away, or has it refuse."""

    def __init__(self) -> None:
        super().__init__({})
        self.calls: list[str] = []
        self.table: dict[str, Job] = {}  # what squeue lists, by number
        self.records: list[Job] | None = None  # what sacct lists; None: it keeps none
        self.cancelled: list[str] = []
        self.options: list[Sequence[str]] = []
        self.trouble: Exception | None = None
        self.takes_it_nevertheless = False
        self.refusal: SlurmRefuses | None = None
        self.full: SlurmFull | None = None
        self.unsure: SlurmAway | None = None  # what sbatch alone says
        self.records_away = False
        self.cancels_in_vain = False
        self.asked_partitions: Sequence[str] = ()
        self.number = 100

    def submit(self, script: Path, options: Sequence[str]) -> str:
        self.calls.append("sbatch")
        if self.refusal is not None:
            raise self.refusal
        if self.full is not None:
            raise self.full
        trouble = self.trouble or self.unsure
        if trouble is not None and not self.takes_it_nevertheless:
            raise trouble
        self.number += 1
        self.options.append(options)
        name = next(option.partition("=")[2] for option in options if option.startswith("--job-name="))
        number = str(self.number)
        self.table[number] = Job(number, "PENDING", "Priority", "", "2026-01-01T00:00:00", None, 1, name)
        if trouble is not None:
            raise trouble
        return number

    def jobs(self) -> list[Job]:
        self.calls.append("squeue")
        if self.trouble is not None:
            raise self.trouble
        return list(self.table.values())

    def ended(self, names: Sequence[str], since: str) -> list[Job]:
        self.calls.append("sacct")
        if self.records_away:
            raise SlurmAway("Slurm does not answer", "sacct: error: Connection refused")
        if self.records is None:
            raise NoAccounting("Slurm keeps no records", "")
        return [job for job in self.records if job.name in names]

    def cancel(self, numbers: Sequence[str]) -> None:
        self.calls.append("scancel")
        if self.cancels_in_vain:
            raise AWAY
        self.cancelled += numbers
        for number in numbers:
            self.move(number, "CANCELLED")

    def nodes(self, partitions: Sequence[str] = ()) -> list[Node]:
        self.calls.append("sinfo")
        self.asked_partitions = partitions
        if self.trouble is not None:
            raise self.trouble
        return []

    def move(self, number: str, state: str, reason: str = "None", node: str = "n1") -> None:
        self.table[number] = replace(self.table[number], state=state, reason=reason, node=node)

    @property
    def only_job(self) -> str:
        (number,) = self.table
        return number


AWAY = SlurmAway("Slurm does not answer", "squeue: Unable to contact slurm controller (connect failure)")


class Latency(Executor):
    """Does what it is given at once, and says so when the clock has moved on."""

    def __init__(self, clock: HandClock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        answer = _Late(self._clock, self._clock.moment + self._seconds)
        try:
            answer.set_result(function(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            answer.set_exception(error)
        return answer


class _Late(Future[Any]):
    def __init__(self, clock: HandClock, at: float) -> None:
        super().__init__()
        self._late_clock = clock
        self._at = at

    def done(self) -> bool:
        return self._late_clock.moment >= self._at


def attempt_of(number: int) -> Attempt:
    directory = f"runs/s/one/seed-1/attempt-1-t{number}"
    return Attempt(
        id=number,
        run_id=number,
        number=1,
        token=f"t{number}",
        directory=directory,
        runtime="bubblewrap",
        isolated=None,
        created_at=1.0,
        started_at=None,
        ended_at=None,
        exit_code=None,
        exit_signal=None,
        exit_reason=None,
        outcome=None,
        failure_class=None,
        failure_text="",
        evidence="",
        classified_by="",
        reroll=False,
        image="",
        hardware=None,
        placement="slurm",
    )
