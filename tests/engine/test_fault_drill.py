"""Whatever is killed, every run ends exactly once, with the outcome it would have had and all its output."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench_console.engine.requests import PauseSweep, RelaunchRuns, StopSweep
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host import readings
from mlebench_console.foundation import locks
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state import database, events, submissions
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import Run
from tests.engine.harness import SUBMIT, WAIT_FOR_GO, Harness, eventually, kill_holder, lines, shown

pytestmark = pytest.mark.usefixtures("bubblewrap")
WORK = f"echo first half; {WAIT_FOR_GO}; {SUBMIT}; echo second half"


def assert_ended_once(harness: Harness, run: Run) -> None:
    harness.assert_ended_once(run)
    assert not list(protocol.inbox(harness.places.state_dir).iterdir())
    assert readings.processes_of_attempt(harness.folder(run)) == []


def assert_finished_whole(harness: Harness, run: Run) -> None:
    assert run.state is RunState.FINISHED
    assert run.outcome is Outcome.BELOW_MEDIAN
    assert harness.log(run) == "first half\nsecond half\n"
    assert (harness.folder(run) / protocol.SNAPSHOTS / "1.csv").is_file()
    assert_ended_once(harness, run)


@pytest.mark.parametrize(
    "kill",
    [
        [Harness.kill_engine],
        [Harness.kill_runner],
        [Harness.kill_engine, Harness.kill_runner],
        [Harness.kill_runner, Harness.kill_engine],
    ],
    ids=["engine", "runner", "engine-then-runner", "runner-then-engine"],
)
def test_a_killed_engine_or_runner_adopts_its_running_agents(
    harness: Harness, kill: list[Callable[[Harness], None]]
) -> None:
    harness.agent("worker", WORK)
    harness.start()
    harness.launch("worker", seeds=4)
    running = harness.until_started()
    for one in kill:
        one(harness)
    harness.go(running[0])  # it ends with nobody there to see it
    eventually((harness.folder(running[0]) / protocol.ENDING).exists)
    harness.start()
    for run in running[1:]:
        harness.go(run)
    for run in harness.ended():
        assert_finished_whole(harness, run)


def test_everything_killed_at_once_loses_only_the_agents_whose_sandbox_was_killed(harness: Harness) -> None:
    harness.agent("worker", WORK)
    harness.start()
    harness.launch("worker", seeds=4)
    lost, *others = harness.until_started()
    harness.kill_engine()
    harness.kill_runner()
    harness.kill_shim(lost)
    harness.start()
    for run in others:
        harness.go(run)
    ended = {run.id: run for run in harness.ended()}
    for run in others:
        assert_finished_whole(harness, ended[run.id])
    failed = ended[lost.id]
    assert failed.failure_class is FailureClass.INFRASTRUCTURE
    assert "sandbox lost" in failed.failure_text
    assert harness.log(failed) == "first half\n"
    assert_ended_once(harness, failed)


def test_killed_workers_are_replaced_and_their_grading_is_done_again(harness: Harness) -> None:
    harness.agent("worker", f"{SUBMIT}; {WORK}")
    harness.start()
    harness.launch("worker", seeds=2)
    running = harness.until_started()
    eventually(lambda: all(run.standing for run in harness.runs()))
    assert harness.kill_workers() == 1
    for run in running:
        harness.go(run)
    for run in harness.ended():
        assert run.outcome is Outcome.BELOW_MEDIAN
        assert_ended_once(harness, run)


def test_what_a_killed_engine_left_half_handed_over_is_gone_with_the_next(harness: Harness) -> None:
    inbox = protocol.inbox(harness.places.state_dir)
    harness.start()
    harness.kill_engine()
    inbox.mkdir(parents=True, exist_ok=True)
    (inbox / ".7.json.5bbd6c3c.partial").write_text("{")
    harness.start()
    eventually(lambda: not list(inbox.iterdir()))


def test_a_deadline_holds_with_engine_and_runner_dead(harness: Harness) -> None:
    harness.agent("stubborn", "trap '' TERM; echo here; while :; do sleep 1; done")
    harness.start()
    harness.launch("stubborn", time_limit_seconds=4, grace_seconds=0.5)
    (run,) = harness.until_started()
    harness.kill_engine()
    harness.kill_runner()
    folder = harness.folder(run)
    eventually((folder / protocol.ENDING).exists)
    eventually(lambda: not readings.processes_of_attempt(folder))
    harness.start()
    (run,) = harness.ended()
    assert run.failure_class is FailureClass.TIMEOUT
    assert_ended_once(harness, run)


def test_an_agent_that_ends_after_its_shim_was_killed_leaves_no_grandchildren(harness: Harness) -> None:
    daemon = "setsid bash -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & echo daemon started"
    harness.agent("daemon", f"{daemon}; {WAIT_FOR_GO}")
    harness.start()
    harness.launch("daemon", runtime="plain")
    (run,) = harness.until_started()
    folder = harness.folder(run)
    eventually(lambda: "daemon started" in harness.log(run))
    assert len(readings.processes_of_attempt(folder)) > 1
    harness.kill_shim(run)
    (run,) = harness.ended()
    assert readings.processes_of_attempt(folder) == []
    assert run.failure_class is FailureClass.UNKNOWN
    assert run.suspected


def test_a_runner_killed_in_the_middle_of_handing_over_starts_no_agent_twice(harness: Harness) -> None:
    harness.agent("worker", WORK)
    harness.start()
    harness.launch("worker", seeds=8)
    lock = harness.places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
    for _ in range(3):
        eventually(lambda: lock.exists() and locks.is_held(lock) and lock.read_text().isdigit())
        kill_holder(lock)
    for run in harness.until_started():
        harness.go(run)
    for run in harness.ended():
        assert_finished_whole(harness, run)


def test_an_agent_that_prints_what_a_failing_host_looks_like_gains_nothing(harness: Harness) -> None:
    harness.agent("liar", 'echo "Connection reset by peer"; exit 3')
    harness.agent("liar-with-submission", f'{SUBMIT}; echo "CUDA error: unknown error"; exit 3')
    harness.start()
    harness.launch("liar", retries=5)
    (run,) = harness.ended()
    assert (run.failure_class, run.suspected) == (FailureClass.CRASH, ProblemCode.NETWORK_FAILED)
    assert harness.attempts(run)[0].evidence == "Connection reset by peer"
    harness.launch("liar-with-submission", retries=5)
    _, graded = harness.ended()
    assert (graded.outcome, graded.suspected) == (Outcome.BELOW_MEDIAN, ProblemCode.GPU_FAILED)
    harness.ask(RelaunchRuns(runs=shown(run, reroll=True)))
    assert harness.runs()[0].rerolls == 1


def test_an_infrastructure_failure_is_relaunched_for_free_and_keeps_its_first_attempt(
    harness: Harness,
) -> None:
    harness.agent("unlucky", f'if [ "$ATTEMPT" = 1 ]; then {WAIT_FOR_GO}; fi; {SUBMIT}')
    harness.start()
    harness.launch("unlucky")
    (run,) = harness.until_started()
    harness.kill_shim(run)
    (run,) = harness.ended()
    assert run.failure_class is FailureClass.INFRASTRUCTURE
    harness.ask(RelaunchRuns(runs=shown(run)))
    eventually(lambda: harness.runs()[0].attempts == 2)
    (run,) = harness.ended()
    assert run.outcome is Outcome.BELOW_MEDIAN
    assert run.rerolls == 0
    first, second = harness.attempts(run)
    assert first.failure_class is FailureClass.INFRASTRUCTURE
    assert second.outcome is Outcome.BELOW_MEDIAN
    assert (harness.places.state_dir / first.directory / protocol.EXIT).is_file()


def test_stopping_a_run_gives_its_agent_the_grace_and_keeps_what_it_had(harness: Harness) -> None:
    harness.agent("polite", f"trap 'echo leaving; exit 0' TERM; {SUBMIT}; {WAIT_FOR_GO}")
    harness.start()
    harness.launch("polite", seeds=2, concurrency=1, grace_seconds=20)
    running = eventually(lambda: [run for run in harness.runs() if run.submissions])[0]
    harness.ask(StopSweep(sweep_id=running.sweep_id))
    ended = harness.ended()
    assert [run.state for run in ended] == [RunState.STOPPED, RunState.STOPPED]
    stopped = next(run for run in ended if run.id == running.id)
    assert harness.log(stopped).endswith("leaving\n")
    assert (harness.folder(stopped) / protocol.SNAPSHOTS / "1.csv").is_file()
    assert next(run for run in ended if run.id != running.id).attempts == 0


def test_the_submission_is_graded_while_the_agent_works(harness: Harness) -> None:
    better = (
        """sed '2,$s/False/True/' "$DATA_DIR/sample_submission.csv" > "$SUBMISSION_DIR/submission.csv\""""
    )
    harness.agent("improver", f"{SUBMIT}; {WAIT_FOR_GO}; {better}")
    harness.start()
    harness.launch("improver")
    first = eventually(lambda: [run for run in harness.runs() if run.standing])[0]
    assert first.state is RunState.RUNNING
    assert first.outcome is None
    harness.go(first)
    (run,) = harness.ended()
    state = database.open_for_reading(harness.places.state_dir)
    try:
        curve = submissions.of_attempt(state, harness.attempts(run)[0].id)
    finally:
        state.close()
    assert [snapshot.sequence for snapshot in curve] == [1, 2]
    assert [snapshot.final for snapshot in curve] == [False, True]
    assert curve[0].score == first.score
    assert curve[1].score == run.score
    assert curve[0].sha256 != curve[1].sha256
    kinds = [line["kind"] for line in lines(harness.folder(run) / protocol.EVENTS)]
    assert kinds == ["started", "submission", "submission", "ended", "collected"]


def test_an_orderly_stop_of_the_engine_lets_agents_go_on(harness: Harness) -> None:
    from mlebench_console.engine import control

    harness.agent("worker", WORK)
    harness.start()
    harness.launch("worker")
    (run,) = harness.until_started()
    assert not control.stop(harness.places).running
    assert locks.is_held(harness.folder(run) / protocol.LOCK)
    harness.start()
    harness.go(run)
    assert_finished_whole(harness, harness.ended()[0])


def test_stopping_with_runs_leaves_nothing_running(harness: Harness) -> None:
    from mlebench_console.engine import control

    harness.agent("worker", WORK)
    harness.start()
    harness.launch("worker", seeds=3, concurrency=2)
    eventually(lambda: sum(run.state is RunState.RUNNING for run in harness.runs()) == 2)
    assert not control.stop(harness.places, with_runs=True).running
    states = sorted(run.state for run in harness.runs())
    assert states == [RunState.QUEUED, RunState.STOPPED, RunState.STOPPED]


def test_what_a_signal_ends_is_told_by_its_name(harness: Harness) -> None:
    harness.agent("suicide", "kill -SEGV $$")
    harness.start()
    harness.launch("suicide")
    (run,) = harness.ended()
    assert run.failure_class is FailureClass.CRASH
    assert signal.SIGSEGV.name in run.failure_text


def test_a_state_that_an_attempt_left_half_made_is_resumed(harness: Harness, tmp_path: Path) -> None:
    """The intent is in the state, nothing is on disk: as if the engine had died between the two."""
    from mlebench_console.state import runs, transitions

    harness.agent("worker", SUBMIT)
    harness.start()
    sweep = harness.launch("worker", concurrency=1)
    harness.ended()
    harness.ask(PauseSweep(sweep_id=sweep))
    (run,) = harness.runs()
    harness.ask(RelaunchRuns(runs=shown(run, reroll=True)))
    harness.kill_engine()
    state = database.open_for_writing(harness.places.state_dir)
    directory = protocol.attempt_folder(sweep, run.competition_id, run.seed, 2, "abc")
    transitions.launch(state, run.id, directory=directory, runtime=protocol.PLAIN, now=0.0, token="abc")
    assert runs.latest_attempt(state, run.id) is not None
    state.close()
    harness.start()
    (run,) = harness.ended()
    assert run.outcome is Outcome.BELOW_MEDIAN
    assert run.attempts == 2


def test_a_sandbox_that_was_killed_from_outside_is_lost_and_its_submission_is_not_graded_as_its_end(
    harness: Harness,
) -> None:
    harness.agent("worker", f"{SUBMIT}; {WAIT_FOR_GO}")
    harness.start()
    harness.launch("worker")
    (run,) = harness.until_started()
    tree = process_tree()
    below = tree.below(int((harness.folder(run) / protocol.LOCK).read_text()))
    sandbox = next(process for process in below if process.name == "bwrap")
    os.kill(sandbox.pid, signal.SIGKILL)
    (run,) = harness.ended()
    assert run.failure_class is FailureClass.INFRASTRUCTURE
    assert run.failure_text == "sandbox lost: its sandbox was killed from outside by SIGKILL"
    assert_ended_once(harness, run)


def test_a_validation_server_that_was_killed_is_there_again_and_what_fails_meanwhile_is_the_hosts(
    harness: Harness,
) -> None:
    check = '"$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv"'
    harness.agent("worker", f"{SUBMIT}; {WAIT_FOR_GO}; {check}; exit 3")
    harness.start()
    harness.launch("worker")
    (run,) = harness.until_started()
    shim = int((harness.folder(run) / protocol.LOCK).read_text())
    server = next(
        child.pid
        for child in process_tree()[shim]
        if b"mlebench_console.environment.validation_server"
        in Path(f"/proc/{child.pid}/cmdline").read_bytes()
    )
    socket = harness.folder(run) / protocol.SERVICES / protocol.VALIDATION_SOCKET
    before = socket.stat().st_ctime_ns
    os.kill(server, signal.SIGKILL)
    eventually(lambda: socket.exists() and socket.stat().st_ctime_ns != before, patience=15)
    harness.go(run)
    (run,) = harness.ended()
    assert "The submission is valid." in harness.log(run)
    assert run.failure_class is FailureClass.INFRASTRUCTURE
    assert run.failure_text == "the validation server was killed from outside while it ran"
    state = database.open_for_reading(harness.places.state_dir)
    try:
        (told,) = [event.text for event in events.newest(state, run_id=run.id) if event.kind == "run.service"]
    finally:
        state.close()
    assert told.startswith("the validation server was killed by SIGKILL after ")


DEEP = """
import os
for start in ("TMPDIR", "HOME", "AGENT_DIR"):
    os.chdir(os.environ[start])
    for _ in range(1100):  # deeper than Python recurses
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    os.mkdir("closed")
    os.chmod("closed", 0)
"""


def test_what_an_agent_leaves_to_be_removed_does_not_decide_how_it_ended(harness: Harness) -> None:
    harness.agent("digger", 'python "$AGENT_DIR/dig.py"; exit 7')
    (harness.agents_dir / "digger" / "dig.py").write_text(DEEP)
    harness.start()
    harness.launch("digger")
    (run,) = harness.ended()
    assert run.failure_class is FailureClass.CRASH
    assert run.failure_text == "the agent ended with exit code 7"
    assert not (harness.folder(run) / protocol.SCRATCH).exists()
    assert_ended_once(harness, run)
