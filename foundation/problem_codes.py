"""Codes of what may go wrong around an agent, measured by a runner or concluded by the engine; programs branch on them.

The texts beside them are for people. What runs inside containers has no foundation and writes the same strings
(`environment/container/output.py`).
"""

from __future__ import annotations

from enum import StrEnum


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
