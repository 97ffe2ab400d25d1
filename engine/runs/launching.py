"""Launch an attempt: write its directory with its order first, then pass it to its placement."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from mlebench_console.competitions import descriptions, registry
from mlebench_console.competitions.model import edition_named
from mlebench_console.engine.agent_snapshots import agent_of_sweep
from mlebench_console.engine.agents import (
    Agent,
    get_agent,
    required_secrets,
    start_arguments,
    start_command,
    start_variables,
    wants_obfuscated,
)
from mlebench_console.engine.images.building import GRADER_IMAGE, images_of_runs
from mlebench_console.engine.images.exporting import find_exported
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.engine.placements import Placement
from mlebench_console.engine.places import Places, agents_folders, images_folder
from mlebench_console.engine.providers import keys_of, model_prices, providers_of, without_keys
from mlebench_console.environment.gateway.orders import BudgetNotice, ModelProvider
from mlebench_console.environment.gateway.prices import prices_given
from mlebench_console.environment.runner import layout, protocol, secrets
from mlebench_console.environment.runner.process import runtimes
from mlebench_console.environment.runner.protocol import Order, Stop
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state.records import Attempt, Run, Sweep, SweepSpec

# Marks the agent's own secrets among the gateway's keys; environment variables have no spaces in their names.
_OF_THE_AGENT = "of the agent"


class ForeignDirectory(DataProblem):
    """The directory of an attempt contains the order of another attempt, so nothing in it can be used."""


def agent_of(spec: SweepSpec) -> Agent:
    """Read the agent that a sweep would be launched with now.

    Raises:
        Problem: it is missing or broken.
    """
    return get_agent(spec.agent_id, agents_folders(spec.agents_dir))


def hand_over(
    placement: Placement,
    places: Places,
    sweep: Sweep,
    run: Run,
    attempt: Attempt,
    gpu_uuids: tuple[str, ...],
    budget_notice: BudgetNotice | None,
) -> None:
    """Write the directory of an attempt and pass it to its placement; doing so again is harmless.

    `budget_notice` is about the budgets that it shares, None where it shares none.

    Raises:
        ForeignDirectory: its directory belongs to another attempt.
        Problem: the agent or one of its secrets is missing.
        OSError: its directory can't be written.
    """
    folder = places.state_dir / attempt.directory
    ordered = read_order(places.state_dir, attempt)
    if not (folder / protocol.CLAIM).exists():
        agent = agent_of_sweep(places.state_dir, sweep)
        if ordered is not None:
            providers = ordered.providers
        else:
            served = providers_of(sweep.conditions.models.gateway, places.config_file)
            providers = _shared(served, placement, attempt)
        token = (ordered.model_token if ordered is not None else "") or new_token()
        keys = keys_of(providers, os.environ)
        launch = start_command(agent, without_keys(providers, os.environ, token))
        protocol.make_folders(folder)
        order = make_order(sweep, run, attempt, agent, images_folder(places), gpu_uuids)
        # The agent's own addresses of models would bypass the gateway, or lead nowhere.
        addresses = {name for provider in providers for name in layout.model_addresses(provider, 0)}
        if providers:
            kept = tuple((name, value) for name, value in order.variables if name not in addresses)
            order = replace(order, variables=kept)
            own_prices = model_prices(places.config_file).own
            prices = tuple((name, prices_given(price)) for name, price in own_prices.items())
            order = replace(order, providers=providers, model_token=token, model_prices=prices)
            if order.conditions.models.record_calls:
                # The gateway keeps the agent's secrets out of recordings too, not only out of logs.
                keys |= {f"{_OF_THE_AGENT} {number}": value for number, value in enumerate(launch.secrets)}
            secrets.leave_keys(folder, keys)
        if order.secret:
            variables = {name: value for name, value in launch.environment.items() if name not in addresses}
            own = layout.with_hidden_arguments(variables, launch.arguments)
            secrets.leave(folder, secrets.SecretLaunch(own, launch.secrets))
        if order.conditions.obfuscated:
            _write_description(folder, order)
        if ordered is None:
            files.remove_partials(folder)  # no other process writes there before the order exists
            if budget_notice is not None:
                protocol.write(folder / protocol.SHARED_BUDGET, budget_notice)
            protocol.write(folder / protocol.ORDER, order)
            files.sync_directory(folder)
    placement.place(attempt)


def _shared(
    providers: tuple[ModelProvider, ...], placement: Placement, attempt: Attempt
) -> tuple[ModelProvider, ...]:
    """Return the providers with an attempt's share of their rate limits."""
    share = placement.share_of_rates(attempt.placement)
    return tuple(
        replace(
            provider,
            requests_per_minute=provider.requests_per_minute and provider.requests_per_minute * share,
            tokens_per_minute=provider.tokens_per_minute and provider.tokens_per_minute * share,
        )
        for provider in providers
    )


def new_token() -> str:
    """Return a token that an agent uses in place of keys, with the prefix that some clients require."""
    return f"sk-mlebench-{token_hex(24)}"


def read_order(state_dir: Path, attempt: Attempt) -> Order | None:
    """Read the order of an attempt in its directory; None while there is none.

    Raises:
        ForeignDirectory: the order there is that of another attempt.
        DataProblem: it can't be read.
    """
    order = protocol.read_if_there(state_dir / attempt.directory / protocol.ORDER, Order)
    if order is not None and (order.token, order.attempt_id) != (attempt.token, attempt.id):
        raise ForeignDirectory(
            f"{attempt.directory} holds another attempt",
            f"its {protocol.ORDER} is the order of {order.token}, not of {attempt.token}",
            "Stop the run, then relaunch it.",
        )
    return order


def make_order(
    sweep: Sweep,
    run: Run,
    attempt: Attempt,
    agent: Agent,
    images: Path,
    gpu_uuids: tuple[str, ...],
) -> Order:
    """Return the order of an attempt; it contains the names of secrets, not their values.

    Raises:
        EnvironmentProblem: its exported image in `images` is missing, or was made from other files.
    """
    spec, conditions = sweep.spec, sweep.conditions
    competition = registry.get(run.competition_id)
    image_labels: tuple[tuple[str, str], ...] = ()
    grader_labels: tuple[tuple[str, str], ...] = ()
    image_file = None
    uses_image_file = runtimes.needs_image_file(conditions.runtime, has_image=agent.dockerfile is not None)
    # Only where an image is used: they name the files that it is built from, which take a tenth of a second to hash.
    if uses_image_file or attempt.runtime == protocol.DOCKER:
        own_image, grader_image = images_of_runs(agent, kept=True)
        image_labels, grader_labels = own_image.labels, grader_image.labels
        if uses_image_file:
            image_file = find_exported(own_image, images)
    return Order(
        version=protocol.VERSION,
        attempt_id=attempt.id,
        sweep_id=run.sweep_id,
        competition_id=run.competition_id,
        seed=run.seed,
        attempt=attempt.number,
        token=attempt.token,
        agent_id=agent.id,
        # Resolved for nodes that see only the shared part of the state directory.
        agent_folder=str(agent.folder.resolve()),
        agent_version=sweep.agent_version,
        start=str(agent.start_below_folder),
        arguments=start_arguments(agent),
        variables=start_variables(agent),
        secret=bool(required_secrets(agent)),
        prepared_dir=str(
            dataset_folder(competition, spec.data_dir, edition_named(conditions.edition)).prepared
        ),
        python_prefix=sys.prefix,
        conditions=replace(
            conditions,
            runtime=attempt.runtime,
            obfuscated=conditions.obfuscated or wants_obfuscated(agent),
        ),
        image=agent.image_name,
        grader_image=GRADER_IMAGE,
        image_labels=image_labels,
        grader_labels=grader_labels,
        gpu_uuids=gpu_uuids,
        privileged=agent.privileged,
        agents_dir=spec.agents_dir,
        own_competition=str(competition.folder) if registry.is_own(competition) else "",
        image_file=image_file,
    )


def _write_description(folder: Path, order: Order) -> None:
    prepared = Path(order.prepared_dir)
    if not (
        prepared / "public" / protocol.DESCRIPTION
    ).is_file():  # a file can be mounted only over an existing one
        raise DataProblem(
            f"{prepared} has no description.md",
            "so an obfuscated one can't take its place",
            f"Prepare it again: mlebench-console prepare -c {order.competition_id}",
        )
    text = descriptions.obfuscated_description(
        registry.get(order.competition_id), edition_named(order.conditions.edition)
    )
    files.write_text(folder / protocol.DESCRIPTION, text)


def ask_to_stop(state_dir: Path, attempt: Attempt, stop: Stop) -> None:
    """Request that the runner ends an attempt; a second request does not change who requested it.

    Raises:
        ForeignDirectory: its directory belongs to another attempt, so there is nothing to end.
    """
    read_order(state_dir, attempt)
    path = state_dir / attempt.directory / protocol.STOP
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        protocol.write(path, stop)


def stop_before_start(placement: Placement, state_dir: Path, attempt: Attempt) -> Stop | None:
    """Read who stopped an attempt that no runner knows; None where a runner may know it, or nobody stopped it."""
    folder = state_dir / attempt.directory
    if (folder / protocol.CLAIM).exists() or placement.is_placed(attempt):
        return None
    return protocol.read_if_there(folder / protocol.STOP, Stop)
