"""A Kaggle of our own on localhost:7777, where the unmodified client looks with KAGGLE_API_ENVIRONMENT=TEST."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import sys
import tarfile
import threading
import time
import zipfile
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from mlebench_console.competitions import registry
from tests.conformance.trees import VECTORS

PORT = 7777
USERNAME, KEY, TOKEN, SIGNATURE = "alice", "s3cret-key", "KGAT_s3cret-token", "s3cret-signature"
_PIECE = 1 << 17
RULES = "You must accept this competition's rules before you'll be able to download files."


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request.

    Attributes:
        status: answer with this status and nothing else.
        retry_after: with it, this header.
        cut_after: send so many bytes, then cut the connection.
        garble: send other bytes of the same length.
        stall: send the headers and some bytes, then nothing until the server ends.
        forget_range: answer with the whole file although a part was asked for.
        slow: wait so many seconds after each piece that is sent.
        hang_up: end the connection without an answer.
    """

    status: int = 0
    retry_after: str = ""
    cut_after: int | None = None
    garble: bool = False
    stall: bool = False
    forget_range: bool = False
    slow: float = 0.0
    hang_up: bool = False


@dataclass(frozen=True)
class OfferedKernel:
    """A public kernel; with a status it is refused."""

    source: str = ""
    kind: str = "script"
    language: str = "python"
    status: int = 200


@dataclass
class Shelf:
    """What Kaggle has of one competition, and how it behaves."""

    archive: bytes
    accepted: bool = True
    gone: bool = False
    pages: dict[str, str] = field(default_factory=dict)
    leaderboard: tuple[str, ...] = ()
    tells_summary: bool = True
    one_page_only: bool = False
    faults: deque[Fault] = field(default_factory=deque)
    call_faults: deque[Fault] = field(default_factory=deque)
    direct: bool = False
    hashes: bool = True
    listed_bytes: int | None = None

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.archive).hexdigest()[:16]}"'


@dataclass(frozen=True)
class Asked:
    """A request that was made."""

    what: str
    competition: str
    range: str = ""
    authorization: str = ""
    at: float = field(default_factory=time.time)


def vector_zip(competition_id: str) -> bytes:
    """A zip as Kaggle would deliver it, made of a competition's vector."""
    target = io.BytesIO()
    with (
        tarfile.open(VECTORS / competition_id / "raw.tar.gz") as raw,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for member in raw.getmembers():
            name = member.name.removeprefix("./")
            taken = raw.extractfile(member) if member.isfile() else None
            if taken is not None:
                archive.writestr(zipfile.ZipInfo(name), taken.read(), zipfile.ZIP_DEFLATED)
            elif member.isdir() and name not in ("", "."):
                archive.writestr(zipfile.ZipInfo(f"{name}/"), b"")
    return target.getvalue()


def published_apart(competition_id: str) -> tuple[bytes, dict[str, bytes]]:
    """The zip that Kaggle delivers of a vector, and by their names the files that others publish."""
    names = {file.name for file in registry.get(competition_id).published}
    everything = zipfile.ZipFile(io.BytesIO(vector_zip(competition_id)))
    delivered = io.BytesIO()
    with zipfile.ZipFile(delivered, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in everything.infolist():
            if member.filename not in names:
                archive.writestr(member, everything.read(member))
    return delivered.getvalue(), {name: everything.read(name) for name in names}


def storage_url(shelf: str) -> str:
    """Where the storage has what is on a shelf."""
    return f"http://127.0.0.1:{PORT}/storage/{shelf}.zip?Signature={SIGNATURE}"


def cuts(archive: bytes, count: int, seed: int) -> list[Fault]:
    """Connections cut at random places."""
    chance = random.Random(seed)
    return [Fault(cut_after=chance.randrange(len(archive))) for _ in range(count)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up when they have enough; anything else is an error of the test."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Loopback:
    """The server; `shelves`, and what it accepts as credentials, may be changed at any time."""

    def __init__(self) -> None:
        self.shelves: dict[str, Shelf] = {}
        self.kernels: dict[str, OfferedKernel] = {}
        self.asked: list[Asked] = []
        self.accepted = {_basic(USERNAME, KEY), f"Bearer {TOKEN}"}
        self.fault = Fault()  # what every request meets
        self.next_token = TOKEN  # what an OAuth login gets
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", PORT), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, competition_id: str, *, faults: Iterable[Fault] = (), **behaviour: Any) -> Shelf:
        """Offer a competition, with its vector for data unless `archive` is given."""
        archive = behaviour.pop("archive", None) or vector_zip(competition_id)
        shelf = Shelf(archive, faults=deque(faults), **behaviour)
        self.shelves[competition_id] = shelf
        return shelf

    def count(self, what: str) -> int:
        with self._lock:
            return sum(asked.what == what for asked in self.asked)

    def note(self, asked: Asked) -> None:
        with self._lock:
            self.asked.append(asked)

    def next_fault(self, faults: deque[Fault]) -> Fault:
        with self._lock:
            return faults.popleft() if faults else Fault()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        loopback = self

        class Handler(_Handler):
            kaggle = loopback

        return Handler


class _Handler(BaseHTTPRequestHandler):
    kaggle: Loopback
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: tests look at `asked`."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        service, _, method = urlsplit(self.path).path.removeprefix("/api/v1/").partition("/")
        if service == "users.AccountService" and method == "GenerateAccessToken":
            self.kaggle.note(Asked(method, ""))
            self.kaggle.accepted.add(f"Bearer {self.kaggle.next_token}")
            self._json(200, {"token": self.kaggle.next_token, "expiresIn": 3600})
            return
        name = asked.get("competitionName") or f"{asked.get('userName')}/{asked.get('kernelSlug')}"
        part = self.headers.get("Range", "")
        self.kaggle.note(Asked(method, name, part, self.headers.get("Authorization", "")))
        if self._is_refused_to_all():
            return
        if self.headers.get("Authorization") not in self.kaggle.accepted:
            self._json(401, {"code": 401, "message": "Unauthenticated"})
            return
        if service == "kernels.KernelsApiService":
            self._give_kernel(self.kaggle.kernels.get(name, OfferedKernel(status=404)))
            return
        shelf = self.kaggle.shelves.get(name)
        if shelf is None or shelf.gone:
            self._json(404, {"code": 404, "message": "Not found"})
            return
        fault = self.kaggle.next_fault(shelf.call_faults)
        if fault.status:
            self._fail(fault)
            return
        getattr(self, f"_{method}")(name, shelf, asked)

    def _give_kernel(self, kernel: OfferedKernel) -> None:
        if kernel.status != 200:
            self._json(kernel.status, {"code": kernel.status, "message": "no"})
            return
        blob = {"source": kernel.source, "language": kernel.language, "kernelType": kernel.kind}
        self._json(200, {"blob": blob, "metadata": {"currentVersionNumber": 7}})

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        name = path.path.removeprefix("/storage/").removesuffix(".zip")
        sent = self.headers.get("Range", "")
        self.kaggle.note(Asked("storage", name, sent, self.headers.get("Authorization", "")))
        if self._is_refused_to_all():
            return
        if path.query != f"Signature={SIGNATURE}":
            self._json(403, {"code": 403, "message": "no signature"})
            return
        self._deliver(self.kaggle.shelves[name])

    def _is_refused_to_all(self) -> bool:
        """Whether this request meets what every request meets now."""
        if self.kaggle.fault.hang_up:
            self.close_connection = True
        elif self.kaggle.fault.status:
            self._fail(self.kaggle.fault)
        return self.kaggle.fault != Fault()

    def _GetCompetition(self, name: str, shelf: Shelf, asked: dict[str, Any]) -> None:
        self._json(200, {"ref": name, "teamCount": len(shelf.leaderboard)})

    def _ListDataFiles(self, name: str, shelf: Shelf, asked: dict[str, Any]) -> None:
        with zipfile.ZipFile(io.BytesIO(shelf.archive)) as archive:
            sizes = {one.filename: shelf.listed_bytes or one.file_size for one in archive.infolist()}
        files = [{"name": found, "totalBytes": size} for found, size in sizes.items()]
        start, size = int(asked.get("pageToken") or 0), int(asked.get("pageSize") or 20)
        left = start + size < len(files)
        token = {"nextPageToken": str(start + size)} if left else {}
        self._json(200, {"files": files[start : start + size], **token})

    def _GetCompetitionDataFilesSummary(self, name: str, shelf: Shelf, asked: dict[str, Any]) -> None:
        if not shelf.tells_summary:
            self._json(404, {"code": 404, "message": "no such method"})
            return
        with zipfile.ZipFile(io.BytesIO(shelf.archive)) as archive:
            total = sum(shelf.listed_bytes or one.file_size for one in archive.infolist())
        kinds = [{"extension": ".csv", "fileCount": 1, "totalSize": total}]
        self._json(200, {"fileSummaryInfo": {"totalFileCount": 1, "fileTypes": kinds}})

    def _ListCompetitionPages(self, name: str, shelf: Shelf, asked: dict[str, Any]) -> None:
        pages = [{"name": name, "content": text} for name, text in shelf.pages.items()]
        self._json(200, {"pages": pages})

    def _GetLeaderboard(self, name: str, shelf: Shelf, asked: dict[str, Any]) -> None:
        start, size = int(asked.get("pageToken") or 0), int(asked.get("pageSize") or 20)
        rows = [
            {"teamId": number, "teamName": f"team {number}", "score": score}
            for number, score in enumerate(shelf.leaderboard)
        ]
        more = start + size < len(rows) and not shelf.one_page_only
        token = {"nextPageToken": str(start + size)} if more else {}
        self._json(200, {"submissions": rows[start : start + size], **token})

    def _DownloadDataFiles(self, name: str, shelf: Shelf, asked: dict[str, Any]) -> None:
        if not shelf.accepted:
            self._json(403, {"code": 403, "message": RULES})
        elif shelf.direct:
            self._deliver(shelf)
        else:
            self.send_response(302)
            # Another host than the one asked, as with Kaggle, so that credentials must not follow.
            self.send_header("Location", storage_url(name))
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _deliver(self, shelf: Shelf) -> None:
        fault = self.kaggle.next_fault(shelf.faults)
        if fault.status:
            self._fail(fault)
            return
        start, whole = 0, shelf.archive
        asked = self.headers.get("Range", "")
        same = self.headers.get("If-Range", shelf.etag) == shelf.etag
        if asked and same and not fault.forget_range:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            if start >= len(whole):
                self._json(416, {"code": 416, "message": "range"})
                return
        body = whole[start:]
        if fault.garble:
            body = bytes(byte ^ 0xFF for byte in body)
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", "application/zip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", shelf.etag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        if shelf.hashes:
            md5 = base64.b64encode(hashlib.md5(whole).digest()).decode()
            self.send_header("x-goog-hash", f"crc32c=AAAAAA==,md5={md5}")
        self.end_headers()
        sent = (
            body[: fault.cut_after] if fault.cut_after is not None else body[: 100 if fault.stall else None]
        )
        for at in range(0, len(sent), _PIECE if fault.slow else max(1, len(sent))):
            self.wfile.write(sent[at : at + _PIECE] if fault.slow else sent)
            self.wfile.flush()
            if fault.slow:
                self.kaggle.ended.wait(fault.slow)
        if fault.stall:
            self.kaggle.ended.wait()
        if fault.stall or fault.cut_after is not None:
            self.close_connection = True

    def _fail(self, fault: Fault) -> None:
        self._json(fault.status, {"code": fault.status, "message": "trouble"}, retry_after=fault.retry_after)

    def _json(self, status: int, document: dict[str, Any], *, retry_after: str = "") -> None:
        self._bytes(status, json.dumps(document).encode(), "application/json", retry_after=retry_after)

    def _bytes(self, status: int, body: bytes, kind: str, *, retry_after: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(body)


def _basic(username: str, key: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{key}".encode()).decode()
