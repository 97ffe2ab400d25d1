"""Messages cover neither the first line nor the last ones nor a dialog's answers, and the same one is seen once."""

from __future__ import annotations

import pytest
from textual.widgets._toast import Toast

from tests.console.conftest import OpenConsole, ShownConsole


async def shown(console: ShownConsole, count: int) -> list[Toast]:
    await console.until(lambda: len(console.app.screen.query(Toast)) == count, f"{count} messages")
    await console.pilot.pause()
    return list(console.app.screen.query(Toast))


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_messages_leave_what_matters_in_view(opened: OpenConsole, size: tuple[int, int]) -> None:
    async with opened(screen="sweep:aide-o3-lite", size=size) as console:
        await console.sees("seed 1", "relaunch")
        for text in ("one", "two", "three: " + "long " * 40):
            console.app.say(text)
        for toast in await shown(console, 3):
            assert toast.region.y >= 1 and toast.region.bottom <= size[1] - 3, (
                "the footer and what is typed are seen"
            )
        await console.press("a", "r")
        await console.sees("no, leave it")
        console.app.say("and one more")
        toasts = await shown(console, 4)
        answers = next(y for y, line in enumerate(console.text().splitlines()) if "no, leave it" in line)
        assert all(toast.region.y >= 1 and toast.region.bottom <= answers for toast in toasts)


async def test_a_message_is_seen_to_its_last_word(opened: OpenConsole) -> None:
    async with opened(size=(80, 24)) as console:
        await console.sees("needs you")
        for length in range(60, 80):
            console.app.clear_notifications()
            await shown(console, 0)
            console.app.say(f"{'word ' * (length // 5)}{'x' * (length % 5)} last")
            await shown(console, 1)
            await console.sees(" last")


async def test_a_message_that_comes_again_is_seen_once_with_how_often(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.sees("needs you")
        for _ in range(3):
            console.app.say("no run has failed here")
        console.app.say("something else")
        await console.sees("no run has failed here (×3)", "something else")
        assert len(await shown(console, 2)) == 2
