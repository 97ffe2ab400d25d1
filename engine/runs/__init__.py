"""Runs: scheduling, launching, taking in what runners report, grading, and the causes of failures."""
