"""The datasets screen steers what is under the cursor, and tells what a person has to do."""

from __future__ import annotations

from typing import Any

import pytest

from engine import control
from engine.control import Answer
from engine.datasets import STEPS
from engine.places import Places
from state import datasets
from state.records import DatasetState, StepState
from tests.console import worlds
from tests.console.conftest import OpenDesk
from tests.console.worlds import World


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the console asks of the engine."""
    requests: list[tuple[str, dict[str, Any]]] = []

    def ask(places: Places, kind: str, arguments: dict[str, Any]) -> Answer:
        requests.append((kind, arguments))
        return Answer("done as you asked")

    monkeypatch.setattr(control, "ask", ask)
    return requests


async def test_the_detail_tells_steps_amounts_and_place(opened: OpenDesk) -> None:
    async with opened(screen="data") as desk:
        await desk.press("slash", *"working", "enter")
        await desk.sees("7.4 GB of 17.1 GB", "9.7 GB to download", "folder")


async def test_a_dataset_is_steered_by_keys_and_pruned_only_after_a_yes(
    opened: OpenDesk, asked: list[Any]
) -> None:
    async with opened(screen="data") as desk:
        await desk.press("slash", *"pizza", "enter")
        await desk.misses("aerial-cactus")
        own: dict[str, Any] = {"competition_ids": ["random-acts-of-pizza"], "edition": "v1"}
        for key, kind in (("s", "dataset.stop"), ("c", "dataset.prepare"), ("v", "dataset.verify")):
            await desk.press(key)
            await desk.until(lambda kind=kind: asked and asked[-1] == (kind, own))
        await desk.press("x")
        await desk.sees("what is prepared stays")
        await desk.press("n")
        assert asked[-1][0] == "dataset.verify"
        await desk.press("x")
        await desk.sees("what is prepared stays")
        await desk.press("y")
        await desk.until(lambda: asked[-1] == ("dataset.prune", {**own, "parts": ["zip", "raw", "partial"]}))


async def test_where_to_accept_the_rules_is_shown_and_copied(opened: OpenDesk) -> None:
    name = "random-acts-of-pizza"

    def refused(places: Places) -> World:
        world = worlds.busy(places)
        datasets.request(world.database, name, "v1", steps=STEPS, source="", now=worlds.NOW)
        failed = datasets.Progress(StepState.FAILED, note="refused")
        datasets.set_step(world.database, name, "v1", STEPS[0], failed, now=worlds.NOW)
        datasets.set_state(
            world.database, name, "v1", DatasetState.FAILED, now=worlds.NOW, problem="accept the rules"
        )
        return world

    async with opened(refused, screen="data") as desk:
        await desk.press("slash", *"pizza", "enter")
        await desk.sees("accept at", f"https://www.kaggle.com/c/{name}/rules")
        await desk.press("y")
        await desk.until(lambda: desk.app.clipboard == f"https://www.kaggle.com/c/{name}/rules")
