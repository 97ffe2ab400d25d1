"""An engine with ten thousand jobs in a slow Slurm: its processor usage, number of calls and rate of submission."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.engine import cpu_seconds
from benchmarks.measuring import Comparison, Reading
from mlebench_console import prepare_competition
from mlebench_console.engine import agent_snapshots, control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.demo_data import generate
from mlebench_console.engine.placements.sbatch import job_prefix
from mlebench_console.engine.places import Places, own_agents_folder
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Heartbeat, Order
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.conditions import Resources, RunConditions
from mlebench_console.state import database, datasets, sweeps, transitions
from mlebench_console.state import runs as state_runs
from mlebench_console.state.records import DatasetState, SweepSpec

_COMPETITION = "spaceship-titanic"
_JOBS = 10_000
_WAITING = 1_000  # of them; the others run
_QUEUED = 200  # runs that are still to be submitted
_LATENCY_SECONDS = 2
_SETTLE_SECONDS = 90.0
# Above two hundred jobs squeue is called once a minute.
_WATCHED_SECONDS = 180.0
_PER_MINUTE = 30
_PROGRAMS = ("sbatch", "squeue", "sacct", "scancel", "sinfo")
_NODES = 200


def measure(_rounds: int) -> Iterator[Comparison | Reading]:
    """Measure one engine for some minutes."""
    folder = Path(tempfile.mkdtemp(prefix="mlebench-slurm-"))
    places = Places(folder / "config.toml", folder / "data", folder / "state")
    slurm = folder / "slurm"
    path = os.environ["PATH"]
    try:
        _write_programs(slurm)
        _make_jobs(places, slurm)
        os.environ["PATH"] = f"{slurm}:{path}"
        control.ensure_running(places)
        engine = int(lock_path(places).read_text())
        time.sleep(_SETTLE_SECONDS)
        calls_before = _calls(slurm)
        before, began = cpu_seconds(engine), time.monotonic()
        time.sleep(_WATCHED_SECONDS)
        used, lasted = cpu_seconds(engine) - before, time.monotonic() - began
        made = _calls(slurm)[len(calls_before) :]
        problem = control.status(places).problem
    finally:
        os.environ["PATH"] = path
        control.stop(places)
        shutil.rmtree(folder)
    if problem:
        raise RuntimeError(f"the engine is in trouble: {problem}")
    yield Comparison(
        "slurm", f"engine, {_JOBS:,} jobs of Slurm (CPU)", used, "one core", lasted, promise=0.10
    )
    submitted = made.count("sbatch")
    minutes = lasted / 60
    what = f"calls of Slurm that only look or cancel, {_JOBS:,} jobs, answers after {_LATENCY_SECONDS} s"
    yield Reading("slurm", what, (len(made) - submitted) / minutes, "/min", 5.0)
    yield Reading(
        "slurm", f"submissions, {_PER_MINUTE} a minute allowed", submitted / minutes, "/min", _PER_MINUTE
    )


def _write_programs(folder: Path) -> None:
    """Write programs of Slurm's names, which note that they were called and take their time to answer."""
    folder.mkdir()
    answers = {
        "squeue": f"cat {folder}/queue",
        "sinfo": f"cat {folder}/nodes",
        "sbatch": "echo $((20000 + $(date +%s%N) % 1000000))",
        "sacct": "true",
        "scancel": "true",
    }
    for name in _PROGRAMS:
        text = f"#!/bin/sh\necho {name} >>{folder}/calls\nsleep {_LATENCY_SECONDS}\n{answers[name]}\n"
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "calls").touch()
    (folder / "nodes").write_text(
        "".join(
            f"n{number}|mixed|32/32/0/64|30.5|500000|gpu:a100:8|gpu:a100:4|main*|none|\n"
            for number in range(_NODES)
        )
    )


def _calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split()


def _make_jobs(places: Places, slurm: Path) -> None:
    """Create a state whose runs are jobs, their directories, and squeue's output for them."""
    raw = places.data_dir / "generated"
    generate(_COMPETITION, raw)
    prepare_competition(_COMPETITION, data_dir=places.data_dir, raw=raw)
    places.config_file.write_text(
        f"[slurm.default]\nmax_jobs = {_JOBS + _QUEUED}\nsubmissions_per_minute = {_PER_MINUTE}\n"
    )
    places.state_dir.mkdir()
    state = database.open_for_writing(places.state_dir)
    now, runs = time.time(), _JOBS + _QUEUED
    spec = SweepSpec(
        "dummy",
        "",
        (_COMPETITION,),
        runs,
        RunConditions(
            86_400.0, runtime="plain", placement="slurm", resources=Resources(memory_bytes=1 << 30)
        ),
    )
    with state.transaction():
        sweeps.create(
            state,
            sweep_id="s",
            name="s",
            spec=replace(spec, data_dir=str(places.data_dir)),
            agent_version=agent_snapshots.take(own_agents_folder() / "dummy", places.state_dir),
            concurrency=runs,
            now=now,
        )
        datasets.set_state(state, _COMPETITION, spec.conditions.edition, DatasetState.PREPARED, now=now)
        lines = []
        prefix = job_prefix(places.state_dir)
        for place, run in enumerate(state_runs.of_sweep(state, "s")[:_JOBS]):
            token = transitions.new_token()
            directory = protocol.attempt_folder("s", _COMPETITION, run.seed, 1, token)
            attempt = transitions.launch(
                state, run.id, directory=directory, runtime="plain", now=now, token=token, placement="slurm"
            )
            waits = place < _WAITING
            _make_directory(places, attempt.id, directory, token, run.seed, waits=waits)
            if not waits:
                transitions.started(state, attempt.id, isolated=False, at=now, now=now)
            said = "PENDING|Priority|" if waits else f"RUNNING|None|n{place % _NODES}"
            lines.append(f"{place}|{said}|2026-01-01T00:00:00|2026-01-01T00:00:01|{place}|{prefix}{token}\n")
    state.close()
    (slurm / "queue").write_text("".join(lines))


def _make_directory(
    places: Places, attempt_id: int, directory: str, token: str, seed: int, *, waits: bool
) -> None:
    folder = places.state_dir / directory
    folder.mkdir(parents=True)
    order = Order(
        version=protocol.VERSION,
        attempt_id=attempt_id,
        sweep_id="s",
        competition_id=_COMPETITION,
        seed=seed,
        attempt=1,
        agent_id="dummy",
        agent_folder="",
        start="start.sh",
        arguments=(),
        variables=(),
        secret=False,
        prepared_dir="",
        python_prefix=sys.prefix,
        conditions=RunConditions(86_400.0, runtime=protocol.PLAIN, resources=Resources(memory_bytes=1 << 30)),
        token=token,
    )
    (folder / protocol.ORDER).write_text(json.dumps(asdict(order)))
    (folder / protocol.JOB_SCRIPT).write_text("#!/bin/bash\n")
    if not waits:
        (folder / protocol.JOB_CLAIM).touch()
        beat = Heartbeat(0, "n1", "1", 0, 0, 0, ended=False)
        jsonlines.append(folder / protocol.HEARTBEATS, [asdict(beat)])
