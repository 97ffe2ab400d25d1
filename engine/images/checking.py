"""Check that an agent's image works for runs, by a short run with the same containers as a real one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

from mlebench_console.engine.images.building import GRADER_IMAGE, require_image
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.docker.daemon import daemon_problems
from mlebench_console.environment.runner.docker.plans import ContainerPlan
from mlebench_console.environment.runner.docker.temporary import (
    conditions_without_run,
    order_without_run,
    temporary_containers,
)
from mlebench_console.foundation import files

if TYPE_CHECKING:
    from docker import APIClient

_SECONDS = 60.0
_MAX_LOG = 64 << 10
_PASSED = "ok "
_COMPETITION = "spaceship-titanic"
# Each line "ok NAME DETAIL" reports a passed check; the detail is shown.
_SCRIPT = """
[ "$(id -un)" = nonroot ] && echo "ok user $(id -un), id $(id -u)"
grep -q '^CapBnd:.0*$' /proc/self/status && echo "ok rights none"
[ -w "$SUBMISSION_DIR" ] && [ -w "$LOGS_DIR" ] && [ -w "$CODE_DIR" ] && [ -w "$AGENT_DIR" ] \\
    && [ -r "$DATA_DIR" ] && [ ! -w "$DATA_DIR" ] && echo "ok folders as agents expect them"
[ -r /home/instructions.txt ] && [ -r /home/instructions_obfuscated.txt ] && echo "ok instructions both"
eval "$(conda shell.bash hook)" && conda activate agent && echo "ok python $(python --version) in $CONDA_PREFIX"
echo id > /tmp/probe.csv
/home/validate_submission.sh /tmp/probe.csv | grep -q result && echo "ok grader answers"
[ -z "$START" ] || { [ -r "$AGENT_DIR/$START" ] && echo "ok start $START"; }
[ -z "$GPUS" ] || { nvidia-smi -L > /tmp/gpus || exit
    for gpu in $GPUS; do grep -qF "$gpu" /tmp/gpus || { echo "$gpu is not seen"; exit; }; done
    echo "ok gpus $(wc -l < /tmp/gpus) seen"; }
"""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of an image."""

    name: str
    passed: bool
    detail: str


def check(
    client: APIClient, image: str, *, start: str = "", gpu_uuids: tuple[str, ...] = ()
) -> list[CheckResult]:
    """Check an agent's image from the inside.

    Args:
        client: of the daemon.
        image: the image to check.
        start: start script, relative to the agent's folder; empty for an image without an agent.
        gpu_uuids: devices that a run in it would get.

    Raises:
        EnvironmentProblem: an image is missing, or the daemon refuses the containers.
    """
    for name in (image, GRADER_IMAGE):
        require_image(client, name)
    wanted = ["user", "rights", "folders", "instructions", "python", "grader"]
    wanted += (["start"] if start else []) + (["gpus"] if gpu_uuids else [])
    with TemporaryDirectory(prefix="mlebench-check-") as place:
        attempt = Path(place, "attempt")
        prepared = Path(place, "prepared")
        for name in ("public", "private"):
            (prepared / name).mkdir(parents=True)
        order = order_without_run(
            competition_id=_COMPETITION,
            prepared_dir=str(prepared),
            conditions=conditions_without_run(_SECONDS),
            image=image,
            grader_image=GRADER_IMAGE,
            gpu_uuids=gpu_uuids,
        )
        own = f"mlebench-check-{uuid4().hex[:10]}"
        with (
            temporary_containers(
                client, attempt, order, own, lambda plan: _with_checks(plan, start, gpu_uuids)
            ) as container,
            daemon_problems(f"{image} can't be checked"),
        ):
            client.start(container)
            client.wait(container, timeout=_SECONDS * 2)
        log = attempt / protocol.LOG
        text = ""
        if log.exists():
            with files.reading_untrusted(log) as stream:
                text = stream.read(_MAX_LOG).decode("utf-8", "replace")
        ending = protocol.read_if_there(attempt / protocol.ENDING, Ending)
    passed = {}
    for line in text.splitlines():
        if line.startswith(_PASSED):
            name, _, detail = line.removeprefix(_PASSED).partition(" ")
            passed[name] = detail
    others = [line for line in text.splitlines() if line and not line.startswith(_PASSED)]
    why = (ending.problem if ending is not None else "its container did not start") or " | ".join(others[-3:])
    return [CheckResult(name, name in passed, passed.get(name, why)) for name in wanted]


def _with_checks(plan: ContainerPlan, start: str, gpu_uuids: tuple[str, ...]) -> ContainerPlan:
    """Return the plan with the script of checks in place of the agent's."""
    options = plan.command[: plan.command.index("--")]
    known = f"START={shlex.quote(start)} GPUS={shlex.quote(' '.join(gpu_uuids))}"
    return replace(plan, command=(*options, "--", "bash", "-c", f"{known}\n{_SCRIPT}"))
