"""The bubblewrap command around an agent: a container's file tree, no network, and only its own processes visible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.layout import (
    HOME,
    Bind,
    Layout,
    binds_in_an_image_file,
    instructions,
    own_files,
)
from mlebench_console.environment.runner.process import rootfs
from mlebench_console.environment.runner.process.seccomp import filter_program
from mlebench_console.environment.runner.protocol import GivenGpus, ImageFile, Order
from mlebench_console.foundation.bubblewrap import proc

_USER = "1000"
_PROBE_SECONDS = 20
_PROBE_SHM_BYTES = 1 << 20
# The driver's libraries in an image, which are those that `ldconfig -p` lists on the host.
DRIVER = "/run/mlebench/driver"
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
    calls = open_filter() if able.filters_calls else None
    command = [
        "bwrap",
        *_namespaces("none", able),
        *("--ro-bind", "/", "/"),
        *_kernel(able, _PROBE_SHM_BYTES),
        *_filter(calls),
        "true",
    ]
    kept = () if calls is None else (calls,)
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


def open_filter() -> int | None:
    """Return a descriptor of the filter of system calls for `wrap`; None where there is none for this machine."""
    program = filter_program()
    return None if program is None else _open_in_memory("system-calls", program)


def open_variables(variables: Mapping[str, str]) -> int:
    """Return a descriptor of an agent's variables for `wrap`.

    Bubblewrap itself must not have them: some make a loader or a library run what they name, and it starts outside the
    sandbox, where the agent's folder is the working directory.
    """
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
    layout: Layout,
    *,
    shm_bytes: int,
    calls: int | None,
    variables: int,
) -> list[str]:
    """Return the command that runs an agent in its sandbox. Its variables come by a descriptor, invisible to `ps`.

    Args:
        command: to be put there.
        attempt: its directory.
        order: what it is.
        layout: where the agent finds what.
        shm_bytes: the size of /dev/shm, where it can be given one.
        calls: the descriptor of the filter of system calls, which the process must inherit; None for no filter.
        variables: the descriptor of the agent's variables, which the process must inherit as well.
    """
    able = abilities()
    scratch = attempt / protocol.SCRATCH
    tools = own_files()
    binds: list[str] = []
    for source, target in (
        (scratch / "tmp", layout.temporary),
        (scratch / "home", layout.home),
        (scratch / "agent", layout.agent),
        (attempt / protocol.SUBMISSION, layout.submission),
        (attempt / protocol.LOGS, layout.logs),
        (attempt / protocol.CODE, layout.code),
    ):
        binds += ["--bind", str(source), str(target)]
    for source, target in (
        (protocol.prepared_data(attempt, order) / "public", layout.data),
        *(
            ((attempt / protocol.DESCRIPTION, layout.data / protocol.DESCRIPTION),)
            if order.obfuscated
            else ()
        ),
        (instructions(order), layout.instructions),
        (tools / "instructions_obfuscated.txt", layout.instructions_obfuscated),
        (tools / "validate_submission.sh", layout.validate),
        (tools / "conda", layout.tools / "conda"),
        (tools / "container" / "relay.py", layout.relay),
        (tools / "validate_submission.sh", layout.tools / "validate_submission.sh"),
        (attempt / protocol.GRADER, layout.socket.parent),
        *((attempt / protocol.GRADER / name, Path("/etc") / name) for name in ("passwd", "group", "hosts")),
    ):
        binds += ["--ro-bind", str(source), str(target)]
    return [
        shutil.which("bwrap") or "bwrap",
        *_namespaces(order.network, able),
        *_system(order.network),
        *_kernel(able, shm_bytes, gpu_nodes(attempt)),
        *_filter(calls),
        *("--args", str(variables)),
        *binds,
        *_python(Path(order.python_prefix)),
        *("--remount-ro", "/"),
        *("--chdir", str(layout.agent)),
        "--",
        *command,
    ]


def wrap_in_image(
    command: list[str],
    attempt: Path,
    order: Order,
    image: ImageFile,
    lower: Path,
    *,
    shm_bytes: int,
    calls: int | None,
    variables: int,
) -> list[str]:
    """Return the command that runs an agent in a sandbox with its image as root.

    Args:
        command: to be put there.
        attempt: its directory.
        order: what it is.
        image: the exported image.
        lower: its path on this host, unpacked or squashed.
        shm_bytes: the size of /dev/shm, where it can be given one.
        calls: as for `wrap`.
        variables: as for `wrap`.
    """
    able, scratch = abilities(), attempt / protocol.SCRATCH
    work, home = scratch / "rootfs", scratch / "home"
    overlay = rootfs.mounts(scratch.resolve()).overlay_by
    root = ["--bind" if overlay else "--ro-bind", str(work / rootfs.ROOT), "/"]
    if not overlay:
        root += ["--bind", str(home), str(HOME), "--bind", str(scratch / "var-tmp"), "/var/tmp"]  # noqa: S108 - the sandbox's own
    for bind in (*binds_in_an_image_file(attempt, order), *driver_files(attempt)):
        root += ["--ro-bind" if bind.read_only else "--bind", str(bind.source), bind.target]
    if order.network == "open":
        root += ["--ro-bind", str(Path("/etc/resolv.conf").resolve()), "/etc/resolv.conf"]
    mounted_by = shutil.which(rootfs.SQUASHFUSE)
    return [
        *rootfs.program(),
        f"--lower={lower}",
        f"--work={work}",
        *([f"--squashfuse={mounted_by}"] if mounted_by else []),
        f"--overlay={overlay}" if overlay else f"--home={home}",
        "--",
        shutil.which("bwrap") or "bwrap",
        *_namespaces(order.network, able, str(image.uid), str(image.gid)),
        *root,
        *_kernel(able, shm_bytes, gpu_nodes(attempt)),
        *_filter(calls),
        *("--args", str(variables)),
        *("--chdir", str(HOME / "agent")),
        "--",
        *command,
    ]


def _namespaces(network: str, able: Abilities, user: str = _USER, group: str = _USER) -> list[str]:
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
    return [Bind(path.resolve(), f"{DRIVER}/{name}", read_only=True) for name, path in sorted(ours.items())]


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


def _filter(calls: int | None) -> list[str]:
    return [] if calls is None else ["--seccomp", str(calls)]


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
