"""Limits that no kernel holds, in the process runtime as a whole: idle, disk, memory; each told by its own name."""

from __future__ import annotations

import time

import pytest

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process.containment import limits_here
from mlebench_console.foundation.text import names_of_limits
from mlebench_console.state import database, events
from mlebench_console.state.lifecycle import FailureClass, RunState
from tests.engine.harness import SUBMIT, WAIT_FOR_GO, Harness, eventually, lines

pytestmark = pytest.mark.usefixtures("bubblewrap")
FILL = 'dd if=/dev/zero of="$CODE_DIR/big" bs=1M count=40 status=none'
WORK = "while :; do :; done"
HUNGRY = "python -c 'bytearray(8 << 30)'"


def test_each_limit_ends_its_own_run_alone_and_says_why(harness: Harness) -> None:
    agents = {
        "silent": ("echo begun; exec sleep 1000", {"idle_limit_seconds": 3}),
        "handed-in": (f"{SUBMIT}; exec sleep 1000", {"idle_limit_seconds": 3}),
        "full": (f"{FILL}; {WAIT_FOR_GO}", {"disk_limit_bytes": 20_000_000}),
        "hungry": (HUNGRY, {"memory_bytes": 2 << 30}),
        "busy": (f"timeout 8 bash -c '{WORK}'; {WAIT_FOR_GO}", {"disk_limit_bytes": 10**9}),
    }
    harness.start()
    for name, (script, limits) in agents.items():
        harness.agent(name, script)
        harness.launch(name, name=name, **limits)
    eventually(lambda: sum(run.has_ended for run in harness.runs()) == 4)
    ended = {run.sweep_id: run for run in harness.runs()}

    assert ended["silent"].failure_class is FailureClass.TIMEOUT
    assert "nothing happened for" in ended["silent"].failure_text
    assert ended["handed-in"].state is RunState.FINISHED, "what it had handed in still counts"
    assert "ended for its disk use" in ended["full"].failure_text
    assert "at most 20,000,000 are allowed" in ended["full"].failure_text
    assert ended["hungry"].failure_class is FailureClass.MEMORY
    assert ended["busy"].state is RunState.RUNNING
    assert all(len(harness.attempts(run)) == 1 for run in ended.values())


def test_how_long_nothing_happened_is_known_while_it_does(harness: Harness) -> None:
    harness.agent("silent", WAIT_FOR_GO.replace("0.05", "1"))
    harness.start()
    harness.launch("silent")
    (run,) = harness.until_started()
    usage = harness.folder(run) / protocol.USAGE
    eventually(lambda: usage.exists() and [line for line in lines(usage) if line["idle_seconds"] >= 2])
    told = lines(usage)[-1]
    eventually(lambda: (harness.runs()[0].last_activity_at or 0) >= told["at"] - told["idle_seconds"] - 0.1)
    (run,) = harness.runs()
    assert run.last_activity_at is not None
    assert run.last_activity_at < time.time() - 1.9
    harness.go(run)
    harness.ended()


def test_a_limit_that_nothing_holds_is_told_on_the_run(harness: Harness) -> None:
    unenforced = limits_here(isolated=False).unenforced
    assert "user_namespaces" in unenforced, "without bubblewrap nothing holds them"
    harness.agent("plain", "true")
    harness.start()
    harness.launch("plain", runtime="plain")
    (run,) = harness.ended()
    (attempt,) = harness.attempts(run)
    assert attempt.unenforced == unenforced
    state = database.open_for_reading(harness.places.state_dir)
    try:
        told = [event.text for event in events.newest(state, run_id=run.id)]
    finally:
        state.close()
    limits = names_of_limits(unenforced)
    assert f"attempt 1 is running, not isolated, limits not enforced: {limits}" in told
