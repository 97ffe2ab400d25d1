"""An order as the engine hands it to a runner, of which a test says only what matters to it."""

from __future__ import annotations

import secrets
import sys
from typing import Any

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.conditions import RunConditions
from tests.conditions import changed

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
    python_prefix=sys.prefix,
    conditions=RunConditions(
        time_limit_seconds=10, grace_seconds=1, grade_every_seconds=1, runtime=protocol.PLAIN
    ),
)


def order_with(**changes: Any) -> Order:
    """An order with these changes; like a real one it bears a token, as control groups are named after it."""
    return changed(_USUAL, **{"token": secrets.token_hex(8), **changes})
