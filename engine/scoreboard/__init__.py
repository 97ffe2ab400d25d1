"""The scoreboard: from outcomes of runs to leaderboard rows that can be trusted, compared and exported.

Everything starts with `Evidence`: the trials behind a row, whether they are our own runs or
imported reports. Rows, insight, comparisons and exports are computed from it alone.
"""

from mlebench_console.engine.scoreboard.aggregation import aggregate, interim_of, row_of
from mlebench_console.engine.scoreboard.comparison import Comparison, Difference, Duel, Side, compare
from mlebench_console.engine.scoreboard.export import RowFormat, disclose, row_text
from mlebench_console.engine.scoreboard.model import (
    COLUMNS,
    MEASURES_BY_INTEREST,
    Cell,
    Evidence,
    Interim,
    Measure,
    Results,
    Row,
    Standing,
    Trial,
    results_of,
)
from mlebench_console.engine.scoreboard.own_runs import find_evidence, own_evidence
from mlebench_console.engine.scoreboard.published import published_rows
from mlebench_console.engine.scoreboard.reports import imported_evidence, load_evidence

__all__ = [
    "COLUMNS",
    "MEASURES_BY_INTEREST",
    "Cell",
    "Comparison",
    "Difference",
    "Duel",
    "Evidence",
    "Interim",
    "Measure",
    "Results",
    "Row",
    "RowFormat",
    "Side",
    "Standing",
    "Trial",
    "aggregate",
    "compare",
    "disclose",
    "find_evidence",
    "imported_evidence",
    "interim_of",
    "load_evidence",
    "own_evidence",
    "published_rows",
    "results_of",
    "row_of",
    "row_text",
]
