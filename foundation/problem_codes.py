"""Codes of how an agent ended, and of what may go wrong around it, measured by a runner or concluded by the engine.

Programs branch on them; the texts beside them are for people. What runs inside containers has no foundation and writes
the same strings (`environment/container/output.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EndReason(StrEnum):
    """How an agent ended.

    Attributes:
        EXITED: by itself.
        DEADLINE: its time was up.
        STOPPED: somebody stopped it.
        IDLE: it was inactive for too long.
        MEMORY, PROCESSES, DISK: it used more of them than it may.
        UNSTARTED: it did not run.
        LOST: its end was not observed.
        IMPORTED: it ran elsewhere.
        OTHER: a reason of another version.
    """

    EXITED = "exited"
    DEADLINE = "deadline"
    STOPPED = "stopped"
    IDLE = "idle"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    UNSTARTED = "unstarted"
    LOST = "lost"
    IMPORTED = "imported"
    OTHER = "other"

    @classmethod
    def _missing_(cls, _value: object) -> EndReason:
        return cls.OTHER


class ProblemCode(StrEnum):
    """What may have ended an agent that is not the agent's doing.

    Attributes:
        GPU_LOST: the driver does not find a device any more.
        GPU_FAILED: a device answered with errors.
        GPU_NOT_GIVEN: a batch system gave its job none of the devices that it asked for.
        DISK_FULL: others have filled the disk.
        DISK_FAILED: the disk answered with errors.
        NETWORK_FAILED: what is outside of the host was not reached.
        HOST_RESTARTED: the host was restarted while the agent ran.
        SERVICE_KILLED: others have killed a service that the agent needs.
        SANDBOX_NOT_MADE: its sandbox could not be set up.
        SANDBOX_LOST: its sandbox, or the process that watched it, was killed from outside.
        NOT_STARTED: something that it needs before it starts was missing.
        NOT_SUPERVISED: its runner could not look after it.
        STAGING_FAILED: its dataset could not be brought to its node.
        JOB_ENDED: the batch system ended its job.
        PREEMPTED: the batch system ended its job for another one.
        NODE_FAILED: its node was lost.
        PROVIDER_AWAY: a provider of models could not be reached or did not serve.
        PROVIDER_QUOTA: the quota at a provider of models is used up.
        PROVIDER_REFUSED: a provider of models did not accept the key.
        OTHER: a code of another version; its text says what it is.
    """

    GPU_LOST = "gpu_lost"
    GPU_FAILED = "gpu_failed"
    GPU_NOT_GIVEN = "gpu_not_given"
    DISK_FULL = "disk_full"
    DISK_FAILED = "disk_failed"
    NETWORK_FAILED = "network_failed"
    HOST_RESTARTED = "host_restarted"
    SERVICE_KILLED = "service_killed"
    SANDBOX_NOT_MADE = "sandbox_not_made"
    SANDBOX_LOST = "sandbox_lost"
    NOT_STARTED = "not_started"
    NOT_SUPERVISED = "not_supervised"
    STAGING_FAILED = "staging_failed"
    JOB_ENDED = "job_ended"
    PREEMPTED = "preempted"
    NODE_FAILED = "node_failed"
    PROVIDER_AWAY = "provider_away"
    PROVIDER_QUOTA = "provider_quota"
    PROVIDER_REFUSED = "provider_refused"
    OTHER = "other"

    @classmethod
    def _missing_(cls, _value: object) -> ProblemCode:
        return cls.OTHER

    @property
    def words(self) -> str:
        """What it means, for people, where its own text would be too long."""
        return _WORDS[self]


_WORDS = {
    ProblemCode.GPU_LOST: "the GPU was lost",
    ProblemCode.GPU_FAILED: "the GPU failed",
    ProblemCode.GPU_NOT_GIVEN: "its job was given no GPU",
    ProblemCode.DISK_FULL: "the disk is full",
    ProblemCode.DISK_FAILED: "the disk failed",
    ProblemCode.NETWORK_FAILED: "the network failed",
    ProblemCode.HOST_RESTARTED: "the host was restarted",
    ProblemCode.SERVICE_KILLED: "a service that it needs was killed",
    ProblemCode.SANDBOX_NOT_MADE: "the sandbox could not be made",
    ProblemCode.SANDBOX_LOST: "its sandbox was killed from outside",
    ProblemCode.NOT_STARTED: "it could not be started",
    ProblemCode.NOT_SUPERVISED: "its runner could not look after it",
    ProblemCode.STAGING_FAILED: "its dataset could not be brought to its node",
    ProblemCode.JOB_ENDED: "its job was ended",
    ProblemCode.PREEMPTED: "other jobs took its place",
    ProblemCode.NODE_FAILED: "its node failed",
    ProblemCode.PROVIDER_AWAY: "the model API was not available",
    ProblemCode.PROVIDER_QUOTA: "the model API's quota is used up",
    ProblemCode.PROVIDER_REFUSED: "the model API refused the key",
    ProblemCode.OTHER: "another problem",
}


@dataclass(frozen=True)
class ProblemSubject:
    """What a problem is about: devices, a folder and the space that is left there, or a provider of models."""

    devices: tuple[str, ...] = ()
    path: str = ""
    free_bytes: int | None = None
    provider: str = ""
