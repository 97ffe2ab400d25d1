"""Orders that a runner can carry out, over one dataset that is prepared once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from tests.engine.conftest import prepared_data
from tests.engine.harness import COMPETITION
from tests.environment.runner.orders import order_with

__all__ = ["prepared_data"]


@pytest.fixture
def order(tmp_path: Path, prepared_data: Path) -> Order:
    agent = tmp_path / "agent"
    agent.mkdir()
    return order_with(
        competition_id=COMPETITION,
        agent_folder=str(agent),
        arguments=("--lr", "0.1"),
        variables=(("OWN", "value"),),
        prepared_dir=str(prepared_data / COMPETITION / "prepared"),
        runtime=protocol.BUBBLEWRAP,
        time_limit_seconds=60,
    )
