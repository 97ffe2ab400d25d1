"""Records within records, and the flat names by which options and documents have their values."""

from __future__ import annotations

import pytest

from mlebench_console.foundation.conditions import Budget, ModelTerms, Resources, RunConditions
from mlebench_console.foundation.fields import differences, flat, from_flat

CONDITIONS = RunConditions(
    60.0, resources=Resources(gpus=2), models=ModelTerms(("openai",), ("mcp",), Budget(calls=9, usd=2.5))
)


def test_each_value_has_one_flat_name_and_comes_back_by_it() -> None:
    values = flat(CONDITIONS)
    assert (values["time_limit_seconds"], values["gpus"], values["gateway"]) == (60.0, 2, ("openai",))
    assert (values["model_grants"], values["budget_calls"], values["budget_usd"]) == (("mcp",), 9, 2.5)
    assert from_flat(RunConditions, values) == CONDITIONS


def test_what_is_left_out_has_its_default_and_an_unknown_name_is_an_error() -> None:
    assert from_flat(RunConditions, {"time_limit_seconds": 1.0, "cpus": 2.0}).resources == Resources(cpus=2.0)
    with pytest.raises(KeyError, match="colour"):
        from_flat(RunConditions, {"time_limit_seconds": 1.0, "colour": "red"})


def test_differences_are_found_in_records_within_records() -> None:
    other = from_flat(RunConditions, flat(CONDITIONS) | {"gpus": 1, "budget_calls": None})
    assert differences(CONDITIONS, other) == {"gpus": (2, 1), "budget_calls": (9, None)}
    assert differences(CONDITIONS, CONDITIONS) == {}
