"""Reading a run group: its metadata.json and the folders of its runs, as MLE-bench leaves them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from foundation.problems import DataProblem

METADATA = "metadata.json"


@dataclass(frozen=True)
class GroupRun:
    """One run of a group; `success` says only that its launcher did not fail, None that nothing is told."""

    run_id: str
    success: bool | None

    @property
    def competition_id(self) -> str:
        """What precedes the first underscore."""
        return self.run_id.partition("_")[0]


@dataclass(frozen=True)
class RunGroup:
    """A run group: its name, its folder and its runs in the order of its metadata."""

    name: str
    folder: Path
    created_at: str
    runs: tuple[GroupRun, ...]


def read_group(metadata: Path) -> RunGroup:
    """Read a group from its metadata.json, or from the folder that holds one.

    Raises:
        DataProblem: it can't be read or is not as it should be.
    """
    path = metadata / METADATA if metadata.is_dir() else metadata
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataProblem(f"{path} can't be read", error.strerror or str(error)) from error
    except ValueError as error:
        raise DataProblem(f"{path} is not JSON", str(error)) from error
    runs = values.get("runs") if isinstance(values, dict) else None
    if not isinstance(runs, dict):
        raise DataProblem(f"{path} is no metadata of a run group", 'it has no object "runs"')
    folder = path.absolute().parent
    for run_id in runs:
        if Path(run_id).name != run_id:
            raise DataProblem(f"{path} names a run that is no folder's name", repr(run_id))
    return RunGroup(
        name=str(values.get("run_group") or folder.name),
        folder=folder,
        created_at=str(values.get("created_at") or ""),
        runs=tuple(GroupRun(run_id, _success(told)) for run_id, told in runs.items()),
    )


def find_groups(runs_dir: Path) -> tuple[RunGroup, ...]:
    """Read every group below a runs folder, in the order of their names.

    Raises:
        DataProblem: there is none, or one can't be read.
    """
    found = sorted(runs_dir.glob(f"*/{METADATA}"))
    if not found:
        raise DataProblem(
            f"{runs_dir} holds no run group",
            f"no folder in it has a {METADATA}",
            "Give MLE-bench's runs folder.",
        )
    return tuple(read_group(path) for path in found)


def _success(told: object) -> bool | None:
    success = told.get("success") if isinstance(told, dict) else None
    return success if isinstance(success, bool) else None
