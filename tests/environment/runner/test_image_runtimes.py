"""Agents in their exported images, without a daemon: each runtime shows them the same, and holds the same."""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mlebench_console.environment.container.output import Ending, Started
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.container.traffic import Traffic
from mlebench_console.environment.runner import layout, protocol
from mlebench_console.environment.runner.host.store import make_store
from mlebench_console.environment.runner.process import apptainer, image_cache
from mlebench_console.environment.runner.protocol import GivenGpus, Order
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem
from tests.docker.harness import serving
from tests.engine.harness import COMPETITION, SUBMIT, eventually
from tests.environment.runner.orders import order_with
from tests.environment.runner.small_image import damaged, small_image
from tests.machine import ORDINARY_USER, become
from tests.shared import made_once

ROOT = Path(__file__).parents[3]
LOOK_AROUND = r"""
import json, os, pathlib, socket, urllib.request

def tried(action):
    try:
        return repr(action())
    except Exception as error:
        return type(error).__name__

def writes(path):
    return tried(lambda: pathlib.Path(path, "probe").write_text("x"))

def secret_files():
    for parent, folders, files in os.walk("/"):
        if parent == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "usr")]
        for name in files:
            if "private" in parent.split("/") or name in ("answers.csv", "state.db", "run.json", "shadow"):
                yield os.path.join(parent, name)

def kernel_settings():
    for parent, _, files in os.walk("/proc/sys"):
        for path in (os.path.join(parent, name) for name in files):
            of_namespaces = ("/proc/sys/net/", "/proc/sys/user/", "/proc/sys/kernel/ns_last_pid")
            if not path.startswith(of_namespaces) and tried(lambda: open(path, "r+").close()) == "None":
                yield path

status = dict(line.split(":\t") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
facts = {
    "answers": list(secret_files()),
    "settings of the kernel": list(kernel_settings()),
    "user": [os.getuid(), os.environ.get("USER"), os.environ.get("HOME")],
    "variables": sorted(os.environ),
    "mark": pathlib.Path("/etc/mark").read_text(),
    "data": writes("/home/data"),
    "agent": writes("/home/agent"),
    "home of its user": writes(os.environ["HOME"]),
    "etc": writes("/etc"),
    "temporary": writes("/tmp"),
    "temporary for long": writes("/var/tmp"),
    "processes": len(list(pathlib.Path("/proc").glob("[0-9]*"))),
    "outside": tried(lambda: socket.create_connection(("192.0.2.1", 80), 2)),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "health": tried(lambda: urllib.request.urlopen(os.environ["VALIDATION_URL"] + "/health", timeout=20).read()),
    "hostname": socket.gethostname(),
    "rights": [status["CapEff"], status["NoNewPrivs"]],
    "seccomp": status["Seccomp"],
    "folder": os.getcwd(),
}
for place in ("/etc/mark", "/home/agent/start.sh"):
    tried(lambda: pathlib.Path(place).write_text("changed by an agent"))
print(json.dumps(facts))
"""


_OF_STORES = (".work", ".lease")
_SHIM = "import sys; from mlebench_console.environment.runner.process import shim; sys.exit(shim.main())"


@dataclass
class World:
    """A host on which attempts run in one runtime, by their own main process alone."""

    runtime: str
    folder: Path
    prepared: Path
    cache: Path
    as_user: str = ""
    has_image: bool = True

    def order(self, script: str, **changes: Any) -> Order:
        agent = self.folder / "agent"
        agent.mkdir(exist_ok=True)
        # What counts is in the image, where there is one.
        (agent / "start.sh").write_text("exit 99\n" if self.has_image else script)
        usual: dict[str, Any] = {
            "competition_id": COMPETITION,
            "agent_folder": str(agent),
            "prepared_dir": str(self.prepared),
            "runtime": self.runtime,
            "time_limit_seconds": 60,
            "memory_bytes": 1 << 30,
            "image_file": small_image() if self.has_image else None,
            "variables": (("SCRIPT", script), ("LD_LIBRARY_PATH", "/nowhere")),
        }
        return order_with(**usual | changes)

    def run(self, order: Order) -> Path:
        """Run an attempt to its end, and return its directory."""
        attempt = self.place(order)
        with self.begin(_SHIM, str(attempt), str(self.cache)) as shim:
            assert shim.wait(120) == 0
        return attempt

    def place(self, order: Order) -> Path:
        """Make the directory of an attempt."""
        # A path too long for a socket is no hindrance.
        attempt = self.folder / ("long" * 20) / f"attempt-{order.token}"
        protocol.make_folders(attempt)
        protocol.write(attempt / protocol.ORDER, order)
        if self.as_user:
            subprocess.run(["chown", "-R", f"{self.as_user}:", str(self.folder)], check=True)
        return attempt

    def begin(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Begin a program of ours as the operator whom this host serves."""
        command = [sys.executable, "-I", "-c", program, *arguments]
        environment = dict(os.environ)
        if self.as_user:
            command = [*become(self.as_user), *command]
            environment |= {"HOME": str(self.folder)}
        return subprocess.Popen(command, env=environment, cwd="/")


_WITHOUT_IMAGE = "bubblewrap without an image"


def worlds(*names: str) -> list[Any]:
    """Name runtimes as parameters, each of the group of tests that it needs."""
    return [pytest.param(name, marks=pytest.mark.group(name.partition(" ")[0])) for name in names]


@pytest.fixture(params=worlds(*protocol.OF_IMAGE_FILES))
def world(request: pytest.FixtureRequest, tmp_path: Path, prepared_data: Path) -> Iterator[World]:
    runtime = request.param.partition(" ")[0]
    request.getfixturevalue(runtime)
    prepared = prepared_data / COMPETITION / "prepared"
    if runtime == protocol.BUBBLEWRAP:
        cache = made_once("small-image-cache", Path.mkdir)
        yield World(runtime, tmp_path, prepared, cache, has_image=request.param != _WITHOUT_IMAGE)
        return
    with TemporaryDirectory(prefix="mlebench-test-") as home:
        shutil.copytree(prepared, Path(home, "prepared"))
        yield World(runtime, Path(home), Path(home, "prepared"), Path(home, "cache"), ORDINARY_USER)


def log(attempt: Path) -> str:
    written = attempt / protocol.LOG
    assert written.exists(), protocol.read(attempt / protocol.ENDING, Ending).problem
    return written.read_text(errors="replace")


def ending(attempt: Path) -> Ending:
    return protocol.read(attempt / protocol.ENDING, Ending)


def test_an_agent_finds_its_image_and_its_own_things_and_nothing_else(world: World) -> None:
    facts = []
    for _ in range(2):
        attempt = world.run(
            world.order(
                f"python3 - << 'END'\n{LOOK_AROUND}\nEND\n{SUBMIT}; validate_submission.sh x; "
                '/home/validate_submission.sh "$SUBMISSION_DIR/submission.csv"; exit 7'
            )
        )
        assert ending(attempt).exit_code == 7, log(attempt)
        facts.append(json.loads(next(line for line in log(attempt).splitlines() if line.startswith("{"))))
        assert "The submission is valid." in log(attempt)
    found = facts[1]
    assert found["mark"] == "as it was built\n", "what one attempt changes, no other sees"
    assert found["answers"] == []
    # Apptainer leaves an agent the number of the operator's user.
    user = pwd.getpwnam(ORDINARY_USER).pw_uid if world.runtime == protocol.APPTAINER else 1000
    assert found["user"] == [user, "nonroot", "/home/nonroot"]
    assert found["settings of the kernel"] == []
    assert found["data"] in ("OSError", "PermissionError")
    for place in ("agent", "home of its user", "temporary", "temporary for long"):
        assert found[place] == "1", place
    # Only a layer above it makes a root writable, which Apptainer mounts.
    assert (found["etc"] == "1") == (world.runtime == protocol.APPTAINER)
    assert found["interfaces"] == ["lo"]
    assert found["outside"] in ("OSError", "TimeoutError")
    assert "running" in found["health"]
    assert found["hostname"] == "sandbox"
    assert found["folder"] == "/home/agent"
    assert found["processes"] <= 8
    assert {"OF_THE_IMAGE", "COMPETITION_ID", "SCRIPT"} <= set(found["variables"])
    assert {"MLEBENCH_ATTEMPT", "KAGGLE_KEY", "XDG_RUNTIME_DIR"}.isdisjoint(found["variables"])
    assert found["rights"][0] == "0" * 16
    started = protocol.read(attempt / protocol.STARTED, Started)
    assert (started.runtime, started.isolated) == (world.runtime, True)
    assert started.image == "sha256:of-the-small-image"
    if world.runtime != protocol.APPTAINER:
        assert (found["rights"][1], found["seccomp"]) == ("1", "2")
    else:
        assert "system_calls" in started.unenforced


ATTACKS = {
    # What it does, how that ends, and what its log must not hold.
    "goes on and ignores its end": (
        "kill -9 -1; (setsid bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' &)\n"
        "trap 'echo saved; exit 4' TERM; echo ready $EPOCHSECONDS; while :; do sleep 0.1; done",
        "deadline",
        "",
    ),
    "takes memory": ("python3 -c \"x = b'x' * (3 << 30); print('TAKEN'.lower())\"; echo then", "", "taken"),
    "mounts": (
        "unshare -r true && echo a namespace; mount -t tmpfs x /home/data && echo a mount",
        "exited",
        "a ",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_agent_that_attacks_gets_the_end_that_it_gets_in_docker(world: World, name: str) -> None:
    script, reason, forbidden = ATTACKS[name]
    if world.runtime == protocol.APPTAINER and name == "mounts":
        script = "mount -t tmpfs x /home/data && echo a mount"  # user namespaces are not held there
    # The time that a busy machine needs to start a container counts as the agent's: it may use up a short limit, and
    # Apptainer passes no signal on before its own start is over.
    for limit in (6, 60) if reason == "deadline" else (60,):
        order = world.order(script, time_limit_seconds=limit, grace_seconds=6)
        attempt = world.run(order)
        told, ready = ending(attempt), re.search(r"ready (\d+)", log(attempt))
        began = told.started_at or 0.0
        if ready is not None and int(ready[1]) + 2 < began + limit:
            break
    assert told.survivors == 0
    unenforced = protocol.read(attempt / protocol.STARTED, Started).unenforced
    assert ("user_namespaces" in unenforced) == (world.runtime == protocol.APPTAINER)
    if reason:
        assert told.reason == reason, (told, log(attempt))
    else:
        assert told.reason == "memory" or told.oom_kills, (told, log(attempt))
    if reason == "deadline":
        # Apptainer may end by the signal before it has its agent's exit code.
        codes = (4, 143) if world.runtime == protocol.APPTAINER else (4,)
        assert told.exit_code in codes, (told, log(attempt))
        assert log(attempt).endswith("saved\n"), "what is asked to end may save what it has"
    if forbidden:
        assert forbidden not in log(attempt)
    left = [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if order.token.encode() in _read(path) and b"pytest" not in _read(path)
    ]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it ended in between


def fetch(url: str, name: str, through: str = "") -> str:
    return f"curl -s -m 10 {through} {url} > $LOGS_DIR/{name}; echo code $? >> $LOGS_DIR/{name}\n"


class _Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"hello {self.path}".encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.parametrize("world", worlds(*protocol.OF_IMAGE_FILES, _WITHOUT_IMAGE), indirect=True)
def test_the_network_for_models_leads_to_the_named_hosts_and_nowhere_else(world: World) -> None:
    address = "127.0.0.2"  # not among those that clients reach without a proxy
    with serving(address, _Hello) as allowed, serving(address, _Hello) as other:
        script = (
            fetch(f"http://{address}:{allowed}/a", "allowed")
            + fetch(f"http://{address}:{allowed}/tunnel", "tunnel", "--proxytunnel")
            + fetch(f"http://{address}:{other}/", "other")
            + fetch(f"http://{address}:{allowed}/", "direct", "--noproxy '*'")
            + f"{SUBMIT}; $VALIDATE_SCRIPT $SUBMISSION_DIR/submission.csv"
        )
        attempt = world.run(world.order(script, network="models", allowed_hosts=(f"{address}:{allowed}",)))
    told = {path.name: path.read_text() for path in (attempt / protocol.LOGS).iterdir()}
    assert told["allowed"] == "hello /acode 0\n", log(attempt)
    assert told["tunnel"].startswith("hello /tunnel")
    assert "not among the hosts" in told["other"]
    assert "hello" not in told["direct"]
    assert "The submission is valid." in log(attempt), "the validation server is reached without the proxy"
    traffic = protocol.read(attempt / protocol.TRAFFIC, Traffic)
    assert traffic.hosts[f"{address}:{allowed}"].connections == 2


@pytest.mark.parametrize("world", worlds(protocol.BUBBLEWRAP), indirect=True)
def test_an_image_finds_the_devices_of_its_job_and_the_drivers_libraries_of_the_node(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = world.folder / "driver"
    driver.mkdir()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi"):
        (driver / name).write_text("#!/bin/sh\necho of the driver\n")
    (driver / "ldconfig").write_text(
        f"#!/bin/sh\ncat << END\n\tlibcuda.so.1 (libc6,x86-64, AArch64) => {driver}/libcuda.so.1\n"
        f"\tlibcuda.so.1 (libc6) => {driver}/of-32-bits\n\tlibz.so.1 (libc6,x86-64) => {driver}/libz.so.1\nEND\n"
    )
    for name in ("ldconfig", "nvidia-smi"):
        (driver / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{driver}:{os.environ['PATH']}")
    script = (
        'ls /run/mlebench/driver; nvidia-smi; ls /dev/zero; echo "$LD_LIBRARY_PATH $CUDA_VISIBLE_DEVICES"'
    )
    order = world.order(script)
    attempt = world.folder / ("long" * 20) / f"attempt-{order.token}"
    protocol.make_folders(attempt)
    protocol.write(attempt / protocol.GPUS, GivenGpus("0", (), ("/dev/zero",)))
    world.run(order)
    assert log(attempt).splitlines() == [
        *("libcuda.so.1", "nvidia-smi", "of the driver", "/dev/zero"),
        "/nowhere:/run/mlebench/driver 0",
    ]


_REMOVE = """
import sys; from pathlib import Path; from mlebench_console.environment.runner.process.sandbox import ProcessSandbox
sandbox = ProcessSandbox(Path(sys.argv[1]), sys.argv[2], None)
assert sandbox.end_leftovers()
for _ in sandbox.removing(): pass
"""


def test_whatever_is_killed_nothing_is_left_mounted_or_running(world: World) -> None:
    order = world.order("trap '' TERM; (setsid sleep 1000 &); echo begun; while :; do sleep 0.1; done")
    attempt = world.place(order)
    with world.begin(_SHIM, str(attempt), str(world.cache)) as shim:
        begun = attempt / protocol.LOG
        eventually(lambda: begun.exists() and "begun" in begun.read_text())
        below = process_tree().below(shim.pid)
        assert {"bwrap", "starter"} & {process.name for process in below}
        shim.kill()
    started = {process.pid for process in below}
    eventually(lambda: not started & {one.pid for some in process_tree().values() for one in some})
    assert str(attempt) not in Path("/proc/self/mountinfo").read_text()
    with world.begin(_REMOVE, str(attempt), order.token) as removing:
        assert removing.wait(60) == 0
    assert not (attempt / protocol.SCRATCH).exists()


@pytest.mark.usefixtures("bubblewrap")
def test_an_image_that_is_not_that_of_the_launch_is_not_run(tmp_path: Path, prepared_data: Path) -> None:
    world = World(protocol.BUBBLEWRAP, tmp_path, prepared_data / COMPETITION / "prepared", tmp_path / "cache")
    attempt = world.run(world.order("echo never", image_file=damaged(small_image(), tmp_path)))
    assert ending(attempt).reason == "unstarted"
    assert "is not the image of the launch" in ending(attempt).problem
    assert [path for path in world.cache.iterdir() if path.suffix not in _OF_STORES] == []


@pytest.mark.usefixtures("bubblewrap")
def test_a_run_that_is_stopped_while_its_image_is_brought_ends_at_once_and_leaves_nothing(
    tmp_path: Path, prepared_data: Path
) -> None:
    world = World(protocol.BUBBLEWRAP, tmp_path, prepared_data / COMPETITION / "prepared", tmp_path / "cache")
    endless = tmp_path / "endless.tar.gz"
    with endless.open("wb") as stream:
        stream.truncate(1 << 40)
    attempt = world.place(world.order("echo never", image_file=replace(small_image(), path=str(endless))))
    with world.begin(_SHIM, str(attempt), str(world.cache)) as shim:
        eventually(lambda: list(world.cache.glob("*.partial")))
        shim.terminate()
        shim.terminate()
        assert shim.wait(60) == 0
    assert ending(attempt).reason == "stopped"
    assert not (attempt / protocol.STARTED).exists()
    assert [path for path in world.cache.iterdir() if path.suffix not in _OF_STORES] == []


@pytest.mark.usefixtures("bubblewrap")
def test_attempts_unpack_their_image_once_also_when_one_is_killed_at_it(
    tmp_path: Path, prepared_data: Path
) -> None:
    world = World(protocol.BUBBLEWRAP, tmp_path, prepared_data / COMPETITION / "prepared", tmp_path / "cache")
    killed, *others = (world.place(world.order("exit 3")) for _ in range(3))
    with world.begin(_SHIM, str(killed), str(world.cache)) as first:
        eventually(lambda: list(world.cache.glob("*.partial")))
        shims = [world.begin(_SHIM, str(attempt), str(world.cache)) for attempt in others]
        first.kill()
    assert [shim.wait(120) for shim in shims] == [0, 0]
    assert [ending(attempt).exit_code for attempt in others] == [3, 3]
    (root,) = (path for path in world.cache.iterdir() if path.suffix not in _OF_STORES)
    made = root.stat()
    world.run(world.order("exit 3"))
    assert root.stat().st_ino == made.st_ino, "a later attempt finds it unpacked"


def test_what_no_attempt_has_used_for_long_and_what_a_kill_has_left_is_removed(tmp_path: Path) -> None:
    cache = make_store(tmp_path / "cache")
    long_ago = time.time() - 15 * 86_400
    for name in ("old.root", "used.root", "new.root", "killed.root.partial", "made.root.partial"):
        (cache / name).mkdir()
        lease = cache / f"{name.removesuffix('.partial')}.lease"
        lease.touch()
        if name in ("old.root", "used.root"):
            os.utime(lease, (long_ago, long_ago))
    with (
        FileLock(cache / "made.root.work") as maker,
        (cache / "used.root.lease").open("r+") as user,
    ):
        assert maker.acquire()
        fcntl.flock(user, fcntl.LOCK_SH)
        root = image_cache.unpacked(small_image(), cache)
    left = {path.name for path in cache.iterdir() if path.suffix not in _OF_STORES}
    assert left == {root.name, "used.root", "new.root", "made.root.partial"}


@pytest.mark.usefixtures("bubblewrap")
def test_auto_takes_what_works_and_never_leaves_an_agent_without_isolation(
    tmp_path: Path, prepared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = made_once("small-image-cache", Path.mkdir)
    world = World(protocol.AUTO, tmp_path, prepared_data / COMPETITION / "prepared", cache)
    attempt = world.run(world.order("exit 3"))
    assert protocol.read(attempt / protocol.STARTED, Started).runtime == protocol.BUBBLEWRAP
    assert ending(attempt).exit_code == 3
    # No program of any of them: the agent is not run at all.
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    attempt = world.run(world.order("exit 3"))
    assert ending(attempt).reason == "unstarted"
    for runtime in protocol.OF_IMAGE_FILES:
        assert f"{runtime}: " in ending(attempt).problem
    attempt = world.run(world.order("exit 3", image_file=None))
    assert "bubblewrap: bubblewrap is not installed" in ending(attempt).problem


@pytest.mark.usefixtures("bubblewrap")
def test_a_sandbox_that_is_not_made_is_no_failure_of_the_agent(tmp_path: Path, prepared_data: Path) -> None:
    cache = made_once("small-image-cache", Path.mkdir)
    world = World(protocol.BUBBLEWRAP, tmp_path, prepared_data / COMPETITION / "prepared", cache)
    order = world.order("exit 3", obfuscated=True)  # for which its description is missing
    told = ending(world.run(order))
    assert told.reason == "lost"
    assert "its sandbox could not be made: bwrap: " in told.problem


def test_secrets_show_in_no_arguments_and_an_agents_variables_are_not_those_of_its_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    (tmp_path / protocol.SCRATCH).mkdir()
    order, secret, here = order_with(), "sk-of-a-test", layout.sandboxed()
    agents = {
        "KEY": f"Bearer {secret}",
        "GCONV_PATH": ".",
        "LD_PRELOAD": "./x.so",
        "PATH": "/opt/conda/bin",
    }
    command, variables = apptainer.wrap(["true"], tmp_path, order, here, tmp_path, variables=agents)
    assert variables["APPTAINERENV_KEY"] == agents["KEY"]
    assert not [argument for argument in command if secret in argument]
    assert variables["PATH"] == "/usr/bin"
    assert {"GCONV_PATH", "LD_PRELOAD"}.isdisjoint(variables)
    (tmp_path / "a:b" / protocol.SCRATCH).mkdir(parents=True)
    with pytest.raises(EnvironmentProblem, match="comma, colon or quote"):
        apptainer.wrap(["true"], tmp_path / "a:b", order, here, tmp_path, variables={})


@pytest.mark.usefixtures("apptainer")
def test_apptainer_is_refused_to_root_who_would_stay_root_to_the_hosts_kernel(tmp_path: Path) -> None:
    assert "settings of this host's kernel" in apptainer.why_unavailable(tmp_path)


_WHY_NOT = """
import sys; from pathlib import Path; from mlebench_console.environment.runner.process import apptainer
if sys.argv[2]: apptainer._apptainer = lambda *_: sys.argv[2].split()
told = apptainer.why_unavailable(Path(sys.argv[1])); print(told)
assert bool(told) == bool(sys.argv[2]), told
"""


@pytest.mark.parametrize("world", worlds("apptainer"), indirect=True)
@pytest.mark.parametrize("instead", ["", "false", "apptainer --silent exec --no-such-option"])
def test_apptainer_is_tried_out_and_leaves_nothing(world: World, instead: str) -> None:
    subprocess.run(["chown", ORDINARY_USER, str(world.folder)], check=True)
    before = set(world.folder.iterdir())
    with world.begin(_WHY_NOT, str(world.folder), instead) as trying:
        assert trying.wait(60) == 0
    assert set(world.folder.iterdir()) == before


@pytest.mark.usefixtures("root")
def test_images_are_kept_where_nobody_else_can_change_them(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12_345, -1)
    with pytest.raises(EnvironmentProblem, match="belongs to another user"):
        image_cache.unpacked(small_image(), theirs / "images")


def test_an_archive_leads_nowhere_and_makes_no_device(tmp_path: Path) -> None:
    import io
    import tarfile

    def archive(*members: tuple[str, bytes, str]) -> Path:
        path = tmp_path / "hostile.tar.gz"
        with tarfile.open(path, "w:gz") as stream:
            for name, kind, link in members:
                member = tarfile.TarInfo(name)
                member.type, member.linkname, member.mode = kind, link, 0o6755
                stream.addfile(member, io.BytesIO())
        return path

    (tmp_path / "secret").write_text("the operator's")
    for number, members in enumerate(
        [
            [("../outside", tarfile.REGTYPE, "")],
            [("way", tarfile.SYMTYPE, str(tmp_path)), ("way/outside", tarfile.REGTYPE, "")],
            [("link", tarfile.LNKTYPE, "../secret")],
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with archive(*members).open("rb") as stream, pytest.raises(DataProblem, match="leads out of"):
            image_cache.extract(stream, folder)
    assert not (tmp_path / "outside").exists()
    kept = tmp_path / "kept"
    kept.mkdir()
    with archive(("null", tarfile.CHRTYPE, ""), ("program", tarfile.REGTYPE, "")).open("rb") as stream:
        image_cache.extract(stream, kept)
    assert [path.name for path in kept.iterdir()] == ["program"]
    assert (kept / "program").stat().st_mode & 0o7777 == 0o755
    assert (kept / "program").stat().st_uid == os.getuid()
