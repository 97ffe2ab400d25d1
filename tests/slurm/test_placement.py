"""What becomes of jobs, over a Slurm in memory: submitted once, found again, judged by what counts."""

from __future__ import annotations

import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from mlebench_console.engine.layout import MARKER, squashfs_image
from mlebench_console.engine.placements.checks import staging_tools
from mlebench_console.engine.placements.commands import (
    Job,
    SlurmAway,
    SlurmFull,
    SlurmRefuses,
    SlurmUnfit,
    moment_of,
)
from mlebench_console.engine.placements.here import Here
from mlebench_console.engine.placements.model import AttemptStatus
from mlebench_console.engine.placements.sbatch import job_options, profile_named
from mlebench_console.engine.placements.slurm import Slurm
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.protocol import Heartbeat, StagingOrder, Stop
from mlebench_console.environment.runner.secrets import SecretLaunch
from mlebench_console.foundation import files, jsonlines
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import Attempt, OwnReason
from mlebench_console.state.transitions import Failure
from tests.clocks import HandClock
from tests.conditions import changed
from tests.engine.harness import eventually
from tests.environment.runner.orders import order_with
from tests.environment.runner.prepared import make_prepared
from tests.slurm.fake import AWAY, FakeSlurm, Latency, attempt_of

PROFILE = SlurmProfile(partition="main")
STRANGER = Job("101", "RUNNING", "None", "n3", "2017-01-01T00:00:00", None, 1, "somebody-elses")


class World:
    """Attempts of one state, a Slurm, and a placement that can be made anew as after a kill."""

    def __init__(self, folder: Path, profile: SlurmProfile = PROFILE, latency: float = 0.0) -> None:
        self.state_dir = folder
        self.profile = profile
        self.latency = latency
        self.clock = HandClock(1000.0)
        self.slurm = FakeSlurm()
        self.attempt = self.make(1)
        self.placement = self.fresh()

    def make(self, number: int, **order: object) -> Attempt:
        attempt = attempt_of(number)
        folder = self.state_dir / attempt.directory
        protocol.make_folders(folder)
        made = changed(order_with(), token=attempt.token, attempt_id=number, runtime="bubblewrap", **order)
        protocol.write(folder / protocol.ORDER, made)
        return attempt

    @property
    def folder(self) -> Path:
        return self.state_dir / self.attempt.directory

    def fresh(self, profile_of: Callable[[str], SlurmProfile] | None = None) -> Slurm:
        worker = Latency(self.clock, self.latency)
        return Slurm(
            profile_of or (lambda _name: self.profile),
            self.state_dir,
            self.slurm,
            self.clock,
            lambda _text, _error: None,
            worker,
        )

    def step_for(self, seconds: float, every: float = 1.0) -> None:
        until = self.clock.moment + seconds
        while self.clock.moment < until:
            self.placement.step()
            self.clock.moment += every
        self.placement.step()

    def submitted(self) -> str:
        """Submit the attempt and return its job's number, which Slurm has told."""
        self.placement.place(self.attempt)
        self.step_for(40)
        return self.slurm.only_job

    def running(self) -> str:
        number = self.submitted()
        assert output.claim(self.folder / protocol.JOB_CLAIM)
        self.slurm.move(number, "RUNNING")
        self.beat(0)
        self.step_for(60)
        return number

    def reorder(self, **changes: str) -> None:
        """Change the attempt's order, as if it had been made so."""
        path = self.folder / protocol.ORDER
        protocol.write(path, replace(protocol.read(path, protocol.Order), **changes))  # type: ignore[arg-type]

    def beat(
        self,
        number: int,
        *,
        events: int = 0,
        ended: bool = False,
        staged: int | None = None,
        to_stage: int | None = None,
    ) -> None:
        beat = Heartbeat(number, "n1", "101", events, 0, 0, ended, staged, to_stage)
        jsonlines.append(self.folder / protocol.HEARTBEATS, [asdict(beat)])

    def status(self) -> AttemptStatus:
        return self.placement.status(self.attempt)

    def failure(self) -> Failure | None:
        lost = self.status().lost
        return None if lost is None else lost.failure

    def pauses(self) -> bool:
        lost = self.status().lost
        return lost is not None and lost.pauses


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_an_attempt_is_submitted_once_under_its_token_and_without_the_engines_environment(
    world: World,
) -> None:
    world.placement.place(world.attempt)
    world.placement.place(world.attempt)
    world.step_for(600)
    assert world.slurm.calls.count("sbatch") == 1
    (options,) = world.slurm.options
    assert "--export=NIL" in options
    assert "--no-requeue" in options
    assert "--partition=main" in options
    assert any(option.startswith("--job-name=mlebench-") and option.endswith("-t1") for option in options)
    script = (world.folder / protocol.JOB_SCRIPT).read_text()
    assert "\nexec " in script  # or bash would keep the signal from the runner
    assert world.status().job.waits_for == "Priority"
    assert world.status().job.job == "101"


@pytest.mark.parametrize("was_submitted", [True, False])
def test_a_kill_between_submission_and_note_launches_nothing_twice(world: World, was_submitted: bool) -> None:
    world.placement.place(world.attempt)
    while was_submitted and "sbatch" not in world.slurm.calls:
        world.placement.step()
    world.placement = world.fresh()
    world.placement.place(world.attempt)
    world.step_for(300)
    assert world.slurm.calls.count("sbatch") == 1
    assert world.status().job.job == "101"


def test_a_job_that_was_over_before_slurm_named_it_is_known_by_its_heartbeat(world: World) -> None:
    world.placement.place(world.attempt)
    while "sbatch" not in world.slurm.calls:
        world.placement.step()
    world.slurm.table.clear()
    assert output.claim(world.folder / protocol.JOB_CLAIM)
    world.beat(0, ended=True)
    world.placement = world.fresh()
    world.placement.place(world.attempt)
    # At once, as its directory is read and closed in the same moment.
    assert world.status().job.job == "101"


def test_a_jobs_log_lies_in_its_directory_whatever_that_is_called(world: World) -> None:
    options = job_options(order_with().conditions, "name", "comment", Path("/shared/50%j/runs/1"), PROFILE)
    assert f"--output=/shared/50%%j/runs/1/{protocol.JOB_LOG}" in options  # as sbatch writes a '%'


def test_a_kill_while_an_attempt_that_was_never_submitted_is_ended_leaves_no_run_for_ever(
    world: World,
) -> None:
    protocol.write(world.folder / protocol.STOP, Stop("me@here", 1.0))
    assert output.claim(world.folder / protocol.JOB_CLAIM)  # by the engine, which was killed at this moment
    world.placement.place(world.attempt)
    world.step_for(900)
    assert world.slurm.calls.count("sbatch") == 0
    assert world.failure() is not None


@pytest.mark.parametrize("ended", ["COMPLETED", "gone"])
def test_a_last_heartbeat_without_a_report_holds_no_run_for_ever(world: World, ended: str) -> None:
    number = world.running()
    world.beat(1, ended=True)
    world.step_for(60)
    if ended == "gone":
        del world.slurm.table[number]
    else:
        world.slurm.move(number, ended)
    world.step_for(900)
    assert world.failure() is not None


def test_heartbeats_are_read_once_in_an_interval_however_often_a_job_was_not_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = world.running()
    for _ in range(20):
        job = world.slurm.table.pop(number)
        world.step_for(60)
        world.slurm.table[number] = job
        world.beat(1)
        world.step_for(60)
    assert world.failure() is None
    read, reads = jsonlines.read, 0

    def counted(path: Path, offset: int = 0) -> jsonlines.Lines:
        nonlocal reads
        reads += 1
        return read(path, offset)

    monkeypatch.setattr(jsonlines, "read", counted)
    world.step_for(300)
    assert 15 <= reads <= 21


@pytest.mark.parametrize("was_taken", [True, False])
def test_a_submission_without_an_answer_is_looked_for_before_it_is_tried_again(
    world: World, was_taken: bool
) -> None:
    world.slurm.trouble, world.slurm.takes_it_nevertheless = AWAY, was_taken
    world.placement.place(world.attempt)
    world.placement.step()
    world.placement.step()
    world.step_for(1)
    world.slurm.trouble = None
    world.step_for(600)
    assert len(world.slurm.table) == 1
    assert world.status().job.job == world.slurm.only_job
    assert world.failure() is None


def test_a_number_that_slurm_gives_again_is_not_taken_for_the_job(world: World) -> None:
    number = world.submitted()
    del world.slurm.table[number]
    world.slurm.table[number] = STRANGER
    world.step_for(300)
    assert world.status().job.job == "102"  # submitted again, as nothing had claimed it
    world.placement.keep_only([], lambda _token: True)
    world.step_for(300)
    assert world.slurm.cancelled == ["102"]


def test_a_run_that_waits_again_after_it_ran_is_left_alone(world: World) -> None:
    number = world.running()
    world.slurm.move(number, "PENDING", "BeginTime")  # as a controller says for a moment that was killed
    for beat in range(1, 20):
        world.beat(beat)
        world.step_for(30)
    assert world.failure() is None
    assert world.status().job.waits_for == ""
    assert world.slurm.calls.count("sbatch") == 1


def test_a_run_that_slurm_gave_up_goes_on_as_long_as_it_writes(world: World) -> None:
    number = world.running()
    world.slurm.move(number, "NODE_FAIL")
    for beat in range(1, 40):
        world.beat(beat)
        world.step_for(30)
    assert world.failure() is None
    world.step_for(330)
    assert world.failure() is None  # its runner may just be about to end its agent
    world.step_for(90)
    failure = world.failure()
    assert failure is not None
    assert failure.kind is FailureClass.INFRASTRUCTURE
    assert "NODE_FAIL" in failure.evidence
    assert "heartbeat 39 of n1" in failure.evidence


def test_a_job_that_ends_without_a_report_fails_with_slurms_words_and_ends_wherever_it_lives_on(
    world: World,
) -> None:
    number = world.running()
    world.slurm.move(number, "TIMEOUT")
    world.step_for(500)
    failure = world.failure()
    assert failure is not None
    assert failure.kind is FailureClass.INFRASTRUCTURE
    assert "slack_minutes" in failure.text
    assert "TIMEOUT" in failure.evidence
    assert (world.folder / protocol.STOP).exists()  # where it lives on unseen, it ends its agent


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd-n1: error: StepId=1.batch exceeded memory limit (415277056 > 62914560), being killed",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=50.batch.",
    ],
)
def test_a_job_whose_log_tells_of_its_memory_was_ended_for_that(world: World, line: str) -> None:
    number = world.running()
    (world.folder / protocol.JOB_LOG).write_text(f"something before\n{line}\n")
    world.slurm.move(number, "FAILED", "JobLaunchFailure")
    world.step_for(500)
    ended, failure = world.status().ended, world.failure()
    assert ended is not None
    assert ended.by_memory
    assert failure is not None
    assert failure.kind is FailureClass.MEMORY
    assert line in failure.evidence


def test_what_a_run_has_reported_counts_more_than_what_slurm_says(world: World) -> None:
    number = world.running()
    before = world.status().revision
    protocol.write(world.folder / protocol.EXIT, Ending("exited", 0, None, 10, 20))
    world.slurm.move(number, "OUT_OF_MEMORY")
    world.step_for(900)
    assert world.failure() is None
    assert world.status().revision != before


def test_a_plain_agent_that_ends_its_own_job_gets_no_free_relaunch(tmp_path: Path) -> None:
    world = World(tmp_path)
    order = protocol.read(world.folder / protocol.ORDER, protocol.Order)
    protocol.write(world.folder / protocol.ORDER, changed(order, runtime="plain"))
    world.slurm.move(world.running(), "CANCELLED")
    world.step_for(500)
    failure = world.failure()
    assert failure is not None
    assert failure.kind is FailureClass.UNKNOWN


def test_a_job_that_is_gone_and_silent_is_lost_after_five_minutes_of_answers(world: World) -> None:
    number = world.running()
    del world.slurm.table[number]
    world.step_for(200)
    world.slurm.trouble = AWAY
    world.step_for(100)
    assert world.failure() is None
    world.slurm.trouble = None
    world.step_for(600)
    failure = world.failure()
    assert failure is not None
    assert failure.kind is FailureClass.INFRASTRUCTURE
    assert world.slurm.calls.count("sbatch") == 1  # its agent has begun: it never begins again


def test_records_tell_how_a_job_ended_that_squeue_has_forgotten(world: World) -> None:
    number = world.running()
    gone = world.slurm.table.pop(number)
    world.slurm.records = [
        replace(gone, state="PREEMPTED", reason="0:9"),
        replace(STRANGER, name=gone.name + "x"),
    ]
    world.step_for(300)
    failure = world.failure()
    assert failure is not None
    assert "PREEMPTED" in failure.evidence


def test_a_slurm_without_records_is_asked_for_them_once(world: World) -> None:
    del world.slurm.table[world.running()]
    world.step_for(1000)
    assert world.slurm.calls.count("sacct") == 1


def test_records_are_no_end_where_they_say_that_a_job_runs(world: World) -> None:
    gone = world.slurm.table.pop(world.running())
    world.slurm.records = [replace(gone, state="RUNNING")]
    for beat in range(1, 20):
        world.beat(beat)
        world.step_for(30)
    assert world.failure() is None
    world.slurm.records = [replace(gone, state="NODE_FAIL")]  # the records came to it late
    world.step_for(500)
    failure = world.failure()
    assert failure is not None
    assert "NODE_FAIL" in failure.evidence


def test_records_that_do_not_answer_hold_up_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    del world.slurm.table[world.running()]
    world.slurm.records_away = True
    world.step_for(60)
    assert "records have not answered" in world.placement.problem
    world.placement.place(world.make(2))
    world.step_for(40)
    assert len(world.slurm.table) == 1
    world.slurm.records_away = False
    world.step_for(600)
    assert world.placement.problem == ""


def test_a_controller_that_takes_no_more_for_now_is_asked_again_and_that_is_told(world: World) -> None:
    world.slurm.full = SlurmFull("Slurm takes no more jobs now", "QOSMaxSubmitJobPerUserLimit")
    world.placement.place(world.attempt)
    world.step_for(600)
    assert world.failure() is None
    assert "Slurm has taken no job since" in world.placement.problem
    assert "MaxSubmitJob" in world.placement.problem
    assert world.slurm.calls.count("sbatch") <= 6
    world.slurm.full = None
    world.step_for(400)
    assert world.status().job.job == world.slurm.only_job
    assert world.placement.problem == ""


@pytest.mark.parametrize("are_back", [True, False])
def test_nodes_that_are_not_there_are_waited_for_a_while(world: World, are_back: bool) -> None:
    said = "Requested node configuration is not available"  # also of nodes that have not registered yet
    world.slurm.refusal = SlurmUnfit("Slurm refuses the job", said)
    world.placement.place(world.attempt)
    world.step_for(60)
    assert world.failure() is None
    assert said in world.placement.problem
    if are_back:
        world.slurm.refusal = None
    world.step_for(1000)
    assert (world.failure() is None, world.pauses()) == (are_back, not are_back)
    assert world.slurm.calls.count("sbatch") == (2 if are_back else 3)


def test_an_attempt_that_is_submitted_in_vain_again_and_again_fails_and_pauses(world: World) -> None:
    world.slurm.unsure = SlurmAway("Slurm does not answer", "sbatch: error: site plugin: no")
    world.placement.place(world.attempt)
    world.step_for(2000)
    failure = world.failure()
    assert failure is not None
    assert "submitted 3 times in vain: sbatch: error: site plugin: no" in failure.text
    assert world.pauses()


def test_profiles_share_the_calls(tmp_path: Path) -> None:
    world = World(tmp_path)
    profiles = {"slurm": SlurmProfile(partition="main,long"), "slurm:night": SlurmProfile(partition="night")}
    world.placement = world.fresh(profiles.__getitem__)
    world.placement.place(world.attempt)
    world.placement.place(replace(world.make(2), placement="slurm:night"))
    world.step_for(600)
    assert len(world.slurm.table) == 2
    assert len([call for call in world.slurm.calls if call != "sbatch"]) <= 5 * 10 + 1
    assert world.slurm.asked_partitions == ("long", "main", "night")
    assert {option for options in world.slurm.options for option in options if "partition" in option} == {
        "--partition=main,long",
        "--partition=night",
    }


@pytest.mark.parametrize("option", ["--job-name=mine", "-Jmine", "--clusters=other", "-M other", "--requeue"])
def test_options_by_which_jobs_are_found_again_can_not_be_given(tmp_path: Path, option: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[slurm.night]\noptions = ["--reservation=mle", "{option}"]\n')
    with pytest.raises(UsageProblem, match=r"\[slurm\.night\] options can't have '-"):
        profile_named("slurm:night", config)
    assert profile_named("slurm", config).options == ()


def test_a_slurm_that_is_away_ends_nothing_is_told_and_is_asked_ever_less_often(world: World) -> None:
    world.running()
    world.slurm.trouble = AWAY
    before = len(world.slurm.calls)
    for beat in range(1, 61):
        world.beat(beat)
        world.step_for(60)
    assert world.failure() is None
    assert "Slurm has not answered since" in world.placement.problem
    assert len(world.slurm.calls) - before <= 20
    world.slurm.trouble = None
    world.step_for(301)
    assert world.placement.problem == ""


def test_what_slurm_refuses_fails_and_pauses_its_sweep(world: World) -> None:
    world.slurm.refusal = SlurmRefuses("Slurm refuses the job", "invalid partition specified: nope")
    world.placement.place(world.attempt)
    world.step_for(5)
    failure = world.failure()
    assert failure is not None
    assert "invalid partition" in failure.text
    assert world.pauses()


def test_a_job_that_would_wait_for_ever_is_refused_and_cancelled(world: World) -> None:
    number = world.submitted()
    world.slurm.move(number, "PENDING", "PartitionTimeLimit")
    world.step_for(120)
    failure = world.failure()
    assert failure is not None
    assert "PartitionTimeLimit" in failure.text
    assert world.pauses()
    assert world.slurm.cancelled == [number]


def test_a_job_that_was_refused_while_nobody_heard_it_pauses_its_sweep(world: World) -> None:
    world.slurm.unsure, world.slurm.takes_it_nevertheless = AWAY, True
    world.placement.place(world.attempt)
    world.step_for(5)
    world.slurm.move(world.slurm.only_job, "FAILED", "BadConstraints")
    world.step_for(100)
    failure = world.failure()
    assert failure is not None
    assert world.pauses()


def test_a_node_that_could_not_begin_a_job_does_not_hold_its_run(world: World) -> None:
    number = world.submitted()
    world.slurm.move(number, "PENDING", "launch_failed_requeued_held")
    world.step_for(60)
    failure = world.failure()
    assert failure is not None
    assert failure.kind is FailureClass.INFRASTRUCTURE
    assert not world.pauses()
    assert world.slurm.cancelled == [number]


def test_a_run_that_waits_again_and_is_silent_is_lost(world: World) -> None:
    number = world.running()
    world.slurm.move(number, "PENDING", "launch_failed_requeued_held")
    world.step_for(340)
    assert world.failure() is None
    world.step_for(120)
    failure = world.failure()
    assert failure is not None
    assert failure.kind is FailureClass.INFRASTRUCTURE
    assert "launch_failed_requeued_held" in failure.evidence


def test_a_run_that_slurm_has_suspended_says_so_and_goes_on(world: World) -> None:
    number = world.running()
    world.slurm.move(number, "SUSPENDED")
    world.step_for(2000)
    assert world.failure() is None
    assert world.status().job.waits_for == "SUSPENDED"
    assert world.placement.waiting == 1


def test_a_waiting_job_tells_its_priority_and_when_it_may_start(world: World) -> None:
    number = world.submitted()
    world.slurm.table[number] = replace(
        world.slurm.table[number], starts_at=moment_of("2026-01-01T02:10:31"), priority=4294901756
    )
    world.step_for(60)
    status = world.status()
    assert world.placement.waiting == 1
    assert status.job.job_priority == 4294901756
    assert status.job.starts_at == time.mktime((2026, 1, 1, 2, 10, 0, 0, 0, -1))
    world.slurm.move(number, "RUNNING")
    world.step_for(60)
    assert (world.status().job.job_priority, world.status().job.starts_at) == (None, None)
    assert world.placement.waiting == 0


def test_a_job_that_was_let_go_before_slurm_named_it_is_cancelled(world: World) -> None:
    world.placement.keep_only([world.attempt], lambda _token: True)
    world.placement.step()  # asks while there is nothing
    world.step_for(40)
    world.placement.place(world.attempt)
    while "sbatch" not in world.slurm.calls:
        world.step_for(1)
    world.placement.forget(world.attempt)
    world.placement.keep_only([], lambda _token: True)
    world.step_for(120)
    assert world.slurm.cancelled == [world.slurm.only_job]


def test_a_job_that_the_state_does_not_know_is_named_and_not_cancelled(world: World) -> None:
    number = world.submitted()
    world.placement.forget(world.attempt)
    world.placement.keep_only([], lambda _token: False)
    world.step_for(120)
    assert world.slurm.cancelled == []
    assert f"does not know go on: {number}" in world.placement.problem


def test_a_number_that_was_given_again_meanwhile_is_not_cancelled(world: World) -> None:
    number = world.submitted()
    world.slurm.cancels_in_vain = True
    world.placement.keep_only([], lambda _token: True)
    world.step_for(70)
    assert "could be cancelled since" in world.placement.problem
    world.slurm.table[number] = replace(STRANGER, id=number)
    world.slurm.cancels_in_vain = False
    world.step_for(600)
    assert world.slurm.cancelled == []
    assert world.placement.problem == ""


def test_a_waiting_run_that_is_stopped_is_stopped_at_once_and_its_job_can_never_begin(world: World) -> None:
    number = world.submitted()
    protocol.write(world.folder / protocol.STOP, Stop("me@here", 1.0))
    world.placement.end(world.attempt)
    assert protocol.read(world.folder / protocol.EXIT, Ending).reason == "stopped"
    assert not output.claim(world.folder / protocol.JOB_CLAIM)
    world.step_for(60)
    assert world.slurm.cancelled == [number]


def test_a_running_run_that_does_not_stop_is_cancelled(world: World) -> None:
    number = world.running()
    world.placement.end(world.attempt)
    assert not (world.folder / protocol.EXIT).exists()
    world.step_for(60)
    assert world.slurm.cancelled == []
    for beat in range(1, 12):
        world.beat(beat)
        world.step_for(30)
    assert world.slurm.cancelled == [number]


def test_an_engine_whose_runs_are_all_elsewhere_misses_no_runner_here(world: World) -> None:
    here = Here(world.state_dir, world.clock, lambda _text, _error: None)
    world.running()
    assert here.runner_alive is None


def test_heartbeats_say_when_there_is_something_to_read(world: World) -> None:
    world.running()
    before = world.status().revision
    world.beat(1)
    world.step_for(60)
    assert world.status().revision == before
    world.beat(2, events=500)
    world.step_for(60)
    assert world.status().revision != before
    assert world.status().events_bytes == 500


@pytest.mark.parametrize("controller", ["answers", "is away"])
def test_an_engine_that_starts_anew_watches_jobs_that_run_as_the_last_one_did(
    world: World, controller: str
) -> None:
    world.running()
    world.slurm.trouble = AWAY if controller == "is away" else None
    world.placement = world.fresh()
    world.placement.place(world.attempt)
    known = [world.status().revision]
    for number, events in ((1, 500), (2, 900)):
        world.beat(number, events=events)
        world.step_for(60)
        assert world.status().events_bytes == events
        known.append(world.status().revision)
    world.beat(3, events=900, ended=True)
    world.step_for(60)
    heartbeat = world.status().heartbeat
    assert heartbeat is not None
    assert heartbeat.ended
    assert len({*known, world.status().revision}) == 4


def test_no_more_is_submitted_than_the_profile_allows(tmp_path: Path) -> None:
    world = World(tmp_path, SlurmProfile(max_jobs=5, submissions_per_minute=6))
    for number in range(1, 4):
        world.placement.place(world.make(number))
    assert world.placement.room("slurm") == 2
    world.step_for(11)
    assert world.slurm.calls.count("sbatch") == 2


def test_secrets_go_to_the_node_in_a_file_of_ours_alone_that_is_taken_once(world: World) -> None:
    secrets.leave(world.folder, SecretLaunch((("KEY", "hidden"),), ("hidden",)))
    world.placement.place(world.attempt)
    world.step_for(60)
    (sent,) = [path for path in world.folder.iterdir() if "hidden" in _text(path)]
    assert stat.S_IMODE(sent.stat().st_mode) == 0o600
    assert not any("hidden" in option for option in world.slurm.options[0])
    secrets.receive(world.folder)
    assert not sent.exists()
    assert secrets.take(world.folder).secrets == ("hidden",)
    assert secrets.read_hidden(world.folder) == ("hidden",)
    secrets.discard(world.folder)


@pytest.mark.parametrize(
    ("gpus", "gres", "option"),
    [
        (0, "gpu:{n}", None),
        (2, "gpu:{n}", "--gres=gpu:2"),
        (1, "gpu:a100:{n}", "--gres=gpu:a100:1"),
        (3, "shard:{n}", "--gres=shard:3"),
    ],
)
def test_gpus_are_asked_for_as_the_profile_says(gpus: int, gres: str, option: str | None) -> None:
    profile = SlurmProfile(gres=gres)
    options = job_options(order_with(gpus=gpus).conditions, "name", "", Path(), profile)
    assert [each for each in options if "gres" in each] == ([option] if option else [])
    left_out = replace(profile, leave_out=("gres",))
    assert not [
        each
        for each in job_options(order_with(gpus=gpus).conditions, "n", "", Path(), left_out)
        if "gres" in each
    ]


@pytest.mark.parametrize(("gpus", "gres"), [(-1, "gpu:{n}"), (1, "gpu:1"), (1, "mps:{n}")])
def test_gpus_that_no_profile_can_ask_for_are_refused(gpus: int, gres: str) -> None:
    with pytest.raises(UsageProblem):
        job_options(order_with(gpus=gpus).conditions, "name", "", Path(), SlurmProfile(gres=gres))


def test_a_job_is_told_of_the_sites_proxy_and_has_its_part_of_rates(tmp_path: Path) -> None:
    world = World(tmp_path, SlurmProfile(max_jobs=20, proxy="http://proxy:3128"))
    world.placement.place(world.attempt)
    script = (world.folder / protocol.JOB_SCRIPT).read_text()
    assert "HTTPS_PROXY=http://proxy:3128" in script
    assert world.placement.share_of_rates("slurm") == 1 / 20


def minutes_of(options: Sequence[str]) -> int:
    return int(next(option.removeprefix("--time=") for option in options if option.startswith("--time=")))


def test_a_job_is_given_the_time_that_its_data_take_and_says_how_they_come(tmp_path: Path) -> None:
    prepared = make_prepared(tmp_path / "data" / "prepared")
    files.write_json(prepared / MARKER, {"manifest": {"sha256": "a" * 64, "files": 0, "bytes": 60 * 10**9}})
    without = World(tmp_path / "direct")
    without.submitted()
    assert not (without.folder / protocol.STAGING).exists()
    world = World(tmp_path / "copy", SlurmProfile(staging="copy", staging_mb_per_second=50))
    world.reorder(prepared_dir=str(prepared))
    number = world.submitted()
    more = minutes_of(world.slurm.options[0]) - minutes_of(without.slurm.options[0])
    assert more == 22  # two, and sixty gigabytes at fifty megabytes a second
    staging = protocol.read(world.folder / protocol.STAGING, StagingOrder)
    assert (staging.mode, staging.sha256, staging.limit_seconds) == ("copy", "a" * 64, 1320)
    assert output.claim(world.folder / protocol.JOB_CLAIM)
    world.slurm.move(number, "RUNNING")
    world.beat(0, staged=3_100_000_000, to_stage=12_000_000_000)
    world.step_for(60)
    job = world.status().job
    assert job.waits_for == OwnReason.STAGING
    assert (job.staged_bytes, job.to_stage_bytes) == (3_100_000_000, 12_000_000_000)
    world.beat(1)
    world.step_for(60)
    assert world.status().job.waits_for == ""


@pytest.mark.usefixtures("squashed_images")
def test_a_run_waits_for_the_image_of_its_dataset_also_after_a_kill_and_is_submitted_once(
    tmp_path: Path,
) -> None:
    prepared = make_prepared(tmp_path / "data" / "prepared")
    world = World(tmp_path / "state", SlurmProfile(staging="squashfs"))
    world.reorder(prepared_dir=str(prepared))
    world.placement.place(world.attempt)
    assert world.status().job.waits_for == OwnReason.IMAGE
    assert not (world.folder / protocol.JOB_SCRIPT).exists()
    world.placement = world.fresh()
    world.placement.place(world.attempt)

    def submitted() -> int:
        world.step_for(10)
        return world.slurm.calls.count("sbatch")

    eventually(submitted)
    world.step_for(90)
    assert world.slurm.calls.count("sbatch") == 1
    assert protocol.read(world.folder / protocol.STAGING, StagingOrder).image == str(squashfs_image(prepared))


@pytest.mark.usefixtures("squashed_images")
def test_data_of_which_no_image_can_be_made_fail_and_pause_their_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = make_prepared(tmp_path / "data" / "prepared")
    world = World(tmp_path / "state", SlurmProfile(staging="squashfs"))
    world.reorder(prepared_dir=str(prepared))
    monkeypatch.setattr(
        "mlebench_console.engine.placements.staging.subprocess.run",
        lambda *_some, **_more: subprocess.CompletedProcess((), 1, b"", b"FATAL ERROR: no space"),
    )
    world.placement.place(world.attempt)

    def failed() -> Failure | None:
        world.clock.moment += 10
        world.placement.step()
        return world.failure()

    failure = eventually(failed)
    assert failure is not None
    assert "FATAL ERROR: no space" in failure.text
    assert world.pauses()
    assert not output.claim(world.folder / protocol.JOB_CLAIM)


@pytest.mark.usefixtures("squashed_images")
def test_a_host_that_can_not_make_images_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not staging_tools(SlurmProfile(staging="squashfs")).warns
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    told = staging_tools(SlurmProfile(staging="squashfs"))
    assert told.warns
    assert "mksquashfs is not installed" in told.text
    assert not staging_tools(SlurmProfile(staging="copy")).warns


def test_a_dataset_without_a_manifest_is_refused_by_name(tmp_path: Path) -> None:
    prepared = make_prepared(tmp_path / "data" / "prepared")
    (prepared / MARKER).unlink()
    world = World(tmp_path / "state", SlurmProfile(staging="copy"))
    world.reorder(prepared_dir=str(prepared))
    with pytest.raises(DataProblem, match="can't be brought to nodes"):
        world.placement.place(world.attempt)


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def test_ten_thousand_jobs_cost_few_calls_and_few_looks_and_are_submitted_at_the_given_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, SlurmProfile(max_jobs=20_000, submissions_per_minute=10), latency=2.0)
    order = protocol.read(world.folder / protocol.ORDER, protocol.Order)
    reads = 0

    def read(_path: Path, _offset: int = 0) -> jsonlines.Lines:
        nonlocal reads
        reads += 1
        return jsonlines.Lines((), 0)

    monkeypatch.setattr(protocol, "read", lambda _path, _kind: order)
    monkeypatch.setattr("mlebench_console.engine.placements.slurm.job_script", lambda *_rest: "")
    monkeypatch.setattr("mlebench_console.foundation.files.write_text", lambda *_rest, **_named: None)
    monkeypatch.setattr(jsonlines, "read", read)
    monkeypatch.setattr("mlebench_console.engine.placements.slurm.output.claim", lambda _path: False)
    prefix = world.placement.prefix
    for number in range(2, 10_002):
        attempt = attempt_of(number)
        world.placement.place(attempt)
        if number % 2:  # the others are still to be submitted
            world.slurm.table[str(number)] = replace(
                STRANGER, id=str(number), name=f"{prefix}{attempt.token}"
            )
    world.slurm.number = 20_000
    world.step_for(30)
    calls, before = len(world.slurm.calls), reads
    world.step_for(600, every=2.0)
    made = world.slurm.calls[calls:]
    assert len([call for call in made if call != "sbatch"]) <= 5 * 10
    assert 95 <= made.count("sbatch") <= 101
    assert reads - before <= 9 * 600
