"""The GPUs of this host, as their driver describes them; what it does not know stays unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Gpu:
    """One device; None where the driver does not say.

    Attributes:
        uuid: names the device for ever, whatever its index is after the next boot.
        busy_percent: of the last moments, as the driver counts it.
    """

    uuid: str
    name: str
    memory_total: int | None
    memory_used: int | None
    busy_percent: int | None


class GpuReader(Protocol):
    """Reads which GPUs there are: a driver, or a recording."""

    def read(self) -> tuple[Gpu, ...]:
        """Read all devices, in the driver's order; none where there is no driver."""


@dataclass(frozen=True)
class RecordedReader:
    """Returns what was recorded elsewhere."""

    gpus: tuple[Gpu, ...]

    def read(self) -> tuple[Gpu, ...]:
        """Return the recorded devices."""
        return self.gpus


class _NvidiaReader:
    def read(self) -> tuple[Gpu, ...]:
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return ()  # no driver, or one that is out of order: no device can be given to anybody
        try:
            return tuple(_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
        except pynvml.NVMLError:
            return ()  # lost while we looked
        finally:
            pynvml.nvmlShutdown()


def nvidia_reader() -> GpuReader:
    """Make the reader of NVIDIA's driver."""
    return _NvidiaReader()


def _gpu(pynvml: Any, index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _ask(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle)
    busy = _ask(pynvml, pynvml.nvmlDeviceGetUtilizationRates, handle)
    return Gpu(
        str(pynvml.nvmlDeviceGetUUID(handle)),
        str(pynvml.nvmlDeviceGetName(handle)),
        None if memory is None else int(memory.total),
        None if memory is None else int(memory.used),
        None if busy is None else int(busy.gpu),
    )


def _ask(pynvml: Any, question: Any, handle: Any) -> Any:
    """Call the driver; None where it does not know: parts of a GPU (MIG) and old ones do not know everything."""
    try:
        return question(handle)
    except pynvml.NVMLError:
        return None
