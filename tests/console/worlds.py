"""States for the console's tests, built through `state` as the engine does, at one frozen moment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.console.nouns.grading import PastGrading
from mlebench_console.console.screens.grading import write_past
from mlebench_console.engine.control import GpuUse
from mlebench_console.engine.datasets.steps import CHECK, CHECKSUM, DOWNLOAD, PREPARE, STEPS
from mlebench_console.engine.placements import nodes
from mlebench_console.engine.placements.commands import Node
from mlebench_console.engine.placements.nodes import Nodes
from mlebench_console.engine.places import Places
from mlebench_console.engine.scoreboard.reports import About, import_reports
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.foundation.problems import ProblemRecord
from mlebench_console.state import datasets, events, experiments, integrity, runs, sweeps, transitions
from mlebench_console.state.database import open_for_writing
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.integrity import DetectorResult, Excerpt, Finding, Layer, Severity
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import DatasetState, OwnReason, PreparationOptions, StepState
from mlebench_console.state.usage import budgets, outages

# 2026-03-14 03:14:00 UTC
from tests.console.world import HOUR, NOW, World
from tests.shared import made_once

OPERAND = Path(__file__).parent.parent / "engine" / "scoreboard" / "operand_row.csv"
DEMO = (
    "aerial-cactus-identification",
    "detecting-insults-in-social-commentary",
    "leaf-classification",
    "nomad2018-predict-transparent-conductors",
    "spaceship-titanic",
    "spooky-author-identification",
)


def open_world(places: Places) -> World:
    places.state_dir.mkdir(parents=True, exist_ok=True)
    return World(places, open_for_writing(places.state_dir))


def places_in(folder: Path) -> Places:
    return Places(folder / "config.toml", folder / "data", folder / "state")


def _built_once(build: Callable[[Places], World]) -> Callable[[Places], World]:
    """Make further worlds by copying the first: building one waits hundreds of times for the disk."""

    def built(folder: Path) -> None:
        build(places_in(folder)).database.close()

    @wraps(build)
    def make(places: Places) -> World:
        first = places_in(made_once(f"worlds/{build.__name__}", built))
        shutil.copytree(first.state_dir, places.state_dir, dirs_exist_ok=True)
        return open_world(places)

    return make


@_built_once
def busy(places: Places) -> World:
    """A night of two sweeps: medals, live runs, failures of every class, a dataset on its way."""
    world = open_world(places)
    low = registry.splits()["low"][:9]
    medium, high = registry.splits()["medium"][:4], registry.splits()["high"][:2]
    everything = (*low, *medium, *high)
    for competition in everything[:-1]:
        world.prepared(competition)
    world.sweep("openhands-1", everything, agent="openhands", began=4 * HOUR, concurrency=4)
    world.sweep("aide-o3-lite", everything, agent="aide-o3", gpus=1)
    _fill(world, "aide-o3-lite", everything)
    run = world.run("openhands-1", low[0], 1)
    world.fail(
        world.launch(run, ago=3 * HOUR),
        FailureClass.INFRASTRUCTURE,
        "image pull: connection reset by peer",
        ago=1900,
    )
    datasets.request(
        world.database,
        everything[-1],
        "v1",
        steps=("download", "verify", "extract", "prepare"),
        options=PreparationOptions(),
        now=NOW - 900,
    )
    datasets.set_state(world.database, everything[-1], "v1", DatasetState.WORKING, now=NOW - 800)
    datasets.set_step(
        world.database,
        everything[-1],
        "v1",
        "download",
        datasets.Progress(StepState.WORKING, 7_400_000_000, 17_100_000_000, "bytes", "24 MB/s"),
        now=NOW - 5,
    )
    gpus = _gpus(world)
    world.engine(gpu_uses=gpus)
    world.usage("aide-o3-lite", gpus=gpus)
    return world


_GPU = "NVIDIA A100-SXM4-80GB", 80 << 30


def _free_gpus(*numbers: int) -> tuple[GpuUse, ...]:
    name, total = _GPU
    return tuple(GpuUse(number, name, 0, 3 << 20, total) for number in numbers)


def _gpus(world: World) -> tuple[GpuUse, ...]:
    """Return eight GPUs: one idle, one lost, two at work, and four without a run."""
    live = [run for run in runs.of_sweep(world.database, "aide-o3-lite") if run.state is RunState.RUNNING]
    latest = [runs.latest_attempt(world.database, run.id) for run in live]
    held = [(attempt.id,) if attempt is not None else () for attempt in latest]
    name, total = _GPU
    return (
        GpuUse(0, name, 35, 24 << 30, total, held[0]),
        GpuUse(1, name, 88, 78 << 30, total, held[1]),
        GpuUse(2, name, 0, 27 << 30, total, held[2]),
        *_free_gpus(4, 5, 6, 7),
        GpuUse(3, name, attempts=held[3], is_lost=True),
    )


def _fill(world: World, sweep_id: str, competitions: tuple[str, ...]) -> None:
    for place, competition in enumerate(competitions[:-1]):
        for seed in (1, 2, 3):
            run = world.run(sweep_id, competition, seed)
            cuts = registry.get(competition).thresholds
            choice = (place * 5 + seed * 3) % 11
            if seed == 3 and place > 4:
                if place < 8:
                    attempt = world.launch(run, ago=(21 - place) * HOUR + 120)
                    world.snapshot(attempt, 1, cuts.median, Outcome.BELOW_MEDIAN, ago=12 * HOUR)
                    world.snapshot(attempt, 2, None, Outcome.INVALID, ago=10 * HOUR, message="no id column")
                    between = (cuts.bronze + cuts.median) / 2
                    world.snapshot(attempt, 3, between, Outcome.ABOVE_MEDIAN, ago=6 * HOUR)
                    world.snapshot(attempt, 4, cuts.silver, Outcome.SILVER, ago=70 * 60)
                elif place == 8:
                    world.launch(run, ago=22.5 * HOUR)
                continue
            attempt = world.launch(run, ago=21 * HOUR)
            ago = (place * 3 + seed) * 900.0
            failures = {
                7: (FailureClass.CRASH, "RuntimeError: stack expects each tensor to be equal size"),
                9: (FailureClass.INFRASTRUCTURE, "GPU lost: Failed to initialize NVML: Unknown Error"),
                10: (FailureClass.MEMORY, "out of memory: killed at 64.0 GB"),
            }
            outcomes = {
                0: (Outcome.GOLD, cuts.gold),
                1: (Outcome.GOLD, cuts.gold),
                2: (Outcome.SILVER, cuts.silver),
                3: (Outcome.BRONZE, cuts.bronze),
                4: (Outcome.ABOVE_MEDIAN, (cuts.bronze + cuts.median) / 2),
                5: (Outcome.BELOW_MEDIAN, cuts.median),
                6: (Outcome.INVALID, None),
                8: (Outcome.NO_SUBMISSION, None),
            }
            if choice in failures:
                kind, text = failures[choice]
                problem = ProblemCode.GPU_LOST if kind is FailureClass.INFRASTRUCTURE else None
                world.fail(attempt, kind, text, ago=ago, evidence=f"step 187\n{text}", problem=problem)
            else:
                outcome, score = outcomes[choice]
                world.finish(attempt, outcome, score, ago=ago)


@_built_once
def outage(places: Places) -> World:
    """A night of 225 runs and of another sweep: 18 runs lost a GPU, agents crashed by themselves, some are at work."""
    world = open_world(places)
    with world.database.transaction():
        _fill_with_outage(world)
    world.engine()
    return world


def _fill_with_outage(world: World) -> None:
    everything = registry.splits()["split75"]
    for name in everything:
        world.prepared(name)
    world.sweep("aide-o3-all", everything, began=23 * HOUR, concurrency=64)
    world.sweep("dummy-2", everything[:2], agent="dummy", began=20 * HOUR, seeds=1)
    lost = [(name, seed) for name in everything[:40:5] for seed in (1, 2)] + [(everything[50], 3)]
    crashed = {(everything[3], 1): "dtype", (everything[7], 2): "dtype", (everything[60], 1): "shape"}
    for place, name in enumerate(everything):
        for seed in (1, 2, 3):
            run = world.run("aide-o3-all", name, seed)
            if (name, seed) in lost:
                world.lose_gpu(run, ago=3 * HOUR - 40 * len(name) - seed)
            elif (name, seed) in crashed:
                text = f"ValueError: could not read {crashed[name, seed]} at step {100 * place}"
                world.fail(
                    world.launch(run, ago=9 * HOUR),
                    FailureClass.CRASH,
                    "the agent ended with exit code 1",
                    ago=5 * HOUR + 60 * place,
                    evidence=f"step 187\n{text}",
                )
            elif place < 70 and (seed < 3 or place < 40):
                world.finish(
                    world.launch(run, ago=20 * HOUR, with_files=False),
                    _OUTCOMES[(3 * place + seed) % 5],
                    0.5,
                    ago=HOUR * 4,
                )
            elif place < 60:
                world.snapshot(world.launch(run, ago=8 * HOUR), 1, 0.4, Outcome.ABOVE_MEDIAN, ago=HOUR)
    world.launch(world.run("aide-o3-all", everything[74], 1), ago=22.8 * HOUR)
    world.lose_gpu(world.run("dummy-2", everything[0], 1), ago=2 * HOUR)


_OUTCOMES = (Outcome.GOLD, Outcome.BRONZE, Outcome.BELOW_MEDIAN, Outcome.ABOVE_MEDIAN, Outcome.NO_SUBMISSION)


@_built_once
def demo(places: Places) -> World:
    """The demo in its middle."""
    world = open_world(places)
    for competition in DEMO:
        world.prepared(competition, size=3_100_000, demo=True)
    for sweep_id, agent, began in (("demo-dummy", "dummy", 95.0), ("demo-baseline", "baseline/demo", 90.0)):
        world.sweep(sweep_id, DEMO, agent=agent, limit=240.0, began=began, concurrency=2, demo=True)
        experiments.assign(world.database, sweep_id, sweep_id, now=NOW - began)
    cuts = registry.get(DEMO[5]).thresholds
    world.finish(
        world.launch(world.run("demo-baseline", DEMO[5], 1), ago=60), Outcome.BRONZE, cuts.bronze, ago=20
    )
    world.launch(world.run("demo-baseline", DEMO[0], 1), ago=14)
    attempt = world.launch(world.run("demo-baseline", DEMO[2], 2), ago=40)
    text = "GPU lost: Failed to initialize NVML: Unknown Error"
    world.fail(attempt, FailureClass.INFRASTRUCTURE, text, ago=12, problem=ProblemCode.GPU_LOST)
    world.engine()
    return world


@_built_once
def large(places: Places) -> World:
    """All of the benchmark three times, nothing run yet but a few."""
    world = open_world(places)
    names = registry.splits()["split75"]
    for name in names:
        world.prepared(name)
    world.sweep("openhands-all", names, agent="openhands", began=2 * HOUR, concurrency=64)
    for place, name in enumerate(names[:64]):
        world.launch(world.run("openhands-all", name, 1), ago=60.0 * place)
    world.engine()
    return world


@_built_once
def preparing(places: Places) -> World:
    """Datasets in every state that they can be in, nothing else."""
    world = open_world(places)
    low, database = registry.splits()["low"], world.database
    done = datasets.Progress(StepState.DONE, 2_500_000_000, 2_500_000_000, "bytes")
    for place, name in enumerate(low[:9]):
        began = NOW - 900 * (place + 1)
        datasets.request(database, name, "v1", steps=STEPS, options=PreparationOptions(), now=began)
        datasets.set_step(database, name, "v1", CHECK, datasets.Progress(StepState.DONE), now=began)
    for name in low[:2]:
        world.step(name, DOWNLOAD, done, took=300)
        for step in STEPS[2:]:
            world.step(name, step, datasets.Progress(StepState.DONE), took=60)
        world.prepared(name)
    world.working(
        low[2], DOWNLOAD, datasets.Progress(StepState.WORKING, 7_400_000_000, 17_100_000_000, "bytes")
    )
    world.step(low[3], DOWNLOAD, done, took=240)
    counted = datasets.Progress(StepState.WORKING, 4_100, 12_000, "items", "training images")
    world.working(low[3], PREPARE, counted)
    for name, state, problem in (
        (
            low[4],
            DatasetState.REFUSED,
            ProblemRecord(
                "rules_not_accepted",
                "Kaggle refuses the download",
                "You must accept this competition's rules",
            ),
        ),
        (
            low[5],
            DatasetState.UNAVAILABLE,
            ProblemRecord("not_available", "no longer available on Kaggle"),
        ),
        (
            low[6],
            DatasetState.FAILED,
            ProblemRecord("data", "public/train.csv is not as known", "expected MD5 1, found 2"),
        ),
        (
            low[7],
            DatasetState.WAITING,
            ProblemRecord("disk_full", "the disk is full", "7.0 GB are needed and 1.0 GB are free"),
        ),
    ):
        step = {DatasetState.WAITING: DOWNLOAD, DatasetState.FAILED: CHECKSUM}.get(state, CHECK)
        world.step(name, step, datasets.Progress(StepState.FAILED, note=problem.what), took=1)
        datasets.set_state(database, name, "v1", state, now=NOW - 40, problem=problem)
    datasets.set_state(
        database, low[0], "corrected", DatasetState.PREPARED, now=NOW, bytes_on_disk=70_000_000
    )
    world.engine(data_free=1_712_000_000_000)
    return world


@_built_once
def counted(places: Places) -> World:
    """A sweep whose model calls are counted, half of the way, with a budget for each run and a provider in trouble."""
    world = open_world(places)
    chosen = registry.splits()["low"][:9]
    for competition in chosen:
        world.prepared(competition)
    world.sweep("aide-counted", chosen, gateway=("openai", "local"), budget_usd=3.0)
    _fill(world, "aide-counted", chosen)
    for place, run in enumerate(runs.of_sweep(world.database, "aide-counted")):
        attempt = runs.latest_attempt(world.database, run.id)
        if attempt is not None:
            world.model_calls(attempt.id, "gpt-4.1", 40 + 3 * place)
    for at in (400.0, 300.0, 200.0, 100.0):
        end = outages.CallEnd(
            "openai", NOW - at, outages.CallFailure.LIMITED, 429, "Rate limit reached for gpt-4.1"
        )
        outages.note(world.database, attempt_of(world, "aide-counted"), [end], now=NOW - at)
    budgets.set_limits(
        world.database, budgets.BudgetScope.SWEEP, "aide-counted", Budget(usd=30.0), now=NOW - HOUR
    )
    world.engine()
    return world


def attempt_of(world: World, sweep_id: str) -> int:
    """The first attempt of a sweep that is live."""
    return next(
        attempt.id
        for attempt in runs.live_attempts(world.database)
        if runs.get(world.database, attempt.run_id).sweep_id == sweep_id
    )


@_built_once
def paused(places: Places) -> World:
    """A sweep that has not begun and is paused."""
    world = open_world(places)
    world.sweep("dummy-1", DEMO[:2], seeds=1, agent="dummy", began=300.0)
    sweeps.set_state(world.database, "dummy-1", SweepState.PAUSED, now=NOW - 200)
    return world


@_built_once
def scored(places: Places) -> World:
    """Two experiments on the low split, all but ended, beside an imported one."""
    world = open_world(places)
    low = registry.splits()["low"]
    kinds = (
        Outcome.GOLD, Outcome.SILVER, Outcome.BRONZE, Outcome.ABOVE_MEDIAN, Outcome.BELOW_MEDIAN,
        Outcome.INVALID, Outcome.NO_SUBMISSION,
    )  # fmt: skip
    for sweep_id, agent, luck, began in (
        ("openhands-lite", "openhands", 9, 60),
        ("aide-o3-lite", "aide-o3", 3, 40),
    ):
        world.sweep(sweep_id, low, agent=agent, began=began * HOUR)
        for place, competition in enumerate(low):
            cuts = registry.get(competition).thresholds
            for seed in (1, 2, 3):
                run = world.run(sweep_id, competition, seed)
                attempt = world.launch(run, ago=23 * HOUR + (place + seed) * 900.0)
                outcome = kinds[(place * luck + seed * (place % 3)) % (len(kinds) - (agent == "aide-o3"))]
                if place == 7 and seed == 2:
                    world.fail(attempt, FailureClass.CRASH, "exit code 1", ago=5 * HOUR)
                    continue
                scores = {
                    Outcome.GOLD: cuts.gold,
                    Outcome.SILVER: cuts.silver,
                    Outcome.BRONZE: cuts.bronze,
                    Outcome.ABOVE_MEDIAN: (cuts.bronze + cuts.median) / 2,
                    Outcome.BELOW_MEDIAN: cuts.median,
                }
                world.finish(attempt, outcome, scores.get(outcome), ago=(place + seed) * 900.0)
        experiments.assign(world.database, agent, sweep_id, now=NOW - began * HOUR)
    write_past(
        places.state_dir,
        tuple(
            PastGrading(name, f"/home/op/work/{name}/{file}.csv", NOW - ago, "v1", outcome, score, medal, why)
            for name, file, ago, outcome, score, medal, why in (
                (DEMO[5], "submission", 700.0, "scored", 0.28411, "bronze", ""),
                (DEMO[0], "blend-3", 4000.0, "scored", 1.0, "gold", ""),
                (DEMO[2], "submission", 9000.0, "rejected", None, "", "column species is missing"),
                (DEMO[1], "first", 20_000.0, "scored", 0.71, "below median", ""),
            )
        ),
    )
    import_reports(places.state_dir, [OPERAND], About("operand", agent="Operand ensemble", llms="gpt-5"))
    world.engine(gpu_uses=_free_gpus(*range(8)))
    return world


@_built_once
def night(places: Places) -> World:
    """Six slots over 40 hours: results of all kinds, a GPU lost under four runs and their relaunch, six live runs."""
    world = open_world(places)
    chosen = (*registry.splits()["low"][:8], *registry.splits()["medium"][:4])
    for competition in chosen:
        world.prepared(competition)
    world.sweep("aide-night", chosen, began=41 * HOUR, concurrency=6, gpus=1)
    free = [40 * HOUR] * 6
    outcomes = (
        Outcome.GOLD,
        Outcome.BELOW_MEDIAN,
        Outcome.BRONZE,
        Outcome.INVALID,
        Outcome.ABOVE_MEDIAN,
        Outcome.SILVER,
    )
    outage = 14 * HOUR
    for place, run in enumerate(runs.of_sweep(world.database, "aide-night")):
        slot = free.index(max(free))
        began, took = free[slot], (6 + 3 * (place * 5 % 4)) * HOUR
        if began < took:
            if began > 0:
                attempt = world.launch(run.id, ago=began)
                world.snapshot(attempt, 1, 0.5, outcomes[place % 6], ago=began / 2)
                free[slot] = 0.0
            continue
        attempt = world.launch(run.id, ago=began)
        if began > outage > began - took and place % 3:
            text = "GPU lost: Failed to initialize NVML"
            world.fail(attempt, FailureClass.INFRASTRUCTURE, text, ago=outage, problem=ProblemCode.GPU_LOST)
            transitions.requeued(world.database, run.id, by="op", now=NOW - outage + 600)
            attempt = world.launch(run.id, ago=outage - 700)
            world.finish(attempt, outcomes[place % 6], 0.5, ago=outage - 700 - 4 * HOUR)
            free[slot] = outage - 700 - 4 * HOUR - 60
        elif place % 7 == 3:
            world.fail(attempt, FailureClass.CRASH, "the agent ended with exit code 1", ago=began - took / 3)
            free[slot] = began - took / 3 - 60
        else:
            world.finish(attempt, outcomes[place % 6], 0.5, ago=began - took)
            free[slot] = began - took - 60
    with world.database.transaction():
        events.append(world.database, NOW - outage + 1200, EventKind.ENGINE_STARTED, "engine 4242 is up")
    world.engine()
    return world


@_built_once
def hostile(places: Places) -> World:
    """Every foreign text is as bad as it can be."""
    world = open_world(places)
    bad = "evil\x1b[2J\x1b]52;c;cHduZWQ=\x07\x1b]0;title\x07\x9b31m\u202e[red]x[/red]\x00\x7f\x1bP1$r\x1b\\"
    world.sweep(f"s{bad}", (f"comp{bad}", DEMO[5]), agent=f"agent{bad}")
    run = world.run(f"s{bad}", DEMO[5], 1)
    attempt = world.launch(run, ago=HOUR, log=(bad + "\n").encode() * 50 + b"\xff\xfe\x1b[31mred\x1b[0m\n")
    directory = places.state_dir / runs.attempt(world.database, attempt).directory
    (directory / "submission" / "x\x1b]0;name\x07\x9b2J.csv").write_text("a")
    world.snapshot(attempt, 1, None, Outcome.INVALID, ago=100, message=bad)
    world.model_calls(attempt, bad, 4, provider=bad)
    world.fail(attempt, FailureClass.CRASH, bad, ago=50, evidence=bad)
    datasets.request(
        world.database,
        f"comp{bad}",
        "v1",
        steps=(f"step{bad}",),
        options=PreparationOptions(source=bad),
        now=NOW - 50,
    )
    datasets.set_state(
        world.database,
        f"comp{bad}",
        "v1",
        DatasetState.FAILED,
        now=NOW - 40,
        problem=ProblemRecord("data", bad),
    )
    experiments.assign(world.database, f"exp{bad}", f"s{bad}", now=NOW)
    past = PastGrading(DEMO[5], f"/work/{bad}.csv", NOW - 60, "v1", "rejected", None, "", bad)
    write_past(places.state_dir, (past,))
    world.engine()
    return world


@_built_once
def on_slurm(places: Places) -> World:
    """A sweep whose runs are jobs: some run, some wait for this and that, some were lost with their nodes."""
    world = open_world(places)
    competitions = registry.splits()["low"][:8]
    for competition in competitions:
        world.prepared(competition)
    world.sweep("aide-slurm", competitions, began=9 * HOUR, concurrency=24, placement="slurm:gpu")
    waits: list[dict[str, Any]] = [
        {"waits_for": "Priority", "starts_at": NOW + 1.5 * HOUR, "job_priority": 4321},
        {"waits_for": "Priority", "starts_at": NOW + 60 * HOUR, "job_priority": 4100},
        {"waits_for": "Resources", "job_priority": 5000},
        {"waits_for": "QOSMaxJobsPerUserLimit", "job_priority": 4000},
        {"waits_for": "JobHeldAdmin", "job_priority": 0},
        {"waits_for": "ReqNodeNotAvail", "job_priority": 10},
        {"waits_for": OwnReason.TO_SUBMIT},
    ]
    for place, run in enumerate(runs.of_sweep(world.database, "aide-slurm")[:20]):
        cuts = registry.get(run.competition_id).thresholds
        if place < 4:
            world.finish(
                world.launch(run.id, ago=8 * HOUR), Outcome.SILVER, cuts.silver, ago=HOUR * (place + 1)
            )
        elif place == 4:
            attempt = world.launch(run.id, ago=8 * HOUR)
            world.job(attempt, 4240, node="gpu04")
            text = "Slurm: its node failed"
            said = "job 4240 on gpu04, submitted 2026-03-13T20:14:00: NODE_FAIL; heartbeat 812 of gpu04, 361 s ago"
            world.fail(attempt, FailureClass.INFRASTRUCTURE, text, ago=HOUR, evidence=said)
        elif place < 12:
            attempt = world.launch(run.id, ago=(12 - place) * HOUR)
            world.job(attempt, 4236 + place, node=f"gpu{place % 3 + 1:02d}")
            world.snapshot(attempt, 1, cuts.bronze, Outcome.BRONZE, ago=1800)
        elif place == 12:
            attempt = world.launch(run.id, ago=2 * HOUR)
            world.job(attempt, 4250, node="gpu05", waits_for="SUSPENDED")
        else:
            attempt = world.launch(run.id, ago=1200, begins=False)
            world.job(attempt, 4252 + place, **waits[place - 13])
    found = [
        Node(f"gpu{number:02d}", "mixed", True, 64, 40, 38.2, 515 << 30, 8, 3, ("gpu",), "")
        for number in (1, 2, 3)
    ]
    found.append(Node("gpu04", "down", False, 64, 0, None, 515 << 30, 8, 0, ("gpu",), "Not responding"))
    found.append(Node("gpu05", "allocated", True, 64, 64, 63.1, 515 << 30, 8, 8, ("gpu", "urgent"), ""))
    found.append(Node("gpu06", "drained", True, 64, 0, 0.0, 515 << 30, 8, 0, ("gpu",), "ECC errors of GPU 3"))
    nodes.write(places.state_dir, Nodes(NOW - 760, tuple(found)))
    since = "Slurm has not answered since 03:02:11, jobs go on: squeue: Unable to contact slurm controller"
    world.engine(problem=since)
    world.usage("aide-slurm")
    return world


@_built_once
def suspected(places: Places) -> World:
    """An experiment whose runs were looked at: a copied kernel, answers in code, a cleared finding."""
    world = scored(places)
    members = runs.of_sweep(world.database, "aide-o3-lite")
    clean = DetectorResult("answers-in-code", Layer.FACTS, 1, "00", NOW - 600)
    kernels = DetectorResult("public-kernels", Layer.PLAGIARISM, 1, "00", NOW - 600)
    own = """\
def make_features(df, cols):
    out = df[cols].fillna(0)
    for name in cols:
        out[name] = out[name] ** 2
    return out"""
    copied = Finding(
        Severity.HIGH,
        "its code is like the public kernel ann/titanic-top-3: similarity 0.91, containment 0.97 (not Dolos' number)",
        (
            Excerpt("code/train.py", 3, 7, own),
            Excerpt("kaggle.com/code/ann/titanic-top-3", 41, 45, own.replace("out", "features")),
        ),
        {"similarity": 0.91, "containment": 0.97, "matched tokens": 1412, "longest run of tokens": 388},
    )
    answers = Finding(
        Severity.HIGH,
        "60 ids of the test set are written into code/final.py, line 2",
        (Excerpt("code/final.py", 2, 2, 'known = {"0013_01": 1, "0018_01": 0, \x1b[31m"0019_02": 1}'),),
        {"entries": 60, "ids of the test set": 60},
    )
    client = Finding(
        Severity.SUSPICIOUS,
        "code/train.py imports a client of models: openai",
        (Excerpt("code/train.py", 1, 1, "import openai"),),
    )
    note = Finding(Severity.NOTE, "its code names pretrained weights: resnet50")
    found = {0: copied, 4: answers, 8: client, 9: client, 12: note}
    with world.database.transaction():
        for place, run in enumerate(members):
            attempt = runs.latest_attempt(world.database, run.id)
            if attempt is None or not run.has_ended:
                continue
            of_layer = {Layer.FACTS: clean, Layer.PLAGIARISM: kernels}
            for layer, result in of_layer.items():
                is_here = place in found and (found[place] is copied) == (layer is Layer.PLAGIARISM)
                looked = replace(result, findings=(found[place],) if is_here else ())
                integrity.replace_results(world.database, attempt.id, layer, [looked])
            if place in found:
                code = places.state_dir / attempt.directory / "code"
                code.mkdir(exist_ok=True)
                (code / "train.py").write_text(f"import openai\n\n{own}\n" + "x = 1\n" * 100)
                os.utime(code / "train.py", (NOW - 9000, NOW - 9000))
        integrity.add_review(
            world.database,
            members[9].id,
            client,
            cleared=True,
            reason="it is imported and never used",
            author="eve@gpu-box-3",
            now=NOW - 300,
        )
    return world


def coded(places: Places) -> World:
    """Two runs of a competition with the code at each submission, one of them still at work."""
    world = open_world(places)
    competition = registry.splits()["low"][0]
    world.prepared(competition)
    world.sweep("aide-o3-lite", (competition,), seeds=2)
    cuts = registry.get(competition).thresholds
    one = world.launch(world.run("aide-o3-lite", competition, 1), ago=9 * HOUR)
    for number, (score, standing) in enumerate(
        ((cuts.median, Outcome.BELOW_MEDIAN), (cuts.gold, Outcome.GOLD), (cuts.bronze, Outcome.BRONZE)),
        start=1,
    ):
        world.snapshot(one, number, score, standing, ago=(9 - 2 * number) * HOUR)
        world.code(one, number, _CODE | {"main.py": _main(number)})
    other = world.launch(world.run("aide-o3-lite", competition, 2), ago=8 * HOUR)
    world.snapshot(other, 1, cuts.silver, Outcome.SILVER, ago=2 * HOUR)
    world.code(
        other, 1, {"main.py": _main(5), "src/train.py": "import torch\n", "utils.py": _CODE["utils.py"]}
    )
    world.engine()
    return world


_CODE: dict[str, str | bytes] = {
    "utils.py": "def seed_everything(seed):\n    random.seed(seed)\n",
    "data/folds.csv": "id,fold\n1,0\n2,1\n",
    "weights.pt": b"\0" * 5000,
}


def _main(version: int) -> str:
    """A script of which each version changes the model, and the fifth most of it."""
    head = ["import pandas as pd", "from utils import seed_everything", "", "seed_everything(1)"]
    steps = [f"x{place} = features(train, {place})" for place in range(12)]
    model = f"model = boost(depth={version}, rounds={version * 500}, learning_rate={0.1 / version:.3f}, early=True)"
    if version == 5:
        steps = [
            f"x = embed(train, {place}, 'a name that is long enough to be cut in half a screen')"
            for place in range(4)
        ]
    return "\n".join([*head, *steps, model, "model.fit(x)", "predict(model).to_csv('submission.csv')", ""])
