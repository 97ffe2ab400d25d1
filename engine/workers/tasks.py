"""The tasks that workers know, and what each may use; light, for engine and nursery alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from competitions.model import Edition


@dataclass(frozen=True)
class Limits:
    """What one task may use; None is no limit."""

    wall_seconds: float | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class GradeTask:
    """Grade one file; the value is a report in its extended form.

    Attributes:
        descriptions: whose text the agent had, where that is not the dataset's.
    """

    submission: str
    competition_id: str
    data_dir: str
    edition: Edition
    descriptions: str | None = None


@dataclass(frozen=True)
class CheckTask:
    """Ask Kaggle whether one competition's data may be downloaded; the value is an `Offered`."""

    competition_id: str


@dataclass(frozen=True)
class FetchTask:
    """Download one competition's zip; the value is empty.

    Attributes:
        keep_free: bytes that are to stay free on the disk.
    """

    competition_id: str
    data_dir: str
    keep_free: int = 0


@dataclass(frozen=True)
class PrepareTask:
    """Prepare one dataset; the value is a `Prepared`.

    Attributes:
        options: the options it was asked for with, in their own text form.
        keep_free: bytes that are to stay free on the disk.
    """

    competition_id: str
    data_dir: str
    edition: Edition
    options: str
    keep_free: int = 0


@dataclass(frozen=True)
class VerifyTask:
    """Compare a prepared dataset with what is known of it; the value is a `Verified`."""

    competition_id: str
    data_dir: str
    edition: Edition


@dataclass(frozen=True)
class PruneTask:
    """Remove what was told of one competition from the disk; the value is a `Pruned`."""

    competition_id: str
    data_dir: str
    what: tuple[str, ...]


@dataclass(frozen=True)
class Offered:
    """What Kaggle offers; its size where it is told."""

    bytes: int | None


@dataclass(frozen=True)
class Prepared:
    """What preparing a dataset gave."""

    bytes_on_disk: int


@dataclass(frozen=True)
class Verified:
    """What verifying a dataset gave: how many sums were compared, and what differs."""

    compared: int
    differs: str


@dataclass(frozen=True)
class Pruned:
    """What pruning gave back."""

    bytes: int


Task = GradeTask | CheckTask | FetchTask | PrepareTask | VerifyTask | PruneTask

_KINDS: dict[str, type[Task]] = {
    "grade": GradeTask,
    "check": CheckTask,
    "fetch": FetchTask,
    "prepare": PrepareTask,
    "verify": VerifyTask,
    "prune": PruneTask,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True)
class Job:
    """A task on its way to a worker."""

    number: int
    task: Task
    limits: Limits
    result: str

    def to_line(self) -> dict[str, Any]:
        """Write the job for the nursery."""
        return {
            "number": self.number,
            "kind": _NAMES[type(self.task)],
            "task": asdict(self.task),
            "limits": asdict(self.limits),
            "result": self.result,
        }

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> Job:
        """Read back what `to_line` wrote."""
        task = _KINDS[line["kind"]](**line["task"])
        return cls(line["number"], task, Limits(**line["limits"]), line["result"])
