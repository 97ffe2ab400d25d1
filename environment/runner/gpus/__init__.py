"""GPUs of this host: what the driver tells of them, and which runs hold which."""

from environment.runner.gpus.leases import free_shares, lease
from environment.runner.gpus.pool import GpuPool
from environment.runner.gpus.reading import (
    Gpu,
    GpuReader,
    RecordedReader,
    nvidia_reader,
)

__all__ = ["Gpu", "GpuPool", "GpuReader", "RecordedReader", "free_shares", "lease", "nvidia_reader"]
