"""Classify the end of an attempt: its run has an outcome, or it failed in some class.

An agent must not gain anything by what it prints: only evidence from the host makes a failure one of the
infrastructure, which is relaunched without counting as a re-roll. Text in the log only makes a failure suspected,
for people to look at.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TypeVar

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.run_log import log_parts
from mlebench_console.foundation import files
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode, ProblemSubject
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage.outages import AttemptOutage

Meaning = TypeVar("Meaning")

_SHELL_SIGNALLED = 128
# How an agent may fail when its model calls are refused.
_WITHOUT_MODELS = (FailureClass.CRASH, FailureClass.TIMEOUT)
# How an attempt may end when its agent waits for a model for ever.
_WAITED = (EndReason.DEADLINE, EndReason.IDLE)
_EVIDENCE_LINES = 5
_EVIDENCE_CHARACTERS = 400
_LOG_BYTES = 64 << 10
_LOG_LINES = 200
_ENDS_OF_LINE = 1000


class Conclusion(Enum):
    """What the end of an attempt means for its run where it did not fail.

    Attributes:
        GRADED: there is a final submission, whose grade is the run's outcome.
        TOO_LARGE: the submission is larger than allowed.
        NO_SUBMISSION: the agent exited normally without a submission.
        STOPPED: an operator stopped it.
    """

    GRADED = "graded"
    TOO_LARGE = "too large"
    NO_SUBMISSION = "no submission"
    STOPPED = "stopped"


# Patterns of log lines, matched regardless of case, and the problem that each makes suspected.
_SUSPECTED = (
    (r"^bwrap: ", ProblemCode.SANDBOX_NOT_MADE),
    (
        r"NVML: Unknown Error|Failed to initialize NVML|NVML.*Driver/library version mismatch",
        ProblemCode.GPU_LOST,
    ),
    (
        r"CUDA error: (an illegal memory access|unspecified launch failure|unknown error|device.*unavailable)"
        r"|CUDA error: all CUDA-capable devices are busy|no CUDA-capable device is detected"
        r"|CUDA driver initialization failed|uncorrectable ECC error",
        ProblemCode.GPU_FAILED,
    ),
    # Shared memory is not on a disk: the operator chose its size, and the agent how to use it.
    (
        r"^(?!.*(?:/dev/shm|</torch_|[Ss]hared memory)).*(?:No space left on device|Disk quota exceeded)",
        ProblemCode.DISK_FULL,
    ),
    (
        r"Input/output error|Read-only file system.*(?:/home/(?:submission|logs|code))",
        ProblemCode.DISK_FAILED,
    ),
    (
        r"Temporary failure in name resolution|Name or service not known|Could not resolve host"
        r"|Connection reset by peer|Network is unreachable|No route to host",
        ProblemCode.NETWORK_FAILED,
    ),
    (
        r"insufficient_quota|exceeded your current quota|credit balance is too low|billing_hard_limit_reached",
        ProblemCode.PROVIDER_QUOTA,
    ),
    (
        r"invalid_api_key|Incorrect API key|authentication_error|AuthenticationError|Error code: 401",
        ProblemCode.PROVIDER_REFUSED,
    ),
    (
        r"Error code: 529|overloaded_error|Error code: 503|Service Unavailable",
        ProblemCode.PROVIDER_AWAY,
    ),
)
_MEMORY = (
    (
        r"MemoryError|std::bad_alloc|Cannot allocate memory|OutOfMemoryError|CUDA out of memory",
        "out of memory",
    ),
    (
        r"(?:/dev/shm|</torch_).*No space left on device|insufficient shared memory",
        "shared memory is full (shm_size)",
    ),
)


def last_lines(log: Path) -> str:
    """Read at most the last 200 lines of the last 64 KiB; empty when there is no log."""
    parts = log_parts(log)
    if not parts:
        return ""
    with files.reading_untrusted(parts[-1].path) as stream:
        stream.seek(max(0, parts[-1].length - _LOG_BYTES))
        content = stream.read(_LOG_BYTES)
    text = content.decode("utf-8", "replace").replace("\r", "\n")
    return "\n".join(text.split("\n")[-_LOG_LINES:])


def classify(
    ended: Ending,
    last_lines: str,
    *,
    isolated: bool | None = True,
    over_budget: bool = False,
    outage: AttemptOutage | None = None,
    evicted: ProblemCode | None = None,
) -> Conclusion | Failure:
    """Decide what an attempt's end means, from facts of the host; its log can only make a failure suspected.

    A failure is one of the infrastructure where the host shows it and the agent did not end well: an agent that
    met a full disk and coped is judged by its submission. A submission is graded however its agent ended.

    Args:
        ended: how it ended.
        last_lines: of its log.
        isolated: whether the agent could not reach the process that watches it; None where it never started.
        over_budget: whether model calls were refused because its budget was used up.
        outage: that its last model calls have met; None where they were answered.
        evicted: the problem of its batch system that ended its job: other jobs took its place, or its node failed. No
            agent can bring that about.
    """
    reason, tail = EndReason(ended.reason), _tail(last_lines)
    if reason is EndReason.STOPPED:
        return Conclusion.STOPPED
    if reason is EndReason.LOST and (evicted or isolated is not False):
        what = (
            "it was not started" if isolated is None else "its job was ended" if evicted else "sandbox lost"
        )
        problem = evicted or (ProblemCode(ended.problem_code) if ended.problem_code else None)
        text = f"{what}: {ended.problem}"
        return Failure(FailureClass.INFRASTRUCTURE, text, tail, problem=problem)
    host = ended.host_problem
    if host and _ended_badly(ended):
        subject = ProblemSubject(host.devices, host.path, host.free_bytes)
        problem = ProblemCode(host.code)
        return Failure(FailureClass.INFRASTRUCTURE, host.text, tail, problem=problem, subject=subject)
    # A sandboxed agent can't change the gateway's record, but it can provoke what a provider answers: call until it is
    # rate-limited (429), or send requests that make the provider fail (5xx). It can't make the provider's address
    # refuse connections. So only that counts as infrastructure; the rest is suspected.
    # A single call may fail by a short network error, which an agent has to cope with.
    is_outside = outage is not None and outage.is_unreachable and outage.confirmed
    about = ProblemSubject(provider="" if outage is None else outage.provider)
    if outage is not None and is_outside and isolated is not False and _ended_badly(ended):
        text, figures = _in_words(outage, ended.ended_at)
        problem = ProblemCode.PROVIDER_AWAY
        return Failure(FailureClass.INFRASTRUCTURE, text, figures, problem=problem, subject=about)
    if ended.submission_sequence is not None:
        return Conclusion.GRADED
    if ended.submission_too_large:
        return Conclusion.TOO_LARGE
    failure = _without_submission(ended, last_lines)
    if over_budget and isinstance(failure, Failure) and failure.kind in _WITHOUT_MODELS:
        return replace(
            failure, kind=FailureClass.BUDGET, text=f"its budget of model calls was used up: {failure.text}"
        )
    if isinstance(failure, Failure) and (found := suspicion(ended, last_lines, outage)):
        suspected, evidence = found
        return replace(failure, suspected=suspected, subject=about, evidence=evidence or failure.evidence)
    return failure


def suspicion(
    ended: Ending, last_lines: str, outage: AttemptOutage | None = None
) -> tuple[ProblemCode, str] | None:
    """Return what of the infrastructure may have ended an agent, and the figures or the line of its log behind that."""
    reason = EndReason(ended.reason)
    if outage is not None and (_ended_badly(ended) or reason in _WAITED):
        return ProblemCode.PROVIDER_AWAY, "\n".join(_in_words(outage, ended.ended_at))
    if not _ended_badly(ended):
        return None
    if reason is EndReason.LOST:
        return ProblemCode.SANDBOX_LOST, ""
    return _find(_SUSPECTED, last_lines)


def _in_words(outage: AttemptOutage, ended_at: float) -> tuple[str, str]:
    """Return which provider did what to an agent's last model calls, and how many these are, and when."""
    calls = "its last call" if outage.calls == 1 else f"its last {outage.calls:,} calls"
    first, last = (max(0.0, ended_at - at) for at in (outage.since, outage.last_at))
    figures = (
        f"{calls} to {outage.provider} failed, {first:,.0f} s to {last:,.0f} s before its end, of these"
        f" {outage.unreachable:,} without a connection"
    )
    return f"the provider {outage.provider} {outage.answer} ({calls})", figures


def _without_submission(ended: Ending, last_lines: str) -> Conclusion | Failure:
    reason, tail = EndReason(ended.reason), _tail(last_lines)
    match reason:
        case EndReason.DEADLINE:
            text = "the time limit was reached before there was a submission"
            return Failure(FailureClass.TIMEOUT, text, tail)
        case EndReason.IDLE:
            return Failure(FailureClass.TIMEOUT, f"ended for being idle: {ended.problem}", tail)
        case EndReason.DISK:
            return Failure(FailureClass.DISK, f"ended for its disk use: {ended.problem}", tail)
        case EndReason.MEMORY:
            return Failure(FailureClass.MEMORY, f"ended for its memory: {ended.problem}", tail)
        case EndReason.PROCESSES:
            return Failure(FailureClass.CRASH, f"ended for its processes: {ended.problem}", tail)
        case EndReason.LOST:
            # Without a sandbox, an agent can kill that process itself.
            text = f"the process that watched the agent was lost: {ended.problem}"
            return Failure(FailureClass.UNKNOWN, text, tail)
        case EndReason.OTHER:  # of a runner of another version
            return Failure(FailureClass.UNKNOWN, f"ended ({ended.reason}): {ended.problem}", tail)
    if not _ended_badly(ended):
        return Conclusion.NO_SUBMISSION
    how = _how(ended)
    sign = _find(_MEMORY, last_lines)
    if sign is not None:
        return Failure(FailureClass.MEMORY, f"{sign[0]} ({how})", sign[1])
    if ended.oom_kills > 0 and _signal(ended) == signal.SIGKILL:
        evidence = f"the kernel killed {ended.oom_kills} processes for memory"
        return Failure(FailureClass.MEMORY, f"out of memory ({how})", evidence)
    if _signal(ended) == signal.SIGKILL:
        return Failure(
            FailureClass.UNKNOWN, f"killed from outside, by an unknown process ({how})", _tail(last_lines)
        )
    return Failure(FailureClass.CRASH, f"the agent ended with {how}", _tail(last_lines))


def _ended_badly(ended: Ending) -> bool:
    """Return whether the agent was lost or exited with an error, not ended by a limit or an operator."""
    reason = EndReason(ended.reason)
    return reason is EndReason.LOST or (reason is EndReason.EXITED and ended.exit_code != 0)


def _signal(ended: Ending) -> int | None:
    """Return the signal that ended the agent, directly or as an exit code of its shell."""
    if ended.signal is not None:
        return ended.signal
    code = ended.exit_code or 0
    return code - _SHELL_SIGNALLED if _SHELL_SIGNALLED < code < _SHELL_SIGNALLED + signal.NSIG else None


def _how(ended: Ending) -> str:
    number = _signal(ended)
    if number is None:
        return f"exit code {ended.exit_code}"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _find(signs: Sequence[tuple[str, Meaning]], text: str) -> tuple[Meaning, str] | None:
    """Return the meaning and the line of the last match in the text."""
    for whole in reversed(text.splitlines()):
        # A search takes time quadratic in the line's length, which an agent controls.
        line = (
            whole if len(whole) <= 2 * _ENDS_OF_LINE else f"{whole[:_ENDS_OF_LINE]} {whole[-_ENDS_OF_LINE:]}"
        )
        for pattern, meaning in signs:
            if re.search(pattern, line, re.IGNORECASE):
                return meaning, line.strip()[:_EVIDENCE_CHARACTERS]
    return None


def _tail(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_EVIDENCE_LINES:])[-_EVIDENCE_CHARACTERS:]
