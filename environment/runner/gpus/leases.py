"""Which devices a run gets: a pure decision over what is held; a lease lasts as long as its attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

ALL = -1
_TOLERANCE = 1e-9


def free_shares(devices: Sequence[str], held: Iterable[tuple[str, float]]) -> dict[str, float]:
    """What part of each device is free, given the shares that are held."""
    free = dict.fromkeys(devices, 1.0)
    for uuid, share in held:
        if uuid in free:
            free[uuid] -= share
    return free


def lease(free: Mapping[str, float], count: int, share: float) -> tuple[str, ...] | None:
    """Choose devices for one run; None when too few are free.

    Args:
        free: the free part of each device, in the driver's order.
        count: how many devices; -1 for all that there are.
        share: what part of each the run takes.

    Devices that are in use already go first, so that whole ones stay free for runs that need those.
    """
    wanted = len(free) if count == ALL else count
    able = [uuid for uuid, part in free.items() if part + _TOLERANCE >= share]
    if len(able) < wanted or (wanted == 0 and count != 0):
        return None
    return tuple(sorted(able, key=lambda uuid: free[uuid])[:wanted])
