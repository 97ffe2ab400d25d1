"""Placements: where attempts run, on this host or by a batch system. Each has runners run the attempts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mlebench_console.engine.placements.commands import SlurmCommands
from mlebench_console.engine.placements.here import Here
from mlebench_console.engine.placements.model import AttemptStatus, Placement
from mlebench_console.engine.placements.sbatch import profile_named
from mlebench_console.engine.placements.slurm import Slurm
from mlebench_console.engine.places import Places
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.daemons import Log
from mlebench_console.state.records import Attempt

__all__ = ["AttemptStatus", "Placement", "Placements"]


class Placements:
    """The placements of one engine, by the names that sweeps give them."""

    def __init__(self, places: Places, clock: Clock, log: Log) -> None:
        self._places = places
        self._clock = clock
        self._log = log
        self.here = Here(places.state_dir, clock, log)
        self._slurm: Slurm | None = None

    @property
    def problem(self) -> str:
        """The current problems of all placements; empty without any."""
        return "; ".join(filter(None, (placement.problem for placement in self._all)))

    @property
    def waiting(self) -> int:
        """The number of attempts that wait in the queue of a batch system."""
        return 0 if self._slurm is None else self._slurm.waiting

    @property
    def _all(self) -> tuple[Placement, ...]:
        return (self.here,) if self._slurm is None else (self.here, self._slurm)

    def named(self, name: str) -> Placement:
        """Return a placement by its name.

        Raises:
            UsageProblem: config.toml does not know it.
        """
        if name == HERE:
            return self.here
        if self._slurm is None:
            profile_of = partial(profile_named, config_file=self._places.config_file)
            commands = SlurmCommands(os.environ)
            worker = ThreadPoolExecutor(1, thread_name_prefix="slurm")
            state_dir = self._places.state_dir
            self._slurm = Slurm(profile_of, state_dir, commands, self._clock, self._log, worker)
        self._slurm.use(name)
        return self._slurm

    def of(self, attempt: Attempt) -> Placement:
        """Return the placement of an attempt, which never changes."""
        return self.named(attempt.placement)

    def recover(self) -> None:
        """After a start of the engine, clean up unfinished work of the last one; jobs are found by their names."""
        self.here.recover()

    def step(self) -> None:
        """Do the periodic work of each placement."""
        for placement in self._all:
            placement.step()

    def keep_only(self, live: Sequence[Attempt], knows: Callable[[str], bool]) -> None:
        """End everything that is placed and no longer live, if its token is known to the state."""
        self.here.keep_only([attempt for attempt in live if attempt.placement == HERE], knows)
        if self._slurm is not None:
            self._slurm.keep_only([attempt for attempt in live if attempt.placement != HERE], knows)
