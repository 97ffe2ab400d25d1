"""An order as the engine hands it to a runner, of which a test says only what matters to it."""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace
from typing import Any

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order

_USUAL = Order(
    version=protocol.VERSION,
    attempt_id=1,
    token="usual",
    sweep_id="sweep",
    competition_id="competition",
    seed=1,
    attempt=1,
    agent_id="agent",
    agent_folder="/nowhere",
    start="start.sh",
    arguments=(),
    variables=(),
    secret=False,
    prepared_dir="/nowhere",
    edition="v1",
    runtime=protocol.PLAIN,
    network="none",
    python_prefix=sys.prefix,
    time_limit_seconds=10,
    grace_seconds=1,
    cpus=1,
    memory_bytes=None,
    snapshot_every_seconds=1,
)


def order_with(**changes: Any) -> Order:
    """An order with these changes; like a real one it bears a token, as control groups are named after it."""
    return replace(_USUAL, **{"token": secrets.token_hex(8), **changes})
