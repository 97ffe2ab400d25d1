"""What this host is made of, as far as it says so itself; nothing is inferred."""

from __future__ import annotations

import os
from pathlib import Path

from environment.runner.gpus import Gpu, GpuReader
from foundation.hardware import Hardware

_CPUS = Path("/proc/cpuinfo")
_MEMORY = Path("/proc/meminfo")
_GIB = 1 << 30


def look(gpu_uuids: tuple[str, ...], reader: GpuReader) -> Hardware:
    """Tell the host's processors and memory, and the devices of these names; no driver is asked for none."""
    known = {gpu.uuid: gpu for gpu in reader.read()} if gpu_uuids else {}
    memory = _value(_MEMORY, "MemTotal")
    return Hardware(
        cpu_model=" ".join(_value(_CPUS, "model name").split()),  # not every architecture tells one
        cpus=os.cpu_count(),
        memory_bytes=int(memory.split()[0]) * 1024 if memory else None,
        gpus=tuple(_in_words(known[uuid]) for uuid in gpu_uuids if uuid in known),
    )


def _in_words(gpu: Gpu) -> str:
    return gpu.name if gpu.memory_total is None else f"{gpu.name}, {gpu.memory_total / _GIB:.0f} GiB"


def _value(path: Path, wanted: str) -> str:
    for line in path.read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == wanted:
            return value.strip()
    return ""
