"""An agent's image as the root of a bubblewrap sandbox, without root and without a daemon.

    rootfs --lower DIR_OR_SQUASHFS --work DIR [--squashfuse PROGRAM] [--overlay BY | --home DIR] -- COMMAND...
    rootfs --try --work DIR --overlay BY

Mounts the image in a new namespace, without privileges, and becomes the command, bubblewrap. So nothing
stays mounted when that ends, however it ends. DIR, on this host's own disk, contains `root`, the mounted image,
and with an overlay `upper` and `inner` with the agent's changes. BY is `kernel`, or the program
fuse-overlayfs. Without an overlay the root is read-only; then --home names a folder that gets a copy of the
image's /home.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlebench_console.environment.container.warden import die_with
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import EnvironmentProblem

_NEW_NAMESPACES = 0x10000000 | 0x00020000  # CLONE_NEWUSER, CLONE_NEWNS
_MS_RECURSIVE_PRIVATE = 0x4000 | 0x40000
_MOUNT_SECONDS = 20.0
_POLL_SECONDS = 0.005
_PROBE_SECONDS = 20
_LIBC = ctypes.CDLL(None, use_errno=True)
ROOT = "root"
_LOWER, _UPPER, _INNER = "lower", "upper", "inner"
SQUASHFUSE = "squashfuse"
KERNEL = "kernel"
_NO_NAMESPACE = "no user namespace can be made"


@dataclass(frozen=True)
class Mounts:
    """What can be mounted on this host without privileges.

    Attributes:
        overlay: why overlays don't work, so that an image's root is read-only; empty where they do.
        overlay_by: the value for --overlay.
        squashfs: why a squashed image must be unpacked; empty where it can be mounted.
    """

    overlay: str
    squashfs: str
    overlay_by: str = ""


@cache
def mounts(folder: Path) -> Mounts:
    """Test what can be mounted; an overlay depends on the file system of the folder with the changes."""
    squashfs = _why_not_squashfs()
    reasons: list[str] = []
    # The kernel's is faster, but before 5.11 not available to ordinary users.
    for by in (KERNEL, *filter(None, [shutil.which("fuse-overlayfs")])):
        why_not = _why_no_overlay(folder, by)
        if not why_not:
            return Mounts("", squashfs, by)
        reasons.append(why_not)
    reason = "; ".join(dict.fromkeys(reasons))
    return Mounts(reason, squashfs or (reason if _NO_NAMESPACE in reason else ""))


def _why_no_overlay(folder: Path, by: str) -> str:
    place = folder / f".rootfs-{os.getpid()}"
    try:
        place.mkdir(parents=True)
        command = [*program(), "--try", f"--work={place}", f"--overlay={by}"]
        tried = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        files.remove_tree(place)
    message = tried.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return "" if tried.returncode == 0 else message or f"code {tried.returncode}"


def program() -> list[str]:
    """Return this module as a command."""
    return [sys.executable, "-I", "-m", __spec__.name]


def _why_not_squashfs() -> str:
    if shutil.which(SQUASHFUSE) is None:
        return "squashfuse is not installed"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"/dev/fuse can't be used: {error.strerror}"
    return ""


def _enter_namespaces() -> None:
    """Enter a user namespace as root, with this user alone in it, and a mount namespace."""
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEW_NAMESPACES) != 0:
        raise EnvironmentProblem(_NO_NAMESPACE, os.strerror(ctypes.get_errno()))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(text)
    _mount("none", "/", "", _MS_RECURSIVE_PRIVATE, "")


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    if _LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()) != 0:
        raise EnvironmentProblem(f"{target} can't be mounted", os.strerror(ctypes.get_errno()))


def _mount_overlay(lower: Path, work: Path, by: str) -> None:
    for name in (_UPPER, _INNER, ROOT):
        (work / name).mkdir(exist_ok=True)
    os.chdir(work)  # relative paths, as commas and colons in options are separators
    if lower != work / _LOWER:
        Path(_LOWER).symlink_to(lower)
    options = f"lowerdir={_LOWER},upperdir={_UPPER},workdir={_INNER}"
    if by == KERNEL:
        _mount("overlay", ROOT, "overlay", 0, f"{options},userxattr")
    else:
        _serve([by, "-f", "-o", options, ROOT], work / ROOT)


def _serve(command: list[str], place: Path) -> None:
    """Mount something by a process that dies with this one, which becomes bubblewrap."""
    parent = os.getpid()
    served = subprocess.Popen(
        command,
        env={},
        stdin=subprocess.DEVNULL,
        # Its warnings don't belong in the agent's log.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: die_with(parent),
    )
    give_up = time.monotonic() + _MOUNT_SECONDS
    while not place.is_mount():
        if served.poll() is not None or time.monotonic() > give_up:
            why = f"{Path(command[0]).name} ended with code {served.poll()}"
            raise EnvironmentProblem(f"{place} can't be mounted", why)
        time.sleep(_POLL_SECONDS)


def _try_overlay(work: Path, by: str) -> None:
    """Test an overlay by changing a file of the lower layer and removing another."""
    lower = work / _LOWER
    (lower / "folder").mkdir(parents=True)
    for name in ("changed", "removed", "folder/file"):
        (lower / name).write_text("lower")
    _enter_namespaces()
    _mount_overlay(lower, work, by)
    root = work / ROOT
    (root / "changed").write_text("upper")
    (root / "removed").unlink()
    shutil.rmtree(root / "folder")
    if {path.name for path in root.iterdir()} != {"changed"}:
        raise EnvironmentProblem("an overlay does not keep changes here")


def main() -> int:
    """Mount, and become the command."""
    parser = argparse.ArgumentParser(prog="rootfs", description="Run a command in an image.")
    parser.add_argument("--lower", type=Path, help="the image, unpacked or squashed")
    parser.add_argument("--work", type=Path, required=True, help="an empty folder on this host's own disk")
    parser.add_argument("--squashfuse", default=SQUASHFUSE, metavar="PROGRAM", help="mounts a squashed image")
    parser.add_argument("--overlay", metavar="BY", help="kernel, or the program fuse-overlayfs")
    parser.add_argument("--home", type=Path, help="gets a copy of the image's /home, where no overlay is")
    parser.add_argument("--try", dest="is_trial", action="store_true", help="only try an overlay")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    options = parser.parse_args()
    work: Path = options.work
    try:
        if options.is_trial:
            _try_overlay(work, options.overlay)
        else:
            _make_root(options)
            os.chdir("/")
            os.execv(options.command[0], options.command)  # noqa: S606 - becoming the command is the purpose
    except (EnvironmentProblem, OSError) as problem:
        sys.stderr.write(f"rootfs: {problem}\n")
        return 1
    return 0


def _make_root(options: argparse.Namespace) -> None:
    image: Path = options.lower
    work: Path = options.work
    lower = image
    if options.overlay or image.is_file():
        _enter_namespaces()
    if image.is_file():
        lower = work / _LOWER
        lower.mkdir()
        _serve([options.squashfuse, "-f", str(image), str(lower)], lower)
    if options.overlay:
        _mount_overlay(lower, work, options.overlay)
        return
    (work / ROOT).symlink_to(lower)
    if options.home is not None and (lower / "home").is_dir():
        shutil.copytree(lower / "home", options.home, symlinks=True, dirs_exist_ok=True)


if __name__ == "__main__":
    sys.exit(main())
