"""What every sandbox of bubblewrap gets of the kernel, whoever makes it."""

from __future__ import annotations

from pathlib import Path

# As container engines have it.
_OF_THE_HOST = ("acpi", "asound", "bus", "driver", "fs", "irq", "mtrr", "scsi", "sys", "sysrq-trigger")


def proc() -> list[str]:
    """Return the options for a /proc in which the settings of the host's kernel can be read, and not written.

    A sandbox of root is root to these files, though it has no capability and another number inside. Bubblewrap closes
    only those folders that could themselves be written.
    """
    places = (Path("/proc", name) for name in _OF_THE_HOST)
    closed = [part for place in places if place.exists() for part in ("--ro-bind", str(place), str(place))]
    return ["--proc", "/proc", *closed]
