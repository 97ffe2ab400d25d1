"""Runtimes of a host: which of them work there, which limits they enforce, and in which one an attempt runs."""

from __future__ import annotations

from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process import apptainer, bubblewrap
from mlebench_console.environment.runner.process.containment import Containment, EnforcedLimits, limits_here
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem


def resolve(wanted: str) -> str:
    """Return the protocol's runtime for a sweep's option; `process` chooses the best that works.

    Those of image files are tested when an attempt starts, `auto` by its main process, so that no engine waits for it.

    Raises:
        UsageProblem: there is no such runtime.
        EnvironmentProblem: it does not work on this host.
    """
    if wanted not in protocol.RUNTIMES:
        known = ", ".join(protocol.RUNTIMES)
        raise UsageProblem(f"there is no runtime '{wanted}'", "", f"Choose one of {known}.")
    if wanted not in (protocol.PROCESS, protocol.BUBBLEWRAP):
        return wanted
    reason = bubblewrap.why_unavailable()
    if not reason:
        return protocol.BUBBLEWRAP
    if wanted == protocol.PROCESS:
        return protocol.PLAIN
    raise EnvironmentProblem(
        "runs can't be isolated here",
        reason,
        "Install bubblewrap, or take the runtime 'plain' for agents you trust.",
    )


def needs_image_file(wanted: str, *, has_image: bool) -> bool:
    """Return whether an agent runs in its exported image, by its sweep's runtime and whether it has an image."""
    return wanted == protocol.APPTAINER or (has_image and wanted in (protocol.AUTO, protocol.BUBBLEWRAP))


def why_unavailable(runtime: str, scratch: Path) -> str:
    """Return why a runtime that isolates without a daemon does not work on this host; empty where it does.

    Args:
        runtime: one of the protocol.
        scratch: a folder on this host's own disk.
    """
    if runtime == protocol.APPTAINER:
        return apptainer.why_unavailable(scratch)
    return bubblewrap.why_unavailable()


def enforced_limits(runtime: str, containment: Containment | None = None) -> EnforcedLimits:
    """Return what enforces each limit in a runtime on this host.

    Args:
        runtime: one of the protocol.
        containment: of an attempt; what would enforce the limits of one if not given.
    """
    limits = limits_here(isolated=runtime != protocol.PLAIN) if containment is None else containment.enforced
    return apptainer.enforced_limits(limits) if runtime == protocol.APPTAINER else limits


def choose(runtime: str, image: ImageFile | None, scratch: Path) -> str:
    """Return the runtime of an agent on this host: the wanted one, or for `auto` the first that works.

    bubblewrap comes first, since nothing of it can be left behind and it filters system calls. `auto` never leaves an
    agent without isolation.

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
        wanted = (protocol.BUBBLEWRAP,) if image is None else protocol.OF_IMAGE_FILES
    reasons: list[str] = []
    for one in wanted:
        needs_image = one == protocol.APPTAINER and image is None
        reason = "the agent's image was not exported" if needs_image else why_unavailable(one, scratch)
        if not reason:
            return one
        reasons.append(f"{one}: {reason}")
    raise EnvironmentProblem(
        "this host can't isolate the agent", "; ".join(reasons), "See what it offers: doctor"
    )
