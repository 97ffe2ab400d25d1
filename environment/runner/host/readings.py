"""Readings of a host: attempts' processes and network, GPUs, and the host's hardware."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlebench_console.environment.runner.protocol import GivenGpus
from mlebench_console.foundation.measurements import Hardware
from mlebench_console.foundation.problems import EnvironmentProblem

_GPU_NODE = "/dev/nvidia"
_DRIVER_NODES = tuple(f"{_GPU_NODE}{name}" for name in ("ctl", "-uvm", "-uvm-tools", "-modeset"))
_PART_OF_GPU = "MIG-"
# The columns of bytes received and sent in /proc/PID/net/dev.
_RECEIVED, _SENT = 0, 8


@dataclass(frozen=True)
class Gpu:
    """One device; None where the driver does not say.

    Attributes:
        uuid: identifies the device permanently, whatever its index is after the next boot.
        busy_percent: of the recent past, as the driver reports it.
        minor: the number in the name of its file in /dev.
    """

    uuid: str
    name: str
    memory_total: int | None
    memory_used: int | None
    busy_percent: int | None
    minor: int | None = None


MARK = "MLEBENCH_ATTEMPT"
"""The variable that identifies the processes serving an agent; no agent's own variables contain it."""

GpuReader = Callable[[], tuple[Gpu, ...]]
"""Reads all devices, in the driver's order; none where there is no driver."""


def processes_of_attempt(attempt: Path) -> list[int]:
    """Return the processes that belong to an attempt by their variables and arguments, whatever their parent is.

    A plain agent's variables name its LOGS_DIR, those of a container's own processes the attempt, and a bubblewrap's
    arguments name the attempt's directory.
    """
    marks = {b"LOGS_DIR=" + os.fsencode(attempt / "logs"), os.fsencode(f"{MARK}={attempt}")}
    binding = os.fsencode(attempt / "logs")
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            folder = Path(entry.path)
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
            inside = not marks.isdisjoint((folder / "environ").read_bytes().split(b"\0"))
            if inside or (Path(os.fsdecode(arguments[0])).name == "bwrap" and binding in arguments):
                found.append(int(entry.name))
    return found


def kill(pids: list[int]) -> None:
    """Kill processes; those that have ended already are ignored."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def network_bytes(process: int, proc: Path = Path("/proc")) -> int | None:
    """Return the bytes received and sent by a network namespace; None where it is the host's, or can't be read."""
    try:
        if (proc / str(process) / "ns/net").readlink() == (proc / "self/ns/net").readlink():
            return None
        table = (proc / str(process) / "net/dev").read_text()
    except OSError:
        # The process has just ended, or belongs to another user.
        return None
    total = 0
    for line in table.splitlines()[2:]:  # after two lines of headings
        name, _, rest = line.partition(":")
        numbers = rest.split()
        if name.strip() != "lo":
            total += int(numbers[_RECEIVED]) + int(numbers[_SENT])
    return total


def hardware_of(gpu_uuids: tuple[str, ...], reader: GpuReader) -> Hardware:
    """Return the host's processors and memory, and the devices with these ids; without ids no driver is called."""
    known = {gpu.uuid: gpu for gpu in reader()} if gpu_uuids else {}
    leased = [known[uuid] for uuid in gpu_uuids if uuid in known]
    memories = [gpu.memory_total for gpu in leased if gpu.memory_total is not None]
    return Hardware(
        cpu_model=_cpu_model(),
        cpus=os.cpu_count(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        gpus=tuple(map(_gpu_in_words, leased)),
        gpu_memory_bytes=sum(memories) if memories and len(memories) == len(gpu_uuids) else None,
    )


def given_gpus(visible: str, gpus: Sequence[Gpu]) -> GivenGpus:
    """Return the devices that a batch system lists in CUDA_VISIBLE_DEVICES, with what the driver reports of them.

    Args:
        visible: the variable: indexes in the driver's order of what the job may open, or ids.
        gpus: all devices that the driver reports to the job; none where there is no driver.

    Raises:
        EnvironmentProblem: there are none, or one is not among these.
    """
    names = [name.strip() for name in visible.split(",") if name.strip()]
    if not names:
        raise EnvironmentProblem(
            "the job was given no GPUs",
            "CUDA_VISIBLE_DEVICES names none",
            "See gres in the profile, and gres.conf of the node.",
        )
    if not gpus:
        return GivenGpus(visible)  # without a driver nothing else is known
    if any(is_part_of_gpu(name) for name in names):
        return GivenGpus(visible, tuple(names))
    found = [_gpu_named(name, gpus) for name in names]
    nodes = [f"{_GPU_NODE}{gpu.minor}" for gpu in found if gpu.minor is not None]
    return GivenGpus(
        visible, tuple(gpu.uuid for gpu in found), (*nodes, *filter(os.path.exists, _DRIVER_NODES))
    )


def is_part_of_gpu(name: str) -> bool:
    """Return whether an id in CUDA_VISIBLE_DEVICES is that of a part of a device (MIG)."""
    return name.startswith(_PART_OF_GPU)


def visible_alone(given: GivenGpus) -> str:
    """Return CUDA_VISIBLE_DEVICES for a sandbox with only these devices, where indexes count from 0.

    Raises:
        EnvironmentProblem: they can't be separated from others.
    """
    if given.uuids and not given.nodes:
        raise EnvironmentProblem(
            "a part of a GPU can't be given to a sandbox",
            f"CUDA_VISIBLE_DEVICES is {given.visible}",
            "Use whole GPUs or shards, or the runtime 'plain'.",
        )
    if not given.uuids:
        return given.visible
    names = (name.strip() for name in given.visible.split(","))
    return ",".join(str(place) if name.isdecimal() else name for place, name in enumerate(names))


def _gpu_named(name: str, gpus: Sequence[Gpu]) -> Gpu:
    if name.isdecimal() and int(name) < len(gpus):
        return gpus[int(name)]
    for gpu in gpus:
        if name.startswith("GPU-") and gpu.uuid.startswith(name):
            return gpu
    known = ", ".join(gpu.uuid for gpu in gpus)
    raise EnvironmentProblem(
        "the driver does not know a GPU of the job", f"it is '{name}', the driver lists {known}"
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return " ".join(value.split())
    return ""  # not every architecture names one


def _gpu_in_words(gpu: Gpu) -> str:
    return gpu.name if gpu.memory_total is None else f"{gpu.name}, {gpu.memory_total / (1 << 30):.0f} GiB"


def read_nvidia() -> tuple[Gpu, ...]:
    """Return the devices of NVIDIA's driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()  # no driver, or a broken one
    try:
        return tuple(_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return ()  # a device was lost meanwhile
    finally:
        pynvml.nvmlShutdown()


def _gpu(pynvml: Any, index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _ask(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle)
    minor = _ask(pynvml, pynvml.nvmlDeviceGetMinorNumber, handle)
    busy = _ask(pynvml, pynvml.nvmlDeviceGetUtilizationRates, handle)
    return Gpu(
        str(pynvml.nvmlDeviceGetUUID(handle)),
        str(pynvml.nvmlDeviceGetName(handle)),
        None if memory is None else int(memory.total),
        None if memory is None else int(memory.used),
        None if busy is None else int(busy.gpu),
        None if minor is None else int(minor),
    )


def _ask(pynvml: Any, question: Any, handle: Any) -> Any:
    """Call the driver; None where it fails, as for some facts of parts of a GPU (MIG) and of old GPUs."""
    try:
        return question(handle)
    except pynvml.NVMLError:
        return None
