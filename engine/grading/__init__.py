"""Grading submissions: reports of one and of many, in this process or in a limited child.

Scoring itself is in `competitions.judging`; nothing here knows a metric.
"""
