"""`python -m mlebench_console.environment.runner.gateway ATTEMPT`: forward model calls until the agent has ended.

Keys are read from files in memory, not from arguments or variables; requests and answers are not stored unless
the order asks for a recording.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from aiohttp.http_exceptions import HttpProcessingError

from mlebench_console.environment.container.relay import MAX_CONNECTIONS
from mlebench_console.environment.gateway.budget import Ledger, NoticeReader
from mlebench_console.environment.gateway.dialects import Grant
from mlebench_console.environment.gateway.keys import read_key
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.environment.gateway.rates import KeyRate
from mlebench_console.environment.gateway.recording import Recorder
from mlebench_console.environment.gateway.records import Journal
from mlebench_console.environment.gateway.server import Gateway
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import EnvironmentProblem

EXIT_SECOND = 4
_POLL_SECONDS = 1.0
_LOOK_SECONDS = 10.0  # for notices, besides at each call: directories may be on a shared disk
_OPEN_FILES = 4 * MAX_CONNECTIONS
_PR_SET_DUMPABLE = 4
_MOST_LOGGED = 1000


class _LogFilter(logging.Filter):
    """Keeps an agent from filling the log, by requests that are not HTTP or in any other way."""

    _left = _MOST_LOGGED

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
            return False
        self._left -= 1
        return self._left >= 0


def main() -> int:
    """Serve until the agent has ended, or on SIGTERM."""
    attempt = Path(sys.argv[1]).absolute()
    # Without a sandbox the agent runs as the same user, and must not read the keys in this process.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    handler = logging.StreamHandler()
    handler.addFilter(_LogFilter())
    logging.basicConfig(handlers=[handler])
    lock = FileLock(attempt / protocol.GATEWAY_LOCK)
    if not lock.acquire_soon():
        return EXIT_SECOND
    order = protocol.read(attempt / protocol.ORDER, Order)
    terms, by_variable = order.conditions.models, secrets.read_keys(attempt)
    keys = {one.name: by_variable[one.key] for one in order.providers if one.key in by_variable}
    for provider in order.providers:
        if provider.key_file or provider.key_command:
            try:
                keys[provider.name] = read_key(provider)
            except EnvironmentProblem as problem:
                logging.warning("%s", problem)  # calls are refused, and each tries again
    hidden = (*by_variable.values(), *keys.values(), order.model_token)
    recorder = Recorder(attempt / protocol.RECORDED_CALLS, hidden) if terms.record_calls else None
    prices = price_table({pattern: TokenPrice(**values) for pattern, values in order.model_prices})
    notices = NoticeReader(attempt)
    ledger = Ledger(terms.budget, prices, notices)
    journal = Journal(attempt, ledger.add)
    gateway = Gateway(
        order.providers,
        journal,
        ledger,
        token=order.model_token,
        keys=keys,
        grants=frozenset(map(Grant, terms.grants)),
        rates=_rates(attempt, order, keys),
        recorder=recorder,
    )
    asyncio.run(_serve(attempt, gateway, notices))
    return 0


def _rates(attempt: Path, order: Order, keys: Mapping[str, str]) -> dict[str, KeyRate]:
    """Return the rate limit of each provider that has one."""
    # The order of a job states its own share, since the gateways of other hosts can't be consulted.
    alone = order.token if (attempt / protocol.JOB_CLAIM).exists() else ""
    return {
        provider.name: KeyRate(
            secrets.rate_file(
                provider.url,
                # Of keys that expire each run may have another one.
                provider.key_file or provider.key_command or keys.get(provider.name, ""),
                alone,
            ),
            order.token,
            requests=provider.requests_per_minute,
            tokens=provider.tokens_per_minute,
        )
        for provider in order.providers
        if provider.requests_per_minute or provider.tokens_per_minute
    }


async def _serve(attempt: Path, gateway: Gateway, notices: NoticeReader) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    from aiohttp import web

    runner = await gateway.open()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # Bound from within its folder, because the path of a Unix socket has at most 108 bytes.
        os.chdir(attempt / protocol.SERVICES)
        Path(protocol.GATEWAY_SOCKET).unlink(missing_ok=True)
        listener.bind(protocol.GATEWAY_SOCKET)
        await web.SockSite(runner, listener, backlog=MAX_CONNECTIONS).start()
        listening = asyncio.ensure_future(_listen(notices))
        in_job = (attempt / protocol.JOB_CLAIM).exists()  # a job's end also ends this process
        while not ended.is_set() and (in_job or not _is_over(attempt)):
            try:
                await asyncio.wait_for(ended.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue
        listening.cancel()
        await gateway.close()
        await runner.cleanup()


async def _listen(notices: NoticeReader) -> None:
    """Look for notices also while the agent makes no calls, so that the engine's silence is measured."""
    while True:
        notices.look()
        await asyncio.sleep(_LOOK_SECONDS)


def _is_over(attempt: Path) -> bool:
    """Return whether the agent has ended, or its directory is gone, so that no runner will end this process."""
    return (attempt / protocol.ENDING).exists() or not (attempt / protocol.ORDER).exists()


if __name__ == "__main__":
    sys.exit(main())
