"""Codes of how an agent ended, and of what may go wrong around it, measured by a runner or concluded by the engine.

Programs branch on them; the texts beside them are for people. What runs inside containers has no foundation and writes
the same strings (`environment/container/output.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EndReason(StrEnum):
    """How an agent ended; another version's reason is `OTHER`."""

    EXITED = "exited"  # by itself
    DEADLINE = "deadline"  # its time was up
    STOPPED = "stopped"  # somebody stopped it
    IDLE = "idle"  # it was inactive for too long
    MEMORY = "memory"  # it used more than it may, of this and the next two
    PROCESSES = "processes"
    DISK = "disk"
    UNSTARTED = "unstarted"  # it did not run
    LOST = "lost"  # its end was not observed
    IMPORTED = "imported"  # it ran elsewhere
    OTHER = "other"

    @classmethod
    def _missing_(cls, _value: object) -> EndReason:
        return cls.OTHER


class ProblemCode(StrEnum):
    """What may have ended an agent that is not the agent's doing; another version's code is `OTHER`.

    Attributes:
        words: what it means, for people, where its own text would be too long.
    """

    words: str

    GPU_LOST = "gpu_lost", "the GPU was lost"  # the driver does not find it any more
    GPU_FAILED = "gpu_failed", "the GPU failed"  # it answered with errors
    GPU_NOT_GIVEN = "gpu_not_given", "its job was given no GPU"
    DISK_FULL = "disk_full", "the disk is full"  # others have filled it
    DISK_FAILED = "disk_failed", "the disk failed"  # it answered with errors
    NETWORK_FAILED = "network_failed", "the network failed"
    HOST_RESTARTED = "host_restarted", "the host was restarted"
    SERVICE_KILLED = "service_killed", "a service that it needs was killed"  # by others
    SANDBOX_NOT_MADE = "sandbox_not_made", "the sandbox could not be made"
    SANDBOX_LOST = "sandbox_lost", "its sandbox was killed from outside"  # or the process that watched it
    NOT_STARTED = "not_started", "it could not be started"  # something that it needs was missing
    NOT_SUPERVISED = "not_supervised", "its runner could not look after it"
    STAGING_FAILED = "staging_failed", "its dataset could not be brought to its node"
    JOB_ENDED = "job_ended", "its job was ended"  # by the batch system
    PREEMPTED = "preempted", "other jobs took its place"
    NODE_FAILED = "node_failed", "its node failed"
    PROVIDER_AWAY = "provider_away", "the model API was not available"
    PROVIDER_QUOTA = "provider_quota", "the model API's quota is used up"
    PROVIDER_REFUSED = "provider_refused", "the model API refused the key"
    OTHER = "other", "another problem"

    def __new__(cls, code: str, words: str = "") -> ProblemCode:
        """Make a member that is its code, with its words."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.words = words
        return member

    @classmethod
    def _missing_(cls, _value: object) -> ProblemCode:
        return cls.OTHER


@dataclass(frozen=True)
class ProblemSubject:
    """What a problem is about: devices, a folder and the space that is left there, or a provider of models."""

    devices: tuple[str, ...] = ()
    path: str = ""
    free_bytes: int | None = None
    provider: str = ""
