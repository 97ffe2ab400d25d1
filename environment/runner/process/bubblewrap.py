"""The bubblewrap command around an agent: a container's file tree, no network, and only its own processes visible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.layout import (
    HOME,
    AgentLayout,
    Bind,
    binds_without_daemon,
    instructions,
    own_files,
    require_possible,
)
from mlebench_console.environment.runner.process.seccomp import filter_program
from mlebench_console.environment.runner.protocol import GivenGpus, Order
from mlebench_console.foundation.bubblewrap import proc

_USER = "1000"
_PROBE_SECONDS = 20
_PROBE_SHM_BYTES = 1 << 20
# The driver's libraries in an image, which are those that `ldconfig -p` lists on the host.
DRIVER = Path("/run/mlebench/driver")
_LIBRARY = re.compile(r"^\s*(\S+) \(([^)]*)\) => (\S+)$", re.MULTILINE)
_OF_THE_DRIVER = ("libcuda.so", "libcudadebugger.so", "libnvidia-", "libnvcuvid.so", "libnvoptix.so")
_KINDS = {"x86_64": "x86-64", "aarch64": "AArch64"}
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Only what programs need of /etc, since the engine's user may be able to read far more of it.
_ETC = (
    "alternatives",
    "ca-certificates.conf",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki/tls/certs",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
)
_ETC_OF_AN_OPEN_NETWORK = ("resolv.conf",)
_PASSWD = "root:x:0:0:root:/root:/usr/sbin/nologin\nnonroot:x:1000:1000::/home/nonroot:/bin/bash\n"  # noqa: S105 - a table of names
_GROUP = "root:x:0:\nnonroot:x:1000:\n"
_HOSTS = "127.0.0.1 localhost sandbox\n::1 localhost\n"


@dataclass(frozen=True)
class Abilities:
    """The abilities of bubblewrap on this host.

    Attributes:
        why_unavailable: why it can't make a sandbox at all; empty where it can.
        forbids_namespaces: whether user namespaces can be forbidden inside.
        sizes_shared_memory: whether /dev/shm can be given a size.
        filters_calls: whether system calls can be refused.
    """

    why_unavailable: str
    forbids_namespaces: bool = False
    sizes_shared_memory: bool = False
    filters_calls: bool = False


@cache
def abilities() -> Abilities:
    """Test bubblewrap's abilities on this host: first all together, and if that fails one by one."""
    if shutil.which("bwrap") is None:
        return Abilities("bubblewrap is not installed")
    best = Abilities(
        "", forbids_namespaces=True, sizes_shared_memory=True, filters_calls=filter_program() is not None
    )
    if not _failure(best):
        return best
    plain = Abilities("")
    failure = _failure(plain)
    if failure:
        return Abilities(failure)
    return Abilities(
        "",
        forbids_namespaces=not _failure(replace(plain, forbids_namespaces=True)),
        sizes_shared_memory=not _failure(replace(plain, sizes_shared_memory=True)),
        filters_calls=best.filters_calls and not _failure(replace(plain, filters_calls=True)),
    )


def why_unavailable() -> str:
    """Return why sandboxes can't be made on this host; empty when they can."""
    return abilities().why_unavailable


def _failure(able: Abilities) -> str:
    """Return why making a sandbox with these abilities fails; empty when it works."""
    filtering, kept = _filter(able)
    command = [
        "bwrap",
        *_namespaces("none", able, _USER, _USER),
        *("--ro-bind", "/", "/"),
        *_kernel(able, _PROBE_SHM_BYTES),
        *filtering,
        "true",
    ]
    try:
        tried = subprocess.run(
            command, capture_output=True, timeout=_PROBE_SECONDS, check=False, pass_fds=kept
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap can't be run: {error}"
    finally:
        for descriptor in kept:
            os.close(descriptor)
    if tried.returncode != 0:
        return tried.stderr.decode("utf-8", "replace").strip().partition("\n")[0] or "bubblewrap fails here"
    return ""


def _filter(able: Abilities) -> tuple[list[str], list[int]]:
    """Return the options for the filter of system calls, and the descriptors that they name."""
    program = filter_program() if able.filters_calls else None
    if program is None:
        return [], []
    calls = _open_in_memory("system-calls", program)
    return ["--seccomp", str(calls)], [calls]


def _open_variables(variables: Mapping[str, str]) -> int:
    """Return a descriptor of options with an agent's variables.

    Bubblewrap itself must not have them: some make a loader or a library run what they name, and it starts outside the
    sandbox, where the agent's folder is the working directory. Its arguments end at NUL characters there, so one within
    a value would begin an argument that opens the sandbox.

    Raises:
        DataProblem: no process can have one of them.
    """
    require_possible(variables)
    words = [word for name, value in variables.items() for word in ("--setenv", name, value)]
    return _open_in_memory("variables", b"".join(os.fsencode(word) + b"\0" for word in words))


def _open_in_memory(name: str, content: bytes) -> int:
    descriptor = os.memfd_create(name)
    with os.fdopen(descriptor, "wb", closefd=False) as stream:
        stream.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def write_tables(folder: Path) -> None:
    """Write the sandbox's own /etc files to a folder that the agent can't change."""
    for name, text in (("passwd", _PASSWD), ("group", _GROUP), ("hosts", _HOSTS)):
        (folder / name).write_text(text)


def wrap(
    command: list[str],
    attempt: Path,
    order: Order,
    layout: AgentLayout,
    root: Path | None,
    *,
    shm_bytes: int,
    variables: Mapping[str, str],
) -> tuple[list[str], list[int]]:
    """Return the command that runs an agent in its sandbox, and the descriptors that its process must inherit.

    Args:
        command: to be put there.
        attempt: its directory.
        order: what it is.
        layout: where the agent finds what.
        root: the agent's unpacked image; None for this host's own system.
        shm_bytes: the size of /dev/shm, where it can be given one.
        variables: the agent's; they come by a descriptor, invisible to `ps`.

    Raises:
        DataProblem: no process can have one of the variables.
    """
    able, image = abilities(), order.image_file
    if root is None or image is None:
        user, group = _USER, _USER
        tree = [*_system(order.conditions.network), *_binds(_files_on_this_system(attempt, order, layout))]
        tree += _python(Path(order.python_prefix))
    else:
        user, group = str(image.uid), str(image.gid)
        tree = ["--ro-bind", str(root), "/", *_binds(_files_in_an_image(attempt, order, layout))]
    filtering, descriptors = _filter(able)
    descriptors.append(_open_variables(variables))
    wrapped = [
        shutil.which("bwrap") or "bwrap",
        *_namespaces(order.conditions.network, able, user, group),
        *tree,
        *_kernel(able, shm_bytes, gpu_nodes(attempt)),
        *filtering,
        *("--args", str(descriptors[-1])),
        *("--remount-ro", "/"),
        *("--chdir", str(layout.agent)),
        "--",
        *command,
    ]
    return wrapped, descriptors


def _files_on_this_system(attempt: Path, order: Order, layout: AgentLayout) -> list[Bind]:
    scratch, tools = attempt / protocol.SCRATCH, own_files()
    services = attempt / protocol.SERVICES
    return [
        Bind(scratch / "home", layout.home),
        Bind(scratch / "agent", layout.agent),
        Bind(instructions(order), layout.instructions, read_only=True),
        *binds_without_daemon(attempt, order, layout),
        Bind(tools / "instructions_obfuscated.txt", layout.instructions_obfuscated, read_only=True),
        Bind(tools / "validate_submission.sh", layout.validate, read_only=True),
        Bind(tools / "validate_submission.sh", layout.tools / "validate_submission.sh", read_only=True),
        Bind(tools / "conda", layout.tools / "conda", read_only=True),
        *(Bind(services / name, Path("/etc", name), read_only=True) for name in ("passwd", "group")),
    ]


def _files_in_an_image(attempt: Path, order: Order, layout: AgentLayout) -> list[Bind]:
    scratch = attempt / protocol.SCRATCH
    names = Path("/etc/resolv.conf")
    return [
        Bind(scratch / "home", HOME),
        Bind(scratch / "var-tmp", Path("/var/tmp")),  # noqa: S108 - the sandbox's own
        *binds_without_daemon(attempt, order, layout),
        *driver_files(attempt),
        *([Bind(names.resolve(), names, read_only=True)] if order.conditions.network == "open" else []),
    ]


def _binds(wanted: Iterable[Bind]) -> list[str]:
    return [
        part
        for bind in wanted
        for part in ("--ro-bind" if bind.read_only else "--bind", str(bind.source), str(bind.target))
    ]


def _namespaces(network: str, able: Abilities, user: str, group: str) -> list[str]:
    return [
        *("--unshare-user", "--uid", user, "--gid", group),
        *(["--disable-userns"] if able.forbids_namespaces else []),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *([] if network == "open" else ["--unshare-net"]),
        *("--hostname", "sandbox"),
        *("--cap-drop", "ALL"),
        *("--new-session", "--die-with-parent"),
    ]


def gpu_nodes(attempt: Path) -> tuple[str, ...]:
    """Return the files in /dev of the devices that a batch system gave to an attempt's job."""
    given = protocol.read_if_there(attempt / protocol.GPUS, GivenGpus)
    return () if given is None else given.nodes


def driver_files(attempt: Path) -> list[Bind]:
    """Return the host driver's files that an attempt with GPUs needs, as its image can't contain them."""
    if not gpu_nodes(attempt):
        return []
    ldconfig = shutil.which("ldconfig", path=f"{os.environ.get('PATH', os.defpath)}:/sbin:/usr/sbin")
    if ldconfig is None:
        return []
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, timeout=_PROBE_SECONDS, check=False)
    ours = {
        name: Path(path)
        for name, kind, path in _LIBRARY.findall(listed.stdout.decode("utf-8", "replace"))
        if name.startswith(_OF_THE_DRIVER) and _KINDS.get(os.uname().machine, "") in kind
    }
    program = shutil.which("nvidia-smi")
    ours |= {"nvidia-smi": Path(program)} if program else {}
    return [Bind(path.resolve(), DRIVER / name, read_only=True) for name, path in sorted(ours.items())]


def _kernel(able: Abilities, shm_bytes: int, devices: Sequence[str] = ()) -> list[str]:
    """Return the options for /proc and /dev; of /dev only /dev/shm is writable, because files there are in memory."""
    sized = ["--size", str(shm_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - the sandbox's own
    shared = sized if able.sizes_shared_memory else []
    given = [part for node in devices for part in ("--dev-bind", node, node)]
    return [
        *proc(),
        "--dev",
        "/dev",
        *given,
        *shared,
        *(["--remount-ro", "/dev"] if shared else []),
    ]


def _system(network: str) -> list[str]:
    arguments: list[str] = []
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
    for name in (*_ETC, *(_ETC_OF_AN_OPEN_NETWORK if network == "open" else ())):
        path = Path("/etc") / name
        if path.exists():
            arguments += ["--ro-bind", str(path.resolve()), str(path)]
    return arguments


def _python(prefix: Path) -> list[str]:
    """Return the options to bind the Python environment, and the installation that it was made from."""
    places = {prefix, (prefix / "bin" / "python").resolve().parent.parent}
    return [
        part
        for place in sorted(places)
        if not place.is_relative_to("/usr")
        for part in ("--ro-bind", str(place), str(place))
    ]
