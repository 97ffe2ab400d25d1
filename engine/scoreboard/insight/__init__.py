"""What evidence tells beyond its row: chances, time, failures, noise, flags and effort; numbers only, no output."""

from engine.scoreboard.insight.effort import Effort, effort_of
from engine.scoreboard.insight.endings import ENDINGS, EndingsOfSplit, ending_of, endings_by_split
from engine.scoreboard.insight.flags import Flag, flags_of
from engine.scoreboard.insight.over_time import HOURS, Curve, TimePoint, curves_of, what_if
from engine.scoreboard.insight.passing import PassAtK, pass_at_k
from engine.scoreboard.insight.prices import Cost, Prices, cost_of, read_prices
from engine.scoreboard.insight.stability import Detectable, Stability, stability_of

__all__ = [
    "ENDINGS",
    "HOURS",
    "Cost",
    "Curve",
    "Detectable",
    "Effort",
    "EndingsOfSplit",
    "Flag",
    "PassAtK",
    "Prices",
    "Stability",
    "TimePoint",
    "cost_of",
    "curves_of",
    "effort_of",
    "ending_of",
    "endings_by_split",
    "flags_of",
    "pass_at_k",
    "read_prices",
    "stability_of",
    "what_if",
]
