"""No defect is called mended in edition corrected without a test that shows both editions."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest

import tests.competitions.mended
from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition

ALL = [registry.get(competition_id) for competition_id in registry.all_ids()]


def _modules() -> Iterator[ModuleType]:
    package = tests.competitions.mended
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name != __name__:
            yield importlib.import_module(found.name)


def _marks(test: object) -> Iterator[pytest.Mark]:
    """The marks of a test and those of its single cases."""
    for mark in getattr(test, "pytestmark", ()):
        yield mark
        if mark.name == "parametrize":
            for case in mark.args[1]:
                for inner in getattr(case, "marks", ()):
                    yield getattr(inner, "mark", inner)


def _shown() -> set[tuple[str, str]]:
    return {
        (mark.args[0], defect_id)
        for module in _modules()
        for name, test in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("test_")
        for mark in _marks(test)
        if mark.name == "mends"
        for defect_id in mark.args[1:]
    }


SHOWN = _shown()


@pytest.mark.parametrize("competition", ALL, ids=lambda competition: competition.id)
def test_every_mended_defect_is_shown_by_a_test(competition: Competition) -> None:
    mended = {
        defect.id
        for defect in competition.defects
        if defect.treatment == "mended" and defect.severity != "cosmetic"
    }
    assert not mended - {defect_id for competition_id, defect_id in SHOWN if competition_id == competition.id}
