"""What is kept of each model call: one line in the run's model_calls.jsonl, without what was asked and answered."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from environment.gateway.dialects import Usage
from environment.runner import protocol
from foundation import jsonlines, locks

# Of what the agent can make grow without a provider being asked; the rest is paid for, and so held by a budget.
MOST_REFUSALS = 1000
MOST_BYTES = 256 << 20
_CHARACTERS_PER_TOKEN = 4
_MOST_TOKENS = 1 << 40  # of one call: far more than any model takes


class Outcome(StrEnum):
    """How a call went."""

    OK = "ok"
    ERROR = "error"  # the provider answered with an error
    CUT = "cut"  # the provider's answer broke off, or never began
    UNREACHABLE = "unreachable"  # no connection to the provider
    CANCELLED = "cancelled"  # the agent went away before the answer was complete
    LOST = "lost"  # the gateway died while it was under way
    REFUSED = "refused"  # the gateway passed nothing on
    BUDGET = "budget"  # likewise, since the run's budget is used up
    SHARED_BUDGET = "shared budget"  # likewise, since that of its sweep or experiment is used up
    DEVIATED = "deviated"  # likewise, since a recording that is served has another call next
    REPLAYED = "replayed"  # answered from a recording: a provider was neither asked nor paid


NOT_SENT = frozenset({Outcome.REFUSED, Outcome.BUDGET, Outcome.SHARED_BUDGET, Outcome.DEVIATED})
WELL = frozenset({Outcome.OK, Outcome.REPLAYED})


@dataclass(frozen=True)
class ModelCall:
    """One call.

    Attributes:
        id: never used again, so that a line that is read twice counts once.
        at: when it came.
        api: which kind of call, such as `chat`.
        asked_model, model: as the agent asked, and as the provider answered.
        service_tier: by which the provider served it, in its word, such as `priority`; empty: it names none.
        status: of the provider's answer; 0 where there was none.
        usage: tokens; all None where nothing is known, as of a call that is free.
        estimated: whether usage is reckoned from the length of texts, since the provider has not reported it.
        first_seconds: until the first byte of the answer's body.
        retry_after: seconds after which the provider wants to be asked again.
        problem: what went wrong, in the words of the provider or ours.
        waited: seconds before it was sent, for its turn or for more of a budget; in none of the other times.
        recorded: how much of what was asked and answered is recorded; empty where nothing was to be.
    """

    id: str
    at: float
    provider: str
    api: str
    outcome: Outcome
    asked_model: str = ""
    model: str = ""
    status: int = 0
    stream: bool = False
    stop_reason: str = ""
    service_tier: str = ""
    usage: Usage = field(default_factory=Usage)
    estimated: bool = False
    first_seconds: float | None = None
    seconds: float = 0.0
    request_bytes: int = 0
    answer_bytes: int = 0
    retry_after: float | None = None
    problem: str = ""
    waited: float = 0.0
    recorded: str = ""


class OpenState(StrEnum):
    """How far a call is that has not ended."""

    WAITING = "waiting"  # for its turn, or for more of a budget
    LEFT = "left"  # it waited, and its agent went away
    SENT = "sent"


@dataclass(frozen=True)
class OpenCall:
    """A call that is under way; one that was sent and of which no end is found ended with its gateway."""

    id: str
    at: float
    provider: str
    api: str
    asked_model: str
    stream: bool
    request_bytes: int
    input_characters: int
    state: OpenState = OpenState.SENT


def from_line(line: dict[str, Any]) -> ModelCall | None:
    """Read a line; None for what is none of a call, as where nothing keeps an agent from writing there."""
    try:
        call = msgspec.convert(line, ModelCall)
    except msgspec.ValidationError:
        return None
    counts = (0 if count is None else count for count in astuple(call.usage))
    is_sound = math.isfinite(call.at) and all(0 <= count <= _MOST_TOKENS for count in counts)
    return call if is_sound and max(map(len, (call.provider, call.model, call.asked_model))) <= 200 else None


def estimated_tokens(characters: int) -> int:
    """Reckon tokens from characters, four to one, as in English."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


@dataclass
class Totals:
    """What an attempt's calls have come to."""

    calls: int = 0
    tokens: int = 0
    refusals: int = 0

    def add(self, call: ModelCall) -> None:
        """Count one more."""
        if call.outcome in NOT_SENT:
            self.refusals += 1
            return
        self.calls += 1
        self.tokens += (call.usage.input_tokens or 0) + (call.usage.output_tokens or 0)


class Journal:
    """The files of one attempt's calls: one for what has ended, one for what is under way."""

    def __init__(self, attempt: Path, count: Callable[[ModelCall], None] = lambda _call: None) -> None:
        """Read what is there, and close the calls that an earlier gateway has not lived to see the end of.

        Args:
            attempt: its directory.
            count: is told of each call that has ended, those of earlier gateways too.
        """
        self._count = count
        self._ended = attempt / protocol.MODEL_CALLS
        self._open = attempt / protocol.OPEN_CALLS
        self._unwritten: list[ModelCall] = []
        self.totals = Totals()
        known = set()
        for call in read_calls(self._ended):
            known.add(call.id)
            self.totals.add(call)
            count(call)
        for begun in read_open(self._open):
            if begun.id not in known and begun.state is OpenState.SENT:
                known.add(begun.id)
                self.end(_lost(begun))
        if not self._unwritten:
            self._open.unlink(missing_ok=True)

    @property
    def is_full(self) -> bool:
        """Whether no more can be kept: then no call is passed on that could not be counted."""
        try:
            return self._ended.stat().st_size > MOST_BYTES
        except FileNotFoundError:
            return False

    def begin(self, call: OpenCall) -> None:
        """Note that a call is about to be sent, or what else has become of it.

        Raises:
            OSError: that can't be written, so that it must not be sent.
        """
        self._write_rest()
        jsonlines.append(self._open, [asdict(call)])

    def note_waiting(self) -> None:
        """Show that a call still waits: an agent that waits for its turn is not idle."""
        os.utime(self._open)

    def end(self, call: ModelCall) -> None:
        """Keep a call that has ended; what can't be written now is written before the next one begins."""
        if call.outcome in NOT_SENT and self.totals.refusals >= MOST_REFUSALS:
            return
        self.totals.add(call)
        self._count(call)
        self._unwritten.append(call)
        try:
            self._write_rest()
        except OSError:
            return  # `begin` tries again, and lets no call through while it fails

    def _write_rest(self) -> None:
        while self._unwritten:
            jsonlines.append(self._ended, [asdict(self._unwritten[0])])
            del self._unwritten[0]


def read_calls(path: Path) -> list[ModelCall]:
    """Read all calls of an attempt, each once."""
    found: dict[str, ModelCall] = {}
    for line in _lines(path):
        call = from_line(line)
        if call is not None:
            found.setdefault(call.id, call)
    return list(found.values())


def read_open(path: Path) -> list[OpenCall]:
    """Read the calls of an attempt that had begun, each as it was at last; most of them have ended since."""
    found: dict[str, OpenCall] = {}
    for line in _lines(path):
        try:
            call = msgspec.convert(line, OpenCall)
        except msgspec.ValidationError:
            continue  # a line that a killed gateway has left torn
        found[call.id] = call
    return list(found.values())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    offset, end = -1, 0
    while end > offset:
        offset = end
        lines = jsonlines.read(path, offset)
        end = lines.offset
        yield from lines.values


def under_way(attempt: Path) -> list[OpenCall]:
    """Read the calls of an attempt that wait or were sent and have not ended; none where no gateway lives."""
    if not locks.is_held(attempt / protocol.GATEWAY_LOCK):
        return []
    begun = [call for call in read_open(attempt / protocol.OPEN_CALLS) if call.state is not OpenState.LEFT]
    ended = {call.id for call in read_calls(attempt / protocol.MODEL_CALLS)}
    return [call for call in begun if call.id not in ended]


def _lost(call: OpenCall) -> ModelCall:
    return ModelCall(
        call.id,
        call.at,
        call.provider,
        call.api,
        Outcome.LOST,
        asked_model=call.asked_model,
        stream=call.stream,
        usage=Usage(input_tokens=estimated_tokens(call.input_characters), output_tokens=0),
        estimated=True,
        request_bytes=call.request_bytes,
        problem="the gateway died while the call was under way",
    )


def new_id() -> str:
    """Make the id of a call."""
    return os.urandom(12).hex()
