"""What a key may send is shared by all runs of a host: fairly, without permits that anybody could lose."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from mlebench_console.environment.gateway.rates import KeyRate
from tests.clocks import HandClock


class Key:
    """The runs that use one key."""

    def __init__(self, folder: Path, *, requests: float | None = None, tokens: float | None = None) -> None:
        self.path = folder / "key.rate"
        self.clock = HandClock()
        self.limits = {"requests": requests, "tokens": tokens}

    def run(self, name: str) -> KeyRate:
        clock = self.clock.monotonic
        return KeyRate(
            self.path, name, requests=self.limits["requests"], tokens=self.limits["tokens"], clock=clock
        )

    def pass_time(self, seconds: float) -> None:
        self.clock.moment += seconds


def test_no_more_goes_out_than_the_limit_and_ten_seconds_of_it_at_once(tmp_path: Path) -> None:
    key = Key(tmp_path, requests=60)
    run = key.run("a")
    sent = 0
    for _ in range(600):
        while run.take(0) is None:
            sent += 1
        key.pass_time(0.1)
    assert sent == pytest.approx(60 + 10, abs=1)


def test_one_that_calls_all_the_time_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    key = Key(tmp_path, requests=60)
    greedy, modest = key.run("greedy"), key.run("modest")
    while greedy.take(0) is None:
        pass
    sent = {"greedy": 0, "modest": 0}
    for _ in range(1200):
        # The greedy one asks ten times as often.
        sent["greedy"] += sum(greedy.take(0) is None for _ in range(10))
        sent["modest"] += modest.take(0) is None
        key.pass_time(0.05)
    assert sent["modest"] == pytest.approx(sent["greedy"], abs=2)
    assert sum(sent.values()) == pytest.approx(60, abs=2)


def test_runs_share_tokens_by_what_they_use_and_not_by_how_often_they_call(tmp_path: Path) -> None:
    key = Key(tmp_path, tokens=60_000)
    large, small = key.run("large"), key.run("small")
    sent = {"large": 0, "small": 0}
    for _ in range(6000):
        sent["large"] += 5000 * (large.take(5000) is None)
        sent["small"] += 500 * (small.take(500) is None)
        key.pass_time(0.05)
    assert sent["small"] == pytest.approx(sent["large"], rel=0.1)
    assert sum(sent.values()) == pytest.approx(300_000, rel=0.1)


def test_a_call_of_more_than_goes_out_at_once_is_sent_and_paid_back(tmp_path: Path) -> None:
    key = Key(tmp_path, tokens=6000)
    run = key.run("a")
    assert run.take(4000) is None
    assert run.take(1) is not None
    key.pass_time(29.9)
    assert run.take(1) is not None
    key.pass_time(0.2)
    assert run.take(1) is None


def test_what_a_call_has_not_used_is_given_back(tmp_path: Path) -> None:
    key = Key(tmp_path, tokens=6000)
    run = key.run("a")
    assert run.take(1000) is None
    assert run.take(900) is not None
    assert run.settle(1000, 50)
    assert run.take(900) is None


def test_one_that_was_killed_while_it_waited_delays_the_others_for_two_seconds_at_most(
    tmp_path: Path,
) -> None:
    key = Key(tmp_path, requests=60)
    busy, killed = key.run("busy"), key.run("killed")
    while busy.take(0) is None:
        pass
    assert killed.take(0) is not None
    key.pass_time(1.5)
    assert busy.take(0) is not None  # it is the other one's turn
    key.pass_time(1.0)
    assert busy.take(0) is None


def test_one_that_waits_no_longer_leaves_its_turn_to_others_at_once(tmp_path: Path) -> None:
    key = Key(tmp_path, requests=60)
    busy, gone = key.run("busy"), key.run("gone")
    while busy.take(0) is None:
        pass
    assert gone.take(0) is not None
    key.pass_time(1.5)
    assert busy.take(0) is not None
    assert gone.leave()
    assert busy.take(0) is None


def test_time_without_calls_is_no_right_to_many_later(tmp_path: Path) -> None:
    key = Key(tmp_path, requests=60)
    steady, late = key.run("steady"), key.run("late")
    for _ in range(600):
        steady.take(0)
        key.pass_time(0.5)
    sent = {"steady": 0, "late": 0}
    for _ in range(1000):
        sent["late"] += late.take(0) is None
        sent["steady"] += steady.take(0) is None
        key.pass_time(0.05)
    assert sent["steady"] == pytest.approx(sent["late"], abs=12)  # but for the ten seconds at once


def test_a_lock_that_somebody_holds_and_a_torn_file_stop_nobody(tmp_path: Path) -> None:
    key = Key(tmp_path, requests=60)
    run = key.run("a")
    key.path.write_text('{"at": 1')
    with key.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run.take(0) is not None
        assert not run.settle(1, 1)
    assert run.take(0) is None
