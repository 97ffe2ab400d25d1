from __future__ import annotations

import pytest

from mlebench_console.state.lifecycle import (
    ALLOWED_AFTER,
    ENDED,
    LIVE,
    ForbiddenTransition,
    RunState,
    require_allowed,
)


def test_every_state_is_queued_live_or_ended() -> None:
    assert {RunState.QUEUED} | LIVE | ENDED == set(RunState)
    assert not LIVE & ENDED


def test_an_ended_run_can_only_be_queued_again() -> None:
    assert {ALLOWED_AFTER[state] for state in ENDED} == {frozenset({RunState.QUEUED})}


def test_every_live_state_can_fail() -> None:
    assert all(RunState.FAILED in ALLOWED_AFTER[state] for state in LIVE)


def test_no_state_follows_itself() -> None:
    assert not any(state in ALLOWED_AFTER[state] for state in RunState)


def test_a_forbidden_step_names_the_run_and_what_would_be_possible() -> None:
    with pytest.raises(ForbiddenTransition) as caught:
        require_allowed("7", RunState.QUEUED, RunState.FINISHED)
    assert (
        str(caught.value)
        == "run 7 can't become finished: it is queued, which can only become starting, stopped"
    )
