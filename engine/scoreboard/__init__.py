"""From outcomes of runs to leaderboard rows: aggregation, own experiments, published rows; it shows nothing."""

from engine.scoreboard.aggregation import aggregate
from engine.scoreboard.experiments import own_rows
from engine.scoreboard.model import COLUMNS, Cell, Measure, Result, Row, Standing
from engine.scoreboard.published import published_rows

__all__ = [
    "COLUMNS",
    "Cell",
    "Measure",
    "Result",
    "Row",
    "Standing",
    "aggregate",
    "own_rows",
    "published_rows",
]
