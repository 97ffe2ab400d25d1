"""The console in a browser: who has the token sees it and steers it, nobody else gets anything."""

from __future__ import annotations

import asyncio
import http.client
import json
import queue
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from mlebench_console.console.app.serve import GuardedServer
from mlebench_console.engine.places import Places
from mlebench_console.foundation.problems import EnvironmentProblem
from tests.console import worlds

PATIENCE = 60.0


@pytest.fixture
def server(places: Places) -> Iterator[GuardedServer]:
    worlds.busy(places).database.close()
    arguments = [
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
        "--readonly",
    ]
    made = GuardedServer(arguments, port=0)
    ready: queue.SimpleQueue[str] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def work() -> None:
        await made.run_until(ended, ready.put)
        # The consoles end by themselves, and textual-serve does not wait for them; their pipes need the loop.
        while any(is_running(child, arguments[0]) for child in psutil.Process().children()):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(work())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.get(timeout=PATIENCE)
    yield made
    loop.call_soon_threadsafe(ended.set)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def is_running(process: psutil.Process, argument: str) -> bool:
    try:
        return argument in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def ask(
    server: GuardedServer, path: str, *, host: str = "", **headers: str
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{server.port}"} | headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers


@pytest.mark.parametrize(
    "path", ["/", "/ws", "/static/js/textual.js", "/download/x", "/?token=", "/?token=wrong"]
)
def test_without_the_token_nobody_gets_anything(server: GuardedServer, path: str) -> None:
    status, text, _ = ask(server, path)
    assert status == 403 and "token" in text and server.token not in text


def test_a_wrong_cookie_gets_nothing(server: GuardedServer) -> None:
    assert ask(server, "/", Cookie="mlebench-console=wrong")[0] == 403
    assert ask(server, "/ws", Cookie="mlebench-console=")[0] == 403


def test_the_token_lets_in_once_and_the_cookie_from_then_on(server: GuardedServer) -> None:
    status, _, headers = ask(server, f"/?token={server.token}")
    assert status == 303 and headers["Location"] == "/"
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    status, text, headers = ask(server, "/", Cookie=cookie.partition(";")[0])
    assert status == 200 and f"ws://127.0.0.1:{server.port}/ws" in text and server.token not in text
    assert "default-src 'self'" in headers["Content-Security-Policy"]


def test_the_token_is_no_use_under_another_name_or_from_another_page(server: GuardedServer) -> None:
    cookie = f"mlebench-console={server.token}"
    assert ask(server, "/", host=f"evil.example:{server.port}", Cookie=cookie)[0] == 403
    assert ask(server, "/ws", Origin="http://evil.example", Cookie=cookie)[0] == 403
    assert ask(server, "/", host="localhost:9999", Cookie=cookie)[0] == 200


def test_only_this_machine_is_served(server: GuardedServer) -> None:
    assert server.host == "127.0.0.1"
    parts = urllib.parse.urlsplit(server.address)
    assert parts.hostname == "127.0.0.1" and parts.port == server.port


def test_a_port_that_is_taken_is_told(server: GuardedServer) -> None:
    second = GuardedServer([], port=server.port)
    with pytest.raises(EnvironmentProblem, match=f"port {server.port} can't be used"):
        asyncio.run(second.run_until(asyncio.Event(), lambda _address: None))


class Page:
    """A page of a real Chromium, spoken to by its own protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **values: Any) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": values})
        while True:
            answer = json.loads(await self._socket.receive_str(timeout=PATIENCE))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    async def value(self, expression: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        give_up = time.monotonic() + PATIENCE
        while not await self.value(expression):
            assert time.monotonic() < give_up, f"{expression}: {await self.value('document.body.outerHTML')}"
            await asyncio.sleep(0.1)

    async def press(self, text: str, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent", type=kind, text=text, key=key, windowsVirtualKeyCode=code
            )


@pytest.fixture
def browser(tmp_path: Path, chromium: str) -> Iterator[int]:
    """A headless Chromium's port for its own protocol."""
    folder = tmp_path / "profile"
    process = subprocess.Popen(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--remote-debugging-port=0", "--window-size=1200,700", f"--user-data-dir={folder}", "about:blank",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    port_file = folder / "DevToolsActivePort"
    give_up = time.monotonic() + PATIENCE
    while not port_file.exists() or not port_file.read_text().strip():
        assert time.monotonic() < give_up and process.poll() is None
        time.sleep(0.05)
    yield int(port_file.read_text().splitlines()[0])
    process.terminate()
    process.wait(PATIENCE)


async def test_a_real_browser_shows_the_console_and_its_keys_work(
    server: GuardedServer, browser: int
) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.put(f"http://127.0.0.1:{browser}/json/new?about:blank") as answer:
            target = await answer.json(content_type=None)
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            page = Page(socket)
            await page.call("Page.enable")
            await page.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/")
            await page.until("document.body && document.body.innerText.includes('403')")
            await page.call("Page.navigate", url=server.address.replace(server.token, "wrong"))
            await page.until("document.body && document.body.innerText.includes('403')")
            await page.call("Page.navigate", url=server.address)
            await page.until("document.body && document.body.classList.contains('-first-byte')")
            assert await page.value("location.search") == ""
            await page.until("document.querySelector('.xterm') !== null")
            await page.value("document.querySelector('.xterm-helper-textarea').focus()")
            # The console's first bytes are there before it takes keys.
            give_up = time.monotonic() + PATIENCE
            while not await page.value("document.body.classList.contains('-closed')"):
                assert time.monotonic() < give_up
                await page.press("q", "q", 81)
                await asyncio.sleep(0.2)
