"""Which runtime an attempt gets on a host: the operator's word, or what works there."""

from __future__ import annotations

from environment.runner import protocol
from environment.runner.process import bubblewrap
from foundation.problems import EnvironmentProblem, UsageProblem

PROCESS = "process"
NETWORKS = ("none", "models", "open")
RUNTIMES = (
    *(PROCESS, protocol.BUBBLEWRAP, protocol.PLAIN, protocol.DOCKER),
    *(protocol.AUTO, *protocol.OF_AN_IMAGE_FILE),
)


def resolve(wanted: str) -> str:
    """Turn what a sweep asks for into a runtime of the protocol; `process` takes the best that works.

    Those of image files are tried when an attempt starts, `auto` by its own main process: no engine waits for that.

    Raises:
        UsageProblem: there is no such runtime.
        EnvironmentProblem: it does not work on this host.
    """
    if wanted in (protocol.PLAIN, protocol.DOCKER, protocol.AUTO, *protocol.OF_AN_IMAGE_FILE):
        return wanted
    if wanted not in RUNTIMES:
        raise UsageProblem(f"there is no runtime '{wanted}'", "", f"Known are: {', '.join(RUNTIMES)}.")
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
