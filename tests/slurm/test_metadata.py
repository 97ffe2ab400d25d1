"""What runs on nodes cost the file system that hosts share, counted in calls that name a path on it."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.placements import Placements
from mlebench_console.engine.placements.commands import Job
from mlebench_console.engine.placements.slurm import Slurm
from mlebench_console.engine.places import Places
from mlebench_console.engine.runs.intake import Intake
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Started
from mlebench_console.environment.container.processes import ProcessTree
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.runner import loop, protocol
from mlebench_console.environment.runner.job import HeartbeatWriter, link_node_folders, seconds_between_polls
from mlebench_console.environment.runner.loop import Runner
from mlebench_console.environment.runner.protocol import AgentStarted, Heartbeat
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.locks import FileLock
from mlebench_console.state import database, runs, transitions
from mlebench_console.state.usage.samples import Samples
from tests.clocks import HandClock
from tests.conditions import spec_of
from tests.engine.states import new_sweep
from tests.environment.runner.orders import order_with
from tests.slurm.fake import FakeSlurm, Latency

RUNS = 225
MOST_A_SECOND = 50
LOOK_SECONDS = seconds_between_polls(86_400, order_with(grade_every_seconds=60), 300)
_CALLS = (
    "access",
    "chmod",
    "link",
    "listdir",
    "lstat",
    "mkdir",
    "open",
    "readlink",
    "rename",
    "replace",
    "rmdir",
    "scandir",
    "stat",
    "statvfs",
    "symlink",
    "unlink",
    "utime",
)


class _Entry:
    """An entry of a folder, of which it is counted when it is asked for more than its name."""

    def __init__(self, entry: os.DirEntry[str], count: Callable[[str], None]) -> None:
        self._entry, self._count = entry, count
        self.name, self.path = entry.name, entry.path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        self._count(self.name)
        return self._entry.stat(follow_symlinks=follow_symlinks)


@contextmanager
def counting(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count calls of the operating system that name something in a folder, by the file."""
    counted: Counter[str] = Counter()

    def place(path: Any, folder: int | None) -> str:
        """Return where a path leads, also one below an open folder, and where an open folder is."""
        if isinstance(path, int):
            return str(readlink(f"/proc/self/fd/{path}"))
        return os.fspath(path) if folder is None else f"{readlink(f'/proc/self/fd/{folder}')}/{path}"

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counts(path: Any = ".", *arguments: Any, **named: Any) -> Any:
            at = place(path, named.get("dir_fd"))
            is_shared = at.startswith(f"{shared}/")
            if is_shared and not isinstance(path, int):
                counted[f"{name} {Path(at).name}"] += 1
            found = call(path, *arguments, **named)
            return listed(found) if name == "scandir" and is_shared else found

        return counts

    @contextmanager
    def listed(found: Any) -> Iterator[Iterator[_Entry]]:
        with found:
            yield (_Entry(entry, lambda name: counted.update([f"stat {name}"])) for entry in found)

    readlink = os.readlink
    with monkeypatch.context() as patched:
        for name in _CALLS:
            patched.setattr(os, name, watched(name, getattr(os, name)))
        patched.setattr(io, "open", watched("open", io.open))
        yield counted


def calls_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often a second an engine asks for which files while all runs work on nodes."""
    clock, slurm = HandClock(1000.0), FakeSlurm()
    tmp_path.mkdir()
    state, samples = database.open_for_writing(tmp_path), Samples(tmp_path, writable=True)
    new_sweep(state, spec_of("agent", "", ("one",), RUNS, 86400.0, placement="slurm"), concurrency=RUNS)
    placements = Placements(Places(tmp_path / "config.toml", tmp_path / "data", tmp_path), clock, unexpected)
    profile = SlurmProfile(max_jobs=RUNS)
    placements._slurm = made = Slurm(
        lambda _name: profile, tmp_path, slurm, clock, unexpected, Latency(clock, 0)
    )
    intake = Intake(state, samples, tmp_path, placements, clock, unexpected, TextRedactor())
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
        (folder / protocol.USAGE).touch()
        job = Job(str(number), "RUNNING", "None", "n1", "2026-01-01T00:00:00", None, 1, made.prefix + token)
        slurm.table[job.id] = job
        placements.of(attempt).place(attempt)

    def live(seconds: int) -> None:
        """Let runs write as they do, and the engine look as it does."""
        for second in range(seconds):
            for number, folder in enumerate(folders):
                if (second + number) % 60 == 0:
                    usage = {"at": clock.moment, "cpu_percent": 1.0, "memory_bytes": 1, "disk_bytes": 1}
                    jsonlines.append(folder / protocol.USAGE, [usage | {"processes": 1}])
                if (second + number) % int(LOOK_SECONDS) == 0:
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
    samples.close()
    state.close()
    return Counter({name: count / 60 for name, count in total.items()})


def calls_of_a_node(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, calls_models: bool, disk_limit: int | None
) -> Counter[str]:
    """Return how often a second the job of one run asks for which files when that has run for an hour."""
    clock, here = HandClock(1000.0), folder / "node"
    attempt = folder / "shared" / "attempt"
    here.mkdir(parents=True)
    protocol.make_folders(attempt)
    link_node_folders(attempt, here)
    providers = (ModelProvider("openai", "openai", "http://localhost", "KEY"),) if calls_models else ()
    order = order_with(
        providers=providers,
        time_limit_seconds=86_400,
        grade_every_seconds=60,
        disk_limit_bytes=disk_limit,
    )
    protocol.write(attempt / protocol.ORDER, order)
    for claim in (protocol.JOB_CLAIM, protocol.CLAIM):
        output.claim(attempt / claim)
    output.write(attempt / protocol.STARTED, Started.now(os.getpid(), isolated=True))
    of_the_agent = [f"{protocol.CODE}/{number}.py" for number in range(30)]
    for name in (
        *(protocol.LOG, f"{protocol.OUTPUT}/run.times", protocol.SHIM_LOG, protocol.VALIDATIONS),
        *((protocol.MODEL_CALLS, protocol.OPEN_CALLS) if calls_models else ()),
        *(f"{protocol.SUBMISSION}/{protocol.SUBMISSION_FILE}", *of_the_agent),
    ):
        (attempt / name).write_text("x")
    monkeypatch.setattr(loop, "process_tree", lambda: ProcessTree({}))
    heartbeats, total = HeartbeatWriter(attempt, order, every_seconds=0.0), Counter[str]()
    # As long as its main process and its gateway live.
    with FileLock(attempt / protocol.LOCK) as shim, FileLock(attempt / protocol.GATEWAY_LOCK) as gateway:
        assert shim.acquire() and gateway.acquire()
        runner = Runner(folder, clock, unexpected, tuple, single=attempt, as_job=True)
        with closing(runner), closing(heartbeats):

            def look(seconds: float) -> None:
                for _ in range(round(seconds / LOOK_SECONDS)):
                    runner.tick()
                    runner._disk_worker.submit(lambda: None).result()
                    assert heartbeats.write(runner.single_attempt)
                    clock.moment += LOOK_SECONDS

            look(3600)
            with counting(folder / "shared", monkeypatch) as total:
                look(_HOURS * 3600)
            assert any("disk_bytes" in line for line in jsonlines.read(attempt / protocol.USAGE).values)
            # It has heard of all that it promises to hear of.
            kinds = [line["kind"] for line in jsonlines.read(attempt / protocol.EVENTS).values]
            assert kinds == ["started", "submission"]
    return Counter({name: count / _HOURS / 3600 for name, count in total.items()})


_HOURS = 2


def unexpected(text: str, error: BaseException | None = None) -> None:
    """Fail where something goes wrong."""
    raise AssertionError(text) from error


def test_runs_on_nodes_and_their_engine_cost_a_shared_file_system_few_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = calls_of_the_engine(tmp_path / "engine", monkeypatch)
    for calls_models, disk_limit in ((False, None), (True, None), (True, 10 << 30)):
        node = calls_of_a_node(
            tmp_path / f"node-{calls_models}-{disk_limit}",
            monkeypatch,
            calls_models=calls_models,
            disk_limit=disk_limit,
        )
        both = engine.total() + RUNS * node.total()
        assert both <= MOST_A_SECOND, (both, engine.most_common(5), node.most_common(12))
