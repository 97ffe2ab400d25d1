"""Check everything that a launch needs (engine, agent, images, data, size, disk), without creating anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import EDITIONS, edition_named
from mlebench_console.competitions.task import refuse_excluded
from mlebench_console.engine import agent_snapshots
from mlebench_console.engine.agent_snapshots import agent_of, version_of
from mlebench_console.engine.agents import Agent, leaves_out_kwargs, required_secrets, start_command
from mlebench_console.engine.checks import Check, Health, Remedy, failed
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.datasets import is_ready, options_of, plan
from mlebench_console.engine.images import connect, find_exported, images_of_runs
from mlebench_console.engine.layout import dataset_folder, is_demo
from mlebench_console.engine.options.sweep import check_name, impossible
from mlebench_console.engine.placements.checks import estimate
from mlebench_console.engine.placements.sbatch import profile_named, runtime_on_nodes
from mlebench_console.engine.placements.survey import kept_offers
from mlebench_console.engine.places import Places, images_folder
from mlebench_console.engine.providers import keys_of, new_token, providers_of, without_keys
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.engine.space import existing
from mlebench_console.environment.gateway.dialects import Grant
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.docker.daemon import build_command, daemon_problems
from mlebench_console.environment.runner.process import runtimes
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation.conditions import HERE, Resources, RunConditions
from mlebench_console.foundation.fields import differences
from mlebench_console.foundation.problems import EnvironmentProblem, Problem, UsageProblem
from mlebench_console.foundation.text import gigabytes, limit_text, plural
from mlebench_console.state import database, sweeps
from mlebench_console.state.records import Sweep, SweepSpec

if TYPE_CHECKING:
    from docker import APIClient

_NAMED = 3
_DOCKER_SECONDS = 20
_THIS_HOST = ("localhost", "127.0.0.1", "::1")
_NO_NETWORK = "none"
_MODELS = "models"
# The variable with the time limit for MLE-bench's agents.
_PLANNED_SECONDS = "TIME_LIMIT_SECS"
_KEY_SUFFIX = "_API_KEY"


@dataclass(frozen=True)
class HostCapacity:
    """The resources that an engine has for runs; None where unknown."""

    cpus: float
    memory_bytes: int | None
    gpus: int | None = None
    free_disk: int | None = None


def check_all(
    launch: LaunchSweep,
    places: Places,
    engine: EngineStatus,
    capacity: HostCapacity,
    disk_needed: int | None,
    *,
    starts_engine: bool,
) -> Iterator[Check]:
    """Check everything that a launch needs; this reads files, and waits for Docker if the launch needs it."""
    yield _engine(engine, starts_engine=starts_engine)
    existing_sweep = None
    try:
        if engine.running and engine.data_dir:
            refuse_other_data(launch.spec, Path(engine.data_dir))
        existing_sweep = _same_sweep(launch, places)
    except Problem as problem:
        yield failed(problem)
    if existing_sweep is not None:
        text = f"sweep {existing_sweep.id} exists already and is the same: nothing would be launched"
        yield Check(Health.WARN, text)
        return
    # Ours, if this process would start the engine, or where the engine's can't be read.
    environment = engine.variables() or os.environ
    yield from check_launch(launch, places, environment, capacity)
    yield _disk(launch, capacity.free_disk, disk_needed)


def refuse_other_data(spec: SweepSpec, own: Path) -> None:
    """Refuse a sweep with another data directory than the engine's.

    Raises:
        UsageProblem: it names another one.
    """
    if spec.data_dir and Path(spec.data_dir).expanduser().absolute() != own:
        raise UsageProblem(
            f"the engine's data directory is {own}",
            f"the launch gives {spec.data_dir}",
            "Leave --data-dir out, or start an engine with it: --state-dir DIR --data-dir DIR engine start",
        )


def _same_sweep(launch: LaunchSweep, places: Places) -> Sweep | None:
    """Return the existing sweep of the launch's name, which must have the same options; None without one.

    Raises:
        Problem: the sweep of that name differs, or the agent is missing.
    """
    if not launch.name or not database.exists(places.state_dir):
        return None
    with closing(database.open_for_reading(places.state_dir)) as state:
        found = sweeps.find(state, launch.name)
    if found is not None:
        refuse_another(launch, version_of(agent_of(launch.spec).folder), found)
    return found


def refuse_another(launch: LaunchSweep, agent_version: str, found: Sweep) -> None:
    """Refuse a launch with the name of an existing sweep, unless both are the same.

    Raises:
        UsageProblem: the sweep of that name differs.
    """
    spec = launch.spec
    # Whether data had to be prepared makes no difference to the runs.
    kept = replace(found.spec, prepare_missing=spec.prepare_missing, raw_dir=spec.raw_dir)
    differing = list(differences(spec, kept))
    if agent_version != found.agent_version:
        differing.append("the agent's files")
    if differing:
        raise UsageProblem(
            f"there is already a sweep '{found.id}'",
            f"it differs in {', '.join(differing[:3])}",
            "Choose another name.",
        )


def check_launch(
    launch: LaunchSweep, places: Places, environment: Mapping[str, str], capacity: HostCapacity
) -> Iterator[Check]:
    """Check what the engine requires of a launch; `environment` must have the secrets of its agent."""
    for problem in impossible(launch):
        yield failed(problem)
    try:
        if launch.name:
            check_name(launch.name)
    except UsageProblem as problem:
        yield failed(problem)
    try:
        providers = _providers(launch, places)
    except Problem as problem:
        yield failed(problem)
        return
    if launch.spec.agent_id:
        yield from _agent(launch.spec, environment, providers, places)
    if launch.spec.competitions:
        yield from _data(launch.spec, places)
    if launch.spec.conditions.placement == HERE:
        yield from _size(launch.spec.conditions.resources, capacity)


def _engine(engine: EngineStatus, *, starts_engine: bool) -> Check:
    if engine.running:
        slots = f" with {engine.slots:g} slots" if engine.slots is not None else ""
        return Check(Health.OK, f"the engine is running{slots}")
    if starts_engine:
        return Check(Health.OK, "the engine is not running; the launch starts it")
    return Check(Health.FAIL, "the engine is not running", "mlebench-console engine start", Remedy.ENGINE)


def _agent(
    spec: SweepSpec, environment: Mapping[str, str], providers: tuple[ModelProvider, ...], places: Places
) -> Iterator[Check]:
    try:
        agent = agent_of(spec)
        keys_of(providers, environment)
        start_command(agent, without_keys(providers, environment, new_token()))
        agent_snapshots.check(agent.folder)
    except Problem as problem:
        yield failed(problem)
        return
    yield Check(Health.OK, f"agent {agent.id} in {agent.folder}")
    yield from _time_limit(spec.conditions, agent)
    if leaves_out_kwargs(agent):
        text = f"its kwargs are not passed to it: the kwargs_type '{agent.kwargs_type}' is not known"
        yield Check(Health.WARN, text, f"Use argparse or omegaconf in {agent.folder}.")
    if providers:
        grants = spec.conditions.models.grants
        granted = f", granted {_named(grants)}" if grants else ""
        names = _named(tuple(provider.name for provider in providers))
        yield Check(Health.OK, f"model calls to {names} go through the gateway{granted}")
    yield from _runtime(spec, agent, providers, places)


def _providers(launch: LaunchSweep, places: Places) -> tuple[ModelProvider, ...]:
    """Return the providers of a sweep's gateway.

    Raises:
        Problem: a provider or a grant is not known, or something needs the gateway.
    """
    terms = launch.spec.conditions.models
    providers = providers_of(terms.gateway, places.config_file)
    for what, is_wanted in (
        ("recording model calls", terms.record_calls),
        ("--model-grant", bool(terms.grants)),
        ("a budget of model calls", terms.budget.is_limited or launch.sweep_budget.is_limited),
    ):
        if is_wanted and not providers:
            raise UsageProblem(f"{what} needs the gateway", "", "Add --gateway PROVIDER.")
    unknown = [name for name in terms.grants if name not in tuple(Grant)]
    if unknown:
        raise UsageProblem(f"'{unknown[0]}' can't be granted", "", f"Choose one of {', '.join(Grant)}.")
    return providers


def _time_limit(conditions: RunConditions, agent: Agent) -> Iterator[Check]:
    """Warn if an agent of MLE-bench plans for more time than its runs have."""
    try:
        planned = float(dict(agent.env_vars).get(_PLANNED_SECONDS, ""))
    except ValueError:
        return
    if planned > conditions.time_limit_seconds:
        text = f"agent {agent.id} plans for {limit_text(planned / 3600)}"
        ended = f"its runs are ended after {limit_text(conditions.time_limit_seconds / 3600)}"
        step = f"Give --hours {planned / 3600:.4g}, or lower {_PLANNED_SECONDS} in its config.yaml."
        yield Check(Health.WARN, f"{text}, {ended}", step)


def _runtime(
    spec: SweepSpec, agent: Agent, providers: tuple[ModelProvider, ...], places: Places
) -> Iterator[Check]:
    conditions = spec.conditions
    if conditions.runtime not in protocol.RUNTIMES:
        return  # `impossible` names it
    if conditions.placement != HERE:
        yield from _on_nodes(spec, agent, providers, places)
        return
    try:
        kind = runtimes.resolve(conditions.runtime)
        if kind != protocol.DOCKER:
            yield from _without_daemon(kind, "processes of this host", conditions, agent, providers, places)
            taken = runtimes.choose(kind, _image_file(conditions, agent, places), existing(places.state_dir))
            if taken != kind:
                yield Check(Health.OK, f"the runtime '{kind}' is {taken} here")
            yield Check(Health.OK, f"limits of runs: {runtimes.enforced_limits(taken).in_words()}")
            return
        if agent.dockerfile is None:
            raise UsageProblem(f"agent '{agent.id}' has no Dockerfile", "it can't run in a container")
        _check_hosts(conditions)
        yield from _network(conditions, agent, providers)
        client = connect(_DOCKER_SECONDS)
        yield _images(client, agent, spec.agents_dir)
        _check_container_runtime(client, conditions)
    except Problem as problem:
        yield failed(problem)


def _without_daemon(
    kind: str,
    what: str,
    conditions: RunConditions,
    agent: Agent,
    providers: tuple[ModelProvider, ...],
    places: Places,
) -> Iterator[Check]:
    """Check what runs need whose agents are plain processes, in a sandbox or without one."""
    _refuse_container_options(conditions, agent, kind)
    _check_hosts(conditions)
    isolated = "not isolated" if kind == protocol.PLAIN else f"isolated by {kind}"
    if kind == protocol.AUTO:
        isolated = "isolated by the first runtime that works there"
    yield Check(Health.OK, f"runs are {what}, {isolated}")
    image = _image_file(conditions, agent, places)
    if image is not None:
        yield Check(Health.OK, f"the image {image.name} is exported: {image.path}")
    if kind == protocol.PLAIN:
        yield from _keys_within_reach(providers)
    else:
        yield from _network(conditions, agent, providers)


def _image_file(conditions: RunConditions, agent: Agent, places: Places) -> ImageFile | None:
    """Return the file of an agent's image; None where its runs need none.

    Raises:
        Problem: they need one, and it is missing or was made from other files.
    """
    if not runtimes.needs_image_file(conditions.runtime, has_image=agent.dockerfile is not None):
        return None
    if agent.dockerfile is None:
        raise UsageProblem(f"agent '{agent.id}' has no Dockerfile", f"it can't run by {conditions.runtime}")
    return find_exported(images_of_runs(agent)[0], images_folder(places))


def _on_nodes(
    spec: SweepSpec, agent: Agent, providers: tuple[ModelProvider, ...], places: Places
) -> Iterator[Check]:
    """Check what runs on the nodes of a batch system need; this queries the batch system."""
    conditions, resources = spec.conditions, spec.conditions.resources
    try:
        kind = runtime_on_nodes(conditions.runtime)
        yield from _without_daemon(kind, "jobs of Slurm", conditions, agent, providers, places)
        yield from _offers(kind, agent, conditions.placement, places)
        profile = profile_named(conditions.placement, places.config_file)
        _check_egress(providers, profile)
        if resources.gpus and resources.runs_per_gpu != 1:
            step = 'Set gres = "shard:{n}" in its table.'
            raise UsageProblem("runs_per_gpu has no effect on jobs", "Slurm assigns GPUs to them", step)
        if resources.memory_bytes is None and "mem" not in profile.leave_out:
            step = 'Give --memory-gb, or leave_out = ["mem"] in its table where the cluster has a default.'
            raise UsageProblem("a job without a memory limit may get a whole node", "", step)
        yield Check(Health.OK, estimate(spec, profile).message)
    except Problem as problem:
        yield failed(problem)


def _check_egress(providers: tuple[ModelProvider, ...], profile: SlurmProfile) -> None:
    """Refuse providers that a gateway on a node can't reach, and proxies that can't be written into job scripts.

    Raises:
        UsageProblem: a provider is on this host, or the proxy's address is not valid or has a password.
    """
    for provider in providers:
        if urlsplit(provider.url).hostname in _THIS_HOST:
            raise UsageProblem(
                f"nodes can't reach the provider '{provider.name}'",
                f"{provider.url} is the node itself there",
                "Give its table a url with this host's name.",
            )
    proxy = urlsplit(profile.proxy)
    if profile.proxy and (proxy.scheme != "http" or not proxy.hostname or proxy.username or proxy.password):
        raise UsageProblem(
            "the profile's proxy is not valid",
            "it must be http://HOST:PORT, without a password, because it is written into job scripts",
        )


def _offers(kind: str, agent: Agent, placement: str, places: Places) -> Iterator[Check]:
    """Report on which kinds of nodes, of those that `doctor` has examined, a runtime works."""
    offers = kept_offers(places, placement)
    wanted: tuple[str, ...] = (kind,)
    if kind == protocol.AUTO:
        wanted = (protocol.BUBBLEWRAP,) if agent.dockerfile is None else protocol.OF_IMAGE_FILES
    if not offers or kind == protocol.PLAIN:
        return
    lacking = [
        offer.host
        for offer in offers
        if not any(one.name in wanted and not one.why_not for one in offer.runtimes)
    ]
    if lacking:
        text = f"the runtime '{kind}' does not work on {_named(tuple(lacking), 'node')}"
        step = f"See why: mlebench-console doctor --placement {placement}"
        yield Check(Health.WARN, f"{text}, of {len(offers)} kinds examined", step)
    else:
        kinds = "the one kind" if len(offers) == 1 else f"all {len(offers)} kinds"
        yield Check(Health.OK, f"the runtime '{kind}' works on {kinds} of nodes examined")


def _keys_within_reach(providers: tuple[ModelProvider, ...]) -> Iterator[Check]:
    """Warn that an agent without isolation, which runs as the operator, can read the gateway's keys."""
    names = tuple(
        provider.key or f"the key of {provider.name}"
        for provider in providers
        if provider.key or provider.key_file or provider.key_command
    )
    if names:
        text = f"agents that are not isolated can read {_named(names)} in the operator's own processes"
        yield Check(Health.WARN, text, f"Give --runtime {protocol.DOCKER} or {protocol.BUBBLEWRAP}.")


def _network(
    conditions: RunConditions, agent: Agent, providers: tuple[ModelProvider, ...]
) -> Iterator[Check]:
    """Warn if an agent has a key for a service, but no network to reach it."""
    given = [name for name, _ in agent.env_vars if name.endswith(_KEY_SUFFIX)]
    served = {provider.key for provider in providers}
    keys = tuple(name for name in dict.fromkeys([*required_secrets(agent), *given]) if name not in served)
    if keys and conditions.network == _NO_NETWORK:
        text = (
            f"agent {agent.id} has {_named(keys)}, but can't reach any service on the network '{_NO_NETWORK}'"
        )
        yield Check(
            Health.WARN,
            text,
            f"Give --gateway PROVIDER, --network {_MODELS} --allow HOST, or --network open.",
        )


def _images(client: APIClient, agent: Agent, agents_dir: str) -> Check:
    wanted = images_of_runs(agent)
    faults: dict[str, list[str]] = {}
    for image in wanted:
        if fault := image.fault(client):
            faults.setdefault(fault, []).append(image.name)
    if not faults:
        return Check(Health.OK, f"the images {' and '.join(image.name for image in wanted)} are built")
    text = "; ".join(
        f"the image {names[0]} is {fault}" if len(names) == 1 else f"{fault}: {_named(tuple(names), 'image')}"
        for fault, names in faults.items()
    )
    names = tuple(name for some in faults.values() for name in some)
    return Check(Health.FAIL, text, build_command(names, agents_dir), Remedy.BUILD, names)


def _refuse_container_options(conditions: RunConditions, agent: Agent, kind: str) -> None:
    """Refuse options that only containers of a daemon support; jobs get GPUs from their batch system.

    Raises:
        UsageProblem: the sweep has such an option.
    """
    if agent.privileged:
        raise UsageProblem(
            f"agent '{agent.id}' needs a privileged container", f"the runtime '{kind}' has none"
        )
    unsupported = (
        ("gpus", conditions.resources.gpus != 0 and conditions.placement == HERE),
        ("shm_bytes", conditions.resources.shm_bytes is not None and kind != protocol.BUBBLEWRAP),
        ("container_runtime", conditions.container_runtime != ""),
        ("container_options", conditions.container_options != ()),
        ("keep_containers", conditions.keep_containers),
    )
    for name, is_set in unsupported:
        if is_set:
            raise UsageProblem(
                f"the runtime '{kind}' does not support {name}",
                "",
                f"Launch with the runtime '{protocol.DOCKER}'.",
            )
    if conditions.network == _MODELS and kind == protocol.PLAIN:
        raise UsageProblem(
            f"the network '{_MODELS}' can't be enforced without isolation",
            f"the runtime is '{kind}'",
            f"Launch with the runtime '{protocol.BUBBLEWRAP}', or with --network open, which rows disclose.",
        )


def _check_hosts(conditions: RunConditions) -> None:
    """Refuse invalid combinations of network and allowed hosts.

    Raises:
        UsageProblem: the network `models` has no hosts, another network has some, or a host is not valid.
    """
    if conditions.network == _MODELS and not conditions.allowed_hosts:
        raise UsageProblem("the network 'models' has no hosts", "", "Give them: --allow HOST")
    if conditions.network != _MODELS and conditions.allowed_hosts:
        raise UsageProblem("hosts are allowed only on the network 'models'", f"it is '{conditions.network}'")
    if not conditions.allowed_hosts:
        return
    from mlebench_console.environment.container.proxy import (
        parse_rule,
    )  # asyncio, which it needs, would double what hosts cost to check

    for host in conditions.allowed_hosts:
        try:
            parse_rule(host)
        except ValueError as error:
            raise UsageProblem(f"the host {error}") from error


def _check_container_runtime(client: APIClient, conditions: RunConditions) -> None:
    """Check that the daemon knows the container runtime.

    Raises:
        EnvironmentProblem: it does not.
    """
    if not conditions.container_runtime:
        return
    with daemon_problems("Docker's runtimes can't be listed"):
        known = sorted(client.info().get("Runtimes", {}))
    if conditions.container_runtime not in known:
        raise EnvironmentProblem(
            f"there is no container runtime '{conditions.container_runtime}'",
            f"the daemon knows {', '.join(known)}",
            "Install it, or choose another container_runtime.",
        )


def _data(spec: SweepSpec, places: Places) -> Iterator[Check]:
    if spec.conditions.edition not in EDITIONS:
        return  # `impossible` names it
    edition = edition_named(spec.conditions.edition)
    try:
        for competition_id in spec.competitions:
            competition = registry.get(competition_id)
            registry.load_task(competition)
            refuse_excluded(competition, edition)
    except Problem as problem:
        yield failed(problem)
        return
    missing = tuple(name for name in spec.competitions if not is_ready(name, edition, places.data_dir))
    count = len(spec.competitions)
    if not missing:
        whose = spec.competitions[0] if count == 1 else f"all {count} competitions"
        yield Check(Health.OK, f"the data of {whose} are prepared")
        demo = tuple(
            name
            for name in spec.competitions
            if is_demo(dataset_folder(registry.get(name), places.data_dir, edition))
        )
        if demo:
            text = f"{len(demo)} of {count} datasets are demo data, which give no results: {_named(demo)}"
            yield Check(Health.WARN, text)
        return
    if spec.prepare_missing or spec.demo or spec.raw_dir:
        try:
            for name in missing:
                plan(name, edition, places.data_dir, options_of(spec))
        except Problem as problem:
            yield failed(problem)
            return
        text = f"{len(missing)} of {count} datasets will be prepared first: {_named(missing)}"
        yield Check(Health.OK, text, remedy=Remedy.PREPARE, subjects=missing)
        return
    text = f"{len(missing)} of {count} datasets are not prepared: {_named(missing)}"
    if count == 1:
        text = f"the dataset of {missing[0]} is not prepared"
    step = f"mlebench-console prepare -c {missing[0]}, or launch with --prepare"
    yield Check(Health.FAIL, text, step, Remedy.PREPARE, missing)


def _size(resources: Resources, capacity: HostCapacity) -> Iterator[Check]:
    set_in = "or change the [engine] table of config.toml"
    if resources.cpus > capacity.cpus:
        text = f"a run takes {resources.cpus:g} CPUs, this engine has {capacity.cpus:g}"
        yield Check(Health.FAIL, text, f"give fewer with --cpus, {set_in}")
    memory, most = resources.memory_bytes, capacity.memory_bytes
    if memory and most is not None and memory > most:
        text = f"a run may take {gigabytes(memory)} of memory, this engine has {gigabytes(most)}"
        yield Check(Health.FAIL, text, f"give less with --memory-gb, {set_in}")
    if resources.gpus and capacity.gpus is not None:
        enough = 0 < capacity.gpus >= resources.gpus
        takes = "all GPUs" if resources.gpus < 0 else plural(resources.gpus, "GPU")
        text = f"a run takes {takes}, this host has {capacity.gpus}"
        yield Check(Health.OK if enough else Health.FAIL, text, "" if enough else "give fewer with --gpus")


def _disk(launch: LaunchSweep, free: int | None, needed: int | None) -> Check:
    if free is None:
        return Check(Health.OK, "the free space on the state's disk is not known")
    limit = launch.spec.conditions.disk_limit_bytes
    if needed is not None:
        use = f"all runs need about {gigabytes(needed)}"
    elif limit is not None:
        needed = limit * launch.run_count
        use = f"all runs may use {gigabytes(needed)}"
    else:
        return Check(Health.OK, f"{gigabytes(free)} are free for runs; how much they need is not known yet")
    text = f"{use}, {gigabytes(free)} are free"
    if needed <= free:
        return Check(Health.OK, text)
    # Only a warning: the disk use of runs is an estimate, and space may be freed while they run.
    step = "free space on the state's disk, or give a --state-dir on a larger disk"
    return Check(Health.WARN, text, step)


def _named(names: tuple[str, ...], one: str = "") -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    kind = f"{one}{'s' if len(names) > 1 else ''} " if one else ""
    return f"{kind}{', '.join(names[:_NAMED])}{more}"
