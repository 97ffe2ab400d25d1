"""`python -m mlebench_console.environment.validation_server`: check submissions for one agent until stopped."""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path

from mlebench_console.environment.validation_server.server import (
    RateLimit,
    ValidationService,
    check_form,
    make_server,
)

_AT_ONCE = 10
_SECONDS_EACH = 10.0  # until one more is allowed


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="validation_server", description="Check whether submissions are valid."
    )
    parser.add_argument("--competition", required=True, help="competition id")
    parser.add_argument(
        "--prepared", type=Path, required=True, help="prepared dataset; only its public/ is read"
    )
    parser.add_argument("--edition", choices=("v1", "corrected"), default="v1")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, help="Unix socket to listen on")
    where.add_argument("--port", type=int, help="TCP port on localhost to listen on")
    parser.add_argument("--record", type=Path, required=True, help="file to append a line to for each check")
    parser.add_argument(
        "--uploads",
        type=Path,
        required=True,
        help="folder for uploads; its content is removed at the start",
    )
    parser.add_argument("--ready", type=Path, help="file to create when the server listens")
    parser.add_argument("--max-bytes", type=int, default=1 << 30, help="largest upload")
    asked = parser.parse_args()
    service = ValidationService(
        check=partial(check_form, asked.competition, asked.edition, asked.prepared),
        record=asked.record,
        uploads=asked.uploads,
        rate=RateLimit(_AT_ONCE, _SECONDS_EACH),
        max_bytes=asked.max_bytes,
    )
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    with make_server(service, address=asked.socket or ("127.0.0.1", asked.port)) as server:
        if asked.ready is not None:
            asked.ready.touch()
        server.serve_forever()


if __name__ == "__main__":
    main()
