"""Reading MLE-bench's container config: a JSON object of what it passes to Docker's create."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundation.problems import DataProblem

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)b?", re.IGNORECASE)
_KEYS = ("mem_limit", "shm_size", "nano_cpus", "runtime", "gpus")


@dataclass(frozen=True)
class ContainerConfig:
    """What the file says; None where it says nothing. `gpus` of -1 are all of them."""

    memory_bytes: int | None = None
    shm_bytes: int | None = None
    cpus: float | None = None
    runtime: str | None = None
    gpus: int | None = None


def read_container_config(path: Path) -> ContainerConfig:
    """Read a container config.

    Raises:
        DataProblem: it can't be read, or says something that is not understood.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataProblem(f"{path} can't be read", str(error)) from error
    if not isinstance(content, dict):
        raise DataProblem(f"{path}", "it is not a JSON object")
    unknown = sorted(content.keys() - set(_KEYS))
    if unknown:
        raise DataProblem(f"{path}: unknown key '{unknown[0]}'", "", f"Known are: {', '.join(_KEYS)}.")
    nano_cpus = _number(path, content, "nano_cpus")
    gpus = _number(path, content, "gpus")
    runtime = content.get("runtime")
    if runtime is not None and not isinstance(runtime, str):
        raise DataProblem(f"{path}: 'runtime' is not a name")
    return ContainerConfig(
        memory_bytes=_size(path, content, "mem_limit"),
        shm_bytes=_size(path, content, "shm_size"),
        cpus=None if nano_cpus is None else nano_cpus / 1e9,
        runtime=runtime,
        gpus=None if gpus is None else int(gpus),
    )


def _number(path: Path, content: dict[str, Any], key: str) -> float | None:
    value = content.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DataProblem(f"{path}: '{key}' is not a number")
    return value


def _size(path: Path, content: dict[str, Any], key: str) -> int | None:
    """Bytes, or a text such as "4G"."""
    value = content.get(key)
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        if found is None:
            raise DataProblem(f"{path}: '{key}' is no size", f"it says '{value}'", 'Write it as "4G".')
        return round(float(found.group(1)) * _UNITS[found.group(2).lower()])
    number = _number(path, content, key)
    return None if number is None else int(number)
