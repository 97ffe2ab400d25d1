"""The scoreboard: from outcomes of runs to leaderboard rows that can be trusted, compared and exported.

Everything starts with `model.Evidence`: the trials behind a row, whether they are our own runs or imported reports.
Rows, insight, comparisons and exports are computed from it alone.
"""
