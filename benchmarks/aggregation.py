"""Aggregating a leaderboard row from many results, beside reading as much from JSON."""

from __future__ import annotations

from benchmarks.measuring import Comparison, compare, python

_RESULTS = """
from competitions.registry import splits
from engine.scoreboard import Measure, Result, aggregate
members = splits()["split75"]
earned = frozenset({Measure.SUBMISSION, Measure.VALID, Measure.GOLD, Measure.ANY_MEDAL})
aggregate([Result(members[i % 75], earned) for i in range(10_000)], members, pad_missing=True)
"""
_JSON = """
import json
json.loads(json.dumps([{"competition_id": str(i % 75), "score": i / 7, "any_medal": True} for i in range(10_000)]))
"""


def measure(rounds: int) -> list[Comparison]:
    """Measure what a row of 10,000 reports costs."""
    return [
        compare(
            "aggregate",
            python("aggregate 10,000 results", "-c", _RESULTS),
            python("10,000 reports through JSON", "-c", _JSON),
            promise=None,
            rounds=rounds,
        )
    ]
