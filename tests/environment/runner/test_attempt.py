"""One attempt in the runner's hands, where no agent needs to run for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending, Started, Tidied
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.container.trees import TreeEntry, remove_tree
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.attempt import RunnerAttempt, Stage, seconds_between_walks
from mlebench_console.environment.runner.code_snapshots import read_kept, read_snapshot
from mlebench_console.environment.runner.host import disk
from mlebench_console.environment.runner.host.disk import WriteMeter
from mlebench_console.environment.runner.host.readings import Gpu
from mlebench_console.environment.runner.job import link_node_folders
from mlebench_console.environment.runner.process.sandbox import ProcessSandbox
from mlebench_console.environment.runner.protocol import LimitExceeded, Order, Stop
from mlebench_console.environment.runner.sandbox import AgentStatus
from mlebench_console.environment.runner.secrets import SecretLaunch
from mlebench_console.foundation import locks
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.foundation.problems import EnvironmentProblem
from tests.clocks import HandClock
from tests.engine.harness import eventually, lines
from tests.environment.runner.orders import order_with

GPUS = (Gpu("GPU-a", "NVIDIA A10", 24 << 30, None, None), Gpu("GPU-b", "Some GPU", None, None, None))
DISK = ThreadPoolExecutor(1)
CODE = ThreadPoolExecutor(1)
HOLD = (
    "import os, signal, sys, time; from pathlib import Path; from mlebench_console.foundation.locks import FileLock;"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "lock = FileLock(Path(sys.argv[1])); assert lock.acquire(note=str(os.getpid())); time.sleep(600)"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    order = order_with()
    protocol.make_folders(tmp_path)
    protocol.write(tmp_path / protocol.ORDER, order)
    return tmp_path


def never(_folder: Path) -> subprocess.Popen[bytes]:
    raise AssertionError("nothing was to be started")


def attempt_in(folder: Path, start: Callable[[Path], subprocess.Popen[bytes]] = never) -> RunnerAttempt:
    return RunnerAttempt(
        folder,
        SystemClock(),
        lambda place, order: ProcessSandbox(place, order.token, start),
        lambda: GPUS,
        DISK,
        CODE,
    )


def exit_of(folder: Path) -> Ending:
    return protocol.read(folder / protocol.EXIT, Ending)


def test_a_shim_that_comes_while_it_is_looked_for_is_not_taken_for_one_that_was_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = FileLock(folder / protocol.LOCK)
    look = locks.is_held

    def look_before_it_comes(lock: Path) -> bool:
        found = look(lock)
        if not (folder / protocol.CLAIM).exists():
            assert shim.acquire() and output.claim(folder / protocol.CLAIM)
        return found

    monkeypatch.setattr(locks, "is_held", look_before_it_comes)
    sandbox = ProcessSandbox(folder, "token", never)
    assert sandbox.status() is AgentStatus.ALIVE
    shim.release()
    assert sandbox.status() is AgentStatus.GONE


def test_a_run_that_is_stopped_before_it_started_never_starts(folder: Path) -> None:
    protocol.write(folder / protocol.STOP, Stop("tester", 1.0))
    attempt = attempt_in(folder)
    attempt.step()
    assert attempt.stage is Stage.DONE
    assert exit_of(folder).reason == "stopped"
    assert (folder / protocol.CLAIM).exists()


def test_a_shim_that_never_comes_up_is_tried_three_times(folder: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(_folder: Path) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["false"]))
        started[-1].wait()
        return started[-1]

    attempt = attempt_in(folder, start)
    for _ in range(5):
        attempt.step()
    assert len(started) == 3
    assert (exit_of(folder).reason, exit_of(folder).problem_code) == ("lost", ProblemCode.NOT_STARTED)
    assert "does not start" in exit_of(folder).problem


def test_a_claim_without_a_living_shim_is_a_lost_sandbox(folder: Path) -> None:
    (folder / protocol.CLAIM).touch()
    (folder / protocol.SUBMISSION / protocol.SUBMISSION_FILE).write_text("a,b\n1,2\n")
    attempt_in(folder).step()
    ended = exit_of(folder)
    assert (ended.reason, ended.problem_code) == ("lost", ProblemCode.SANDBOX_LOST)
    assert ended.submission_sequence == 1
    kinds = [line["kind"] for line in lines(folder / protocol.EVENTS)]
    assert kinds == ["submission", "ended", "collected"]


@pytest.mark.parametrize("known", [True, False])
def test_the_code_at_the_final_submission_is_there_before_the_directory_is_complete(
    folder: Path, *, known: bool
) -> None:
    protocol.write(folder / protocol.ORDER, order_with(secret=True))
    protocol.write(folder / protocol.TIDIED, Tidied(()))
    (folder / protocol.CLAIM).touch()
    (folder / protocol.SUBMISSION / protocol.SUBMISSION_FILE).write_text("a,b\n1,2\n")
    (folder / protocol.CODE / "main.py").write_text("key = 'sesame-open'")
    if known:
        secrets.leave(folder, SecretLaunch((), ("sesame-open",)))
    attempt = attempt_in(folder)

    def is_done() -> bool:
        attempt.step()
        return attempt.stage is Stage.DONE

    eventually(is_done)
    found = read_snapshot(folder, 1)
    told = [line for line in lines(folder / protocol.EVENTS) if line["kind"] == "code_not_kept"]
    if known:
        assert found is not None
        assert [read_kept(folder, each) for each in found.files] == [b"key = '[secret]'"]
    else:
        assert found is None
        assert [line["text"] for line in told] == [
            "the code as it was at submission 1 was not kept: the agent's secrets are gone: "
            "they are kept in memory until it starts"
        ]
    with pytest.raises(EnvironmentProblem):
        secrets.read_hidden(folder)


def test_a_shim_that_misses_the_deadline_is_ended_by_the_runner(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder / protocol.LOCK)]) as shim:
        eventually(lambda: locks.is_held(folder / protocol.LOCK))
        (folder / protocol.CLAIM).touch()
        long_ago = time.monotonic() - 10 - 1 - 61
        started = Started(shim.pid, time.time(), long_ago, output.boot_id(), isolated=False)
        protocol.write(folder / protocol.STARTED, started)
        attempt = attempt_in(folder)
        while shim.poll() is None:
            attempt.step()
            time.sleep(0.05)
        assert shim.wait() == -9
    attempt.step()
    assert exit_of(folder).reason == "deadline"


def test_what_could_not_be_looked_through_is_told_on_the_run(folder: Path) -> None:
    (folder / protocol.CLAIM).touch()
    protocol.write(folder / protocol.STARTED, Started(1, time.time(), 1.0, output.boot_id(), isolated=True))
    protocol.write(folder / protocol.TIDIED, Tidied(("code/a: Input/output error", "logs/b: Is closed")))
    attempt_in(folder).step()
    (told,) = (line for line in lines(folder / protocol.EVENTS) if line["kind"] == "unsearched")
    assert "code/a: Input/output error; logs/b: Is closed" in told["text"]


def test_secrets_that_nobody_looked_for_are_told_on_the_run(folder: Path) -> None:
    order = protocol.read(folder / protocol.ORDER, Order)
    protocol.write(folder / protocol.ORDER, replace(order, secret=True))
    (folder / protocol.CLAIM).touch()
    protocol.write(folder / protocol.STARTED, Started(1, time.time(), 1.0, output.boot_id(), isolated=True))
    attempt_in(folder).step()
    (told,) = (line for line in lines(folder / protocol.EVENTS) if line["kind"] == "unsearched")
    assert "may contain secrets" in told["text"]


def test_what_an_agent_runs_on_is_reported_once_with_its_start(folder: Path) -> None:
    order = protocol.read(folder / protocol.ORDER, Order)
    protocol.write(folder / protocol.ORDER, replace(order, gpu_uuids=("GPU-a",)))
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder / protocol.LOCK)]) as shim:
        eventually(lambda: locks.is_held(folder / protocol.LOCK))
        started = Started(shim.pid, time.time(), time.monotonic(), output.boot_id(), isolated=False)
        protocol.write(folder / protocol.STARTED, started)
        for _ in range(2):
            attempt_in(folder).step()
        shim.kill()
    (told,) = lines(folder / protocol.EVENTS)
    assert told["hardware"]["gpus"] == ["NVIDIA A10, 24 GiB"]


def test_a_deadline_of_another_boot_is_not_compared(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder / protocol.LOCK)]) as shim:
        eventually(lambda: locks.is_held(folder / protocol.LOCK))
        started = Started(shim.pid, time.time(), -1e9, "another boot", isolated=False)
        protocol.write(folder / protocol.STARTED, started)
        attempt = attempt_in(folder)
        attempt.step()
        assert attempt.stage is Stage.RUNNING
        assert shim.poll() is None
        shim.kill()


def test_a_runner_killed_between_any_two_steps_of_gathering_can_do_it_again(folder: Path) -> None:
    (folder / protocol.CLAIM).touch()
    (folder / protocol.SUBMISSION / protocol.SUBMISSION_FILE).write_text("a,b\n1,2\n")
    attempt_in(folder).step()
    (folder / protocol.EXIT).unlink()  # as if it had been killed just before
    attempt_in(folder).step()
    assert exit_of(folder).submission_sequence == 1
    assert [path.name for path in (folder / protocol.SNAPSHOTS).iterdir()] == ["1.csv"]
    kinds = [line["kind"] for line in lines(folder / protocol.EVENTS)]
    assert kinds.count("ended") == kinds.count("collected") == 1


def test_a_link_that_is_made_anew_all_the_time_fills_no_events(folder: Path) -> None:
    place = folder / protocol.SUBMISSION / protocol.SUBMISSION_FILE
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder / protocol.LOCK)]) as shim:
        eventually(lambda: locks.is_held(folder / protocol.LOCK))
        started = Started(shim.pid, time.time(), time.monotonic(), output.boot_id(), isolated=False)
        protocol.write(folder / protocol.STARTED, started)
        attempt = attempt_in(folder)
        for number in range(250):
            place.unlink(missing_ok=True)
            place.symlink_to(f"nowhere-{number}")
            for _ in range(2):
                attempt.step()
        shim.kill()
    (folder / protocol.CLAIM).touch()
    place.unlink()
    attempt.step()
    refused = [line["times"] for line in lines(folder / protocol.EVENTS) if line["kind"] == "refused"]
    assert refused == [1, 10, 100, 250]


def test_what_can_not_be_measured_again_and_again_is_told_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(place: Path, refused: Callable[[str, OSError], None]) -> Iterator[TreeEntry]:
        if place.name == protocol.CODE:
            refused("code/closed", PermissionError(13, "Permission denied"))
        return iter(())

    monkeypatch.setattr("mlebench_console.environment.runner.host.disk.walk", closed)
    protocol.write(folder / protocol.ORDER, order_with(disk_limit_bytes=1 << 30))
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder / protocol.LOCK)]) as shim:
        eventually(lambda: locks.is_held(folder / protocol.LOCK))
        started = Started(shim.pid, time.time(), time.monotonic(), output.boot_id(), isolated=False)
        protocol.write(folder / protocol.STARTED, started)
        attempt = attempt_in(folder)
        attempt.step()

        def measured(times: int) -> bool:
            attempt.measure(process_tree(), with_disk=True)
            found = [line["disk_bytes"] for line in lines(folder / protocol.USAGE)]
            return len([bytes_ for bytes_ in found if bytes_ is not None]) >= times

        eventually(lambda: measured(2))
        assert [line["kind"] for line in lines(folder / protocol.EVENTS)] == ["started"]
        eventually(lambda: measured(5))
        shim.kill()
    assert [line.get("text") for line in lines(folder / protocol.EVENTS)] == [
        None,
        "its disk limit can't be fully enforced: code/closed: Permission denied",
    ]


def test_what_an_agent_leaves_to_be_removed_does_not_change_how_it_ended(folder: Path) -> None:
    (folder / protocol.CLAIM).touch()
    protocol.write(folder / protocol.ENDING, Ending("exited", 3, None, 1.0, 2.0))
    (folder / protocol.SCRATCH).mkdir()
    here = os.open(folder / protocol.SCRATCH, os.O_RDONLY)
    for _ in range(1200):  # far deeper than a path or a recursion reaches
        os.mkdir("d" * 255, dir_fd=here)
        below = os.open("d" * 255, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    attempt = attempt_in(folder)
    try:
        while attempt.stage is not Stage.DONE:
            attempt.step()
        assert (exit_of(folder).reason, exit_of(folder).exit_code) == ("exited", 3)
        assert not (folder / protocol.SCRATCH).exists()
    finally:
        remove_tree(folder / protocol.SCRATCH)  # pytest itself can't


def test_an_end_is_told_before_anything_is_removed_and_though_it_can_not_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / protocol.CLAIM).touch()
    protocol.write(folder / protocol.ENDING, Ending("exited", 3, None, 1.0, 2.0))

    def removing(_sandbox: ProcessSandbox) -> Generator[None, None, list[str]]:
        assert [line["kind"] for line in lines(folder / protocol.EVENTS)] == ["ended"]
        yield
        return ["scratch/a: Operation not permitted"]

    monkeypatch.setattr(ProcessSandbox, "removing", removing)
    attempt_in(folder).step()
    assert exit_of(folder).exit_code == 3
    told = lines(folder / protocol.EVENTS)
    assert [line["kind"] for line in told] == ["ended", "unremoved", "collected"]
    assert "scratch/a: Operation not permitted" in told[1]["text"]


@pytest.mark.parametrize(("version", "age"), [(protocol.VERSION + 1, "a newer"), (1, "an older")])
def test_an_order_of_another_protocol_is_refused(folder: Path, version: int, age: str) -> None:
    order = json.loads((folder / protocol.ORDER).read_text()) | {"version": version}
    (folder / protocol.ORDER).write_text(json.dumps(order))
    with pytest.raises(Exception, match=f"{age} version"):
        attempt_in(folder)


def test_a_job_walks_through_its_directory_the_less_the_more_there_is() -> None:
    free = order_with()
    assert seconds_between_walks(free, 50, 0) == 2000
    assert seconds_between_walks(free, 1_000_000, 0) == 4 * 3600
    may_idle = order_with(idle_limit_seconds=1800)
    assert seconds_between_walks(may_idle, 50, 599) == 2000
    assert seconds_between_walks(may_idle, 50, 600) == 600  # before it is ended, so that what it wrote counts


_WRITE = """
import os, sys; from pathlib import Path; from mlebench_console.foundation.locks import FileLock
lock = FileLock(Path(sys.argv[1])); assert lock.acquire(note=str(os.getpid())); print(flush=True)
for place in sys.stdin:
    Path(place.strip()).write_bytes(bytes(10 << 20)); print(flush=True)
"""


def test_a_job_with_a_disk_limit_walks_through_its_directory_when_it_may_be_over_it(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[Path] = []
    walk = disk._sizes_in_directory

    def counted(place: Path, *more: Any) -> Iterator[int]:
        walks.append(place)
        return walk(place, *more)

    monkeypatch.setattr(disk, "_sizes_in_directory", counted)
    monkeypatch.setattr(disk, "_TURN_SECONDS", 60.0)  # one turn each, however busy the machine is
    protocol.write(folder / protocol.ORDER, order_with(disk_limit_bytes=32 << 20))
    link_node_folders(folder, tmp_path_factory.mktemp("node"))
    for number in range(100):  # so that it would not be walked through again in this test
        (folder / protocol.CODE / str(number)).touch()
    clock = HandClock(1000.0)
    attempt = RunnerAttempt(
        folder,
        clock,
        lambda place, order: ProcessSandbox(place, order.token, never),
        lambda: GPUS,
        DISK,
        CODE,
        as_job=True,
    )
    shim = [sys.executable, "-c", _WRITE, str((folder / protocol.LOCK).resolve())]
    with subprocess.Popen(shim, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        assert output.claim(folder / protocol.CLAIM)
        output.write(folder / protocol.STARTED, Started.now(process.pid, isolated=True))
        attempt.step()

        def used_after_writing(name: str = "") -> int:
            """Return what was measured within the next minutes."""
            if name:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(f"{folder / name}\n".encode())
                process.stdin.flush()
                process.stdout.readline()
            for _ in range(2):
                clock.moment += 60
                attempt.measure(process_tree(), with_disk=True)
                DISK.submit(lambda: None).result()
            found: int = lines(folder / protocol.USAGE)[-1]["disk_bytes"]
            return found >> 20

        assert (used_after_writing(), len(walks)) == (0, 1)
        assert (used_after_writing(f"{protocol.SCRATCH}/a"), len(walks)) == (10, 1), (
            "of its node nobody else pays"
        )
        assert (used_after_writing(f"{protocol.CODE}/b"), len(walks)) == (10, 1), "it can't be over its limit"
        assert (used_after_writing(f"{protocol.CODE}/c"), len(walks)) == (30, 2)
        assert not (folder / protocol.LIMIT).exists()
        assert used_after_writing(f"{protocol.CODE}/d") == 40
        assert protocol.read(folder / protocol.LIMIT, LimitExceeded).kind == "disk"
        process.stdin.close()


def test_what_processes_may_have_written_is_known_also_of_those_that_have_ended(tmp_path: Path) -> None:
    write = "import subprocess, sys; subprocess.run(['head', '-c', '30M', '/dev/zero'], stdout=open(sys.argv[1], 'w'))"
    meter = WriteMeter()
    with subprocess.Popen(
        [sys.executable, "-c", f"{write}; print(flush=True); input()", str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        before = meter.take([parent.pid])
        assert before is not None
        parent.stdout.readline()
        written = meter.take([parent.pid, 1 << 22])
        assert written is not None
        assert written >= 30 << 20
        assert meter.take([parent.pid]) == written
        parent.stdin.close()
