"""The record of what an attempt uses of its host, which a runner measures and the state keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UsageSample:
    """What one attempt uses at one moment, a line of usage.jsonl; None where it could not be measured.

    Attributes:
        cpu_percent: of one processor, so more than 100 where it uses several.
        gpu_percent: the mean utilization of its GPUs, which other attempts may share.
        gpu_memory_bytes: the used memory of all its GPUs.
        network_bytes: the traffic of its own network since its start, in both directions.
        idle_seconds: since the last activity: output, work, a model call that began or waits in the gateway, or a
            change on disk; a new runner starts at 0.
    """

    at: float
    cpu_percent: float | None
    memory_bytes: int | None
    disk_bytes: int | None
    processes: int | None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None
    network_bytes: int | None = None
    idle_seconds: float = 0.0
