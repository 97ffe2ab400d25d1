"""`doctor`: check what this machine has and lacks, with the next step for each problem."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Context, new_app
from mlebench_console.console.cli.output import say, say_json, say_wrapped
from mlebench_console.engine.checks import Check, Health
from mlebench_console.engine.places import Places
from mlebench_console.engine.settings import unknown_settings
from mlebench_console.engine.space import existing, free_bytes
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from mlebench_console.foundation.text import names_of_limits, plural
from mlebench_console.state import database

if TYPE_CHECKING:
    from mlebench_console.engine.placements.survey import SurveyedNodes
    from mlebench_console.environment.runner.survey import HostOffer

app = new_app()

_STATE_NEEDS = 1_000_000_000
_STATE_WANTS = 20_000_000_000
# The prepared datasets of the smallest split; all 75 take some 3.3 TB.
_DATA_WANTS = 160_000_000_000
_DOCKER_PATIENCE_SECONDS = 5
_WITHOUT_RUNTIME = {
    "bubblewrap": "Install it and allow user namespaces: without it agents on the host's own system are not isolated.",
    "apptainer": "Needed only for exported images where bubblewrap does not work.",
}
_LIMITS_HERE = (
    "Start the engine where it may make control groups (as root, or in a systemd session), or use Docker."
)
# As in environment/Dockerfile.
AGENT_UID = 1000


@app.command()
def doctor(
    context: Context,
    online: Annotated[bool, Option(help="Also ask Kaggle whether it accepts the credentials.")] = False,
    placement: Annotated[
        str,
        Option(
            metavar="slurm[:NAME]",
            help="Check what nodes offer and which limits they enforce, by a short job on one node of each kind.",
        ),
    ] = "",
    wait: Annotated[float, Option(min=0, help="Seconds to wait for the jobs of --placement.")] = 120.0,
    fresh: Annotated[bool, Option(help="Ask nodes again that were asked within a day.")] = False,
) -> None:
    """Check what this machine has and lacks, with next steps; exit code 5 when something stops the work."""
    if placement:
        _of_nodes(context, context.places, placement, wait, fresh=fresh)
        return
    found = []
    for check in all_checks(context.places, online=online):
        found.append(check)
        if not context.json:
            _say_check(check)
            sys.stdout.flush()
    if context.json:
        say_json(
            [
                {"name": one.name, "health": one.health, "found": one.text, "next_step": one.next_step}
                for one in found
            ]
        )
    if any(check.health is Health.FAIL for check in found):
        raise typer.Exit(EnvironmentProblem.exit_code)


def ok(name: str, found: str) -> Check:
    """Return a check of something that is well."""
    return Check(Health.OK, found, name=name)


def warn(name: str, found: str, next_step: str) -> Check:
    """Return a check of something that limits what can be done."""
    return Check(Health.WARN, found, next_step, name=name)


def fail(name: str, found: str, next_step: str) -> Check:
    """Return a check of something that stops the work."""
    return Check(Health.FAIL, found, next_step, name=name)


# The cells before what a check has found.
_FOUND = 18


def _say_check(check: Check) -> None:
    say_wrapped(f"{check.health:<4}  {check.name:<10}  {check.text}", more=_FOUND)
    if check.next_step:
        say_wrapped(check.next_step, indent=" " * _FOUND, more=0)


def _of_nodes(context: Context, places: Places, placement: str, wait: float, *, fresh: bool) -> None:
    """Print what each kind of node of a placement offers."""
    from mlebench_console.engine.placements.sbatch import profile_named
    from mlebench_console.engine.placements.survey import require_node, survey_nodes

    found = survey_nodes(places, placement, wait_seconds=wait, fresh=fresh)
    staging = profile_named(placement, places.config_file).staging
    if context.json:
        say_json([asdict(one) for one in found])
    else:
        for one in found:
            more = f" and {len(one.nodes) - 1} like it" if len(one.nodes) > 1 else ""
            say(f"{one.node}{more}, in {', '.join(one.partitions)}")
            for check in (*_node_checks(one), *check_staging(one.offer, staging)):
                _say_check(check)
    require_node(found)


def _node_checks(surveyed: SurveyedNodes) -> Iterator[Check]:
    if surveyed.offer is None:
        yield fail("node", surveyed.problem, "Give --wait more seconds, or mend the node.")
        return
    offer = surveyed.offer
    gpus = plural(surveyed.gpus, "GPU")
    age = wording.age(time.time() - offer.at)
    known = age if age == "now" else f"{age} ago"
    memory = wording.size(offer.memory_bytes)
    yield ok("node", f"{offer.cpus} CPUs for a job, {memory} of memory, {gpus}; tried {known}")
    yield from check_offer(offer, "Have Slurm enforce them by control groups, or take another runtime.")
    yield check_disk(
        "scratch", Path(offer.scratch), needs=0, wants=_STATE_WANTS, free=offer.scratch_free_bytes
    )


def check_staging(offer: HostOffer | None, staging: str) -> Iterator[Check]:
    """Check whether a node can stage datasets as its profile says."""
    if offer is None or staging == "direct":
        return
    if staging == "squashfs" and "squashfuse" not in offer.tools:
        found = "datasets can't be mounted: squashfuse is not installed"
        yield fail("staging", found, 'Install it there, or set staging = "copy".')
    else:
        yield ok("staging", f"datasets come to {offer.scratch} ({staging})")


def check_offer(offer: HostOffer, limits_step: str) -> Iterator[Check]:
    """Check which runtimes without a daemon a host offers, and which limits they enforce there.

    Args:
        offer: of the host.
        limits_step: what to do there about limits that nothing enforces, or a watcher.
    """
    install = "Install bubblewrap or Apptainer there, and allow user namespaces."
    for one in offer.runtimes:
        if one.why_not:
            yield warn(one.name, one.why_not, _WITHOUT_RUNTIME.get(one.name, install))
        elif one.unenforced:
            step = "Rows disclose it; give --runtime another that enforces more where that matters."
            found = f"works, limits not enforced: {names_of_limits(one.unenforced)}"
            yield warn(one.name, found, step)
        else:
            yield ok(one.name, "works and enforces all limits")
    if offer.auto:
        yield ok("auto", f"takes {offer.auto} for agents with exported images")
    else:
        yield warn("auto", "finds no runtime for exported images", install)
    if offer.unenforced or offer.is_watched:
        yield warn("limits", offer.limits, limits_step)
    else:
        yield ok("limits", offer.limits)
    if offer.network:
        yield warn("network", offer.network, install)
    else:
        yield ok("network", "the networks 'none' and 'models' are enforced")
    tools = ", ".join(f"{name} {version}".strip() for name, version in offer.tools.items())
    yield ok("programs", tools or "none of the runtimes'")


def all_checks(places: Places, *, online: bool = False) -> Iterator[Check]:
    """Run all checks, one after the other; with `online` also those that use the network."""
    from mlebench_console.engine.control import status
    from mlebench_console.environment.runner.survey import survey

    # The package can't be installed into a Python that is too old.
    yield ok("python", f"{platform.python_version()} in {sys.prefix}")
    yield from check_config(places)
    yield check_state(places)
    yield check_disk("state disk", places.state_dir, needs=_STATE_NEEDS, wants=_STATE_WANTS)
    yield check_disk("data disk", places.data_dir, needs=0, wants=_DATA_WANTS)
    yield from check_offer(survey(existing(places.state_dir)), _LIMITS_HERE)
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
    yield ok("engine", running)


def check_config(places: Places) -> Iterator[Check]:
    """Check config.toml for values that can't be used and names that nothing reads."""
    from mlebench_console.console.tui.config import require_usable

    unknown = unknown_settings(places.config_file)
    for text in unknown:
        yield warn("config", text, "Correct or remove it.")
    try:
        require_usable(places.config_file)
    except UsageProblem as problem:
        if not unknown:
            yield fail("config", problem.cause, problem.next_step or "Correct or remove it.")
    else:
        if not unknown:
            is_there = places.config_file.exists()
            yield ok("config", f"{places.config_file}{'' if is_there else ' is not there: defaults'}")


def check_state(places: Places) -> Check:
    """Check whether the state directory is on a writable, local file system."""
    base = existing(places.state_dir)
    kind = database.file_system_of(base)
    if kind in database.NETWORK_FILE_SYSTEMS:
        return fail("state", f"{places.state_dir} is on {kind}", "Point --state-dir at a local disk.")
    if not os.access(base, os.W_OK | os.X_OK):
        return fail(
            "state", f"{base} is not writable", "Change its permissions, or point --state-dir elsewhere."
        )
    return ok("state", f"{places.state_dir} on {kind}")


def check_disk(name: str, path: Path, *, needs: int, wants: int, free: int | None = None) -> Check:
    """Check how much space is left on a disk; `free` says it of one that is not here."""
    free = free_bytes(path) if free is None else free
    found = f"{wording.size(free)} free for {path}"
    if free < needs:
        return fail(name, found, f"At least {wording.size(needs)} is needed; free some space.")
    if free < wants:
        return warn(name, found, f"{wording.size(wants)} or more is recommended.")
    return ok(name, found)


def check_docker(uid: int) -> Iterator[Check]:
    """Check whether a Docker engine, or Podman in its place, answers, and whether it would endanger long runs."""
    from mlebench_console.engine.images import connect
    from mlebench_console.environment.runner.docker.daemon import daemon_problems, is_podman

    try:
        with closing(connect(_DOCKER_PATIENCE_SECONDS)) as client, daemon_problems():
            found = client.version()["Version"]
            survives = is_podman(client) or client.info().get("LiveRestoreEnabled", False)
    except EnvironmentProblem as problem:
        unneeded = "Not needed for agents that run as processes."
        yield warn("docker", problem.cause, unneeded)
        return
    yield ok("docker", f"version {found}")
    if not survives:
        yield warn(
            "docker",
            "live-restore is off: a restart or an upgrade of Docker ends every run",
            'Write {"live-restore": true} to /etc/docker/daemon.json, then reload Docker.',
        )
    if uid == AGENT_UID:
        yield warn(
            "user",
            f"you are user {uid}, as agents in containers are: one that escapes has your rights",
            "Run the engine as another user, or let Docker remap users (userns-remap, rootless).",
        )


def check_gpu() -> Check:
    """Report the GPUs that the driver shows."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return warn(
            "gpu", f"no GPU found ({error})", "Most agents that train models need one; the demo does not."
        )
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        names = [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
    return ok("gpu", f"{len(names)}: {', '.join(names)}")


def check_kaggle(environment: Mapping[str, str], home: Path) -> Iterator[Check]:
    """Check whether there are Kaggle credentials that can be used, without showing them or asking Kaggle."""
    from mlebench_console.engine.kaggle.credentials import NO_CREDENTIALS_STEP, find_credentials

    found = find_credentials(environment, home)
    if not found:
        yield warn("kaggle", "no credentials", f"Needed for downloads only. {NO_CREDENTIALS_STEP}")
    for one in found:
        if one.problem:
            yield warn("kaggle", f"{one.source} can't be used: {one.problem}", NO_CREDENTIALS_STEP)
        elif one.file is not None and one.file.stat().st_mode & 0o077:
            yield warn("kaggle", f"{one.file} is readable by others", f"chmod 600 {one.file}")
        else:
            yield ok("kaggle", f"credentials in {one.source}")


def check_kaggle_online() -> Iterator[Check]:
    """Ask Kaggle whether it accepts the credentials, each of those that could be used."""
    from mlebench_console.engine.datasets.sources.access import try_credentials
    from mlebench_console.engine.kaggle import CredentialsRefused
    from mlebench_console.engine.kaggle.credentials import NO_CREDENTIALS_STEP, find_credentials

    for one, problem in try_credentials(find_credentials()):
        if problem is None:
            yield ok("kaggle", f"Kaggle accepts the credentials in {one.source}")
        elif isinstance(problem, CredentialsRefused):
            yield warn("kaggle", f"Kaggle does not accept those in {one.source}", NO_CREDENTIALS_STEP)
        else:
            yield warn("kaggle", f"{one.source}: {problem.cause}", problem.next_step)


def check_terminal() -> Check:
    """Check whether the console can be drawn in this terminal."""
    if not sys.stdout.isatty():
        return ok("terminal", "none (output is redirected); the console needs one")
    encoding = locale.getencoding()
    size = shutil.get_terminal_size()
    found = f"{os.environ.get('TERM', 'unknown')}, {size.columns}x{size.lines}, {encoding}"
    if encoding.upper().replace("-", "") != "UTF8":
        return warn("terminal", found, "Set a UTF-8 locale, such as LANG=C.UTF-8.")
    if size.columns < 80 or size.lines < 24:
        return warn("terminal", found, "80x24 or larger is recommended.")
    return ok("terminal", found)
