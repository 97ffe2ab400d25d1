"""Placements: where attempts are run. Each has a runner look after a run directory, and tells what that does not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from engine.placements.commands import SlurmCommands
from engine.placements.here import Here
from engine.placements.model import Look, Placement
from engine.placements.slurm import Slurm, profile_named
from engine.places import Places
from foundation.clock import Clock
from foundation.daemon_log import Log
from state.records import HERE, Attempt
from state.usage.budgets import SharingAttempt

__all__ = ["Look", "Placement", "Placements"]


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
        """Say what is wrong with any of them at the moment; empty when nothing is."""
        return "; ".join(filter(None, (placement.problem for placement in self._all)))

    @property
    def waiting(self) -> int:
        """Count the attempts that a batch system has and does not run yet."""
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
        """Return the placement that an attempt was launched on, which never changes."""
        return self.named(attempt.placement)

    def asked(self, attempt: SharingAttempt) -> int | None:
        """Return a number that changes when an attempt asks for more of a shared budget; None where nobody knows."""
        return None if attempt.placement == HERE or self._slurm is None else self._slurm.asked(attempt.token)

    def recover(self) -> None:
        """After a start of the engine: tidy up what the last one left half done."""
        for placement in self._all:
            placement.recover()

    def step(self) -> None:
        """Go on with what each has to do by itself."""
        for placement in self._all:
            placement.step()

    def keep_only(self, live: Sequence[Attempt]) -> None:
        """End whatever is placed and not live any more."""
        self.here.keep_only([attempt for attempt in live if attempt.placement == HERE])
        if self._slurm is not None:
            self._slurm.keep_only([attempt for attempt in live if attempt.placement != HERE])
