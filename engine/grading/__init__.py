"""Grading submissions against prepared datasets: reports on one and on many.

Scores are computed by `competitions.judging`, under limits by `competitions.grader`; nothing here knows a metric.
"""
