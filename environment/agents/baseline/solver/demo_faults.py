"""Faults that the demo stages, so that an operator sees how they look; nothing happens unless DEMO_FAULTS asks.

DEMO_FAULTS holds `competition:seed:attempt=fault`, separated by commas; the faults are gpu_lost, crash, invalid.
"""

from __future__ import annotations

import os


def staged_fault() -> str | None:
    """The fault that this very attempt is to meet."""
    name = os.environ.get
    here = f"{name('COMPETITION_ID', '')}:{name('SEED', '')}:{name('ATTEMPT', '1')}"
    for entry in name("DEMO_FAULTS", "").split(","):
        where, _, fault = entry.strip().partition("=")
        if where == here:
            return fault
    return None
