"""Plans of the fault test: which sweeps are launched and which faults come in between, all from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.soak.behaviours import BEHAVIOURS

LAUNCH = "launch"
# What else may happen, and how often beside the others.
FAULTS = {
    "let go on": 6,
    "kill the engine": 3,
    "kill the runner": 3,
    "kill engine and runner": 2,
    "kill a shim": 3,
    "kill a validation server": 2,
    "kill the grading workers": 1,
    "stop a run": 2,
    "relaunch a run": 4,
    "relaunch a run that has moved on": 2,
    "replace a sweep": 3,
    "lock the state": 2,
    "lock the samples": 1,
    "damage the samples": 1,
    "fill the disk": 1,
}
_FAULTS_A_HISTORY = 17
_LAUNCHES_A_HISTORY = 8
_FIRST = 3
_LONGEST_PAUSE = 1.0
_LONGEST_FAULT = 6.0


@dataclass(frozen=True)
class Step:
    """One thing that happens.

    Attributes:
        behaviour: of the sweep that is launched, where one is.
        pick: chooses among whatever can be chosen from at that moment.
        seconds: how long it lasts, where it lasts.
        pause: before the next.
    """

    kind: str
    behaviour: str
    pick: int
    seconds: float
    pause: float


def plan(seed: int) -> list[Step]:
    """Make a plan: half of the behaviours are launched, a few at the beginning and the others between faults."""
    chance = random.Random(seed)
    names = [behaviour.name for behaviour in BEHAVIOURS]
    chance.shuffle(names)
    kinds = chance.choices(list(FAULTS), weights=list(FAULTS.values()), k=_FAULTS_A_HISTORY)
    rest = kinds + [LAUNCH] * (_LAUNCHES_A_HISTORY - _FIRST)
    chance.shuffle(rest)
    launched = iter(names)
    return [
        Step(
            kind,
            next(launched) if kind == LAUNCH else chance.choice(names),
            chance.randrange(1 << 16),
            round(chance.uniform(0.2, _LONGEST_FAULT), 1),
            round(chance.uniform(0.0, _LONGEST_PAUSE), 2),
        )
        for kind in [LAUNCH] * _FIRST + rest
    ]
