"""GPUs of this host: what the driver tells of them, and which runs hold which."""

from engine.gpus.leases import free_shares, lease
from engine.gpus.pool import GpuPool
from engine.gpus.reading import Gpu, GpuReader, RecordedReader, nvidia_reader

__all__ = ["Gpu", "GpuPool", "GpuReader", "RecordedReader", "free_shares", "lease", "nvidia_reader"]
