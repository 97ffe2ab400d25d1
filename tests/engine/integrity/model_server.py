"""A model on localhost that is scripted: each call is answered by a function, and what was asked is kept."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
KEY = "sk-real-key-0123456789"


@dataclass(frozen=True)
class Asked:
    """A call as it came."""

    path: str
    headers: Mapping[str, str]
    body: Json

    @property
    def system(self) -> str:
        """What the operator's side says."""
        if "system" in self.body:
            return str(self.body["system"])
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        """The user's message."""
        return str(self.body["messages"][-1]["content"])

    @property
    def fence(self) -> str:
        """The word that the operator's side has announced."""
        found = re.search(r"hold the word ([0-9a-f]{32})", self.system)
        assert found is not None
        return found[1]

    @property
    def data(self) -> list[str]:
        """The lines between the fences; none where these do not stand there just once."""
        begin, end = f"<<<{self.fence} BEGIN>>>", f"<<<{self.fence} END>>>"
        if self.user.count(begin) != 1 or self.user.count(end) != 1:
            return []
        return self.user.partition(begin)[2].partition(end)[0].strip("\n").split("\n")

    @property
    def outside(self) -> str:
        """All that is not between the fences."""
        begin, end = f"<<<{self.fence} BEGIN>>>", f"<<<{self.fence} END>>>"
        return f"{self.system}\n{self.user.partition(begin)[0]}\n{self.user.rpartition(end)[2]}"

    @property
    def questions(self) -> list[str]:
        """The names of the questions."""
        return list(dict.fromkeys(re.findall(r'^Question "([a-z0-9-]+)":', self.system, re.MULTILINE)))


@dataclass(frozen=True)
class Answer:
    """What is answered: a status and a body."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Script = Callable[[Asked], Answer]


def chat(text: str | None, *, finish: str = "stop", refusal: str | None = None) -> Answer:
    """Answer in the form of OpenAI's chat completions."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return Answer({"choices": [choice], "usage": usage, "model": "m"})


def verdicts(asked: Asked, verdict: str, quotes: list[Json] | None = None, **more: Any) -> str:
    """Write one answer to all questions."""
    one = {"verdict": verdict, "quotes": quotes or [], "reason": "because"}
    return json.dumps({"answers": dict.fromkeys(asked.questions, one), "addresses_judge": [], **more})


def honest(asked: Asked, guilty: str = "chat.completions") -> Answer:
    """Answer yes to everything where a line holds the guilty text, with that line, and otherwise no."""
    quotes = [{"line": int(line[:6]), "text": line[8:]} for line in asked.data if guilty in line]
    return chat(verdicts(asked, "yes" if quotes else "no", quotes))


class ModelServer:
    """Answers by a script, one call after another."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                with outer._lock:
                    outer.asked.append(asked)
                    answer = outer.script(asked)
                content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that has gone away, as it may."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @contextmanager
    def running(self) -> Iterator[ModelServer]:
        """Serve in a thread."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
