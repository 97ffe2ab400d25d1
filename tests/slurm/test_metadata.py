"""What runs on nodes cost the file system that hosts share, counted in calls that name a path on it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from engine.placements import Placements
from engine.placements.commands import Job
from engine.placements.slurm import Slurm
from engine.places import Places
from engine.runs.intake import Intake
from engine.settings import SlurmProfile
from environment.container import output
from environment.container.redaction import TextRedactor
from environment.runner import protocol
from environment.runner.protocol import AgentStarted, Heartbeat
from foundation import jsonlines
from state import database, runs, transitions
from state.records import SweepSpec
from state.samples import Samples
from tests.clocks import HandClock
from tests.engine.states import new_sweep
from tests.environment.runner.orders import order_with
from tests.slurm.fake import FakeSlurm, Latency

RUNS = 225
MOST_A_SECOND = 50
_CALLS = (
    "stat",
    "lstat",
    "open",
    "scandir",
    "listdir",
    "rename",
    "replace",
    "unlink",
    "mkdir",
    "readlink",
    "access",
)


@contextmanager
def counting(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count calls of the operating system that name something in a folder, by the file."""
    counted: Counter[str] = Counter()

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counts(path: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(str(shared)):
                counted[f"{name} {Path(path).name}"] += 1
            return call(path, *arguments, **named)

        return counts

    with monkeypatch.context() as patched:
        for name in _CALLS:
            patched.setattr(os, name, watched(name, getattr(os, name)))
        yield counted


def test_an_engine_costs_a_shared_file_system_few_calls_while_its_runs_work_on_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, slurm = HandClock(1000.0), FakeSlurm()
    state, samples = database.open_for_writing(tmp_path), Samples(tmp_path, writable=True)
    new_sweep(state, SweepSpec("agent", "", ("one",), RUNS, 86400.0, placement="slurm"), concurrency=RUNS)

    def log(text: str, error: BaseException | None = None) -> None:
        raise AssertionError(text) from error

    placements = Placements(Places(tmp_path / "config.toml", tmp_path / "data", tmp_path), clock, log)
    profile = SlurmProfile(max_jobs=RUNS)
    placements._slurm = made = Slurm(lambda _name: profile, tmp_path, slurm, clock, log, Latency(clock, 0))
    intake = Intake(state, samples, tmp_path, placements, clock, log, TextRedactor())
    shared = tmp_path / "runs"
    folders = []
    for number, run in enumerate(runs.of_sweep(state, "s")):
        token = f"t{number}"
        directory = protocol.attempt_folder("s", "one", run.seed, 1, token)
        attempt = transitions.launch(
            state, run.id, directory=directory, runtime="bubblewrap", now=2, token=token, placement="slurm"
        )
        folders.append(folder := tmp_path / directory)
        protocol.make_folders(folder)
        protocol.write(folder / protocol.ORDER, order_with(token=token, attempt_id=attempt.id))
        (folder / protocol.JOB_SCRIPT).touch()
        output.claim(folder / protocol.JOB_CLAIM)
        started = protocol.event_to_line(AgentStarted(3.0, True))
        jsonlines.append(folder / protocol.EVENTS, [started])
        job = Job(
            str(number), "RUNNING", "None", "n1", "2026-01-01T00:00:00", "N/A", "1", made.prefix + token
        )
        slurm.table[job.id] = job
        placements.of(attempt).place(attempt)

    def live(seconds: int) -> None:
        """Let runs write as they do, and the engine look as it does."""
        for second in range(seconds):
            for number, folder in enumerate(folders):
                if (second + number) % 10 == 0:
                    usage = {"at": clock.moment, "cpu_percent": 1.0, "memory_bytes": 1, "disk_bytes": 1}
                    jsonlines.append(folder / protocol.USAGE, [usage | {"processes": 1}])
                    events, used = (
                        (folder / name).stat().st_size for name in (protocol.EVENTS, protocol.USAGE)
                    )
                    beat = Heartbeat(second, "n1", str(number), events, used, 0, ended=False)
                    jsonlines.append(folder / protocol.HEARTBEATS, [asdict(beat)])
            with counting(shared, monkeypatch) as counted:
                for _ in range(4):
                    placements.step()
                    intake.step()
                    clock.moment += 0.25
            total.update(counted)

    total: Counter[str] = Counter()
    live(120)  # all have been seen once
    assert {run.state for run in runs.of_sweep(state, "s")} == {"running"}
    total.clear()
    live(60)
    by_name = Counter({name.rpartition("/")[2]: count / 60 for name, count in total.items()})
    assert total.total() / 60 <= MOST_A_SECOND, by_name.most_common(12)
    samples.close()
    state.close()
