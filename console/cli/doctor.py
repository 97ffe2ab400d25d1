"""`doctor`: what this machine has and lacks, with the next step for each."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console import wording
from console.cli.common import Json, new_app, places_of
from console.cli.output import say, say_json
from engine.space import existing, free_bytes
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from engine.places import Places

app = new_app()

_STATE_NEEDS = 1_000_000_000
_STATE_WANTS = 20_000_000_000
# The prepared datasets of the smallest split; all 75 take some 3.3 TB.
_DATA_WANTS = 160_000_000_000
_DOCKER_PATIENCE_SECONDS = 5
# As in environment/Dockerfile.
AGENT_UID = 1000


class Health(StrEnum):
    """How a check came out: `warn` limits what can be done, `fail` stops the work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """A check: what was found and, unless all is well, what to do."""

    name: str
    health: Health
    found: str
    next_step: str = ""


@app.command()
def doctor(
    context: typer.Context,
    online: Annotated[
        bool, typer.Option("--online", help="Also ask Kaggle whether it accepts the credentials.")
    ] = False,
    json: Json = False,
) -> None:
    """Check what this machine has and lacks, with next steps; exit code 5 when something stops the work."""
    found = []
    for check in all_checks(places_of(context), online=online):
        found.append(check)
        if not json:
            say(f"{check.health:<4}  {check.name:<10}  {check.found}")
            if check.next_step:
                say(f"{'':18}{check.next_step}")
            sys.stdout.flush()
    if json:
        say_json([asdict(check) for check in found])
    if any(check.health is Health.FAIL for check in found):
        raise typer.Exit(EnvironmentProblem.exit_code)


def all_checks(places: Places, *, online: bool = False) -> Iterator[Check]:
    """Run all checks, one after the other; with `online` also those that ask somebody outside of this machine."""
    from engine.control import status

    # The package can't be installed into a Python that is too old.
    yield Check("python", Health.OK, f"{platform.python_version()} in {sys.prefix}")
    yield check_state(places)
    yield check_disk("state disk", places.state_dir, needs=_STATE_NEEDS, wants=_STATE_WANTS)
    yield check_disk("data disk", places.data_dir, needs=0, wants=_DATA_WANTS)
    yield check_bubblewrap()
    yield check_limits()
    yield from check_docker(os.getuid())
    yield check_gpu()
    yield from check_kaggle(os.environ, Path.home())
    if online:
        yield from check_kaggle_online()
    yield check_terminal()
    engine = status(places)
    running = (
        f"running, process {engine.pid}" if engine.running else "not running; it starts when it is needed"
    )
    yield Check("engine", Health.OK, running)


def check_state(places: Places) -> Check:
    """Check whether the state directory is on a writable, local file system."""
    from state.database import NETWORK_FILE_SYSTEMS, file_system_of

    base = existing(places.state_dir)
    kind = file_system_of(base)
    if kind in NETWORK_FILE_SYSTEMS:
        return Check(
            "state", Health.FAIL, f"{places.state_dir} is on {kind}", "Point --state-dir at a local disk."
        )
    if not os.access(base, os.W_OK | os.X_OK):
        return Check(
            "state",
            Health.FAIL,
            f"{base} is not writable",
            "Change its permissions, or point --state-dir elsewhere.",
        )
    return Check("state", Health.OK, f"{places.state_dir} on {kind}")


def check_disk(name: str, path: Path, *, needs: int, wants: int) -> Check:
    """Check how much space is left on a disk."""
    free = free_bytes(path)
    found = f"{wording.size(free)} free for {path}"
    if free < needs:
        return Check(name, Health.FAIL, found, f"At least {wording.size(needs)} is needed; free some space.")
    if free < wants:
        return Check(name, Health.WARN, found, f"{wording.size(wants)} or more is recommended.")
    return Check(name, Health.OK, found)


def check_bubblewrap() -> Check:
    """Check whether agents that run as processes can be isolated."""
    from environment.runner.process.bubblewrap import why_unavailable

    reason = why_unavailable()
    if not reason:
        return Check("bubblewrap", Health.OK, "agents that run as processes are isolated")
    return Check(
        "bubblewrap",
        Health.WARN,
        f"{reason}; agents that run as processes are not isolated",
        "Install bubblewrap and allow user namespaces, or run trusted agents only.",
    )


def check_limits() -> Check:
    """Check what holds the limits of agents that run as processes: of memory, processes and processors."""
    from environment.runner import protocol, runtimes
    from environment.runner.process.containment import held_limits

    held = held_limits(isolated=runtimes.resolve(runtimes.PROCESS) == protocol.BUBBLEWRAP)
    if not held.not_held() and not held.is_watched:
        return Check("limits", Health.OK, held.in_words())
    return Check(
        "limits",
        Health.WARN,
        held.in_words(),
        "Start the engine where it may make control groups (as root, or in a systemd session), or use Docker.",
    )


def check_docker(uid: int) -> Iterator[Check]:
    """Check whether a Docker engine, or Podman in its place, answers, and what would end or endanger long runs."""
    from engine.images import connect
    from environment.runner.docker.daemon import daemon_problems, is_podman

    try:
        with closing(connect(_DOCKER_PATIENCE_SECONDS)) as client, daemon_problems():
            found = client.version()["Version"]
            survives = is_podman(client) or client.info().get("LiveRestoreEnabled", False)
    except EnvironmentProblem as problem:
        unneeded = "Not needed for agents that run as processes."
        yield Check("docker", Health.WARN, problem.cause, unneeded)
        return
    yield Check("docker", Health.OK, f"version {found}")
    if not survives:
        yield Check(
            "docker",
            Health.WARN,
            "live-restore is off: a restart or an upgrade of Docker ends every run",
            'Write {"live-restore": true} to /etc/docker/daemon.json, then reload Docker.',
        )
    if uid == AGENT_UID:
        yield Check(
            "user",
            Health.WARN,
            f"you are user {uid}, as agents in containers are: one that escapes has your rights",
            "Run the engine as another user, or let Docker remap users (userns-remap, rootless).",
        )


def check_gpu() -> Check:
    """Report the GPUs that the driver shows."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Check(
            "gpu",
            Health.WARN,
            f"no GPU found ({error})",
            "Most agents that train models need one; the demo does not.",
        )
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        names = [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
    return Check("gpu", Health.OK, f"{len(names)}: {', '.join(names)}")


def check_kaggle(environment: Mapping[str, str], home: Path) -> Iterator[Check]:
    """Check whether there are Kaggle credentials that can be used, without showing them or asking Kaggle."""
    from engine.kaggle.credentials import NO_CREDENTIALS_STEP, find_credentials

    found = find_credentials(environment, home)
    if not found:
        yield Check(
            "kaggle", Health.WARN, "no credentials", f"Needed for downloads only. {NO_CREDENTIALS_STEP}"
        )
    for one in found:
        if one.problem:
            yield Check(
                "kaggle", Health.WARN, f"{one.source} can't be used: {one.problem}", NO_CREDENTIALS_STEP
            )
        elif one.file is not None and one.file.stat().st_mode & 0o077:
            yield Check("kaggle", Health.WARN, f"{one.file} is readable by others", f"chmod 600 {one.file}")
        else:
            yield Check("kaggle", Health.OK, f"credentials in {one.source}")


def check_kaggle_online() -> Iterator[Check]:
    """Ask Kaggle whether it accepts the credentials, each of those that could be used."""
    from engine.datasets.access import try_credentials
    from engine.kaggle import CredentialsRefused
    from engine.kaggle.credentials import NO_CREDENTIALS_STEP, find_credentials

    for one, problem in try_credentials(find_credentials()):
        if problem is None:
            yield Check("kaggle", Health.OK, f"Kaggle accepts the credentials in {one.source}")
        elif isinstance(problem, CredentialsRefused):
            yield Check(
                "kaggle", Health.WARN, f"Kaggle does not accept those in {one.source}", NO_CREDENTIALS_STEP
            )
        else:
            yield Check("kaggle", Health.WARN, f"{one.source}: {problem.cause}", problem.next_step)


def check_terminal() -> Check:
    """Check whether the console can be drawn in this terminal."""
    if not sys.stdout.isatty():
        return Check("terminal", Health.OK, "none (output is redirected); the console needs one")
    encoding = locale.getencoding()
    size = shutil.get_terminal_size()
    found = f"{os.environ.get('TERM', 'unknown')}, {size.columns}x{size.lines}, {encoding}"
    if encoding.upper().replace("-", "") != "UTF8":
        return Check("terminal", Health.WARN, found, "Set a UTF-8 locale, such as LANG=C.UTF-8.")
    if size.columns < 80 or size.lines < 24:
        return Check("terminal", Health.WARN, found, "80x24 or larger is recommended.")
    return Check("terminal", Health.OK, found)
