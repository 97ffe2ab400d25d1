"""Runs: which start when, their launch, what their runners report, their grading, why they failed."""
