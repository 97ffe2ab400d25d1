"""The interface of placements: everything that the engine needs from the host or batch system that runs attempts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from mlebench_console.environment.runner.protocol import Heartbeat
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state.records import Attempt, JobFacts
from mlebench_console.state.transitions import Failure


@dataclass(frozen=True)
class JobEnd:
    """How a batch system says that an attempt's job has ended.

    Attributes:
        state: the batch system's own code, such as PREEMPTED; empty where it does not list the job any more.
        text: the same in words, for people.
        by_memory: whether the job was ended for its memory, which an agent can cause.
        problem: PREEMPTED or NODE_FAILED, which no agent can bring about; None for another end.
    """

    state: str
    text: str
    by_memory: bool = False
    problem: ProblemCode | None = None


@dataclass(frozen=True)
class Lost:
    """Why an attempt is lost, so that its directory will never say how it ended.

    Attributes:
        pauses: whether all runs of its sweep would fail in the same way.
    """

    failure: Failure
    pauses: bool = False


@dataclass(frozen=True)
class AttemptStatus:
    """What a placement knows of an attempt beyond the files in its directory.

    Attributes:
        revision: changes whenever the directory may have new content; None where only reading it can show that.
        events_bytes, model_calls_bytes: what these files have grown to, at least; 0 where nobody knows.
        heartbeat: the last one of its runner, while nothing says that it may have ended since; None where only its
            directory can tell.
        job: what its batch system says of its job.
        ended: how its job has ended; None while it has not, and without one.
        lost: why it is given up; None while it is not.
    """

    revision: Hashable | None = None
    events_bytes: int = 0
    model_calls_bytes: int = 0
    heartbeat: Heartbeat | None = None
    job: JobFacts = field(default_factory=JobFacts)
    ended: JobEnd | None = None
    lost: Lost | None = None


_UNKNOWN = AttemptStatus()


class Placement(ABC):
    """A host or batch system that runs attempts; after a kill of the engine, a new object continues its work.

    External systems may be slow or unavailable; no method waits for them. What has a body here is so on the engine's
    own host, whose resources and run directories say everything else.
    """

    @property
    @abstractmethod
    def problem(self) -> str:
        """The current problem; empty without any."""

    def room(self, _placement: str, /) -> int | None:
        """Return how many more attempts a named placement accepts now; None where this host's resources decide."""
        return None

    def share_of_rates(self, _placement: str, /) -> float:
        """Return the share of a model provider's rate limits that one run may use by itself.

        It is 1 where the runs of a host share the limits through its memory.
        """
        return 1.0

    @abstractmethod
    def runtime(self, wanted: str) -> str:
        """Return the runtime of the protocol for a sweep's runtime.

        Raises:
            Problem: it is not available there.
        """

    @abstractmethod
    def place(self, attempt: Attempt) -> None:
        """Have an attempt run once, whose order is in its directory; a second call is harmless.

        Raises:
            OSError: this can't be recorded now.
        """

    @abstractmethod
    def is_placed(self, attempt: Attempt) -> bool:
        """Return whether a runner may know of an attempt, now or later."""

    def status(self, _attempt: Attempt, /) -> AttemptStatus:
        """Return what is known of a live attempt beside its directory."""
        return _UNKNOWN

    @abstractmethod
    def end(self, attempt: Attempt, /) -> None:
        """End an attempt, after its stop file was written."""

    @abstractmethod
    def forget(self, attempt: Attempt) -> None:
        """Forget an attempt after all its reports have been taken in."""

    @abstractmethod
    def keep_only(self, live: Sequence[Attempt], knows: Callable[[str], bool]) -> None:
        """End everything that is placed here, except these attempts and those whose tokens the state does not know.

        It may have been restored or made anew since they were launched.
        """

    @abstractmethod
    def step(self) -> None:
        """Do the periodic work."""
