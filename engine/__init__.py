"""The detached engine: datasets, runs, grading and scoreboard, without a user interface."""
