"""Choose an attempt's runtime on a host: the requested one, or the best that works there."""

from __future__ import annotations

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process import bubblewrap
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem

PROCESS = "process"
NETWORKS = ("none", "models", "open")
RUNTIMES = (
    *(PROCESS, protocol.BUBBLEWRAP, protocol.PLAIN, protocol.DOCKER),
    *(protocol.AUTO, *protocol.OF_AN_IMAGE_FILE),
)


def resolve(wanted: str) -> str:
    """Return the protocol's runtime for a sweep's option; `process` chooses the best that works.

    Those of image files are tested when an attempt starts, `auto` by its main process, so that no engine waits for it.

    Raises:
        UsageProblem: there is no such runtime.
        EnvironmentProblem: it does not work on this host.
    """
    if wanted in (protocol.PLAIN, protocol.DOCKER, protocol.AUTO, *protocol.OF_AN_IMAGE_FILE):
        return wanted
    if wanted not in RUNTIMES:
        raise UsageProblem(f"there is no runtime '{wanted}'", "", f"Choose one of {', '.join(RUNTIMES)}.")
    why_not = bubblewrap.why_unavailable()
    if not why_not:
        return protocol.BUBBLEWRAP
    if wanted == PROCESS:
        return protocol.PLAIN
    raise EnvironmentProblem(
        "runs can't be isolated here",
        why_not,
        "Install bubblewrap, or take the runtime 'plain' for agents you trust.",
    )
