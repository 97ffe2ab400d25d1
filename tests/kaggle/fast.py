"""`python -m tests.kaggle.fast SINCE SPEED console|engine ...`: the program with engines whose clock runs faster.

Competitions have the facts that their vectors need, in the engine's workers too.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class FastClock:
    """A clock that has run faster since a moment, in every process by the same time."""

    since: float
    speed: float

    def now(self) -> float:
        return self.since + (time.time() - self.since) * self.speed

    def monotonic(self) -> float:
        return self.now()


def command(clock: FastClock, what: str, *arguments: str) -> list[str]:
    """Name the command that runs a part of the program by this clock."""
    return [sys.executable, "-m", "tests.kaggle.fast", repr(clock.since), repr(clock.speed), what, *arguments]


def main() -> int:
    from tests.kaggle import vector_facts

    clock = FastClock(float(sys.argv[1]), float(sys.argv[2]))
    what, *arguments = sys.argv[3:]
    if what == "engine":
        from mlebench_console.engine.datasets import queue
        from mlebench_console.engine.supervisor import __main__ as engine

        setattr(engine, "SystemClock", lambda: clock)  # noqa: B010 - not the class that it replaces
        setattr(queue, "PRELOAD", (*queue.PRELOAD, vector_facts.__name__))  # noqa: B010 - one more than its type says
        return engine.main(arguments)
    from mlebench_console.console.cli.program import run
    from mlebench_console.engine.control import client

    own_command = client.engine_command
    client.engine_command = lambda places: command(clock, "engine", *own_command(places)[3:])
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
