"""Grading of what agents submit while they work and when they are done; an agent never learns of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path

from competitions.grader import Grader, GradeResult
from competitions.judging import GradeRequest
from competitions.model import edition_named
from engine.datasets.descriptions import OBFUSCATED
from engine.grading.grader import report_on, request_for
from engine.grading.report import Report
from environment.runner import protocol
from environment.runner.protocol import Order
from foundation.clock import Clock
from foundation.problems import EnvironmentProblem, Problem
from state import runs, submissions, sweeps, transitions
from state.database import Database
from state.lifecycle import FailureClass, Outcome, RunState
from state.records import Attempt, Grade, Run, Submission, Sweep
from state.transitions import Failure

_TRIES = 2


@dataclass(frozen=True)
class _Work:
    submission: Submission
    run_id: int
    request: GradeRequest
    descriptions: str | None


class LiveGrading:
    """Finds what is to be graded, has it graded, and lets runs end with their outcome."""

    def __init__(
        self, database: Database, grader: Grader, state_dir: Path, clock: Clock, *, at_once: int
    ) -> None:
        self._database = database
        self._grader = grader
        self._state_dir = state_dir
        self._clock = clock
        self._at_once = at_once
        self._working: dict[int, _Work] = {}
        self._tries: dict[int, int] = {}
        self._graded_at: dict[int, float] = {}
        self._results: deque[GradeResult] = deque()

    @property
    def working(self) -> int:
        """Count the submissions that are being graded."""
        return len(self._working)

    def step(self) -> None:
        """Let graded runs end, and start grading what is due, final submissions first."""
        final = {attempt.id for attempt in self._settle()}
        due = [found for found in submissions.ungraded(self._database) if self._is_due(found, final)]
        for submission in sorted(due, key=lambda found: found.attempt_id not in final):
            if self.working >= self._at_once:
                return
            self._start(submission)

    def take_results(self) -> None:
        """Keep what has been graded."""
        self._results.extend(self._grader.poll())
        while self._results:  # one that can't be kept must not keep the others from being taken
            result = self._results.popleft()
            work = self._working.pop(result.number)
            if result.judgement is None or result.killed:
                why = "" if result.judgement is None else result.judgement.message
                problem = result.problem or EnvironmentProblem("grading was killed", why)
                self._note_failure(work.submission, work.run_id, problem)
            else:
                self._keep(work, report_on(work.request, result.judgement, work.descriptions))

    def _settle(self) -> list[Attempt]:
        """End the runs whose final submission is graded; returns those that still wait for it."""
        waiting = []
        for run in runs.live(self._database):
            attempt = runs.latest_attempt(self._database, run.id) if run.state is RunState.GRADING else None
            if attempt is None:
                continue
            final = submissions.final_of(self._database, attempt.id)
            if final is not None and final.standing is not None:
                self._finish(attempt, final.standing)
            else:
                waiting.append(attempt)
        return waiting

    def _is_due(self, submission: Submission, final: set[int]) -> bool:
        if any(work.submission.id == submission.id for work in self._working.values()):
            return False
        if submission.attempt_id in final:
            return True
        if self._tries.get(submission.id, 0) >= _TRIES:
            return False
        last = self._graded_at.get(submission.attempt_id)
        every = self._sweep_of(submission).spec.grade_every_seconds
        return last is None or self._clock.monotonic() - last >= every

    def _start(self, submission: Submission) -> None:
        sweep = self._sweep_of(submission)
        run = self._run_of(submission)
        attempt = runs.attempt(self._database, submission.attempt_id)
        order = protocol.read_if_there(self._state_dir / attempt.directory / protocol.ORDER, Order)
        descriptions = OBFUSCATED if order is not None and order.obfuscated else None
        try:
            request = request_for(
                self._state_dir / submission.path,
                run.competition_id,
                data_dir=sweep.spec.data_dir,
                edition=edition_named(sweep.spec.edition),
            )
        except Problem as problem:
            self._note_failure(submission, run.id, problem)
        else:
            work = _Work(submission, run.id, request, descriptions)
            self._working[self._grader.start(request)] = work
        self._graded_at[submission.attempt_id] = self._clock.monotonic()

    def _keep(self, work: _Work, report: Report) -> None:
        now = self._clock.now()
        grade = Grade(
            work.submission.id,
            now,
            report.edition,
            report.score,
            report.valid_submission,
            standing_of(report),
            report.message,
            report.to_dict(extended=True),
        )
        submissions.add_grade(self._database, grade, now=now)

    def _note_failure(self, submission: Submission, run_id: int, problem: Problem) -> None:
        """Note that grading itself failed: after a second try the run of a final submission fails."""
        tries = self._tries.get(submission.id, 0) + 1
        self._tries[submission.id] = tries
        run = runs.get(self._database, run_id)
        if tries >= _TRIES and run.state is RunState.GRADING:
            text = f"grader error: {problem.what}"
            failure = Failure(FailureClass.INFRASTRUCTURE, text, str(problem))
            transitions.failed(self._database, submission.attempt_id, failure, now=self._clock.now())

    def _finish(self, attempt: Attempt, standing: Outcome) -> None:
        transitions.finished(self._database, attempt.id, standing, now=self._clock.now())
        self._graded_at.pop(attempt.id, None)

    def _run_of(self, submission: Submission) -> Run:
        return runs.get(self._database, runs.attempt(self._database, submission.attempt_id).run_id)

    def _sweep_of(self, submission: Submission) -> Sweep:
        return sweeps.get(self._database, self._run_of(submission).sweep_id)


def standing_of(report: Report) -> Outcome:
    """Return what a report is worth as a run's outcome."""
    if not report.submission_exists:
        return Outcome.NO_SUBMISSION
    if not report.valid_submission:
        return Outcome.INVALID
    if report.medal is not None:
        return Outcome(report.medal)
    return Outcome.ABOVE_MEDIAN if report.above_median else Outcome.BELOW_MEDIAN
