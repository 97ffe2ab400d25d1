"""A state being built by hand, as engine and runners would have left it, at a moment that stands still."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from mlebench_console.engine.control.status import EngineStatus, GpuUse, publish
from mlebench_console.engine.model_costs import use_of
from mlebench_console.engine.places import Places
from mlebench_console.environment.container.trees import remove_tree
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.prices import price_table
from mlebench_console.environment.gateway.records import CallOutcome, Journal, ModelCall
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.code_snapshots import CodeSnapshots
from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.state import datasets, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import DatasetState, Grade, JobFacts, StepState
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import model_calls
from mlebench_console.state.usage.samples import Samples
from tests.conditions import spec_of

# 2026-03-14 03:14:00 UTC
NOW = 1_773_458_040.0
HOUR = 3600.0


class FrozenClock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: float = NOW) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


@dataclass
class World:
    """A state being built, and where it lies."""

    places: Places
    database: Database

    def sweep(
        self,
        sweep_id: str,
        competitions: tuple[str, ...],
        *,
        seeds: int = 3,
        agent: str = "aide-o3",
        limit: float = 24 * HOUR,
        began: float = 22 * HOUR,
        concurrency: int = 8,
        demo: bool = False,
        gpus: int = 0,
        gateway: tuple[str, ...] = (),
        budget_usd: float | None = None,
        placement: str = HERE,
    ) -> None:
        spec = spec_of(
            agent_id=agent,
            agents_dir="/agents",
            competitions=competitions,
            seeds=seeds,
            time_limit_seconds=limit,
            demo=demo,
            gpus=gpus,
            gateway=gateway,
            budget_usd=budget_usd,
            placement=placement,
        )
        sweeps.create(
            self.database,
            sweep_id=sweep_id,
            name=sweep_id,
            spec=spec,
            agent_version="4f1c22d90aa1",
            concurrency=concurrency,
            now=NOW - began,
        )
        runs.mark_demo(self.database, sweep_id)

    def run(self, sweep_id: str, competition: str, seed: int) -> int:
        found = runs.of_sweep(self.database, sweep_id)
        return next(r.id for r in found if r.competition_id == competition and r.seed == seed)

    def launch(
        self, run_id: int, *, ago: float, log: bytes = b"", with_files: bool = True, begins: bool = True
    ) -> int:
        """A run's next attempt, running since `ago` seconds, or launched since then, where it has not begun.

        Hundreds of folders take a test's whole time.
        """
        run = runs.get(self.database, run_id)
        directory = (
            self.places.runs_dir
            / _slug(run.sweep_id)
            / _slug(run.competition_id)
            / f"seed-{run.seed}"
            / f"attempt-{run.attempts + 1}"
        )
        if with_files:
            (directory / "submission").mkdir(parents=True)
            printed = directory / protocol.LOG
            printed.parent.mkdir(exist_ok=True)
            if begins:
                printed.write_bytes(log or _log(run.competition_id))
        attempt = transitions.launch(
            self.database,
            run_id,
            directory=str(directory.relative_to(self.places.state_dir)),
            runtime="bubblewrap",
            now=NOW - ago,
            placement=sweeps.get(self.database, run.sweep_id).spec.conditions.placement,
        )
        if begins:
            transitions.started(self.database, attempt.id, isolated=True, at=NOW - ago, now=NOW - ago)
        return attempt.id

    def job(self, attempt_id: int, number: int, **facts: Any) -> None:
        """What a batch system says of an attempt's job."""
        runs.note_jobs(self.database, {attempt_id: JobFacts(job=str(number), **facts)})

    def snapshot(
        self,
        attempt_id: int,
        sequence: int,
        score: float | None,
        standing: Outcome,
        *,
        ago: float,
        message: str = "",
    ) -> None:
        attempt = runs.attempt(self.database, attempt_id)
        submissions.add(
            self.database,
            attempt_id,
            submissions.Snapshot(
                sequence,
                NOW - ago,
                NOW - ago - (attempt.started_at or NOW),
                "ab" * 32,
                84_213,
                "/s.csv",
            ),
        )
        snapshot = submissions.of_attempt(self.database, attempt_id)[-1]
        valid = standing not in (Outcome.INVALID, Outcome.NO_SUBMISSION)
        score = score if valid else None
        grade = Grade(snapshot.id, NOW - ago + 2, "v1", score, valid, standing, message)
        submissions.add_grade(self.database, grade, now=NOW - ago + 2)

    def code(
        self, attempt_id: int, sequence: int, contents: Mapping[str, str | bytes], *, late: float = 0.0
    ) -> None:
        """What `code/` holds from now on, kept as it is for a submission, so many seconds after it."""
        folder = self.places.state_dir / runs.attempt(self.database, attempt_id).directory
        remove_tree(folder / protocol.CODE)
        for path, content in contents.items():
            place = folder / protocol.CODE / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
        handed_in = submissions.of_attempt(self.database, attempt_id)
        taken_at = next(one.taken_at for one in handed_in if one.sequence == sequence)
        with ThreadPoolExecutor(1) as worker:
            taking = CodeSnapshots(folder, tuple, worker, FrozenClock(taken_at + late))
            taking.keep(sequence)
            assert taking.advance(30) == ""

    def end(
        self, attempt_id: int, *, ago: float, code: int = 0, reason: EndReason = EndReason.EXITED
    ) -> None:
        transitions.agent_ended(
            self.database, attempt_id, reason, exit_code=code, at=NOW - ago, now=NOW - ago
        )

    def finish(self, attempt_id: int, outcome: Outcome, score: float | None, *, ago: float) -> None:
        if outcome is not Outcome.NO_SUBMISSION:
            self.snapshot(attempt_id, 1, score, outcome, ago=ago + 60)
        self.end(attempt_id, ago=ago + 30)
        transitions.collected(self.database, attempt_id, now=NOW - ago - 10)
        transitions.finished(self.database, attempt_id, outcome, now=NOW - ago)

    def fail(
        self,
        attempt_id: int,
        kind: FailureClass,
        text: str,
        *,
        ago: float,
        evidence: str = "",
        problem: ProblemCode | None = None,
    ) -> None:
        self.end(attempt_id, ago=ago + 5, code=1)
        failure = Failure(kind, text, evidence, problem=problem)
        transitions.failed(self.database, attempt_id, failure, now=NOW - ago)

    def lose_gpu(self, run_id: int, *, ago: float) -> None:
        """A run's next attempt, which an outage of the driver ended."""
        uuid = f"GPU-{run_id:08x}-0000-4000-8000-{run_id:012x}"
        text = f"GPU lost: Failed to initialize NVML: Unknown Error ({uuid})"
        attempt = self.launch(run_id, ago=ago + 9000)
        self.fail(attempt, FailureClass.INFRASTRUCTURE, text, ago=ago, problem=ProblemCode.GPU_LOST)

    def prepared(self, competition: str, *, size: int = 61_000_000, demo: bool = False) -> None:
        datasets.set_state(
            self.database, competition, "v1", DatasetState.PREPARED, now=NOW - 30 * HOUR, bytes_on_disk=size
        )
        datasets.set_demo(self.database, competition, "v1", demo)

    def step(self, competition: str, step: str, progress: datasets.Progress, *, took: float) -> None:
        """A step of a dataset that took so long and has just ended."""
        began = datasets.Progress(StepState.WORKING)
        datasets.set_step(self.database, competition, "v1", step, began, now=NOW - took)
        datasets.set_step(self.database, competition, "v1", step, progress, now=NOW)

    def working(self, competition: str, step: str, progress: datasets.Progress) -> None:
        """A step of a dataset that is being worked on."""
        datasets.set_state(self.database, competition, "v1", DatasetState.WORKING, now=NOW - 90)
        datasets.set_step(self.database, competition, "v1", step, progress, now=NOW - 90)

    def usage(self, sweep_id: str, *, gpus: tuple[GpuUse, ...] = ()) -> None:
        """What the live runs of a sweep have used, every quarter of an hour, in the end as its GPUs say."""
        held = {attempt: gpu for gpu in gpus for attempt in gpu.attempts}
        samples = Samples(self.places.state_dir, writable=True)
        for run in runs.of_sweep(self.database, sweep_id):
            attempt = runs.latest_attempt(self.database, run.id)
            if attempt is None or not run.is_live or attempt.started_at is None:
                continue
            count = int((NOW - attempt.started_at) / 900)
            gpu = held.get(attempt.id)
            readings = [
                (55.0 + 40 * math.sin(step / 3), int(1.8e10 + 1e8 * step)) for step in range(count - 1)
            ]
            known = [*readings, (None, None) if gpu is None else (gpu.busy_percent, gpu.memory_used)]
            samples.add(
                attempt.id,
                [
                    UsageSample(
                        attempt.started_at + 900 * step,
                        0.0 if attempt.waits_for else 80.0 + 60 * math.sin(step / 4),
                        int(2e9 + 1.5e8 * step + 4e8 * (step % 7 == 0)),
                        int(5e8 + 6e7 * step),
                        12 + step % 3,
                        gpu_percent=known[step][0] if gpus else None,
                        gpu_memory_bytes=known[step][1] if gpus else None,
                        network_bytes=int(4e7 * step * (2 + math.sin(step / 5))),
                    )
                    for step in range(count)
                ],
            )
        samples.close()

    def model_calls(self, attempt_id: int, model: str, count: int, *, provider: str = "openai") -> None:
        """The calls of an attempt, in its file and in the state, one after the other until now or its end."""
        attempt = runs.attempt(self.database, attempt_id)
        began = attempt.started_at or NOW
        took = (attempt.ended_at or NOW) - began - 60
        # More and more of them, with a pause.
        moments = [began + took * ((place + 1) / count) ** 0.7 for place in range(count) if place % 20 < 15]
        calls = [_call(place, at, provider, model) for place, at in enumerate(moments)]
        folder = self.places.state_dir / attempt.directory
        journal = Journal(folder)
        for call in calls:
            journal.end(call)
        size = (folder / protocol.MODEL_CALLS).stat().st_size
        with self.database.transaction():
            uses = [use_of(attempt_id, call, price_table({})) for call in calls]
            model_calls.add(self.database, attempt_id, uses, size)

    def engine(
        self,
        *,
        data_free: int | None = None,
        problem: str = "",
        gpu_uses: tuple[GpuUse, ...] = (),
    ) -> None:
        """A running engine's last status, which counts the runs as they are now."""
        live = [runs.latest_attempt(self.database, run.id) for run in runs.live(self.database)]
        waiting = [attempt for attempt in live if attempt is not None and attempt.is_in_queue]
        here = [attempt for attempt in live if attempt is not None and attempt.placement == HERE]
        publish(
            self.places,
            EngineStatus(
                pid=4242,
                host="gpu-box-3",
                heartbeat_at=NOW - 1,
                live=len(live),
                waiting=len(waiting),
                queued=runs.queued_count(self.database),
                slots=64.0,
                slots_used=float(len(here)),
                load1=11.3,
                cpus=96,
                memory_total=515 << 30,
                memory_available=388 << 30,
                isolation="bubblewrap",
                version="0.9.0",
                state_disk_free=1_712_000_000_000,
                state_disk_total=3_600_000_000_000,
                data_disk_free=data_free,
                gpus=len(gpu_uses) or None,
                gpu_uses=gpu_uses,
                problem=problem,
                problems=(problem,) if problem else (),
            ),
        )


def _call(place: int, at: float, provider: str, model: str) -> ModelCall:
    """Mostly good calls; some that are put off, break off or have no usage of the provider's own."""
    name, wave = f"{model}-{place}", 1 + math.sin(place / 3)
    if place % 17 == 11:
        return ModelCall(
            name,
            at,
            provider,
            "chat",
            CallOutcome.ERROR,
            model,
            model,
            429,
            seconds=0.2,
            problem="Rate limit reached",
        )
    usage = TokenUsage(
        input_tokens=2000 + 400 * place,
        cached_tokens=1000 + 300 * place,
        cache_write_tokens=0,
        output_tokens=300 + round(200 * wave),
        reasoning_tokens=round(150 * wave),
    )
    is_cut = place % 23 == 13
    return ModelCall(
        name,
        at,
        provider,
        "chat",
        CallOutcome.CUT if is_cut else CallOutcome.OK,
        model,
        model,
        200,
        stream=True,
        usage=usage,
        estimated=is_cut,
        first_seconds=0.4 + 0.2 * wave,
        seconds=4 + 3 * wave,
        problem="the provider's answer broke off" if is_cut else "",
    )


def _slug(name: str) -> str:
    return "".join(
        letter if (letter.isascii() and letter.isalnum()) or letter == "-" else "_" for letter in name
    )


def _log(competition: str) -> bytes:
    lines = [
        f"21:01:07  reading /home/data/train.csv of {competition}",
        "21:01:09  step 186  \x1b[32mval 0.0840\x1b[0m (best 0.0812)",
        "21:01:31  step 187  val 0.0831 (best 0.0812)",
        "epoch 1:  10%|#         |\repoch 1:  60%|######    |\repoch 1: 100%|##########|",
        "21:01:44  \x1b[1;31mTraceback (most recent call last):\x1b[0m",
        '21:01:44    File "/home/code/train.py", line 88, in <module>',
        "21:01:44  \x1b[31mValueError\x1b[0m: shapes (128, 99) and (128, 98) do not match",
        "21:01:52  fixed the label encoder, going on",
    ]
    return ("\n".join(lines * 12) + "\n").encode()
