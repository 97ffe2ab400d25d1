"""Outages of model providers: told once, with the runs that wait, and over when calls are answered again."""

from __future__ import annotations

import pytest

from mlebench_console.state import events, runs, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.usage import outages
from mlebench_console.state.usage.outages import CallEnd, CallFailure


@pytest.fixture
def attempts(swept: Database) -> list[int]:
    """Three live attempts."""
    members = runs.of_sweep(swept, "dummy-1")[:3]
    return [
        transitions.launch(swept, run.id, directory=f"runs/{run.id}", runtime="plain", now=1.0).id
        for run in members
    ]


def busy(at: float) -> CallEnd:
    return CallEnd("openai", at, CallFailure.LIMITED, 429, "slow down")


def away(at: float) -> CallEnd:
    return CallEnd("openai", at, CallFailure.UNREACHABLE, 0, "no route")


def kinds(database: Database) -> list[str]:
    found = [event.kind for event in events.newest(database)]
    return [kind for kind in reversed(found) if kind.startswith("provider.")]


def test_a_single_call_that_is_put_off_is_no_outage(swept: Database, attempts: list[int]) -> None:
    for at in (10.0, 12.0, 14.0):
        outages.note(swept, attempts[0], [busy(at), CallEnd("openai", at + 1)], now=at)
    assert outages.current(swept) == []
    outages.settle(swept, now=100.0)
    assert (kinds(swept), outages.met_at_last(swept, attempts[0])) == ([], [])


def test_an_outage_is_told_once_with_all_its_runs_and_when_it_is_over(
    swept: Database, attempts: list[int]
) -> None:
    first, second, third = attempts
    outages.note(swept, first, [busy(10.0)], now=11.0)
    outages.note(swept, second, [busy(11.0), busy(12.0), busy(13.0), busy(14.0)], now=15.0)
    outages.note(swept, third, [busy(15.0), CallEnd("openai", 16.0)], now=17.0)
    (outage,) = outages.current(swept)
    assert (outage.provider, outage.answer, outage.since, outage.last_at) == ("openai", "answers 429", 10, 15)
    assert (outage.calls, outage.limited, outage.runs, outage.waiting) == (6, 6, 3, 2)
    assert outages.unreachable(swept) == frozenset()
    outages.settle(swept, now=60.0)  # agents at a limit are answered in between
    assert outages.current(swept) == [outage]
    outages.settle(swept, now=80.0)
    assert outages.current(swept) == []
    closed = swept.row("SELECT until FROM outages")
    assert closed is not None
    assert closed["until"] == 16.0
    assert kinds(swept) == ["provider.outage", "provider.works"]
    outages.note(swept, first, [busy(200.0)], now=200.0)
    assert outages.current(swept) == []  # another one begins, of which nothing is known yet


def test_an_outage_in_which_nobody_asks_any_more_is_forgotten(swept: Database, attempts: list[int]) -> None:
    outages.note(swept, attempts[0], [away(10.0), away(11.0), away(12.0)], now=13.0)
    outages.settle(swept, now=500.0)
    assert outages.unreachable(swept) == {"openai"}
    outages.settle(swept, now=700.0)
    assert outages.current(swept) == []
    assert "not asked any more" in events.newest(swept, limit=1)[0].text


def test_what_an_attempt_met_at_last_is_known_until_it_is_answered(
    swept: Database, attempts: list[int]
) -> None:
    outages.note(swept, attempts[0], [away(10.0), away(11.0), away(12.0)], now=13.0)
    (met,) = outages.met_at_last(swept, attempts[0])
    assert (met.calls, met.since, met.last_at, met.is_unreachable, met.confirmed) == (3, 10, 12, True, True)
    outages.note(swept, attempts[0], [busy(13.0)], now=13.0)
    (met,) = outages.met_at_last(swept, attempts[0])
    assert (met.calls, met.is_unreachable) == (4, False)
    outages.note(swept, attempts[0], [CallEnd("openai", 14.0)], now=14.0)
    assert outages.met_at_last(swept, attempts[0]) == []


def test_outages_go_with_the_sweep_whose_runs_met_them(swept: Database, attempts: list[int]) -> None:
    from mlebench_console.state import sweeps

    outages.note(swept, attempts[0], [away(10.0), away(11.0), away(12.0)], now=13.0)
    for run in runs.of_sweep(swept, "dummy-1"):
        transitions.stopped(swept, run.id, by="me", now=14.0)
    sweeps.remove(swept, "dummy-1")
    (outage,) = outages.current(swept)
    assert (outage.calls, outage.runs, outage.waiting) == (3, 0, 0)
