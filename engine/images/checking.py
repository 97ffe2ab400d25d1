"""Whether an image can hold a run: a short run in it, made exactly as a real one, that looks around."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

from engine.images.building import GRADER_IMAGE, require_image
from environment.container.output import Ending
from environment.runner import protocol
from environment.runner.docker import daemon
from environment.runner.docker.daemon import telling
from environment.runner.docker.plans import Plan, Role, plans
from environment.runner.protocol import Order
from foundation import files

if TYPE_CHECKING:
    from docker import APIClient

_SECONDS = 60.0
_MAX_LOG = 64 << 10
_PASSED = "ok "
_COMPETITION = "spaceship-titanic"
# Each line that begins with "ok NAME" is one check passed; what follows the name is shown.
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
    """One thing that an image must be able to do."""

    name: str
    passed: bool
    detail: str


def check(
    client: APIClient, image: str, *, start: str = "", gpu_uuids: tuple[str, ...] = ()
) -> list[CheckResult]:
    """Look around inside of an agent's image.

    Args:
        client: of the daemon.
        image: to be checked.
        start: start script, relative to the agent's folder; empty for an image without an agent.
        gpu_uuids: devices that a run in it would get.

    Raises:
        EnvironmentProblem: an image is missing, or the daemon refuses the containers.
    """
    for name in (image, GRADER_IMAGE):
        require_image(client, name)
    wanted = ["user", "rights", "folders", "instructions", "python", "grader"]
    wanted += (["start"] if start else []) + (["gpus"] if gpu_uuids else [])
    with (
        TemporaryDirectory(prefix="mlebench-check-") as place,
        _running(client, Path(place), image, start, gpu_uuids),
    ):
        attempt = Path(place)
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
    told = [line for line in text.splitlines() if line and not line.startswith(_PASSED)]
    why = (ending.problem if ending is not None else "its container did not start") or " | ".join(told[-3:])
    return [CheckResult(name, name in passed, passed.get(name, why)) for name in wanted]


@contextmanager
def _running(
    client: APIClient, attempt: Path, image: str, start: str, gpu_uuids: tuple[str, ...]
) -> Iterator[None]:
    """Have looked around, and leave nothing of it."""
    from docker.errors import NotFound

    own = uuid4().hex[:10]
    names = {role: f"mlebench-check-{own}-{role}" for role in Role}
    _make_folders(attempt)
    try:
        with telling(f"{image} can't be checked"):
            for plan in plans(attempt, _order(attempt, image, gpu_uuids), names, None, ""):
                if plan.role is Role.AGENT:
                    plan = _looking_around(plan, start, gpu_uuids)
                container = daemon.create(client, names[plan.role], plan, {})
                daemon.start(client, container)
            client.wait(names[Role.AGENT], timeout=_SECONDS * 2)
        yield
    finally:
        with telling(f"the check of {image} can't be removed"):
            for name in reversed(names.values()):  # to Podman the agent depends on its grader
                try:
                    client.remove_container(name, force=True, v=True)
                except NotFound:
                    continue


def _make_folders(attempt: Path) -> None:
    protocol.make_folders(attempt)
    for name in (protocol.SUBMISSION, protocol.LOGS, protocol.CODE):
        (attempt / name).chmod(0o777)
    (attempt / protocol.OUTPUT).chmod(0o770)
    (attempt / protocol.GRADER).mkdir()
    (attempt / protocol.VALIDATIONS).touch()
    for name in ("public", "private"):
        (attempt / "prepared" / name).mkdir(parents=True)


def _order(attempt: Path, image: str, gpu_uuids: tuple[str, ...]) -> Order:
    return Order(
        version=protocol.VERSION,
        attempt_id=0,
        sweep_id="check",
        competition_id=_COMPETITION,
        seed=1,
        attempt=1,
        agent_id="check",
        agent_folder="",
        start="",
        arguments=(),
        variables=(),
        secret=False,
        prepared_dir=str(attempt / "prepared"),
        edition="v1",
        runtime=protocol.DOCKER,
        network="none",
        python_prefix="",
        time_limit_seconds=_SECONDS,
        grace_seconds=1,
        cpus=1,
        memory_bytes=None,
        snapshot_every_seconds=_SECONDS,
        image=image,
        grader_image=GRADER_IMAGE,
        gpu_uuids=gpu_uuids,
    )


def _looking_around(plan: Plan, start: str, gpu_uuids: tuple[str, ...]) -> Plan:
    """The same container, with our script in the place of the agent's."""
    options = plan.command[: plan.command.index("--")]
    # The server beside it may take a moment; a run waits for it before its agent starts.
    wait = "for _ in $(seq 100); do curl -sf http://localhost:5000/health > /tmp/health && break; sleep 0.1; done"
    known = f"START={shlex.quote(start)} GPUS={shlex.quote(' '.join(gpu_uuids))}"
    return replace(plan, command=(*options, "--", "bash", "-c", f"{known}\n{wait}\n{_SCRIPT}"))
