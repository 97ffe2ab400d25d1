"""The bubblewrap command around an agent: a container's file tree, no network, no other process in sight."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from environment.runner import protocol
from environment.runner.layout import Layout, instructions, own_files
from environment.runner.protocol import Order

_USER = "1000"
_KERNEL = ("--proc", "/proc", "--dev", "/dev")
_PROBE_SECONDS = 20
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Only what programs need of /etc: whoever starts the engine may be able to read far more of it.
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


@cache
def why_unavailable() -> str:
    """Try to make a sandbox on this host, and return why that fails; empty when it works."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    command = ["bwrap", *_namespaces("none"), "--ro-bind", "/", "/", *_KERNEL, "true"]
    try:
        tried = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap can't be run: {error}"
    if tried.returncode != 0:
        return tried.stderr.decode("utf-8", "replace").strip().partition("\n")[0] or "bubblewrap fails here"
    return ""


def write_tables(folder: Path) -> None:
    """Write the sandbox's own /etc files into a folder that the agent can't change."""
    for name, text in (("passwd", _PASSWD), ("group", _GROUP), ("hosts", _HOSTS)):
        (folder / name).write_text(text)


def wrap(command: list[str], attempt: Path, order: Order, layout: Layout) -> list[str]:
    """Put an agent's command into its sandbox. Variables come with the process, so that none shows in `ps`."""
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
        (Path(order.prepared_dir) / "public", layout.data),
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
        *_namespaces(order.network),
        *_system(order.network),
        *_KERNEL,
        *binds,
        *_python(Path(order.python_prefix)),
        *("--remount-ro", "/"),
        *("--chdir", str(layout.agent)),
        "--",
        *command,
    ]


def _namespaces(network: str) -> list[str]:
    return [
        *("--unshare-user", "--uid", _USER, "--gid", _USER),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *([] if network == "open" else ["--unshare-net"]),
        *("--hostname", "sandbox"),
        *("--cap-drop", "ALL"),
        *("--new-session", "--die-with-parent"),
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
    """Bind the Python environment at its own path, and the installation that it was made from."""
    places = {prefix, (prefix / "bin" / "python").resolve().parent.parent}
    return [
        part
        for place in sorted(places)
        if not place.is_relative_to("/usr")
        for part in ("--ro-bind", str(place), str(place))
    ]
