"""What a runner reports in an attempt's events.jsonl: one dataclass a kind, to lines and back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from foundation.hardware import Hardware


@dataclass(frozen=True)
class AgentStarted:
    """The agent's process is there.

    Attributes:
        image: the digest of what it runs in; empty where there is none.
        hardware: what it runs on; None in what older versions have written.
    """

    at: float
    isolated: bool
    image: str = ""
    hardware: Hardware | None = None


@dataclass(frozen=True)
class SubmissionTaken:
    """A snapshot of the submission lies in the attempt's directory, at `path` relative to it."""

    at: float
    sequence: int
    elapsed_seconds: float
    sha256: str
    bytes: int
    path: str
    final: bool


@dataclass(frozen=True)
class SubmissionRefused:
    """What lies where the submission should be can't be taken."""

    at: float
    text: str


@dataclass(frozen=True)
class AgentEnded:
    """The agent's process is gone."""

    at: float
    reason: str
    exit_code: int | None
    signal: int | None


@dataclass(frozen=True)
class Collected:
    """Everything is gathered and exit.json is there."""

    at: float


RunReport = AgentStarted | SubmissionTaken | SubmissionRefused | AgentEnded | Collected

_KINDS: dict[str, type[RunReport]] = {
    "started": AgentStarted,
    "submission": SubmissionTaken,
    "refused": SubmissionRefused,
    "ended": AgentEnded,
    "collected": Collected,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_line(report: RunReport) -> dict[str, Any]:
    """Write a report as a line of events.jsonl."""
    return {"kind": _NAMES[type(report)], **asdict(report)}


def from_line(line: dict[str, Any]) -> RunReport | None:
    """Read a line; None for a kind or form that this version does not know."""
    kind = _KINDS.get(str(line.get("kind")))
    if kind is None:
        return None
    values = {name: value for name, value in line.items() if name != "kind"}
    try:
        if values.get("hardware") is not None:
            told = values["hardware"]
            values["hardware"] = Hardware(**told | {"gpus": tuple(told["gpus"])})
        return kind(**values)
    except (TypeError, KeyError):
        return None
