"""Grade submissions while agents work and after they end; agents never learn the grades.

A problem of the grader, the dataset or the machine is not a verdict: the run stays in GRADING with the reason, and is
graded again at growing intervals, or when an operator requests it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

from mlebench_console.competitions.grader import Grader, GradeResult
from mlebench_console.competitions.judging import GradeRequest
from mlebench_console.competitions.model import edition_named
from mlebench_console.engine.grading.grader import report_on, request_for
from mlebench_console.engine.grading.report import Report, standing_of
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.foundation.backoff import Backoff, is_due
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.problems import Problem
from mlebench_console.state import runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database, UnusableState
from mlebench_console.state.lifecycle import RunState
from mlebench_console.state.records import Attempt, Grade, Run, Submission, Sweep

# The time between attempts to grade grows with the time since grading first failed, within these bounds.
_BACKOFF = Backoff(first=30.0, most=900.0)


class LiveGrading:
    """Finds ungraded submissions, has them graded, and ends runs with their outcome."""

    def __init__(
        self,
        database: Database,
        grader: Grader,
        state_dir: Path,
        clock: Clock,
        log: Log,
        redaction: TextRedactor,
        *,
        at_once: int,
    ) -> None:
        self._database = database
        self._grader = grader
        self._state_dir = state_dir
        self._clock = clock
        self._log = log
        self._redaction = redaction
        self._at_once = at_once
        self._working: dict[int, tuple[Submission, GradeRequest]] = {}
        # When later submissions of attempts are due, by the monotonic clock; final ones are at once.
        self._next_at: dict[int, float] = {}
        self._results: deque[GradeResult] = deque()

    @property
    def working(self) -> int:
        """Count the submissions that are being graded."""
        return len(self._working)

    def step(self) -> None:
        """End graded runs, and start grading due submissions, final ones first."""
        final = {attempt.id for attempt in self._settle()}
        now = self._clock.monotonic()
        self._next_at = {attempt: at for attempt, at in self._next_at.items() if at > now}
        waiting = submissions.ungraded(self._database)
        for submission in sorted(waiting, key=lambda found: found.attempt_id not in final):
            if self.working >= self._at_once:
                return
            if not self._is_due(submission, final):
                continue
            every = self._sweep_of(submission).spec.conditions.grade_every_seconds
            self._next_at[submission.attempt_id] = now + every
            try:
                request = self._request_for(submission)
                self._working[self._grader.start(request)] = submission, request
            except UnusableState:
                raise  # not a problem of this submission: all wait until the state can be used again
            except Exception as error:  # noqa: BLE001 - isolated from the others, logged, shown, and tried again
                self._note_failure(submission, error)

    def take_results(self) -> None:
        """Save the results of the grader in the state."""
        self._results.extend(self._grader.poll())
        while self._results:
            self._take(self._results[0])
            del self._working[self._results.popleft().number]

    def _take(self, result: GradeResult) -> None:
        submission, request = self._working[result.number]
        if result.judgement is None:
            assert result.problem is not None
            self._note_failure(submission, result.problem)
            return
        try:
            self._keep(submission, report_on(request, result.judgement))
        except UnusableState:
            raise  # the result is taken again when the state can be used
        except Exception as error:  # noqa: BLE001 - as above
            self._note_failure(submission, error)

    def _settle(self) -> list[Attempt]:
        """End the runs whose final submission is graded, and return the attempts that still wait for that."""
        waiting = []
        for attempt in runs.attempts_in(self._database, RunState.GRADING):
            final = submissions.final_of(self._database, attempt.id)
            if final is not None and final.standing is not None:
                transitions.finished(self._database, attempt.id, final.standing, now=self._clock.now())
            else:
                waiting.append(attempt)
        return waiting

    def _is_due(self, submission: Submission, final: set[int]) -> bool:
        # Without a query where possible: thousands of runs may have a submission that is not due.
        if submission.attempt_id not in final and submission.attempt_id in self._next_at:
            return False
        if any(graded.id == submission.id for graded, _request in self._working.values()):
            return False
        retry_at = self._run_of(submission).grading_retry_at
        return is_due(retry_at, self._clock.now(), longest=_BACKOFF.most)

    def _request_for(self, submission: Submission) -> GradeRequest:
        sweep = self._sweep_of(submission)
        run = self._run_of(submission)
        request = request_for(
            self._state_dir / submission.path,
            run.competition_id,
            data_dir=sweep.spec.data_dir,
            edition=edition_named(sweep.conditions.edition),
        )
        return replace(request, sha256=submission.sha256)

    def _keep(self, submission: Submission, report: Report) -> None:
        now = self._clock.now()
        grade = Grade(
            submission.id,
            now,
            report.edition,
            report.score,
            report.valid_submission,
            standing_of(report),
            self._redaction.clean(report.message),  # which quotes from the submission
        )
        with self._database.transaction():
            submissions.add_grade(self._database, grade, now=now)
            if submissions.is_current(self._database, submission.id):
                transitions.grading_works(self._database, submission.attempt_id, now=now)

    def _note_failure(self, submission: Submission, error: Exception) -> None:
        """Record why a submission can't be graded now, and when to try again; this is not a verdict on it."""
        if not submissions.is_current(self._database, submission.id):
            self._log(f"{submission.path}, which is not of a run's latest attempt, can't be graded", error)
            return
        run = self._run_of(submission)
        self._log(f"grading a submission of run {run.id}", error)
        cause = error.cause if isinstance(error, Problem) else f"{type(error).__name__}: {error}"
        now = self._clock.now()
        retry_at = now + _BACKOFF.seconds_after(now - (run.grading_fails_since or now))
        text = self._redaction.clean(cause.replace("\n", " "))
        transitions.grading_failed(self._database, submission.attempt_id, text, retry_at=retry_at, now=now)

    def _run_of(self, submission: Submission) -> Run:
        return runs.get(self._database, runs.attempt(self._database, submission.attempt_id).run_id)

    def _sweep_of(self, submission: Submission) -> Sweep:
        return sweeps.get(self._database, self._run_of(submission).sweep_id)
