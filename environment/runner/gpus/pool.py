"""Who holds which device of this host: known from the orders of live attempts, so it survives any kill."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from environment.runner.gpus.leases import free_shares
from environment.runner.gpus.reading import GpuReader
from foundation.clock import Clock

_READ_SECONDS = 30.0


@dataclass(frozen=True)
class _Lease:
    uuids: tuple[str, ...]
    share: float


class GpuPool:
    """Keeps the leases in memory; whoever starts runs tells it what is held after a restart."""

    def __init__(self, reader: GpuReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._leases: dict[int, _Lease] = {}
        self._devices: tuple[str, ...] = ()
        self._read_at: float | None = None

    def hold(self, attempt_id: int, uuids: tuple[str, ...], share: float) -> None:
        """Note that an attempt holds devices."""
        if uuids:
            self._leases[attempt_id] = _Lease(uuids, share)

    def devices(self) -> tuple[str, ...]:
        """The devices of this host, as they were not long ago."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at > _READ_SECONDS:
            self._devices = tuple(gpu.uuid for gpu in self._reader.read())
            self._read_at = now
        return self._devices

    def free(self, live: Collection[int]) -> dict[str, float]:
        """The free part of each device, once those have let go that are not live any more."""
        self._leases = {number: held for number, held in self._leases.items() if number in live}
        held = [(uuid, one.share) for one in self._leases.values() for uuid in one.uuids]
        return free_shares(self.devices(), held)
