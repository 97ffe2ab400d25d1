"""What `runs shell` does: from a run or a competition to a shell in a container, and back to its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from console.cli.common import complain
from engine.runs.shell import Wish, open_shell, variables
from state.database import Database
from state.records import Run


def as_run(database: Database, run: Run) -> Wish:
    """A shell that finds what a run's agent found."""
    from competitions import model, registry
    from engine.runs import launching
    from state import sweeps

    spec = sweeps.get(database, run.sweep_id).spec
    return Wish(
        registry.get(run.competition_id),
        model.edition_named(spec.edition),
        Path(spec.data_dir),
        launching.agent_of(spec),
        spec.network,
        spec.allowed_hosts,
        terminal=sys.stdin.isatty(),
    )


def on_competition(
    data_dir: Path,
    competition: str,
    agent: str,
    agents_dir: Path | None,
    network: str,
    allow: tuple[str, ...],
) -> Wish:
    """A shell on a competition, for an agent that has not run yet."""
    from competitions import registry
    from engine.agents import get_agent
    from engine.places import own_agents_folder

    folders = [*([agents_dir.expanduser().absolute()] if agents_dir else []), own_agents_folder()]
    return Wish(
        registry.get(competition),
        "v1",
        data_dir,
        get_agent(agent, folders),
        network,
        allow,
        terminal=sys.stdin.isatty(),
    )


def run_shell(state_dir: Path, wish: Wish) -> int:
    """Let the shell have the terminal until it ends; tells its exit code."""
    with open_shell(state_dir, wish, time.sleep) as command:
        complain(
            f"{wish.agent.image_name} on {wish.competition.id}, network {wish.network}: nothing of it is kept"
        )
        return subprocess.run(command, env=variables(os.environ), check=False).returncode
