"""An app on a world, at a frozen moment, with an engine that seems to be there."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from mlebench_console.console.app.app import ConsoleApp
from mlebench_console.console.cli.program import shell
from mlebench_console.console.tui.config import Settings
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.theme import DARK, Palette
from mlebench_console.engine.control import Answer
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import Request
from mlebench_console.foundation.locks import FileLock
from tests.console import worlds
from tests.console.stillness import screen_text
from tests.console.world import FrozenClock, World

PATIENCE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def patient_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let keys wait for what a busy machine reads late; an operator would not, and is told that it is not read."""
    monkeypatch.setattr("mlebench_console.console.tui.screen._READY_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Tell how many bytes were read of logs since it was asked last."""
    read, real = 0, os.pread

    def counting(descriptor: int, length: int, place: int) -> bytes:
        nonlocal read
        content = real(descriptor, length, place)
        read += len(content)
        return content

    def since_then() -> int:
        nonlocal read
        found, read = read, 0
        return found

    monkeypatch.setattr(os, "pread", counting)
    return since_then


@dataclass
class ShownConsole:
    """An open console: its keys are pressed and its screen is read."""

    app: ConsoleApp
    pilot: Pilot[str]
    world: World | None
    clock: FrozenClock

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, true: Callable[[], Any], what: str = "") -> None:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not true():
            assert time.monotonic() < give_up, f"waited in vain{': ' + what if what else ''}\n{self.text()}"
            await self.pilot.pause(0.02)

    async def sees(self, *texts: str) -> None:
        """Wait until the texts are on a screen that is whole, so that what follows may look at the rest of it."""
        await self._shows(lambda: all(text in self.text() for text in texts), f"{texts}")

    async def misses(self, text: str) -> None:
        await self._shows(lambda: text not in self.text(), f"gone: {text!r}")

    async def _shows(self, true: Callable[[], bool], what: str) -> None:
        await self.until(true, what)
        # A screen is drawn part by part: only now has each part been told of what was read, and been drawn.
        await self.until(lambda: self.app.reader.is_idle, "the reader is idle")
        await self.pilot.pause()
        await self.until(true, what)

    async def says(self, line: str) -> None:
        """Type a line after `:`, and take it."""
        await self.press("colon")
        await self.until(lambda: bool(self.app.screen.query("#command Input")))
        self.app.screen.query_one("#command Input", Input).value = line
        await self.press("enter")

    def text(self) -> str:
        """Return what is on the screen, line by line."""
        return screen_text(self.app)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What the engine was asked for, which it answers at once."""
    requests: list[Request] = []

    def ask(places: Places, request: Request) -> Answer:
        requests.append(request)
        return Answer("done as you asked")

    def file(places: Places, request: Request, *, in_seconds: float) -> int:
        requests.append(request)
        return len(requests)

    def answer_to(places: Places, number: int, *, wait_seconds: float) -> Answer:
        return Answer("done as you asked")

    monkeypatch.setattr("mlebench_console.engine.control.ask", ask)
    monkeypatch.setattr("mlebench_console.engine.control.file", file)
    monkeypatch.setattr("mlebench_console.engine.control.answer_to", answer_to)
    return requests


OpenConsole = Callable[..., AbstractAsyncContextManager[ShownConsole]]


@pytest.fixture
def opened(places: Places) -> Iterator[OpenConsole]:
    """Open a console on a world; `with_engine` lets the engine seem to run."""
    lock = FileLock(lock_path(places))

    @asynccontextmanager
    async def open_console(
        make: Callable[[Places], World] | None = worlds.busy,
        *,
        size: tuple[int, int] = (120, 40),
        palette: Palette = DARK,
        ascii_only: bool = False,
        with_engine: bool = True,
        **options: Any,
    ) -> AsyncIterator[ShownConsole]:
        world = make(places) if make is not None else None
        if world is not None and with_engine:
            assert lock.acquire()
        clock = FrozenClock()
        settings = Settings(palette=palette, ascii_only=ascii_only)
        app = ConsoleApp(places, settings, shell=shell(), clock=clock, **options)
        async with app.run_test(size=size, notifications=True) as pilot:
            console = ShownConsole(app, pilot, world, clock)
            wanted = StateHealth.GOOD if world is not None else StateHealth.ABSENT
            await console.until(lambda: app.condition.health is wanted and app.engine is not None)
            await pilot.pause()
            yield console
        if world is not None:
            world.database.close()

    yield open_console
    lock.release()
