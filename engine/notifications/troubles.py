"""What is wrong with the machine itself, as the engine tells it; the first frame needs it, so it imports little."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.control import EngineStatus

# Below this share of a disk, a person has to look.
LOW_DISK_SHARE = 0.05


def troubles(engine: EngineStatus | None) -> tuple[str, ...]:
    """What is wrong with the machine itself, in words."""
    if engine is None or not engine.running:
        return ()
    found = list(full_disks(engine))
    if engine.runner_alive is False:
        found.append("no runner is alive: agents go on, but nothing starts and nothing is collected")
    return tuple(found)


def full_disks(engine: EngineStatus) -> tuple[str, ...]:
    """Which disks are all but full, in words."""
    found = []
    for name, free, total in (
        ("state", engine.state_disk_free, engine.state_disk_total),
        ("datasets", engine.data_disk_free, engine.data_disk_total),
    ):
        if free is not None and total and free < LOW_DISK_SHARE * total:
            found.append(f"the disk with the {name} is {100 * (1 - free / total):.0f} % full")
    return tuple(dict.fromkeys(found))
