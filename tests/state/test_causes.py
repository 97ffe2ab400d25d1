"""Failures that differ in figures and ids alone have one cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state import events, runs, transitions
from mlebench_console.state.causes import LONGEST_CAUSE, cause_key, cause_of, group_of, normalised
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import RunFailed
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure

LOST = "GPU lost: Failed to initialize NVML: Unknown Error"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{LOST} (GPU-1a2b3c4d-1111-2222-3333-444455556666)", f"{LOST} (GPU-#)"),
        ("GPU 3 of 8 was lost at 2026-03-14 03:14:07.5Z", "GPU # of # was lost at #"),
        ("the agent ended with exit code 137", "the agent ended with exit code 137"),
        ("the provider openai answers 429 (its last 12 calls)", "the provider openai answers 429 (its last # calls)"),
        ("out of memory: killed at 64.0 GB", "out of memory: killed at #"),
        ("nothing happened for 2h10m", "nothing happened for #"),
        ("No such file: '/home/data/train_12.csv'", "No such file: #"),
        ("/dev/shm is full", "# is full"),
        ("KeyError: 'target'", "KeyError: 'target'"),
        ("there is no container 'mlebench-1a2b3c'", "there is no container #"),
        ("10.0.0.3:8080 and fe80::1ff:fe23:4567:890a refused", "# and # refused"),
        ("https://op:pw@api.openai.com:8443/v1?key=1 refused", "api.openai.com refused"),
        ("an illegal access at 0x7f3a00", "an illegal access at #"),
        ("got [3, 224, 224] and [1, 224, 224]", "got [#] and [#]"),
        ("job 1234_5 on node17: NODE_FAIL", "job #_# on node#: NODE_FAIL"),
        ("it can't be looked after: it's the daemon's fault", "it can't be looked after: it's the daemon's fault"),
        ("one\ntwo\x1b[31m   three", "one two [# three"),
        ("seed 2 of leaf-classification", "seed # of #"),
    ],
)  # fmt: skip
def test_what_differs_from_run_to_run_is_no_part_of_a_cause(text: str, cause: str) -> None:
    assert normalised(text, ("leaf-classification",)) == cause


@given(st.text(max_size=3000), st.integers(0, 10**9))
def test_a_cause_is_bounded_printable_and_the_same_whatever_the_figures(text: str, number: int) -> None:
    cause = normalised(text)
    assert len(cause) <= LONGEST_CAUSE and (cause.isprintable() or not cause)
    assert normalised(f"lost after {number} s") == "lost after #"


def test_of_a_program_that_failed_the_exception_is_the_cause_and_words_of_an_agent_make_no_infrastructure() -> (
    None
):
    evidence = f"21:01 epoch 3\n21:02 RuntimeError: {LOST}, 17 times\nbye"
    crash = cause_of(FailureClass.CRASH, "the agent ended with exit code 1", evidence=evidence)
    assert crash == f"RuntimeError: {LOST}, # times"
    lost = cause_of(FailureClass.INFRASTRUCTURE, f"RuntimeError: {LOST}, 18 times", evidence=evidence)
    assert lost == crash, "the same words"
    keys = {
        cause_key(group_of(kind, suspected), crash)
        for kind in FailureClass
        for suspected in (None, ProblemCode.GPU_LOST)
    }
    assert len(keys) == len(FailureClass) + 1, "a key for each class, and one for what is suspected"


def fail(state: Database, place: int, failure: Failure) -> int:
    run = runs.of_sweep(state, "dummy-1")[place]
    attempt = transitions.launch(state, run.id, directory=f"d{place}", runtime="plain", now=1)
    transitions.failed(state, attempt.id, failure, now=2)
    return run.id


def test_a_failure_is_written_with_its_cause_which_goes_when_the_run_is_launched_again(
    swept: Database,
) -> None:
    lost = fail(swept, 0, Failure(FailureClass.INFRASTRUCTURE, f"{LOST} of dummy-1 on alpha (GPU-0a1b)"))
    assert runs.get(swept, lost).cause == f"{LOST} of # on # (GPU-#)"
    (event,) = (event for event in events.newest(swept, run_id=lost) if event.kind == "run.failed")
    assert isinstance(event.detail, RunFailed)
    assert event.detail.cause == cause_key("infrastructure", runs.get(swept, lost).cause)
    transitions.classified(swept, lost, FailureClass.MEMORY, note="too much at 5", by="me", now=3)
    assert runs.get(swept, lost).cause == "too much at #"
    transitions.requeued(swept, lost, by="me", now=4)
    transitions.launch(swept, lost, directory="again", runtime="plain", now=5)
    assert runs.get(swept, lost).cause == ""
