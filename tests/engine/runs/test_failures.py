"""What an attempt's end means: by its facts and its last lines."""

from __future__ import annotations

import time

import pytest

from mlebench_console.engine.runs.failures import Conclusion, classify
from mlebench_console.environment.container.output import Ending, HostProblem
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage.outages import AttemptOutage

FULL_DISK = HostProblem(ProblemCode.DISK_FULL, "the host's disk is full")
LOST_GPU = HostProblem(ProblemCode.GPU_LOST, "the driver does not find GPU-a any more", ("GPU-a",))
RESTARTED = HostProblem(ProblemCode.HOST_RESTARTED, "the host was restarted")


def ended(reason: str = "exited", code: int | None = 0, **more: object) -> Ending:
    return Ending(reason, code, None, 1.0, 2.0, **more)  # type: ignore[arg-type]  # varied by the tables below


@pytest.mark.parametrize(
    ("end", "log", "wanted"),
    [
        (ended(), "", Conclusion.NO_SUBMISSION),
        (ended(submission_sequence=2), "", Conclusion.GRADED),
        (ended(code=1, submission_sequence=2), "ValueError: no", Conclusion.GRADED),
        (ended("deadline", None, submission_sequence=1), "", Conclusion.GRADED),
        (ended("stopped", None, submission_sequence=1), "", Conclusion.STOPPED),
        (ended(), "No space left on device", Conclusion.NO_SUBMISSION),
        (ended(submission_sequence=1), "NVML: Unknown Error", Conclusion.GRADED),
        (ended(code=1, submission_sequence=3), "NVML: Unknown Error", Conclusion.GRADED),
        (ended(code=1, submission_too_large=True), "", Conclusion.TOO_LARGE),
        (ended(host_problem=FULL_DISK), "", Conclusion.NO_SUBMISSION),
    ],
)
def test_an_end_that_is_no_failure(end: Ending, log: str, wanted: Conclusion | Failure) -> None:
    assert classify(end, log) == wanted


@pytest.mark.parametrize(
    ("end", "log", "kind", "telling"),
    [
        (ended("deadline", None), "working", FailureClass.TIMEOUT, "time limit was reached"),
        (ended("lost", None, problem="it was killed"), "x", FailureClass.INFRASTRUCTURE, "it was killed"),
        (ended(code=1), "Traceback\nValueError: no", FailureClass.CRASH, "exit code 1"),
        (ended(code=137, oom_kills=1), "Killed", FailureClass.MEMORY, "out of memory"),
        (ended(code=137), "Killed", FailureClass.UNKNOWN, "SIGKILL"),
        (ended(code=139), "", FailureClass.CRASH, "SIGSEGV"),
        (ended(code=1), "cp: '/dev/shm/x': No space left on device", FailureClass.MEMORY, "shared memory"),
        (ended(code=1), "write to </torch_7_1>: No space left on device (28)", FailureClass.MEMORY, "shared"),
        (
            ended(code=1),
            "It is possible that insufficient shared memory (shm)",
            FailureClass.MEMORY,
            "shared",
        ),
        (ended(code=1), "numpy: MemoryError", FailureClass.MEMORY, "out of memory"),
        (ended(code=1), "torch.cuda.OutOfMemoryError: CUDA out of memory", FailureClass.MEMORY, "memory"),
        (
            ended(code=1, host_problem=FULL_DISK),
            "",
            FailureClass.INFRASTRUCTURE,
            "disk is full",
        ),
        (
            ended(code=1, submission_sequence=3, host_problem=LOST_GPU),
            "",
            FailureClass.INFRASTRUCTURE,
            "GPU-a",
        ),
    ],
)
def test_a_failure_has_its_class_and_says_why(
    end: Ending, log: str, kind: FailureClass, telling: str
) -> None:
    verdict = classify(end, log)
    assert isinstance(verdict, Failure)
    assert verdict.kind is kind
    assert telling in verdict.text


@pytest.mark.parametrize(
    ("line", "suspected"),
    [
        ("cp: '/tmp/x': No space left on device", ProblemCode.DISK_FULL),
        ("Failed to initialize NVML: Unknown Error", ProblemCode.GPU_LOST),
        ("CUDA error: unspecified launch failure", ProblemCode.GPU_FAILED),
        ("bwrap: Can't mount proc", ProblemCode.SANDBOX_NOT_MADE),
        ("Temporary failure in name resolution", ProblemCode.NETWORK_FAILED),
        ("Connection reset by peer", ProblemCode.NETWORK_FAILED),
        ("Error code: 429 insufficient_quota", ProblemCode.PROVIDER_QUOTA),
        ("openai.AuthenticationError", ProblemCode.PROVIDER_REFUSED),
    ],
)
def test_words_of_the_agent_make_infrastructure_suspected_and_no_more(
    line: str, suspected: ProblemCode
) -> None:
    verdict = classify(ended(code=1), line)
    assert isinstance(verdict, Failure)
    assert verdict.kind is FailureClass.CRASH
    assert (verdict.suspected, verdict.problem) == (suspected, None)
    assert verdict.evidence == line


def test_a_failure_that_the_host_shows_is_not_suspected_but_known() -> None:
    verdict = classify(ended(code=1, host_problem=FULL_DISK), "Connection reset by peer")
    assert isinstance(verdict, Failure)
    assert (verdict.suspected, verdict.problem) == (None, ProblemCode.DISK_FULL)


def test_an_agent_without_a_sandbox_gains_nothing_by_killing_what_watches_it() -> None:
    killed = ended("lost", None, problem="its sandbox was killed from outside")
    verdict = classify(killed, "", isolated=False)
    assert isinstance(verdict, Failure)
    assert verdict.kind is FailureClass.UNKNOWN
    assert verdict.suspected is ProblemCode.SANDBOX_LOST
    with_submission = ended("lost", None, problem="killed", submission_sequence=1)
    assert classify(with_submission, "", isolated=False) is Conclusion.GRADED
    restarted = ended("lost", None, host_problem=RESTARTED)
    assert classify(restarted, "", isolated=False).kind is FailureClass.INFRASTRUCTURE  # type: ignore[union-attr]


def test_a_preempted_agent_without_a_sandbox_has_no_result_whatever_it_has_submitted() -> None:
    lost = Ending("lost", None, None, 10, 20, submission_sequence=1, problem="the batch system ended its job")
    assert classify(lost, "", isolated=False) is Conclusion.GRADED
    failure = classify(lost, "", isolated=False, evicted=ProblemCode.PREEMPTED)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.problem) == (FailureClass.INFRASTRUCTURE, ProblemCode.PREEMPTED)
    # One that has ended by itself before its node failed keeps its result.
    ended = Ending("exited", 0, None, 10, 20, submission_sequence=1)
    assert classify(ended, "", isolated=False, evicted=ProblemCode.PREEMPTED) is Conclusion.GRADED


def test_the_evidence_is_the_line_that_tells_it() -> None:
    verdict = classify(ended(code=1), "begin\n  No space left on device: 'x'  \nend\n")
    assert isinstance(verdict, Failure)
    assert verdict.evidence == "No space left on device: 'x'"


def test_an_endless_line_makes_no_endless_evidence() -> None:
    verdict = classify(ended(code=1), "x" * 100_000)
    assert isinstance(verdict, Failure)
    assert len(verdict.evidence) <= 400


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("idle", FailureClass.TIMEOUT),
        ("disk", FailureClass.DISK),
        ("memory", FailureClass.MEMORY),
        ("processes", FailureClass.CRASH),
    ],
    ids=str,
)
def test_the_end_by_a_limit_is_the_agents_own_and_a_submission_still_counts(
    reason: str, kind: FailureClass
) -> None:
    verdict = classify(Ending(reason, None, None, 1.0, 2.0, problem="figures"), "")
    assert isinstance(verdict, Failure)
    assert verdict.kind is kind
    assert "figures" in verdict.text
    graded = classify(Ending(reason, None, None, 1.0, 2.0, submission_sequence=1), "")
    assert graded is Conclusion.GRADED


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (ended(code=1), FailureClass.BUDGET),
        (ended("deadline", None), FailureClass.BUDGET),
        (ended("disk", None), FailureClass.DISK),
        (ended("lost", None), FailureClass.INFRASTRUCTURE),
    ],
)
def test_an_agent_left_without_models_has_failed_for_its_budget(end: Ending, kind: FailureClass) -> None:
    failure = classify(end, "insufficient_quota", over_budget=True)
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert ("budget" in failure.text) == (kind is FailureClass.BUDGET)
    assert classify(ended(submission_sequence=1), "", over_budget=True) is Conclusion.GRADED


def test_a_provider_without_any_connection_is_infrastructure_and_one_that_refuses_is_suspected() -> None:
    away = AttemptOutage("openai", 0, 3, 3, 1.0, 2.0, confirmed=True)
    busy = AttemptOutage("openai", 429, 5, 0, 1.0, 2.0, confirmed=True)
    shown = classify(ended(code=1, submission_sequence=1), "", outage=away)
    assert isinstance(shown, Failure)
    assert shown.kind is FailureClass.INFRASTRUCTURE
    assert shown.text == "the provider openai can't be reached (its last 3 calls)"
    assert shown.evidence.endswith("before its end, of these 3 without a connection")
    assert shown.problem is ProblemCode.PROVIDER_AWAY
    assert shown.subject.provider == "openai"
    suspected = classify(ended(code=1), "ValueError", outage=busy)
    assert isinstance(suspected, Failure)
    assert (suspected.kind, suspected.suspected) == (FailureClass.CRASH, ProblemCode.PROVIDER_AWAY)
    assert "answers 429 (its last 5 calls)" in suspected.evidence and suspected.subject.provider == "openai"
    waited = classify(ended("deadline", None), "", outage=away)
    assert isinstance(waited, Failure)
    assert (waited.kind, waited.suspected) == (FailureClass.TIMEOUT, ProblemCode.PROVIDER_AWAY)
    assert classify(ended(), "", outage=away) is Conclusion.NO_SUBMISSION


def test_an_agent_without_a_sandbox_can_only_make_an_outage_of_its_provider_suspected() -> None:
    away = AttemptOutage("openai", 0, 3, 3, 1.0, 2.0, confirmed=True)
    verdict = classify(ended(code=1), "", isolated=False, outage=away)
    assert isinstance(verdict, Failure)
    assert (verdict.kind, verdict.suspected) == (FailureClass.CRASH, ProblemCode.PROVIDER_AWAY)


def test_a_sign_is_found_at_either_end_of_a_long_line_which_costs_no_more_than_many_short_ones() -> None:
    long = "x" * 60_000
    for line in (f"NVML: Unknown Error {long}", f"{long} NVML: Unknown Error"):
        failure = classify(ended(code=1), line)
        assert isinstance(failure, Failure)
        assert failure.suspected is ProblemCode.GPU_LOST
    began = time.process_time()
    classify(ended(code=1), "NVML" * 16_384)
    hostile = time.process_time() - began
    began = time.process_time()
    classify(ended(code=1), "NVML\n" * 16_384)
    assert hostile < 20 * (time.process_time() - began)


def test_codes_and_reasons_of_another_version_lose_no_run() -> None:
    """A newer runner's reason is not taken for a normal end, its problem is kept as another one."""
    eclipse = HostProblem("moon_eclipsed", "the moon was eclipsed")
    verdict = classify(ended(code=1, host_problem=eclipse), "")
    assert isinstance(verdict, Failure)
    assert (verdict.kind, verdict.problem) == (FailureClass.INFRASTRUCTURE, ProblemCode.OTHER)
    assert verdict.text == "the moon was eclipsed"
    verdict = classify(ended("abducted", None, problem="by a ray"), "")
    assert isinstance(verdict, Failure)
    assert (verdict.kind, verdict.text) == (FailureClass.UNKNOWN, "ended (abducted): by a ray")
    assert classify(ended("abducted", None, submission_sequence=1), "") is Conclusion.GRADED
