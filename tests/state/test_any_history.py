"""Whatever is asked for in whatever order, with crashes in between, the state tells one true story."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import database as state_database
from mlebench_console.state import events, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import (
    ALLOWED_AFTER,
    ENDED,
    LIVE,
    FailureClass,
    ForbiddenTransition,
    Outcome,
    RunState,
)
from mlebench_console.state.records import Grade
from mlebench_console.state.submissions import Snapshot
from mlebench_console.state.transitions import Failure
from tests.state.worlds import create_sweep

RUNS = 4
run_ids = st.integers(min_value=1, max_value=RUNS)


class PowerCut(Exception):
    """The process dies here."""


class AnyHistory(RuleBasedStateMachine):
    """The model is a state and an attempt count for each run, and the number of events."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = self._open()
        self.now = 1.0

    def _open(self) -> Database:
        return state_database.open_for_writing(Path(self.folder.name))

    @initialize()
    def _create(self) -> None:
        create_sweep(self.database)
        self.states = dict.fromkeys(range(1, RUNS + 1), RunState.QUEUED)
        self.attempts = dict.fromkeys(range(1, RUNS + 1), 0)
        self.rerolls = dict.fromkeys(range(1, RUNS + 1), 0)
        self.launched = dict.fromkeys(range(1, RUNS + 1), False)  # since it was last queued
        self.classes: dict[int, FailureClass | None] = dict.fromkeys(range(1, RUNS + 1))
        self.standings: dict[int, Outcome | None] = dict.fromkeys(range(1, RUNS + 1))
        self.scores: dict[int, float | None] = dict.fromkeys(range(1, RUNS + 1))
        self.events = 1

    def _step(self, run_id: int, wanted: RunState) -> None:
        """Ask for one step in the way that leads to `wanted`."""
        self.now += 1
        latest = runs.latest_attempt(self.database, run_id)
        attempt = latest.id if latest else -1
        now = self.now
        match wanted:
            case RunState.QUEUED:
                transitions.requeued(self.database, run_id, by="test", now=now)
            case RunState.STARTING:
                directory = f"run-{run_id}-{self.attempts[run_id] + 1}"
                transitions.launch(self.database, run_id, directory=directory, runtime="process", now=now)
            case RunState.RUNNING:
                transitions.started(self.database, attempt, isolated=True, at=now, now=now)
            case RunState.COLLECTING:
                transitions.agent_ended(
                    self.database, attempt, EndReason.EXITED, exit_code=0, at=now, now=now
                )
            case RunState.GRADING:
                transitions.collected(self.database, attempt, now=now)
            case RunState.FINISHED:
                transitions.finished(self.database, attempt, Outcome.BRONZE, now=now)
            case RunState.FAILED:
                transitions.failed(self.database, attempt, Failure(FailureClass.CRASH, "boom"), now=now)
            case RunState.STOPPED:
                transitions.stopped(self.database, run_id, by="test", now=now)

    def _expect(self, run_id: int, wanted: RunState) -> None:
        before = self.states[run_id]
        self.states[run_id] = wanted
        self.events += 1
        if wanted is RunState.STARTING:
            self.attempts[run_id] += 1
            self.launched[run_id] = True
            self.classes[run_id] = None
            self.standings[run_id] = self.scores[run_id] = None
        if wanted is RunState.QUEUED and before in ENDED:
            spared = self.classes[run_id] is FailureClass.INFRASTRUCTURE or not self.launched[run_id]
            self.rerolls[run_id] += 0 if spared else 1
            self.launched[run_id] = False
        if wanted is RunState.FAILED:
            self.classes[run_id] = FailureClass.CRASH
        if wanted is RunState.FINISHED:
            self.standings[run_id] = Outcome.BRONZE

    def _attempt_exists(self, run_id: int, wanted: RunState) -> bool:
        return self.attempts[run_id] > 0 or wanted in (RunState.QUEUED, RunState.STARTING, RunState.STOPPED)

    @rule(run_id=run_ids, pick=st.integers(min_value=0, max_value=7))
    def take_an_allowed_step(self, run_id: int, pick: int) -> None:
        possible = sorted(ALLOWED_AFTER[self.states[run_id]])
        wanted = possible[pick % len(possible)]
        self._step(run_id, wanted)
        self._expect(run_id, wanted)

    @rule(run_id=run_ids, wanted=st.sampled_from(RunState))
    def ask_for_any_step(self, run_id: int, wanted: RunState) -> None:
        if not self._attempt_exists(run_id, wanted):
            return
        if wanted in ALLOWED_AFTER[self.states[run_id]]:
            self._step(run_id, wanted)
            self._expect(run_id, wanted)
            return
        try:
            self._step(run_id, wanted)
        except ForbiddenTransition:
            return
        raise AssertionError(f"{self.states[run_id]} became {wanted}")

    @rule(run_id=run_ids, pick=st.integers(min_value=0, max_value=7))
    def die_in_the_middle_of_a_step(self, run_id: int, pick: int) -> None:
        possible = sorted(ALLOWED_AFTER[self.states[run_id]])
        try:
            with self.database.transaction():
                self._step(run_id, possible[pick % len(possible)])
                raise PowerCut
        except PowerCut:
            self.reopen()

    @rule()
    def reopen(self) -> None:
        self.database.close()
        self.database = self._open()

    @precondition(lambda self: any(state in LIVE for state in self.states.values()))
    @rule(
        pick=st.integers(min_value=0, max_value=RUNS),
        standing=st.sampled_from([Outcome.GOLD, Outcome.INVALID, Outcome.BELOW_MEDIAN]),
    )
    def hand_in_and_grade(self, pick: int, standing: Outcome) -> None:
        live = [run_id for run_id, state in self.states.items() if state in LIVE]
        run_id = live[pick % len(live)]
        attempt = runs.latest_attempt(self.database, run_id)
        assert attempt is not None
        sequence = len(submissions.of_attempt(self.database, attempt.id)) + 1
        snapshot = Snapshot(sequence, self.now, 1.0, f"{sequence:064x}", 10, f"{sequence}.csv")
        submissions.add(self.database, attempt.id, snapshot)
        submissions.add(self.database, attempt.id, snapshot)
        newest = submissions.of_attempt(self.database, attempt.id)[-1]
        score = None if standing is Outcome.INVALID else float(sequence)
        verdict = Grade(newest.id, self.now, "v1", score, score is not None, standing, "")
        submissions.add_grade(self.database, verdict, now=self.now)
        submissions.add_grade(self.database, verdict, now=self.now)
        # What says the same as before is no news: the second grading of one file, or a second invalid file.
        if (self.standings[run_id], self.scores[run_id]) != (standing, score):
            self.events += 1
        self.standings[run_id], self.scores[run_id] = standing, score

    @rule(run_id=run_ids)
    def correct_the_class(self, run_id: int) -> None:
        if self.states[run_id] is not RunState.FAILED:
            return
        transitions.classified(
            self.database, run_id, FailureClass.INFRASTRUCTURE, note="disk", by="test", now=self.now
        )
        self.classes[run_id] = FailureClass.INFRASTRUCTURE
        self.events += 1

    @invariant()
    def the_state_is_what_the_model_says(self) -> None:
        if not hasattr(self, "states"):
            return
        found = {run.id: run for run in runs.of_sweep(self.database, "dummy-1")}
        assert {key: run.state for key, run in found.items()} == self.states
        assert {key: run.attempts for key, run in found.items()} == self.attempts
        assert {key: run.rerolls for key, run in found.items()} == self.rerolls
        for run_id, run in found.items():
            numbers = [attempt.number for attempt in runs.attempts(self.database, run_id)]
            assert numbers == list(range(1, self.attempts[run_id] + 1))
            if run.state in LIVE or run.state is RunState.FINISHED:
                assert run.standing == self.standings[run_id]
        assert len(events.newest(self.database, limit=10_000)) == self.events

    @invariant()
    def the_counts_add_up(self) -> None:
        if not hasattr(self, "states"):
            return
        counts = sweeps.counts(self.database)["dummy-1"]
        states = list(self.states.values())
        assert counts.total == RUNS
        assert counts.queued == states.count(RunState.QUEUED)
        assert counts.live == sum(state in LIVE for state in states) == len(runs.live(self.database))
        assert counts.failed == states.count(RunState.FAILED)
        assert counts.medals == states.count(RunState.FINISHED)

    def teardown(self) -> None:
        self.database.close()
        self.folder.cleanup()


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
