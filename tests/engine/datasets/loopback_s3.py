"""An S3 of our own on localhost: what its client asks of it to read, write, list and remove objects."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "lab"
ACCESS_KEY, SECRET_KEY = "AKIALOOPBACK", "s3cret-key-of-s3"


class LoopbackS3:
    """One bucket in memory.

    Attributes:
        cut: the paths whose next answers end in the middle.
        asked: every request, as method and path.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.cut: list[str] = []
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

            def _key(self) -> str:
                path = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")
                store.asked.append(f"{self.command} {path}")
                return path

            def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
                self.send_response(status)
                for name, value in {
                    "Content-Length": str(len(content)),
                    "Content-Type": "application/xml",
                    **headers,
                }.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(content)

            def _refuse(self, status: int, code: str) -> None:
                self._answer(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())

            def _is_known(self) -> bool:
                known = f"Credential={ACCESS_KEY}/" in self.headers.get("Authorization", "")
                if not known:
                    self._refuse(403, "InvalidAccessKeyId")
                return known

            def do_GET(self) -> None:
                key, query = self._key(), parse_qs(urlsplit(self.path).query)
                if not self._is_known():
                    return
                if "list-type" in query:
                    prefix = query.get("prefix", [""])[0]
                    found = "".join(
                        f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
                        "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                        for name, content in sorted(store.objects.items())
                        if name.startswith(prefix)
                    )
                    self._answer(
                        200, f"<ListBucketResult><Name>{BUCKET}</Name>{found}</ListBucketResult>".encode()
                    )
                    return
                content = store.objects.get(key)
                if content is None:
                    self._refuse(404, "NoSuchKey")
                    return
                start = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))
                assert start is not None
                part = content[int(start[1]) :]
                if key in store.cut:
                    store.cut.remove(key)
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(part)))
                    self.end_headers()
                    self.wfile.write(part[: len(part) // 2])
                    self.close_connection = True
                    return
                self._answer(206 if start[1] != "0" else 200, part, ETag='"x"')

            def do_PUT(self) -> None:
                key = self._key()
                content = self._body()
                if self._is_known():
                    store.objects[key] = content
                    self._answer(200, ETag='"x"')

            def do_DELETE(self) -> None:
                key = self._key()
                if self._is_known():
                    store.objects.pop(key, None)
                    self._answer(204)

            def _body(self) -> bytes:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
                    return content
                found, left = b"", content
                while left:
                    size, _, left = left.partition(b"\r\n")
                    count = int(size.split(b";")[0], 16)
                    if not count:
                        break
                    found, left = found + left[:count], left[count + 2 :]
                return found

        return Handler
