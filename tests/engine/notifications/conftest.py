"""A receiver of webhooks on this machine."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest


class _Receiver(http.server.BaseHTTPRequestHandler):
    taken: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    taken: list[dict[str, Any]] = []
    handler = type("Receiver", (_Receiver,), {"taken": taken})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"json://127.0.0.1:{server.server_address[1]}/hook", taken
    server.shutdown()
    server.server_close()
    thread.join()
