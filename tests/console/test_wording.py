"""Sizes, times, durations and scores read the same on every screen and from every command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.engine.needs.waits import job_wait
from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, NoEnd
from mlebench_console.state.records import OwnReason
from tests.slurm.fake import attempt_of


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (84_000, "84 kB"),
        (1_900_000_000, "1.9 GB"),
        (82_600_000_000, "82.6 GB"),
        (3.3e12, "3.3 TB"),
    ],
)
def test_sizes(count: int | None, text: str) -> None:
    assert wording.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (-1, "0s"),
        (0, "0s"),
        (0.42, "0.4s"),
        (59.4, "59s"),
        (60, "1m"),
        (3599, "59m59s"),
        (3600, "1h"),
        (90_000, "25h"),
        (180_000, "2d02h"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert wording.duration(seconds) == text


def test_moments_are_local_and_to_the_minute() -> None:
    assert wording.date_and_time(None) == "-"
    assert len(wording.date_and_time(0.0)) == len("1970-01-01 00:00")


@pytest.mark.parametrize(
    ("facts", "short", "text"),
    [
        ({"waits_for": "Priority"}, ("Priority",), "Priority: other jobs go first"),
        (
            {"waits_for": "Resources", "starts_at": 7260.0, "job_priority": 4321},
            ("Resources ~02:01", "~02:01"),
            "Resources: it is next, when resources are free, may start ~02:01, priority 4,321",
        ),
        ({"waits_for": "Priority", "starts_at": 260_000.0},
         ("Priority ~3d", "~3d"), "Priority: other jobs go first, may start in ~3d"),
        ({"waits_for": "AssocGrpCpuLimit"}, ("limit",), "AssocGrpCpuLimit: a limit of your account or qos is reached"),
        ({"waits_for": "ReqNodeNotAvail"},
         ("no nodes",), "ReqNodeNotAvail: nodes that it may use are away or reserved"),
        ({"waits_for": "None"}, ("waits",), "Slurm has not looked at it yet"),
        ({"waits_for": "SomethingNew"}, ("SomethingNew",), "SomethingNew"),
        ({"waits_for": OwnReason.STAGING, "staged_bytes": 3_100_000_000, "to_stage_bytes": 12_000_000_000},
         ("staging 25%",), "staging 25%: 3.1 of 12.0 GB"),
        ({"waits_for": OwnReason.STAGING}, ("staging",), "staging"),
        ({"waits_for": OwnReason.IMAGE},
         ("image",), "an image of its dataset is being made, once for all its runs"),
        ({"waits_for": OwnReason.SUBMIT_LIMIT},
         ("to submit",), "to be submitted: Slurm takes no more of your jobs now"),
    ],
)  # fmt: skip
def test_why_a_job_waits_and_until_when(facts: dict[str, Any], short: tuple[str, ...], text: str) -> None:
    attempt = replace(attempt_of(1), **facts)
    wait = job_wait(attempt)
    assert wait is not None
    assert wording.waits_short(wait, 0.0) == short
    assert wording.waits(wait, 0.0) == text
    assert job_wait(replace(attempt, ended_at=1.0)) is None
    assert attempt.is_in_queue == (facts["waits_for"] != OwnReason.STAGING)


def test_a_score_reads_like_a_cut_off_only_if_it_is_the_cut_off() -> None:
    cuts = registry.get("aptos2019-blindness-detection").thresholds
    assert wording.score_beside(cuts.bronze, cuts) == wording.score(cuts.bronze) == "0.91449"
    assert wording.score_beside(cuts.bronze - 1e-8, cuts) == "<0.91449"
    assert wording.score_beside(cuts.bronze + 1e-8, cuts) == ">0.91449"
    assert wording.score_beside(0.5, cuts) == wording.score_beside(0.5, None) == "0.50000"


def test_why_no_end_is_known_has_words_or_stands_elsewhere() -> None:
    assert set(wording.NO_END) == set(NoEnd)
    assert wording.sweep_end(NoEnd.DATASETS, 0.0) == "waits for data"
    assert wording.sweep_end(ExpectedEnd(7260.0, at_most=True), 0.0) == "ends by 02:01"


def test_an_end_nearly_a_day_ahead_is_told_with_its_date() -> None:
    now = 1_773_457_200.0
    for hours, has_date in ((2, False), (19, False), (23.99, True), (30, True)):
        told = wording.expected(ExpectedEnd(now + hours * 3600, at_most=False), now)
        assert ("-" in told) == has_date, told
