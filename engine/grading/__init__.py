"""Grading submissions against prepared datasets: reports on one and on many.

Scoring itself is `competitions.judging`, doing it under limits `competitions.grader`; nothing here knows a metric.
"""
