"""Commands that run an agent in Podman or Apptainer, without a daemon and without root.

Both run an agent in its image as one file. What they hold beside that is theirs: Podman filters system calls as Docker
does, Apptainer does not. The facts about their options are of Podman 4.3 and Apptainer 1.4.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.readings import MARK
from mlebench_console.environment.runner.layout import HOME, binds_in_an_image_file
from mlebench_console.environment.runner.process import guard
from mlebench_console.environment.runner.process.bubblewrap import driver_files, gpu_nodes
from mlebench_console.environment.runner.process.containment import HeldLimits
from mlebench_console.environment.runner.protocol import ImageFile, Order
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import EnvironmentProblem

# Their programs around an agent, whose end would kill it.
THEIR_PROCESSES = (
    *("podman", "conmon", "runc", "crun", "fuse-overlayfs", "slirp4netns"),
    *("apptainer", "starter", "starter-suid", "squashfuse", "squashfuse_ll"),
)
_OF_THE_HOST = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR")
_OF_LOADERS = ("LD_", "GCONV_", "GLIBC_", "CONTAINER", "DOCKER_", "XDG_", "LC_", "LOCPATH")
_SHORTEST_BASE = "/tmp"  # noqa: S108 - for a folder that must not be there yet
_LONGEST_BASE = 16
_OPEN_FILES = 65_536
_PROBE_SECONDS = 30
_NOT_FOUND = 127  # of a container's command
_PAUSE = "tmp/pause.pid"
_ENV = "/usr/bin/env"
_GUARD = (sys.executable, "-I", "-m", guard.__name__, "--")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_SEPARATORS = re.compile(r"[,:\\\"\n]")


@dataclass(frozen=True)
class Wrapped:
    """A command that runs an agent in a container, and the command's own variables."""

    command: list[str]
    variables: dict[str, str]


@cache
def version(program: str) -> str:
    """Return the version of a program on this host; empty where it is missing or can't be run."""
    if shutil.which(program) is None:
        return ""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(done.stdout.decode("utf-8", "replace"))
    return found.group() if found and done.returncode == 0 else ""


@cache
def why_no_podman(folder: Path) -> str:
    """Try out whether Podman makes containers here with its files in a folder; return why not, empty where it does."""
    if not version("podman"):
        return "podman is not installed"
    if os.geteuid() == 0:
        return "containers of root would leave the limits of their attempt"
    root = folder / ".podman"
    name = f"try-{os.getpid()}"
    (root / "etc").mkdir(parents=True, exist_ok=True)
    try:
        place = _make_podman_folder(name)
        # Nothing is in this image: what can't be run in it shows that all before that works.
        command = [
            *(*_podman(place), "run", "--rm", "--rootfs", "--log-driver=none"),
            *_podman_limits("none", None),
            f"{root}:O",
            "/nothing",
        ]
        tried = subprocess.run(
            command,
            env=_host_variables() | _podman_variables(place),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, EnvironmentProblem) as error:
        return f"podman can't be run: {error}"
    finally:
        remove_podman(name)
        files.remove_tree(root)
    message = tried.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return "" if tried.returncode == _NOT_FOUND else message or f"podman ends with code {tried.returncode}"


@cache
def why_no_apptainer(folder: Path) -> str:
    """Try out whether Apptainer makes containers here with its files in a folder; returns why not, else nothing."""
    if not version("apptainer"):
        return "apptainer is not installed"
    if os.geteuid() == 0:
        return "an agent in a container of root could change the settings of this host's kernel"
    place = folder / ".apptainer"
    image = place / "image"
    try:
        for name in ("dev", "etc", "proc", "sys", "tmp"):
            (image / name).mkdir(parents=True, exist_ok=True)
        # Nothing is in this image either; its code is the same whatever went wrong, so its words must tell.
        command = [*_apptainer("none", place), str(image), "/nothing"]
        tried = subprocess.run(
            command,
            env=_host_variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"apptainer can't be run: {error}"
    finally:
        files.remove_tree(place)
    message = (
        tried.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("FATAL:").strip()
    )
    return "" if "/nothing" in message else message or f"apptainer ends with code {tried.returncode}"


@cache
def why_no_writable_squashfs() -> str:
    """Return why nobody would own a squashed image in Apptainer, so that an agent can't change it; else nothing."""
    own = Path(_told("apptainer", "buildcfg", "LIBEXECDIR").strip(), "apptainer", "bin", "squashfuse_ll")
    program = str(own) if own.is_file() else shutil.which("squashfuse_ll")
    if program is None:
        return "squashfuse_ll is not installed"
    return "" if "uid=" in _told(program) else "this squashfuse can't give files to a user"


def _told(*command: str) -> str:
    """Return all that a program says; nothing where it can't be run."""
    try:
        told = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.decode("utf-8", "replace")


def podman(
    command: Sequence[str],
    attempt: Path,
    order: Order,
    image: ImageFile,
    root: Path,
    *,
    shm_bytes: int,
    variables: Mapping[str, str],
    hidden: Sequence[str],
) -> Wrapped:
    """Return the command that runs an agent in a Podman container over an unpacked image.

    Args:
        command: to be put there.
        attempt: its directory.
        order: what it is.
        image: the exported image.
        root: the folder where it is unpacked.
        shm_bytes: the size of /dev/shm.
        variables: the agent's; those with secrets are not visible to `ps`.
        hidden: the secrets.

    Raises:
        EnvironmentProblem: something of it can't be given to Podman.
    """
    place = _make_podman_folder(order.token)
    arguments = [*_podman(place), "run", "--rm", "--rootfs", "--log-driver=passthrough"]
    arguments += _podman_limits(order.network, image)
    arguments += [
        f"--shm-size={shm_bytes}",
        f"--workdir={HOME / 'agent'}",
        "--hostname=sandbox",
        "--no-hosts",
    ]
    for bind in (*binds_in_an_image_file(attempt, order), *driver_files(attempt)):
        mode = "ro" if bind.read_only else "rw"
        arguments.append(f"--volume={_path(bind.source)}:{_path(bind.target)}:{mode}")
    arguments += [f"--device={node}" for node in gpu_nodes(attempt)]
    # Podman reads the values that must not be visible from its own variables, so their names must mean nothing to it.
    secret = {name: value for name, value in variables.items() if any(one in value for one in hidden)}
    arguments += [
        f"--env={name}" if name in secret else f"--env={name}={value}" for name, value in variables.items()
    ]
    own = _host_variables() | _podman_variables(place) | {MARK: str(attempt)}
    if taken := [name for name in secret if name in own or name.startswith(_OF_LOADERS)]:
        raise EnvironmentProblem(
            f"the variable {taken[0]} can't be a secret",
            "Podman itself uses a variable of this name",
            "Give it another name.",
        )
    return Wrapped([*_GUARD, *arguments, f"{root}:O", *command], own | secret)


def podman_folder(name: str) -> Path:
    """Return where an attempt's files of Podman lie, which wants them where a path is shorter than 50 characters."""
    base = tempfile.gettempdir()
    return Path(base if len(base) <= _LONGEST_BASE else _SHORTEST_BASE, f"mlebench-{name}")


def _make_podman_folder(name: str) -> Path:
    place = podman_folder(name)
    try:
        place.mkdir(mode=0o700)
    except FileExistsError as error:
        raise EnvironmentProblem(f"{place} can't be used", "it is there already", "Remove it.") from error
    return place


def _podman(place: Path) -> list[str]:
    """Name Podman with all its files in a folder of this attempt: what is shared nobody would tidy up."""
    runtime = [f"--runtime={shutil.which(_runtime())}"] if _runtime() else []
    return [
        *(shutil.which("podman") or "podman", "--log-level=error"),
        *(f"--root={place / 'storage'}", f"--runroot={place / 'run'}", f"--tmpdir={place / 'tmp'}"),
        # vfs, the default where nothing is configured, copies all of an image for each container.
        *("--storage-driver=overlay", "--cgroup-manager=cgroupfs", "--events-backend=none", *runtime),
    ]


def _podman_limits(network: str, image: ImageFile | None) -> list[str]:
    user, group = (image.uid, image.gid) if image is not None else (1000, 1000)
    return [
        "--network=host" if network == "open" else "--network=none",
        *(f"--userns=keep-id:uid={user},gid={group}", f"--user={user}:{group}"),
        *("--cap-drop=all", "--security-opt=no-new-privileges", "--pull=never"),
        # Its defaults are above what an ordinary user may set.
        f"--ulimit=nofile={_OPEN_FILES_HERE}:{_OPEN_FILES_HERE}",
        f"--ulimit=nproc={protocol.MOST_PROCESSES}",
        *(["--cgroups=disabled"] if _runtime() == "crun" else []),
    ]


def _runtime() -> str:
    """Choose what Podman starts containers by: crun leaves control groups alone, but can't work with hybrid ones."""
    is_pure = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    if is_pure and shutil.which("crun"):
        return "crun"
    return "runc" if shutil.which("runc") else ""


def _hard_limit_of_files() -> int:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)


_OPEN_FILES_HERE = _hard_limit_of_files()


def _podman_variables(place: Path) -> dict[str, str]:
    runtime = place / "xdg"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"XDG_RUNTIME_DIR": str(runtime)}


def _host_variables() -> dict[str, str]:
    return {name: os.environ[name] for name in _OF_THE_HOST if name in os.environ}


def remove_podman(name: str) -> list[str]:
    """End what is left of an attempt's containers of Podman, and remove its files; return what can't be."""
    place = podman_folder(name)
    if not place.exists() or place.lstat().st_uid != os.getuid():
        return []
    _call_podman(place, "rm", "--all", "--force", "--time=0")
    # Its users below ours have made some of it. What it keeps of a killed container is of no use for that.
    with tempfile.TemporaryDirectory(
        prefix="mlebench-", dir=place.parent, ignore_cleanup_errors=True
    ) as aside:
        _call_podman(Path(aside), "unshare", "rm", "-rf", str(place))
    return files.remove_tree(place)


def _call_podman(place: Path, *command: str) -> None:
    """Have Podman do something with its files in a folder, and end the process that it leaves behind each time."""
    with suppress(OSError, subprocess.TimeoutExpired):  # what it was to remove and is left, is told
        subprocess.run(
            [*_podman(place), *command],
            env=_host_variables() | _podman_variables(place),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    with suppress(OSError, ValueError):  # there is none
        pid = int((place / _PAUSE).read_text())
        if b"podman" in Path(f"/proc/{pid}/comm").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


def apptainer(
    command: Sequence[str],
    attempt: Path,
    order: Order,
    root: Path,
    *,
    variables: Mapping[str, str],
) -> Wrapped:
    """Return the command that runs an agent in an Apptainer container.

    Args:
        command: to be put there.
        attempt: its directory.
        order: what it is.
        root: the image: a SIF, squashed, or unpacked.
        variables: the agent's; they are passed in Apptainer's own variables, so that none is visible to `ps`.
    """
    scratch = (attempt / protocol.SCRATCH).resolve()
    arguments = [
        *_apptainer(order.network, scratch),
        *(("--nv",) if gpu_nodes(attempt) else ()),
        *("--hostname", "sandbox", "--pwd", str(HOME / "agent")),
    ]
    for bind in binds_in_an_image_file(attempt, order):
        mode = "ro" if bind.read_only else "rw"
        arguments += ["--bind", f"{_path(bind.source)}:{_path(bind.target)}:{mode}"]
    own = {f"APPTAINERENV_{name}": value for name, value in variables.items()}
    # Apptainer sets these to the operator's, whose home does not exist in the container.
    user = [f"{name}={variables[name]}" for name in ("HOME", "USER", "LOGNAME") if name in variables]
    return Wrapped(
        [*_GUARD, *arguments, str(root), _ENV, *user, *command],
        _host_variables() | own | {MARK: str(attempt)},
    )


def _apptainer(network: str, scratch: Path) -> list[str]:
    """Name Apptainer with what it always holds; what is written in the container lies below a folder of this host."""
    workdir, overlay = scratch / "apptainer", scratch / "overlay"
    for folder in (workdir, overlay):
        folder.mkdir()
    return [
        *(shutil.which("apptainer") or "apptainer", "--silent", "exec"),
        # Without --no-eval a shell would expand the values of the agent's variables.
        *("--containall", "--no-home", "--cleanenv", "--no-privs", "--no-eval"),
        *(() if network == "open" else ("--net", "--network", "none")),
        # By default, written files would be in 64 MB of memory.
        *("--workdir", str(workdir), "--overlay", _path(overlay)),
    ]


def _path(path: Path | str) -> str:
    """Return a path for an option in which some characters are separators.

    Raises:
        EnvironmentProblem: it has such a character.
    """
    if _SEPARATORS.search(str(path)):
        raise EnvironmentProblem(
            f"{path} can't be given to a container",
            "it has a comma, colon or quote in its name",
            "Rename it.",
        )
    return str(path)


def held(runtime: str, by_host: HeldLimits) -> HeldLimits:
    """Say by what limits are held in such a container, of those that this host holds for its processes."""
    if runtime == protocol.PODMAN:
        return replace(
            by_host,
            shared_memory="podman",
            user_namespaces="",
            system_calls="podman's seccomp",
        )
    return replace(by_host, shared_memory="", user_namespaces="", system_calls="")
