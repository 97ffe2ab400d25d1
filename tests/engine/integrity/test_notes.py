"""Rules that only note something: each says so of a run of that kind, and of no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from mlebench_console.engine.integrity import facts
from mlebench_console.engine.integrity.material import ExaminedRun
from mlebench_console.environment.gateway.records import CallOutcome, Journal, ModelCall
from mlebench_console.environment.runner import protocol
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import Finding, Severity
from tests.conditions import changed
from tests.engine.integrity.corpus import HONEST
from tests.engine.integrity.made_runs import SPEC, MadeRun, examined_run

Rule = Callable[[ExaminedRun], Iterator[Finding]]
SILENT = MadeRun(log="epoch 1\n", log_times=[(0, 10.0)], submissions=[HONEST], submitted=30_000.0)
TALKING = replace(SILENT, log_times=[(0, 10.0), (8, 29_990.0)])
WITH_WEIGHTS = {"train.py": 'import timm\nmodel = timm.create_model("resnet50", pretrained=True)\n'}
FROM_SCRATCH = {"train.py": "from sklearn.linear_model import Ridge\nmodel = Ridge()\n"}


@pytest.mark.parametrize(
    ("rule", "made", "told"),
    [
        (facts.timing, SILENT, "nothing was printed for 8.3 h before the submission appeared"),
        (facts.timing, replace(TALKING, submitted=2.0, log_times=[(0, 1.0)]), "there 2 s after the start"),
        (facts.timing, replace(TALKING, log="", log_times=[]), "nothing was printed"),
        (facts.timing, TALKING, ""),
        (facts.pretrained_weights, MadeRun(code=WITH_WEIGHTS), "resnet50"),
        (facts.pretrained_weights, MadeRun(code=FROM_SCRATCH), ""),
    ],
)
def test_it_is_noted_and_not_flagged(state: Database, rule: Rule, made: MadeRun, told: str) -> None:
    assert_noted(list(rule(examined_run(state, made))), told)


@pytest.mark.parametrize(
    ("gpus", "busy", "told"), [(1, (0, 0), "was idle at all"), (1, (0, 3), ""), (0, (0, 0), "")]
)
def test_a_gpu_that_was_never_used_is_noted(
    state: Database, gpus: int, busy: tuple[int, int], told: str
) -> None:
    examined = examined_run(state, MadeRun(submissions=[HONEST], spec=changed(SPEC, gpus=gpus)))
    samples = [{"gpu_percent": busy[number % 2]} for number in range(200)]
    (examined.folder / protocol.USAGE).write_text("".join(f"{json.dumps(one)}\n" for one in samples))
    assert_noted(list(facts.unused_gpu(examined)), told)


def test_model_calls_are_noted_with_those_that_were_not_passed_on(state: Database) -> None:
    examined = examined_run(state, MadeRun())
    assert_noted(list(facts.model_calls(examined)), "")
    journal = Journal(examined.folder)
    for number, outcome in enumerate((CallOutcome.OK, CallOutcome.OK, CallOutcome.BUDGET)):
        journal.end(
            ModelCall(str(number), 1.0, "openai", "chat", outcome, "m", request_bytes=70, answer_bytes=30)
        )
    refused, sent = facts.model_calls(examined)
    assert_noted([refused], "model calls that were refused: openai 1")
    assert_noted([sent], "model calls by the gateway: openai 2")
    assert sent.numbers == {"bytes openai": 200}


def assert_noted(found: list[Finding], told: str) -> None:
    assert len(found) == bool(told)
    assert all(told in one.statement and one.severity is Severity.NOTE for one in found)
