"""What a host is made of: the record that a runner writes and the state keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hardware:
    """What an attempt ran on; empty or None where the host does not say.

    Attributes:
        cpu_model: of the host's processors.
        cpus: that the host has; what the attempt may use of them is in its sweep.
        memory_bytes: that the host has, likewise.
        gpus: the leased devices, each as its driver names it, with its memory.
    """

    cpu_model: str = ""
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Describe what is known of it in one line; empty where nothing is."""
        cpus = " x ".join(str(part) for part in (self.cpus, self.cpu_model or "CPU") if part is not None)
        memory = f"{self.memory_bytes / (1 << 30):.0f} GiB" if self.memory_bytes is not None else ""
        gpus = [f"{self.gpus.count(gpu)} x {gpu}" for gpu in dict.fromkeys(self.gpus)]
        return ", ".join(
            part for part in (cpus if self.cpus or self.cpu_model else "", memory, *gpus) if part
        )
