"""Choose the runtime without a daemon for an agent on this host: the given one, or for `auto` the first that works."""

from __future__ import annotations

from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process import bubblewrap, containers, image_files, rootfs
from mlebench_console.environment.runner.process.containment import Containment, held_limits
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation.problems import EnvironmentProblem


def why_not(runtime: str, scratch: Path) -> str:
    """Return why a runtime that isolates without a daemon does not work on this host; empty where it does.

    Args:
        runtime: one of the protocol.
        scratch: a folder on this host's own disk.
    """
    if runtime == protocol.PODMAN:
        return containers.why_no_podman(scratch)
    if runtime == protocol.APPTAINER:
        return containers.why_no_apptainer(scratch)
    return bubblewrap.why_unavailable()


def not_held(runtime: str, scratch: Path, containment: Containment | None = None) -> str:
    """Name what a runtime does not hold on this host: limits, and what a container would have; empty for nothing.

    Args:
        runtime: one of the protocol.
        scratch: a folder on this host's own disk.
        containment: of an attempt; what would hold the limits of one if not given.
    """
    limits = held_limits(isolated=runtime != protocol.PLAIN) if containment is None else containment.held
    if runtime in (protocol.PODMAN, protocol.APPTAINER):
        limits = containers.held(runtime, limits)
    missing = [limits.not_held()]
    if runtime == protocol.ROOTFS and rootfs.mounts(scratch).overlay:
        missing.append("a writable root")
    if runtime == protocol.APPTAINER and containers.why_no_writable_squashfs():
        missing.append("a writable root of a sif")
    return ", ".join(filter(None, missing))


def on_this_host(runtime: str, image: ImageFile | None, scratch: Path) -> str:
    """Return in what an agent is to run here: what is wanted, or for `auto` the first that works.

    `rootfs` comes first, since nothing of it can be left behind and it filters system calls, then Apptainer, which
    needs no subordinate users, then Podman. `auto` never leaves an agent without isolation.

    Args:
        runtime: what is wanted.
        image: the agent's, as a file; None without one.
        scratch: a folder on this host's own disk.

    Raises:
        EnvironmentProblem: it does not work here, or none does.
    """
    if runtime == protocol.PLAIN:
        return runtime
    wanted: tuple[str, ...] = (runtime,)
    if runtime == protocol.AUTO:
        wanted = (protocol.BUBBLEWRAP,) if image is None else protocol.OF_AN_IMAGE_FILE
    reasons: dict[str, str] = {}
    for one in wanted:
        reasons[one] = _why_not_this_image(one, image) or why_not(one, scratch)
        if not reasons[one]:
            return one
    why = "; ".join(f"{one}: {reason}" for one, reason in reasons.items())
    raise EnvironmentProblem("this host can't isolate the agent", why, "See what it offers: doctor")


def _why_not_this_image(runtime: str, image: ImageFile | None) -> str:
    if runtime not in protocol.OF_AN_IMAGE_FILE:
        return ""
    if image is None:
        return "its image was not exported"
    only = image.format == image_files.SIF and runtime != protocol.APPTAINER
    return "only apptainer runs a sif" if only else ""


def image_for(runtime: str, image: ImageFile, cache: Path, scratch: Path) -> Path:
    """Return an image on this host in the form that a runtime takes: a file, or a folder into which it is unpacked.

    Raises:
        Problem: it is gone, is another, or can't be unpacked.
        OSError: this host's disk does not take it.
    """
    if runtime == protocol.APPTAINER:
        as_file = image.format == image_files.SIF or not containers.why_no_writable_squashfs()
    else:
        as_file = runtime == protocol.ROOTFS and not rootfs.mounts(scratch).squashfs
    if image.format != image_files.ARCHIVE and as_file:
        return image_files.own_copy(image, cache)
    return image_files.unpacked(image, cache)
