"""The validation server: POST /validate and GET /health over TCP or a Unix socket, for untrusted clients."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseServer, TCPServer, ThreadingMixIn
from typing import Any

from mlebench_console.competitions.grader import LIMITS, Grader
from mlebench_console.competitions.judging import GradeRequest
from mlebench_console.competitions.model import Edition
from mlebench_console.environment.container import trees
from mlebench_console.environment.validation_server.multipart import (
    UploadRefused,
    boundary_of,
    copy_file_field,
)
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.daemons import write_log
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.workers import JobLimits

MAX_CONNECTIONS = 16
_LINGER_BYTES = 4 << 20
_MOST_MESSAGE = 200


# Whether a file has the right form, None when that could not be checked, and a message for the agent.
Validity = tuple[bool | None, str]


def check_form(
    competition_id: str, edition: Edition, prepared: Path, submission: Path, limits: JobLimits = LIMITS
) -> Validity:
    """Check the form of a file in a limited process; nobody may write to the file meanwhile.

    The result depends only on the file and on the public part of the prepared data; nothing private is read.
    """
    request = GradeRequest(competition_id, submission, prepared, edition, form_only=True)
    try:
        with Grader(limits) as grader:
            judgement = grader.grade(request)
    except Problem as problem:
        write_log(str(problem))
        return None, "The submission could not be checked: the server's own log says why."
    if judgement.detail:
        write_log(judgement.detail)
    return judgement.outcome == "scored", judgement.message


class RateLimit:
    """A limit of `burst` calls at once, and one more every `seconds`."""

    def __init__(self, burst: int, seconds: float) -> None:
        self._per_second = 1 / seconds
        self._burst = float(burst)
        self._left = self._burst
        self._at: float | None = None
        self._lock = threading.Lock()

    def wait_seconds(self, now: float) -> float:
        """Count a call and return 0, or return how long to wait for one."""
        with self._lock:
            if self._at is not None:
                self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
            self._at = now
            if self._left >= 1:
                self._left -= 1
                return 0.0
            return (1 - self._left) / self._per_second


@dataclass(frozen=True)
class ValidationService:
    """The configuration and state that all requests share.

    Attributes:
        record: the file with one line per checked upload: time, SHA-256, size, validity and message. It stops
            growing at a size that takes days of checks to reach.
        uploads: the folder for uploads while they are checked, in the attempt's directory, so that they count
            towards its disk usage. The server creates it again at its start.
        max_bytes: the largest upload.
        idle_seconds: how long to wait for a silent client.
        upload_seconds: how long an upload may take in total.
        busy: held by the one check that runs.
    """

    check: Callable[[Path], Validity]
    record: Path
    uploads: Path
    rate: RateLimit
    max_bytes: int = 1 << 30
    most_record_bytes: int = 8 << 20
    idle_seconds: float = 30.0
    upload_seconds: float = 900.0
    busy: threading.Lock = field(default_factory=threading.Lock)


def make_server(service: ValidationService, *, address: tuple[str, int] | Path) -> TCPServer:
    """Return a server that already listens; `serve_forever` makes it answer.

    Args:
        service: what the requests share.
        address: host and port, or the path of a Unix socket, which is replaced if it exists.
    """
    for line in trees.remove_tree(service.uploads):
        write_log(f"an upload can't be removed: {line}")
    service.uploads.mkdir(mode=0o700, exist_ok=True)
    handler = type("Handler", (_Handler,), {"service": service, "timeout": service.idle_seconds})
    if isinstance(address, Path):
        address.unlink(missing_ok=True)
        server = _UnixServer(str(address), handler)
        # The agent is another user; the permissions of the socket's folder decide who may connect.
        address.chmod(0o666)
        return server
    return _Server(address, handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request and closes the connection."""

    protocol_version = "HTTP/1.1"
    server_version = "validation"
    sys_version = ""
    service: ValidationService

    def handle(self) -> None:
        """Answer; a client that disconnects or stays silent affects no other."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def do_GET(self) -> None:
        """Report that the server runs."""
        if self.path == "/health":
            self._answer(HTTPStatus.OK, {"status": "running"})
        elif self.path == "/validate":
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, "Send the submission by POST.")
        else:
            self.send_error(HTTPStatus.NOT_FOUND, "There are POST /validate and GET /health.")

    def do_POST(self) -> None:
        """Check an upload."""
        try:
            length = self._upload_length()
            wait = self.service.rate.wait_seconds(time.monotonic())
            if wait > 0:
                text = f"Too many validations; try again in {math.ceil(wait)} s."
                raise UploadRefused(text, HTTPStatus.TOO_MANY_REQUESTS)
            message = self._validate(length)
        except UploadRefused as refusal:
            self.send_error(refusal.status, str(refusal))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self.send_error(
                HTTPStatus.INSUFFICIENT_STORAGE, "There is no room for the upload; try again later."
            )
        else:
            self._answer(HTTPStatus.OK, {"result": message})

    def handle_expect_100(self) -> bool:
        """Refuse an upload that is too large before it is sent."""
        try:
            self._upload_length()
        except UploadRefused as refusal:
            self.send_error(refusal.status, str(refusal))
            return False
        return super().handle_expect_100()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with an error as JSON, and read some of what the client still sends.

        A client that is still writing when its connection is closed would see a reset instead of the answer.
        """
        self._answer(HTTPStatus(code), {"error": message or explain or HTTPStatus(code).phrase})
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the client has disconnected already
        left = _LINGER_BYTES
        while left > 0 and (data := self.rfile.read1(min(left, 1 << 16))):
            left -= len(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no access log: the record has what matters, and agents could fill a disk with a log."""

    def address_string(self) -> str:
        """Return a fixed name, since clients of a Unix socket have no address."""
        return "client"

    def _upload_length(self) -> int:
        if self.path != "/validate":
            raise UploadRefused("There are POST /validate and GET /health.", HTTPStatus.NOT_FOUND)
        text = self.headers.get("Content-Length", "")
        if not (text.isascii() and text.isdigit()):
            raise UploadRefused("The upload must state its Content-Length.", HTTPStatus.LENGTH_REQUIRED)
        if len(text) > 18 or int(text) > self.service.max_bytes:
            most = f"Uploads have at most {self.service.max_bytes:,} bytes."
            raise UploadRefused(most, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return int(text)

    def _validate(self, length: int) -> str:
        boundary = boundary_of(self.headers.get("Content-Type", ""))
        end = time.monotonic() + self.service.upload_seconds

        def read(size: int) -> bytes:
            if time.monotonic() > end:  # a client must not occupy a thread by sending slowly
                raise UploadRefused("The upload took too long.")
            return self.rfile.read1(size)

        with tempfile.TemporaryDirectory(dir=self.service.uploads) as folder:
            file = Path(folder, "submission.csv")
            with file.open("wb") as sink:
                size = copy_file_field(read, length, boundary, "file", sink)
            with file.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            with self.service.busy:
                valid, message = self.service.check(file)
        line = {"time": round(time.time(), 3), "sha256": digest, "bytes": size, "valid": valid}
        line["message"] = message[:_MOST_MESSAGE]
        record = self.service.record
        if not record.exists() or record.stat().st_size < self.service.most_record_bytes:
            jsonlines.append(record, [line])
        return message

    def _answer(self, status: HTTPStatus, content: dict[str, str]) -> None:
        body = json.dumps(content).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True


class _Server(ThreadingMixIn, TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, address: Any, handler: Callable[[Any, Any, BaseServer], _Handler]) -> None:
        self._places = threading.Semaphore(MAX_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the request once one is free; until then clients wait in the kernel's queue."""
        self._places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle the request, and free the thread's place whatever happens."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


class _UnixServer(_Server):
    address_family = socket.AF_UNIX
