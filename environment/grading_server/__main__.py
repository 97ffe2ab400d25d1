"""`python -m environment.grading_server`: check submissions for one agent until stopped."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from environment.grading_server.server import CallRecord, RateLimit, Service, Validator, make_server


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="grading_server", description="Tell whether submissions are valid.")
    parser.add_argument("--competition", required=True, help="competition id")
    parser.add_argument(
        "--prepared", type=Path, required=True, help="prepared dataset with public/ and private/"
    )
    parser.add_argument("--edition", choices=("v1", "corrected"), default="v1")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, help="Unix socket to listen on")
    where.add_argument("--port", type=int, help="TCP port to listen on")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on, with --port")
    parser.add_argument("--record", type=Path, help="file to append a line to for each call")
    parser.add_argument("--per-minute", type=int, default=30, help="validations allowed a minute")
    parser.add_argument("--max-bytes", type=int, default=1 << 30, help="largest upload")
    asked = parser.parse_args(argv)
    service = Service(
        check=Validator(asked.competition, asked.edition, asked.prepared),
        record=CallRecord(asked.record),
        rate=RateLimit(asked.per_minute),
        max_bytes=asked.max_bytes,
    )
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    with make_server(service, address=asked.socket or (asked.host, asked.port)) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
