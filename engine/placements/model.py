"""What the engine needs of a placement: the one interface between an attempt's launch and the host that it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from environment.runner.protocol import Heartbeat
from state.records import Attempt
from state.transitions import Failure


@dataclass(frozen=True)
class Look:
    """What a placement knows of an attempt beside what lies in its directory.

    Attributes:
        version: changes whenever there may be news in the directory; None where only a look into it can tell.
        events_bytes, model_calls_bytes: what these files have grown to, at least; 0 where nobody knows.
        beat: what its runner has said of its files, while nothing says that it may have ended since; None where only a
            look into the directory can tell.
        job: the number by which a batch system knows it; empty where there is none.
        node: the host that it runs on; empty for this one, and where none is known.
        waits_for: why it does not run yet, or not at the moment; empty where it does.
        starts_at: when it may start, by the batch system's reckoning; None where nobody knows.
        priority: by which that chooses among those that wait; higher goes first.
        said: what the batch system says of its end; empty while it says nothing, and where there is none.
        took_too_much_memory: whether that was for its memory, which an agent can bring about.
        failure: why it is lost: nothing in its directory will ever say how it ended.
        pauses: whether all runs of its sweep would fail like that.
    """

    version: int | None = None
    events_bytes: int = 0
    model_calls_bytes: int = 0
    beat: Heartbeat | None = None
    job: str = ""
    node: str = ""
    waits_for: str = ""
    starts_at: float | None = None
    priority: int | None = None
    said: str = ""
    took_too_much_memory: bool = False
    failure: Failure | None = None
    pauses: bool = False


class Placement(Protocol):
    """Where attempts are run; a new one, after any kill of the engine, goes on where the last one was.

    What it needs from outside may be slow or away: no method waits for that.
    """

    @property
    def problem(self) -> str:
        """Say what is wrong at the moment; empty when nothing is."""

    def room(self, placement: str, /) -> int | None:
        """Return how many more attempts it takes now by one name; None where this host's own room decides."""

    def share_of_rates(self, placement: str, /) -> float:
        """Return which part of what a provider of models takes of all runs one run may send by itself.

        It is all of it where runs of one host share it by their host's memory.
        """

    def runtime(self, wanted: str) -> str:
        """Return which runtime of the protocol a sweep's is there.

        Raises:
            Problem: it can't be had there.
        """

    def recover(self) -> None:
        """After a start of the engine: tidy up what the last one left half done."""

    def place(self, attempt: Attempt) -> None:
        """Have an attempt run whose order is in its directory, once; again is harmless.

        Raises:
            OSError: it can't be written down now.
        """

    def is_placed(self, attempt: Attempt) -> bool:
        """Tell whether a runner may have heard of an attempt, or may still."""

    def look(self, attempt: Attempt, /) -> Look:
        """Return what is known of a live attempt."""

    def end(self, attempt: Attempt, /) -> None:
        """Take note that an attempt is to end, which its directory says already."""

    def forget(self, attempt: Attempt) -> None:
        """Let go of an attempt of which everything has been taken in."""

    def keep_only(self, live: Sequence[Attempt]) -> None:
        """End whatever is placed here and is none of these."""

    def step(self) -> None:
        """Go on with what there is to do without being asked."""
