"""The records of model calls: one line each in the run's model_calls.jsonl, without request and answer."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from mlebench_console.environment.gateway.dialects import CHARACTERS_PER_TOKEN, TokenUsage
from mlebench_console.environment.gateway.orders import GATEWAY_LOCK, MODEL_CALLS, OPEN_CALLS
from mlebench_console.foundation import jsonlines, locks

# Caps on what an agent can write without a provider being paid, which a budget would limit.
MOST_REFUSALS = 1000
MOST_BYTES = 256 << 20
_MOST_TOKENS = 1 << 40  # of one call: far more than any model accepts


class CallOutcome(StrEnum):
    """How a call ended."""

    OK = "ok"
    ERROR = "error"  # the provider answered with an error
    CUT = "cut"  # the provider's answer broke off, or never began
    UNREACHABLE = "unreachable"  # no connection to the provider
    CANCELLED = "cancelled"  # the agent closed the connection before the answer was complete
    LOST = "lost"  # the gateway died while it was under way
    REFUSED = "refused"  # not forwarded
    BUDGET = "budget"  # not forwarded, since the run's budget is used up
    SHARED_BUDGET = "shared budget"  # not forwarded, since that of its sweep or experiment is used up


NOT_SENT = frozenset({CallOutcome.REFUSED, CallOutcome.BUDGET, CallOutcome.SHARED_BUDGET})


@dataclass(frozen=True)
class ModelCall:
    """One call.

    Attributes:
        id: a unique id, so that a line that is read twice counts once.
        at: when the agent made it.
        api: the kind of call, such as `chat`.
        asked_model, model: the model that the agent requested, and the one that the provider reported.
        service_tier: the provider's word for the tier that served it, such as `priority`; empty: not reported.
        status: of the provider's answer; 0 where there was none.
        usage: tokens; all None where nothing is known, as of a call that is free.
        estimated: whether usage is estimated from the length of texts, since the provider has not reported it.
        cost: in US dollars, as the provider reports it; None where it is to be computed from tokens.
        first_seconds: until the first byte of the answer's body.
        retry_after: seconds after which the provider asks to retry.
        problem: what went wrong, in the provider's words or ours.
        waited: seconds before it was sent, for its turn; not part of the other times.
        recorded: how much of request and answer is recorded; empty without a recording.
    """

    id: str
    at: float
    provider: str
    api: str
    outcome: CallOutcome
    asked_model: str = ""
    model: str = ""
    status: int = 0
    stream: bool = False
    stop_reason: str = ""
    service_tier: str = ""
    usage: TokenUsage = field(default_factory=TokenUsage)
    estimated: bool = False
    cost: float | None = None
    first_seconds: float | None = None
    seconds: float = 0.0
    request_bytes: int = 0
    answer_bytes: int = 0
    retry_after: float | None = None
    problem: str = ""
    waited: float = 0.0
    recorded: str = ""


class OpenState(StrEnum):
    """The state of a call that has not ended."""

    WAITING = "waiting"  # for its turn
    LEFT = "left"  # the agent closed the connection while it waited
    SENT = "sent"


@dataclass(frozen=True)
class OpenCall:
    """A call under way; one that was sent and has no record of its end was lost with its gateway."""

    id: str
    at: float
    provider: str
    api: str
    asked_model: str
    stream: bool
    request_bytes: int
    input_characters: int
    state: OpenState = OpenState.SENT

    def ended(self, outcome: CallOutcome) -> ModelCall:
        """Return the record of its end, with what was known before it was sent."""
        return ModelCall(
            self.id,
            self.at,
            self.provider,
            self.api,
            outcome,
            asked_model=self.asked_model,
            stream=self.stream,
            request_bytes=self.request_bytes,
        )


def from_line(line: dict[str, Any]) -> ModelCall | None:
    """Convert a line to a call; None for an invalid one, as an agent without a sandbox may have written."""
    try:
        call = msgspec.convert(line, ModelCall)
    except msgspec.ValidationError:
        return None
    counts = (0 if count is None else count for count in astuple(call.usage))
    is_sound = (
        math.isfinite(call.at)
        and 0 <= (call.cost or 0) < math.inf
        and all(0 <= count <= _MOST_TOKENS for count in counts)
    )
    return call if is_sound and max(map(len, (call.provider, call.model, call.asked_model))) <= 200 else None


def estimated_tokens(characters: int) -> int:
    """Estimate tokens from characters, four characters to a token, as in English."""
    return -(-characters // CHARACTERS_PER_TOKEN)


class Journal:
    """The files of one attempt's calls: one for those that have ended, one for those under way."""

    def __init__(self, attempt: Path, count: Callable[[ModelCall], None] = lambda _call: None) -> None:
        """Read the existing files, and record as lost the calls that were under way when an earlier gateway died.

        Args:
            attempt: its directory.
            count: called with each call that has ended, including those of earlier gateways.
        """
        self._count = count
        self._ended = attempt / MODEL_CALLS
        self._open = attempt / OPEN_CALLS
        self._unwritten: list[ModelCall] = []
        self._refusals = 0
        known = set()
        for call in read_calls(self._ended):
            known.add(call.id)
            self._refusals += call.outcome in NOT_SENT
            count(call)
        for begun in read_open(self._open):
            if begun.id not in known and begun.state is OpenState.SENT:
                known.add(begun.id)
                self.end(_lost(begun))
        if not self._unwritten:
            self._open.unlink(missing_ok=True)

    @property
    def is_full(self) -> bool:
        """Whether no more calls can be recorded; then none is forwarded, since it could not be counted."""
        try:
            return self._ended.stat().st_size > MOST_BYTES
        except FileNotFoundError:
            return False

    def begin(self, call: OpenCall) -> None:
        """Record that a call is about to be sent, or is in another state.

        Raises:
            OSError: writing failed, so that the call must not be sent.
        """
        self._write_pending()
        jsonlines.append(self._open, [asdict(call)])

    def touch(self) -> None:
        """Show that a call still waits: an agent whose call waits for its turn is not idle."""
        os.utime(self._open)

    def end(self, call: ModelCall) -> None:
        """Record a call that has ended; if writing fails, it is written before the next call begins."""
        if call.outcome in NOT_SENT:
            if self._refusals >= MOST_REFUSALS:
                return
            self._refusals += 1
        self._count(call)
        self._unwritten.append(call)
        try:
            self._write_pending()
        except OSError:
            return  # `begin` tries again, and fails while that fails

    def _write_pending(self) -> None:
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
    """Read all calls of an attempt that have begun, each in its latest state; most of them have ended."""
    found: dict[str, OpenCall] = {}
    for line in _lines(path):
        try:
            call = msgspec.convert(line, OpenCall)
        except msgspec.ValidationError:
            continue  # a killed gateway left the line incomplete
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
    """Return the calls of an attempt that wait or were sent and have not ended; none where no gateway runs."""
    if not locks.is_held(attempt / GATEWAY_LOCK):
        return []
    begun = [call for call in read_open(attempt / OPEN_CALLS) if call.state is not OpenState.LEFT]
    ended = {call.id for call in read_calls(attempt / MODEL_CALLS)}
    return [call for call in begun if call.id not in ended]


def _lost(call: OpenCall) -> ModelCall:
    return replace(
        call.ended(CallOutcome.LOST),
        usage=TokenUsage(input_tokens=estimated_tokens(call.input_characters), output_tokens=0),
        estimated=True,
        problem="the gateway died while the call was under way",
    )


def new_id() -> str:
    """Return a new id for a call."""
    return os.urandom(12).hex()
