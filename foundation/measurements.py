"""What a runner measures and the state keeps: a host's hardware, and what attempts use of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hardware:
    """The hardware that an attempt ran on; empty or None where it is unknown.

    Attributes:
        cpu_model: of the host's processors.
        cpus: the number of the host's processors; the sweep says how many the attempt may use.
        memory_bytes: the host's memory; the sweep says how much the attempt may use.
        gpus: the leased devices, each with its driver's name for it and its memory, for people.
        gpu_memory_bytes: the memory of all of them.
    """

    cpu_model: str = ""
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: tuple[str, ...] = ()
    gpu_memory_bytes: int | None = None

    def in_words(self) -> str:
        """Return a description in one line; empty where nothing is known."""
        cpus = " x ".join(str(part) for part in (self.cpus, self.cpu_model or "CPU") if part is not None)
        memory = f"{self.memory_bytes / (1 << 30):.0f} GiB" if self.memory_bytes is not None else ""
        gpus = [f"{self.gpus.count(gpu)} x {gpu}" for gpu in dict.fromkeys(self.gpus)]
        return ", ".join(
            part for part in (cpus if self.cpus or self.cpu_model else "", memory, *gpus) if part
        )


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
