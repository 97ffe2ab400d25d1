"""A sweep that takes the name of a removed one has nothing of it."""

from __future__ import annotations

from mlebench_console.engine.requests import RemoveSweep
from mlebench_console.state.lifecycle import Outcome, RunState
from tests.engine.harness import SLOTS, SUBMIT, WAIT_FOR_GO, Harness, eventually


def test_a_removed_sweep_does_not_end_a_later_one_of_its_name(harness: Harness) -> None:
    """The later one waits for a slot while the files of the removed one are still being removed."""
    harness.agent("first", SUBMIT)
    harness.agent("second", "true")
    harness.agent("busy", WAIT_FOR_GO)
    harness.start()
    harness.launch("first", name="again", cpus=1)
    (run,) = harness.ended()
    assert run.outcome is Outcome.BELOW_MEDIAN
    harness.launch("busy", name="busy", cpus=SLOTS)
    eventually(lambda: [run for run in harness.runs() if run.state is RunState.RUNNING])
    harness.ask(RemoveSweep(sweep_id="again", with_results=True))
    harness.launch("second", name="again", cpus=1)
    eventually(lambda: not list((harness.places.state_dir / "leaving").iterdir()))
    (busy,) = [run for run in harness.runs() if run.sweep_id == "busy"]
    harness.go(busy)
    ended = {run.sweep_id: run for run in harness.ended()}
    assert ended["again"].outcome is Outcome.NO_SUBMISSION
    assert ended["again"].id > run.id
