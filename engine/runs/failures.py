"""Classify the end of an attempt: its run has an outcome, or it failed in some class.

An agent must not gain anything by what it prints: only evidence from the host makes a failure one of the
infrastructure, which is relaunched without counting as a re-roll. Text in the log only makes a failure suspected,
for people to look at.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.run_log import log_parts
from mlebench_console.foundation import files
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure

_SHELL_SIGNALLED = 128
# How an agent may fail when its model calls are refused.
_WITHOUT_MODELS = (FailureClass.CRASH, FailureClass.TIMEOUT)
# How an attempt may end when its agent waits for a model for ever.
_WAITED = ("deadline", "idle")
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


# Patterns of log lines, matched regardless of case, and the infrastructure failure that each makes suspected.
_INFRASTRUCTURE = (
    (r"^bwrap: ", "the sandbox could not be made"),
    (
        r"NVML: Unknown Error|Failed to initialize NVML|NVML.*Driver/library version mismatch",
        "the GPU was lost",
    ),
    (
        r"CUDA error: (an illegal memory access|unspecified launch failure|unknown error|device.*unavailable)"
        r"|CUDA error: all CUDA-capable devices are busy|no CUDA-capable device is detected"
        r"|CUDA driver initialization failed|uncorrectable ECC error",
        "the GPU failed",
    ),
    # Shared memory is not on a disk: the operator chose its size, and the agent how to use it.
    (
        r"^(?!.*(?:/dev/shm|</torch_|[Ss]hared memory)).*(?:No space left on device|Disk quota exceeded)",
        "the disk is full",
    ),
    (r"Input/output error|Read-only file system.*(?:/home/(?:submission|logs|code))", "the disk failed"),
    (
        r"Temporary failure in name resolution|Name or service not known|Could not resolve host"
        r"|Connection reset by peer|Network is unreachable|No route to host",
        "the network failed",
    ),
    (
        r"insufficient_quota|exceeded your current quota|credit balance is too low|billing_hard_limit_reached",
        "the model API's quota is used up",
    ),
    (
        r"invalid_api_key|Incorrect API key|authentication_error|AuthenticationError|Error code: 401",
        "the model API refused the key",
    ),
    (
        r"Error code: 529|overloaded_error|Error code: 503|Service Unavailable",
        "the model API was not available",
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


@dataclass(frozen=True)
class ProviderTrouble:
    """An agent's last model calls failed or were rate-limited, as its gateway has measured.

    Attributes:
        text: which provider did what.
        figures: how many calls, and when.
        is_outside: whether the agent cannot have caused it.
    """

    text: str
    figures: str
    is_outside: bool


def classify(
    ended: Ending,
    last_lines: str,
    *,
    isolated: bool | None = True,
    over_budget: bool = False,
    provider: ProviderTrouble | None = None,
    evicted: bool = False,
) -> Conclusion | Failure:
    """Decide what an attempt's end means, from facts of the host; its log can only make a failure suspected.

    A failure is one of the infrastructure where the host shows it and the agent did not end well: an agent that
    met a full disk and coped is judged by its submission. A submission is graded however its agent ended.

    Args:
        ended: how it ended.
        last_lines: of its log.
        isolated: whether the agent could not reach the process that watches it; None where it never started.
        over_budget: whether model calls were refused because its budget was used up.
        provider: the trouble of its last model calls; None where they were answered.
        evicted: whether its batch system says that it gave the place to other jobs, or that the node failed. No agent
            can bring that about.
    """
    if ended.reason == "stopped":
        return Conclusion.STOPPED
    if ended.reason == "lost" and (evicted or isolated is not False):
        what = (
            "it was not started" if isolated is None else "its job was ended" if evicted else "sandbox lost"
        )
        return Failure(FailureClass.INFRASTRUCTURE, f"{what}: {ended.problem}", _tail(last_lines))
    if ended.host_problem and _ended_badly(ended):
        return Failure(FailureClass.INFRASTRUCTURE, ended.host_problem.text, _tail(last_lines))
    # A sandboxed agent can't change the gateway's record, but it can provoke what a provider answers: call until it is
    # rate-limited (429), or send requests that make the provider fail (5xx). It can't make the provider's address
    # refuse connections. So only that counts as infrastructure; the rest is suspected.
    if provider is not None and provider.is_outside and isolated is not False and _ended_badly(ended):
        return Failure(FailureClass.INFRASTRUCTURE, provider.text, provider.figures)
    if ended.submission_sequence is not None:
        return Conclusion.GRADED
    if ended.submission_too_large:
        return Conclusion.TOO_LARGE
    failure = _without_submission(ended, last_lines)
    if over_budget and isinstance(failure, Failure) and failure.kind in _WITHOUT_MODELS:
        return replace(
            failure, kind=FailureClass.BUDGET, text=f"its budget of model calls was used up: {failure.text}"
        )
    if isinstance(failure, Failure) and (suspected := suspicion(ended, last_lines, provider)):
        text, line = suspected
        return replace(failure, suspected=text, evidence=line or failure.evidence)
    return failure


def suspicion(
    ended: Ending, last_lines: str, provider: ProviderTrouble | None = None
) -> tuple[str, str] | None:
    """Return what of the infrastructure may have ended an agent, by its gateway's records or its log.

    The second text is the figures or the line of the log behind the suspicion, or empty. None without a suspicion.
    """
    if provider is not None and (_ended_badly(ended) or ended.reason in _WAITED):
        return provider.text, provider.figures
    if not _ended_badly(ended):
        return None
    if ended.reason == "lost":
        return "its watching process was killed from outside", ""
    return _find(_INFRASTRUCTURE, last_lines)


def _without_submission(ended: Ending, last_lines: str) -> Conclusion | Failure:
    if ended.reason == "deadline":
        return Failure(
            FailureClass.TIMEOUT,
            "the time limit was reached before there was a submission",
            _tail(last_lines),
        )
    if ended.reason == "idle":
        return Failure(FailureClass.TIMEOUT, f"ended for being idle: {ended.problem}", _tail(last_lines))
    if ended.reason == "disk":
        return Failure(FailureClass.DISK, f"ended for its disk use: {ended.problem}", _tail(last_lines))
    if ended.reason == "memory":
        return Failure(FailureClass.MEMORY, f"ended for its memory: {ended.problem}", _tail(last_lines))
    if ended.reason == "processes":
        return Failure(FailureClass.CRASH, f"ended for its processes: {ended.problem}", _tail(last_lines))
    if ended.reason == "lost":
        # Without a sandbox, an agent can kill that process itself.
        return Failure(
            FailureClass.UNKNOWN,
            f"the process that watched the agent was lost: {ended.problem}",
            _tail(last_lines),
        )
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
    return ended.reason == "lost" or (ended.reason == "exited" and ended.exit_code != 0)


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


def _find(signs: Sequence[tuple[str, str]], text: str) -> tuple[str, str] | None:
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
